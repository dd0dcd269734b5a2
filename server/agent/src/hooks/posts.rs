//! The port through which the hooks of a session are sent to addresses.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use shared_types::event::Hook;

use crate::servers::ServerPlace;

/// Sends the hooks of one session to addresses. It knows the values of their headers, which no log has.
#[async_trait]
pub trait HookPosts: Send + Sync {
    /// Sends a hook of the kind `http`, and returns the text of the answer. It is sent at most once. Dropping the future
    /// ends the request. The values of headers of a project's file are read at this place.
    ///
    /// # Errors
    /// There is no answer of success; the words say why, and have no value of a header.
    async fn post(
        &self,
        hook: &Hook,
        place: Option<&ServerPlace>,
        post: HookPost,
    ) -> Result<String, String>;
}

/// The request of one run of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPost {
    /// The id of the run, for the header `Idempotency-Key`.
    pub run: String,
    /// The event, as JSON.
    pub json: Bytes,
    /// The time for the answer.
    pub within: Duration,
}
