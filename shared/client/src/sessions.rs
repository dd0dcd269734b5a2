//! The management of sessions, without messages.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use shared_api::{
    ChangeSession, LinksEnded, Session, SessionImage, SessionLink, Sessions, ShareSession,
};
use shared_types::SessionId;

use crate::{Client, ClientError};

impl Client {
    /// The sessions that are not archived, the most recently used first, at most `limit`.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn sessions(&self, limit: u32) -> Result<Vec<Session>, ClientError> {
        self.sessions_found("", false, None, limit).await
    }

    /// The sessions with this text in their titles (empty: all), of those that are archived or of the
    /// others, the most recently used first, at most `limit`. With a parent, those of the agents that calls of that
    /// session began.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn sessions_found(
        &self,
        title: &str,
        archived: bool,
        parent: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<Session>, ClientError> {
        let mut query = vec![
            ("archived", archived.to_string()),
            ("search", title.to_owned()),
        ];
        query.extend(parent.map(|parent| ("parent", parent.to_string())));
        let found = self
            .http
            .list::<Sessions>(&["sessions"], &query, limit as usize);
        found.await
    }

    /// Changes what lists show of a session.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn change_session(
        &self,
        id: SessionId,
        change: &ChangeSession,
    ) -> Result<Session, ClientError> {
        let path = ["sessions", &id.to_string()];
        self.http.call(Method::PATCH, &path, change).await
    }

    /// Deletes a session with its log and all output, and stops its operations.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn delete_session(&self, id: SessionId) -> Result<(), ClientError> {
        self.http.delete(&["sessions", &id.to_string()]).await
    }

    /// Adds an image to a session: the bytes of a PNG, JPEG, GIF or WebP.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn add_image(
        &self,
        id: SessionId,
        bytes: Vec<u8>,
    ) -> Result<SessionImage, ClientError> {
        let path = ["sessions", &id.to_string(), "images"];
        self.http.bring(&path, bytes).await
    }

    /// Makes a link that lets its readers read the session. Only this answer contains the whole
    /// address.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn share_session(
        &self,
        id: SessionId,
        valid_for: Option<Duration>,
    ) -> Result<SessionLink, ClientError> {
        let seconds = valid_for.map(|time| u32::try_from(time.as_secs()).unwrap_or(u32::MAX));
        let body = ShareSession {
            valid_for_s: seconds,
        };
        let path = ["sessions", &id.to_string(), "links"];
        self.http.call(Method::POST, &path, &body).await
    }

    /// Ends all links to a session, and says how many there were.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn unshare_session(&self, id: SessionId) -> Result<u64, ClientError> {
        let path = ["sessions", &id.to_string(), "links"];
        let ended: LinksEnded = self.http.call(Method::DELETE, &path, &json!({})).await?;
        Ok(ended.links)
    }
}
