//! The frames on a link that the runner believes (docs/internals/contracts.md#b6). The first is the
//! challenge that the server's identity key signed for this link's access token. Behind it only frames
//! count that are sealed with a key that is made of the challenge. A party that can send frames, and does
//! not hold the identity key, starts, ends and changes nothing here, and makes the runner forget nothing.

use std::time::Duration;

use proto::{
    PROTOCOL_VERSION,
    agreement::Ephemeral,
    sealing::{KeyPlace, LinkKeys, NotSealed, Opener},
    signing,
    v1::{self, runner_frame, server_frame::Kind},
};
use shared_types::{Entropy, RunnerId};

use crate::key::{RunnerKey, ServerIdentity};

/// The greatest age of a frame when it arrives. It is counted from the link's challenge on both sides, so
/// no wall clock is asked.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The greatest difference of the two counts, since the challenge takes its time to arrive.
const SKEW: Duration = Duration::from_secs(10);

/// The runner's reading of one link.
pub(super) struct Hearing<'a> {
    identity: &'a ServerIdentity,
    runner: RunnerId,
    access_token: &'a str,
    stage: HearingStage,
}

/// The progress of the link.
enum HearingStage {
    Called,
    Challenged(v1::Challenge, Duration),
    Open {
        opener: Opener<v1::ServerFrame>,
        /// When the challenge came.
        challenged: Duration,
    },
}

/// A frame is not from the server that the runner is enrolled with, or not for this link. It ends the
/// link, and nothing is answered: a peer in the server's place must not even learn of an operation, still
/// less have its end reported. The server sends again what it meant, over the next link.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unproven {
    /// The first frame.
    #[error(
        "the link does not begin with a challenge that the server signed for it: check what stands between the two, or upgrade gantry-server"
    )]
    Challenge,
    /// Any other.
    #[error(transparent)]
    Frame(#[from] NotSealed),
    /// The server's, but of another time.
    #[error("a frame of the server's came {} s after it was sent: check what holds it back", .0.as_secs())]
    Late(Duration),
    /// It would have been sent in the future.
    #[error("a frame of the server's was sent later than now, by the time since the link began")]
    Early,
}

impl<'a> Hearing<'a> {
    /// A link of this runner that begins, called with this token.
    pub(super) fn new(
        identity: &'a ServerIdentity,
        runner: RunnerId,
        access_token: &'a str,
    ) -> Self {
        Self {
            identity,
            runner,
            access_token,
            stage: HearingStage::Called,
        }
    }

    /// Opens a frame that arrived at `now` (boot-time clock). The time that it took on its way is taken
    /// from the time in which an operation must start.
    ///
    /// # Errors
    /// If it is not the server's next frame on this link, or too old.
    pub(super) fn open(
        &mut self,
        frame: v1::ServerFrame,
        now: Duration,
    ) -> Result<v1::ServerFrame, Unproven> {
        match &mut self.stage {
            HearingStage::Called => {
                let Some(Kind::Challenge(challenge)) = &frame.kind else {
                    return Err(Unproven::Challenge);
                };
                let signed = signing::challenge(self.access_token, challenge);
                if !self.identity.signed(&signed, &challenge.signature) {
                    return Err(Unproven::Challenge);
                }
                self.stage = HearingStage::Challenged(challenge.clone(), now);
                Ok(frame)
            }
            // The server has nothing to say before it has the proof.
            HearingStage::Challenged(..) => Err(Unproven::Challenge),
            HearingStage::Open { opener, challenged } => {
                let mut frame = opener.open(frame)?;
                let age = age(&frame, now.saturating_sub(*challenged))?;
                if let Some(Kind::Operation(operation)) = &mut frame.kind {
                    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
                    operation.start_within_ms = operation.start_within_ms.saturating_sub(age);
                }
                Ok(frame)
            }
        }
    }

    /// Answers the challenge that came: the proof with this hello. The runner seals with the key that
    /// goes to `seals` from now on.
    ///
    /// # Errors
    /// If no challenge came, or one with which there is no secret.
    pub(super) fn prove(
        &mut self,
        hello: v1::Hello,
        key: &RunnerKey,
        entropy: &dyn Entropy,
        seals: &KeyPlace<v1::RunnerFrame>,
    ) -> Result<v1::RunnerFrame, Unproven> {
        let HearingStage::Challenged(challenge, challenged) = &self.stage else {
            return Err(Unproven::Challenge);
        };
        let (challenged, ours) = (*challenged, Ephemeral::generate(entropy));
        let mut proof = Box::new(v1::Proof {
            signature: Vec::new(),
            protocol_version: PROTOCOL_VERSION,
            ephemeral_key: ours.public(),
            hello: None,
        });
        proof.signature = key.sign(&signing::proof(self.access_token, challenge, &proof));
        let keys = LinkKeys::of_runner(self.runner, ours, challenge);
        let keys = keys.ok_or(Unproven::Challenge)?;
        let hello = frame(runner_frame::Kind::Hello(Box::new(hello)));
        proof.hello = Some(keys.from_runner.seal_first(&hello));
        seals.put(keys.from_runner);
        let opener = Opener::new(keys.from_server);
        self.stage = HearingStage::Open { opener, challenged };
        Ok(frame(runner_frame::Kind::Proof(proof)))
    }
}

/// The time that a frame was on its way, where the challenge came so long ago.
fn age(frame: &v1::ServerFrame, elapsed: Duration) -> Result<Duration, Unproven> {
    let sent = Duration::from_millis(frame.sent_ms);
    if sent > elapsed + SKEW {
        return Err(Unproven::Early);
    }
    let age = elapsed.saturating_sub(sent);
    match age > GOOD_FOR {
        true => Err(Unproven::Late(age)),
        false => Ok(age),
    }
}

fn frame(kind: runner_frame::Kind) -> v1::RunnerFrame {
    v1::RunnerFrame { kind: Some(kind) }
}

#[cfg(test)]
mod tests;
