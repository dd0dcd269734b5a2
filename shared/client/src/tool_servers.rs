//! Tool servers, and the caller's sign-ins to them.

use reqwest::Method;
use shared_api::{
    ListedToolServer, NamedToolServer, PutToolValue, ToolServerAnswer, ToolServerSignedIn,
    ToolServerSigningIn, ToolServers, ToolValue, ToolValues,
};

use crate::{Client, ClientError};

impl Client {
    /// The tool servers that are registered for the caller.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn tool_servers(&self) -> Result<Vec<ListedToolServer>, ClientError> {
        let list: ToolServers = self.http.get(&["tool-servers"], &[]).await?;
        Ok(list.tool_servers)
    }

    /// Begins to sign in to a tool server.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; a conflict if the server does not do its part.
    pub async fn sign_in_to_tool_server(
        &self,
        server: &NamedToolServer,
    ) -> Result<ToolServerSigningIn, ClientError> {
        let path = ["tool-servers", "sign-in"];
        self.http.call(Method::POST, &path, server).await
    }

    /// Finishes a sign-in with the address at which the browser came back.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; a conflict if no such sign-in is under way.
    pub async fn answer_tool_server_sign_in(
        &self,
        address: String,
    ) -> Result<ToolServerSignedIn, ClientError> {
        let path = ["tool-servers", "sign-in", "answer"];
        let answer = ToolServerAnswer { address };
        self.http.call(Method::POST, &path, &answer).await
    }

    /// Signs out of a tool server.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn sign_out_of_tool_server(
        &self,
        server: &NamedToolServer,
    ) -> Result<(), ClientError> {
        self.http.tell(&["tool-servers", "sign-out"], server).await
    }

    /// The caller's values for tool servers, without what they are.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn tool_values(&self) -> Result<Vec<ToolValue>, ClientError> {
        let list: ToolValues = self.http.get(&["tool-values"], &[]).await?;
        Ok(list.values)
    }

    /// Sets one of the caller's values for tool servers, with the host to which it may be sent, or removes it.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn put_tool_value(
        &self,
        name: &str,
        value: Option<(String, String)>,
    ) -> Result<(), ClientError> {
        let name = name.to_owned();
        let (host, value) = value.unzip();
        let put = PutToolValue { name, host, value };
        let all = self.http.call(Method::PUT, &["tool-values"], &put);
        all.await.map(|_: ToolValues| ())
    }
}
