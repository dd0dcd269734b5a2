//! The settings of a person or a session.

use reqwest::Method;
use shared_api::{ChangeSettings, Settings};
use shared_types::SessionId;

use crate::{Client, ClientError};

impl Client {
    /// The values that count for the person, or for one of the person's sessions.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn settings(&self, session: Option<SessionId>) -> Result<Settings, ClientError> {
        let query = session.map(|id| ("session", id.to_string()));
        let query: Vec<_> = query.into_iter().collect();
        self.http.get(&["settings"], &query).await
    }

    /// Changes settings, and answers with what counts then.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn change_settings(&self, change: &ChangeSettings) -> Result<Settings, ClientError> {
        self.http.call(Method::PATCH, &["settings"], change).await
    }
}
