//! The calls of enrolment as a server double answers them: sealed and signed as the real ones are, and
//! everybody is let in.

use proto::{
    agreement::Ephemeral,
    enrolling, signing,
    v1::{self, enrol_answer::Answer},
};
use shared_types::RunnerId;
use tonic::Status;

/// The private half of the key that enrolments are sealed to.
const SEALING_SECRET: [u8; 32] = [6; 32];

/// Says who is there, with this challenge and audience.
pub fn identified(
    request: &v1::IdentifyRequest,
    said: v1::IdentifyReply,
    sign: impl Fn(&[u8]) -> Vec<u8>,
) -> v1::IdentifyReply {
    let mut reply = v1::IdentifyReply {
        sealing_key: Ephemeral::of(SEALING_SECRET).public(),
        ..said
    };
    reply.signature = sign(&signing::identify(&request.nonce, &reply));
    reply
}

/// Gives the runner this id, and the name that it wants, or another one where it wants none.
///
/// # Errors
/// If the request is not sealed to this double.
pub fn enrolled(
    request: &v1::EnrolRequest,
    runner: RunnerId,
    name: &str,
) -> Result<v1::EnrolReply, Status> {
    let opened = enrolling::open(Ephemeral::of(SEALING_SECRET), request);
    let (content, reply) = opened.map_err(|error| Status::invalid_argument(error.to_string()))?;
    let name = match content.name.is_empty() {
        true => name.to_owned(),
        false => content.name,
    };
    let runner = runner.to_string();
    Ok(reply.seal(Answer::Enrolled(v1::Enrolled { runner, name })))
}

/// Lets the runner in with this token; each time with the next join state.
pub fn let_in(
    request: &v1::AuthenticateRequest,
    (runner, access_token): (RunnerId, &str),
    sign: impl Fn(&[u8]) -> Vec<u8>,
) -> v1::AuthenticateReply {
    let join_state = request.join_state + 1;
    let mut reply = v1::AuthenticateReply {
        access_token: access_token.to_owned(),
        expires_in_s: 600,
        join_state,
        join_state_signature: sign(&signing::join_state(runner, join_state)),
        signature: Vec::new(),
    };
    reply.signature = sign(&signing::authenticated(&request.challenge, runner, &reply));
    reply
}
