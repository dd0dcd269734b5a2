//! Errors as `application/problem+json`, and request bodies that become one when they are wrong.

mod code;
pub(super) mod page;

use std::any::Any;

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest, Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use server_app::AppError;
use shared_api::Problem;

use self::code::About;
pub(crate) use self::code::Code;
use super::signed::CredentialCheck;
use crate::{Doors, named::by_name, words};

/// A use case's error on its way out.
pub(crate) struct Refused(AppError);

impl From<AppError> for Refused {
    fn from(error: AppError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        if let AppError::Unavailable(cause) = &self.0 {
            tracing::error!(cause = %chain(cause.as_ref()), "a request could not be carried out");
        }
        let problem = problem(&self.0);
        let mut response = respond(problem);
        if matches!(self.0, AppError::Unavailable(_)) {
            response.extensions_mut().insert(NotNow);
        }
        if let AppError::TooMany { retry_after_s } | AppError::OverRate { retry_after_s, .. } =
            self.0
        {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
        }
        response
    }
}

/// The error as clients see it.
pub(crate) fn problem(error: &AppError) -> Problem {
    let code = match error {
        AppError::NotFound(_) => Code::NotFound,
        AppError::Invalid(_) => Code::Invalid,
        AppError::Conflict(_) => Code::Conflict,
        AppError::Full(_) => Code::LimitReached,
        AppError::Unauthenticated(_) => Code::Unauthenticated,
        AppError::Forbidden(_) => Code::Forbidden,
        AppError::TooMany { .. } | AppError::OverRate { .. } => Code::TooMany,
        AppError::Unavailable(_) => Code::Unavailable,
    };
    code.problem(error.to_string())
}

/// Marks an answer by which the server says that it cannot do this now.
#[derive(Clone)]
struct NotNow;

/// Has such an answer say why, where the operator can do something about it: as `/readyz` does.
pub(crate) async fn why_not_now(
    State(doors): State<Doors>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    if response.extensions().get::<NotNow>().is_none() {
        return response;
    }
    match doors.app.has_room() {
        Ok(()) => response,
        Err(full) => respond(Code::Unavailable.problem(full.to_string())),
    }
}

/// A JSON object of at most `MAX_API_BODY_BYTES`; anything else is a problem that says what.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned + Serialize + Send> FromRequest<Doors> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, doors: &Doors) -> Result<Self, Response> {
        let asked = CredentialCheck::of(request.extensions());
        let (parts, body) = request.into_parts();
        let body = Bytes::from_request(Request::from_parts(parts.clone(), body), doors).await;
        let refused = |status, words| respond(body_problem(status, words));
        let body = body.map_err(|wrong| refused(wrong.status(), words::of_bytes(&wrong)))?;
        let whole = Request::from_parts(parts, body.clone().into());
        let read = Json::<T>::from_request(whole, doors).await;
        let Json(value) = read.map_err(|wrong| refused(wrong.status(), words::of_json(&wrong)))?;
        if let Err(wrong) = by_name(&body, &value) {
            return Err(respond(Code::Invalid.problem(wrong.to_string())));
        }
        asked.again(doors).await?;
        Ok(Self(value))
    }
}

/// A body of a request with a credential, as it came.
pub(crate) struct WholeBody(pub(crate) Bytes);

impl FromRequest<Doors> for WholeBody {
    type Rejection = Response;

    async fn from_request(request: Request, doors: &Doors) -> Result<Self, Response> {
        let asked = CredentialCheck::of(request.extensions());
        let body = Bytes::from_request(request, doors).await;
        let body =
            body.map_err(|wrong| respond(body_problem(wrong.status(), words::of_bytes(&wrong))))?;
        asked.again(doors).await?;
        Ok(Self(body))
    }
}

/// Every mistake in a body is the same problem, except its size: the body is not as documented.
pub(super) fn body_problem(status: StatusCode, words: String) -> Problem {
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        _ => Code::Invalid,
    };
    code.problem(words)
}

pub(crate) async fn no_such_route() -> Response {
    respond(Code::NotFound.problem("there is no such address; see /api/v1/openapi.json"))
}

pub(crate) async fn no_such_method() -> Response {
    let detail = "this address takes another method; see /api/v1/openapi.json";
    respond(Code::MethodNotAllowed.problem(detail))
}

/// The answer to a request whose handler panicked.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    let detail = "the server has a fault; its log has more";
    respond(Code::Internal.problem(detail))
}

pub(crate) fn respond(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(problem)).into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
