//! Extensions that people registered, those that a session found, and the trust in them.

use reqwest::Method;
use shared_api::{
    Extension, ExtensionList, PutExtension, SessionToolServer, SessionToolServers, TestToolServer,
    TestedToolServer, ToolServerLook, TrustExtension,
};
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

    /// The tool servers of a session, with the prompts and resources of those that are connected.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn session_tool_servers(
        &self,
        session: SessionId,
    ) -> Result<Vec<SessionToolServer>, ClientError> {
        let path = ["sessions", &session.to_string(), "tool-servers"];
        let listed: SessionToolServers = self.http.get(&path, &[]).await?;
        Ok(listed.servers)
    }

    /// Starts a tool server of a session where it would run, and says what it has.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; also if the session has no such server.
    pub async fn test_tool_server(
        &self,
        session: SessionId,
        name: &str,
    ) -> Result<TestedToolServer, ClientError> {
        let path = ["sessions", &session.to_string(), "tool-servers"];
        let name = name.to_owned();
        let ask = TestToolServer { name };
        loop {
            let look: ToolServerLook = self.http.call(Method::POST, &path, &ask).await?;
            if let Some(found) = look.found {
                return Ok(found);
            }
        }
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
