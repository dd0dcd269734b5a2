//! Errors as `application/problem+json`, and request bodies that become one when they are wrong.

mod code;
pub(super) mod page;

use std::{any::Any, fmt, marker::PhantomData};

use axum::{
    Json,
    extract::{FromRequest, Request, rejection::JsonRejection},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};
use server_app::AppError;
use shared_api::Problem;

use self::code::About;
pub(crate) use self::code::Code;
use super::signed::Asked;
use crate::Doors;

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

/// A JSON object of at most `MAX_API_BODY_BYTES`; anything else is a problem that says what.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequest<Doors> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, doors: &Doors) -> Result<Self, Response> {
        let asked = Asked::of(request.extensions());
        let body = Json::<Object<T>>::from_request(request, doors).await;
        let Json(Object(value)) = body.map_err(|rejection| respond(body_problem(&rejection)))?;
        asked.again(doors).await?;
        Ok(Self(value))
    }
}

/// Read from an object and nothing else: on its own, a message would be read from a list as well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

/// Whatever is wrong with a body but its size is one problem: it is not what is documented.
fn body_problem(rejection: &JsonRejection) -> Problem {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
        _ => Code::Invalid,
    };
    code.problem(rejection.body_text())
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
