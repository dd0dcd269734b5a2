//! `Idempotency-Key`: a request that makes something is carried out once, however often it is sent.
//!
//! The server takes the key before it carries the request out. It then finishes the request even if the client leaves,
//! so that the answer is stored. It does not keep a refusal, because nothing was made. If it cannot know whether
//! something was made, it says so and does not repeat the request.

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{FromRequest as _, FromRequestParts as _, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use server_app::{
    AppError, Keyed, MAX_ANSWER_BYTES, OpContext, RequestAnswer, TakenKey, rights::Action,
};
use shared_types::Digest;
use tracing::Instrument as _;

use super::{Code, Refused, Signed, problem::body_problem, respond, signed::CredentialCheck};
use crate::{Doors, words};

/// Longest key, in bytes.
pub(super) const MAX_KEY_BYTES: usize = 255;

/// The header with the key.
pub(super) const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The header of an answer that is given again.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A route that takes a key, because a POST to it makes something.
pub(super) struct Keeps {
    /// Its address, with places for ids.
    pub(super) path: &'static str,
    /// Its action.
    action: Action,
    /// True if its answer holds a secret and so is not kept.
    is_secret: bool,
}

const fn keeps(path: &'static str, action: Action, is_secret: bool) -> Keeps {
    Keeps {
        path,
        action,
        is_secret,
    }
}

/// All that takes a key, but for operations, whose keys are their own and hold for ever.
pub(super) const KEEPS: [Keeps; 13] = [
    keeps("/api/v1/sessions", Action::BeginSession, false),
    keeps("/api/v1/sessions/{id}/messages", Action::SendMessage, false),
    keeps("/api/v1/sessions/{id}/commands", Action::SendMessage, false),
    keeps("/api/v1/sessions/{id}/rewind", Action::SendMessage, false),
    keeps("/api/v1/sessions/{id}/links", Action::ShareSession, true),
    keeps("/api/v1/keys", Action::MakeKey, true),
    keeps("/api/v1/people", Action::InvitePerson, true),
    keeps("/api/v1/service-accounts", Action::AddServiceAccount, false),
    keeps(
        "/api/v1/service-accounts/{id}/keys",
        Action::ManageServiceKeys,
        true,
    ),
    keeps("/api/v1/permissions", Action::ChangeSettings, false),
    keeps(
        "/api/v1/permissions/projects",
        Action::ChangeSettings,
        false,
    ),
    keeps("/api/v1/sandboxes", Action::ChangeSandbox, false),
    keeps("/api/v1/join-tokens", Action::MakeJoinToken, true),
];

/// Carries a request with a key out once; every other request as it is.
pub(crate) async fn once(State(doors): State<Doors>, request: Request, next: Next) -> Response {
    let keeps = kept(&request);
    match keeps.filter(|_| request.headers().contains_key(IDEMPOTENCY_KEY)) {
        Some(keeps) => match keyed(doors, keeps, request, next).await {
            Ok(answer) | Err(answer) => answer,
        },
        None => next.run(request).await,
    }
}

fn kept(request: &Request) -> Option<&'static Keeps> {
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let is_post = request.method() == Method::POST;
    KEEPS.iter().find(|keeps| is_post && keeps.path == path)
}

async fn keyed(
    doors: Doors,
    keeps: &'static Keeps,
    request: Request,
    next: Next,
) -> Result<Response, Response> {
    let (mut parts, body) = request.into_parts();
    let signed = Signed::from_request_parts(&mut parts, &doors).await;
    let Signed(ctx) = signed?;
    let key = key(&parts.headers, MAX_KEY_BYTES).map_err(refused)?;
    let request = Request::from_parts(parts.clone(), body);
    let asked = CredentialCheck::of(&parts.extensions);
    let body = Bytes::from_request(request, &doors).await;
    asked.again(&doors).await?;
    let body =
        body.map_err(|wrong| respond(body_problem(wrong.status(), words::of_bytes(&wrong))))?;
    let digest = digest(&parts, &body);
    let key = key.unwrap_or_default();
    let request = Request::from_parts(parts, Body::from(body));
    let work = async move {
        let requests = &doors.app.requests;
        match requests.take(&ctx, keeps.action, key, digest).await {
            Ok(Keyed::Once(taken)) => carried_out(&doors, keeps, taken, request, next).await,
            Ok(known) => told(known),
            Err(error) => refused(error),
        }
    };
    // A task of its own continues if the client leaves, so that a taken key gets its answer.
    let done = tokio::spawn(work.in_current_span()).await;
    Ok(done.unwrap_or_else(|panic| super::panicked(Box::new(panic))))
}

/// The result of the check of a request's credential, so that it is looked up once.
#[derive(Clone)]
pub(super) struct CheckedCredential(pub(super) OpContext);

/// The request's own bytes: the same words in another order are another request.
fn digest(parts: &Parts, body: &[u8]) -> Digest {
    let address = parts
        .uri
        .path_and_query()
        .map_or("", |address| address.as_str());
    Digest::of(&[address.as_bytes(), b"\0", body].concat())
}

/// The answer where the request is not carried out.
fn told(known: Keyed) -> Response {
    match known {
        Keyed::Again(RequestAnswer {
            status,
            text: Some(text),
            ..
        }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let json = HeaderValue::from_static("application/json");
            let yes = HeaderValue::from_static("true");
            (status, [(header::CONTENT_TYPE, json), (REPLAYED, yes)], text).into_response()
        }
        Keyed::Again(RequestAnswer { made, .. }) => {
            let made = made.map_or(String::new(), |id| format!(" and made {id}"));
            respond(Code::AnswerNotKept.problem(format!(
                "the request with this Idempotency-Key was carried out{made}; its answer is not kept, because \
                 it held a secret or what it made was deleted: remove what was made, and ask again with \
                 another key"
            )))
        }
        Keyed::OtherRequest => respond(Code::KeyReused.problem(
            "this Idempotency-Key was sent with another request within the last 24 hours; send each request \
             with a key of its own",
        )),
        Keyed::UnderWay => {
            let mut answer = respond(Code::UnderWay.problem(
                "the request with this Idempotency-Key is being carried out; ask again in a second",
            ));
            answer.headers_mut().insert(header::RETRY_AFTER, 1.into());
            answer
        }
        Keyed::Unknown | Keyed::Once(_) => respond(Code::OutcomeUnknown.problem(
            "the server was cut off or failed while it carried the request with this Idempotency-Key out; look whether \
             it was done, and if not, send it with another key",
        )),
    }
}

/// Carries the request out and stores its answer.
async fn carried_out(
    doors: &Doors,
    keeps: &Keeps,
    taken: TakenKey,
    request: Request,
    next: Next,
) -> Response {
    let answer = next.run(request).await;
    let (status, requests) = (answer.status(), &doors.app.requests);
    if status.is_server_error() {
        // The request may have been carried out. The key stays without an answer.
        return answer;
    }
    let (parts, body) = answer.into_parts();
    let Ok(body) = to_bytes(body, MAX_ANSWER_BYTES).await else {
        let detail = "the answer is larger than what is kept of a request with an Idempotency-Key";
        return respond(Code::Internal.problem(detail));
    };
    let stored = match status.is_success() {
        true => {
            requests
                .answered(&taken, &to_keep(keeps, status, &body))
                .await
        }
        false => requests.came_to_nothing(&taken).await,
    };
    if let Err(error) = stored {
        tracing::error!(%error, "the answer to a request with an idempotency key was not stored");
    }
    Response::from_parts(parts, Body::from(body))
}

fn to_keep(keeps: &Keeps, status: StatusCode, body: &[u8]) -> RequestAnswer {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let ids = [&json["id"], &json["entry"]["id"], &json["person"]["id"]];
    let made = ids.into_iter().find_map(|id| id.as_str());
    let text = String::from_utf8_lossy(body);
    RequestAnswer {
        status: status.as_u16(),
        made: made.map(str::to_owned),
        text: (!keeps.is_secret).then(|| text.into_owned()),
    }
}

/// The key of a request, if it has one.
///
/// # Errors
/// Fails if it is not one header with 1 to `at_most` visible ASCII characters.
pub(super) fn key(headers: &HeaderMap, at_most: usize) -> Result<Option<String>, AppError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let key = value.to_str().ok().filter(|key| {
        (1..=at_most).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    });
    match (key, values.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => Err(AppError::Invalid(format!(
            "Idempotency-Key has to be one header with 1 to {at_most} visible ASCII characters"
        ))),
    }
}

fn refused(error: AppError) -> Response {
    Refused::from(error).into_response()
}
