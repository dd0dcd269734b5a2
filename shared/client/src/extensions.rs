//! Extensions that people registered, those that a session found, and the trust in them.

use reqwest::Method;
use shared_api::{Extension, ExtensionList, PutExtension, TrustExtension};
use shared_types::{Digest, ExtensionId, SessionId, event::Extensions};

use crate::{Client, ClientError};

impl Client {
    /// The extensions that are registered for the caller.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn extensions(&self) -> Result<Vec<Extension>, ClientError> {
        let list: ExtensionList = self.http.get(&["extensions"], &[]).await?;
        Ok(list.extensions)
    }

    /// An extension with all of its files.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn extension(&self, id: ExtensionId) -> Result<Extension, ClientError> {
        self.http.get(&["extensions", &id.to_string()], &[]).await
    }

    /// Registers an extension.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; a conflict if it replaces another one than was named.
    pub async fn put_extension(&self, new: &PutExtension) -> Result<Extension, ClientError> {
        self.http.call(Method::PUT, &["extensions"], new).await
    }

    /// Removes an extension.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn remove_extension(&self, id: ExtensionId) -> Result<(), ClientError> {
        self.http.delete(&["extensions", &id.to_string()]).await
    }

    /// The extensions that the last turn of a session found.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn found_extensions(&self, session: SessionId) -> Result<Extensions, ClientError> {
        let path = ["sessions", &session.to_string(), "extensions"];
        self.http.get(&path, &[]).await
    }

    /// Trusts a file that the last turn of a session found with a text of this digest, or trusts it no more.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; a conflict if it has another text.
    pub async fn trust_extension(
        &self,
        session: SessionId,
        path: &str,
        digest: Option<Digest>,
    ) -> Result<(), ClientError> {
        let ask = TrustExtension {
            path: path.to_owned(),
            digest,
        };
        let path = ["sessions", &session.to_string(), "extensions"];
        self.http.tell(&path, &ask).await
    }
}
