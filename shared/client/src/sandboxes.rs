//! Sandboxes of pools.

use reqwest::Method;
use shared_api::{ChangeSandbox, CreateSandbox, Sandbox, Sandboxes, StateChanges};
use shared_types::SandboxId;

use crate::{Client, ClientError};

impl Client {
    /// The sandboxes that one may see, by id.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn sandboxes(&self) -> Result<Vec<Sandbox>, ClientError> {
        let all = self.http.list::<Sandboxes>(&["sandboxes"], &[], usize::MAX);
        all.await
    }

    /// One's own sandbox on a runner, by its name or id; made where there is none.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn create_sandbox(&self, runner: &str) -> Result<Sandbox, ClientError> {
        let runner = runner.to_owned();
        let body = CreateSandbox { runner };
        self.http.call(Method::POST, &["sandboxes"], &body).await
    }

    /// The recent changes of a sandbox's state, the newest last.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn sandbox_changes(&self, id: SandboxId) -> Result<StateChanges, ClientError> {
        let path = ["sandboxes", &id.to_string(), "changes"];
        self.http.get(&path, &[]).await
    }

    /// Starts a sandbox now.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn start_sandbox(&self, id: SandboxId) -> Result<Sandbox, ClientError> {
        self.act_on_sandbox(id, "start").await
    }

    /// Stops a sandbox; its files stay.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn stop_sandbox(&self, id: SandboxId) -> Result<Sandbox, ClientError> {
        self.act_on_sandbox(id, "stop").await
    }

    /// Removes a sandbox with its files.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn remove_sandbox(&self, id: SandboxId) -> Result<(), ClientError> {
        self.http.delete(&["sandboxes", &id.to_string()]).await
    }

    /// Changes what a sandbox may use, from its next start on.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn change_sandbox(
        &self,
        id: SandboxId,
        change: &ChangeSandbox,
    ) -> Result<Sandbox, ClientError> {
        let path = ["sandboxes", &id.to_string()];
        self.http.call(Method::PATCH, &path, change).await
    }

    async fn act_on_sandbox(&self, id: SandboxId, verb: &str) -> Result<Sandbox, ClientError> {
        let path = ["sandboxes", &id.to_string(), verb];
        let nothing = serde_json::json!({});
        self.http.call(Method::POST, &path, &nothing).await
    }
}
