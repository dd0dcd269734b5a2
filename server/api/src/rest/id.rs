//! The id in an address: one that is none is answered like one that names nothing.

use std::str::FromStr;

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use server_app::AppError;
use shared_types::{
    ApprovalId, CredentialId, ExtensionId, JoinTokenId, ModelAccountId, OperationId, RuleId,
    RunnerId, SandboxId, SessionId, UserId,
};

use super::problem::Refused;

/// An id that has the form of one.
pub(crate) struct Id<T>(pub(crate) T);

/// The noun for the thing that an id names.
pub(crate) trait IdNoun: FromStr {
    const NOUN: &'static str;
}

impl IdNoun for SessionId {
    const NOUN: &'static str = "session";
}

impl IdNoun for OperationId {
    const NOUN: &'static str = "operation";
}

impl IdNoun for RunnerId {
    const NOUN: &'static str = "runner";
}

impl IdNoun for SandboxId {
    const NOUN: &'static str = "sandbox";
}

impl IdNoun for CredentialId {
    const NOUN: &'static str = "key";
}

impl IdNoun for JoinTokenId {
    const NOUN: &'static str = "join token";
}

impl IdNoun for ModelAccountId {
    const NOUN: &'static str = "model account";
}

impl IdNoun for ApprovalId {
    const NOUN: &'static str = "approval";
}

impl IdNoun for ExtensionId {
    const NOUN: &'static str = "extension";
}

impl IdNoun for RuleId {
    const NOUN: &'static str = "rule";
}

impl IdNoun for UserId {
    const NOUN: &'static str = "person";
}

/// The id of a user that is a service account.
pub(crate) struct ServiceAccountId(pub(crate) UserId);

impl FromStr for ServiceAccountId {
    type Err = <UserId as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl IdNoun for ServiceAccountId {
    const NOUN: &'static str = "service account";
}

impl<T: IdNoun, S: Send + Sync> FromRequestParts<S> for Id<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let id = path.ok().and_then(|Path(id)| id.parse().ok());
        Ok(Self(id.ok_or(AppError::NotFound(T::NOUN))?))
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, extract::Request, http::header, routing::get};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_no_id_names_nothing() {
        let show = async |Id(id): Id<SessionId>| id.to_string();
        let routes = Router::new().route("/{id}", get(show));
        let ours = SessionId::from_u128(1).to_string();
        for (id, status) in [
            (ours.as_str(), 200),
            ("%ff", 404),
            ("run_1", 404),
            ("%00", 404),
        ] {
            let request = Request::get(format!("/{id}")).body(Body::empty());
            let request = request.expect("it is a request");
            let Ok(answer) = routes.clone().oneshot(request).await;
            assert_eq!(answer.status(), status, "{id}");
            let media_type = &answer.headers()[header::CONTENT_TYPE];
            assert!(status == 200 || media_type == "application/problem+json");
        }
    }
}
