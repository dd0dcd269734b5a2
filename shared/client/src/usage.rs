//! The usage of models.

use shared_api::{ModelUsage, TurnUsages, UsageBy};
use shared_types::{SessionId, TurnId};

use crate::{Client, ClientError};

/// The turns that one request asks for.
const PAGE: u32 = 500;

impl Client {
    /// The usage of the person, or of everyone, since a day or for a time such as `7d`; absent for the server's usual
    /// time.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn usage(
        &self,
        since: Option<&str>,
        by: UsageBy,
        everyone: bool,
    ) -> Result<ModelUsage, ClientError> {
        let by = match by {
            UsageBy::Model => "model",
            UsageBy::Person => "person",
            UsageBy::Day => "day",
        };
        let since = since.map(|since| ("since", since.to_owned()));
        let always = [("by", by.to_owned()), ("all", everyone.to_string())];
        let query: Vec<_> = since.into_iter().chain(always).collect();
        self.http.get(&["usage"], &query).await
    }

    /// The usage of a session, or of one of its turns, by model.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn session_usage(
        &self,
        session: SessionId,
        turn: Option<TurnId>,
    ) -> Result<ModelUsage, ClientError> {
        let query: Vec<_> = turn
            .map(|id| ("turn", id.to_string()))
            .into_iter()
            .collect();
        let path = ["sessions", &session.to_string(), "usage"];
        self.http.get(&path, &query).await
    }

    /// A page of the usage of a session's turns, behind the `next` of the page before.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn turn_usage(
        &self,
        session: SessionId,
        after: Option<&str>,
    ) -> Result<TurnUsages, ClientError> {
        let after = after.map(|after| ("after", after.to_owned()));
        let limit = ("limit", PAGE.to_string());
        let query: Vec<_> = after.into_iter().chain([limit]).collect();
        let path = ["sessions", &session.to_string(), "usage", "turns"];
        self.http.get(&path, &query).await
    }
}
