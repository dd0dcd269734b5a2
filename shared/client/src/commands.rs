//! The commands of conversations.

use shared_api::{Command, CommandDone, Commands, RunCommand};
use shared_types::SessionId;

use crate::{Client, ClientError, client::SEND_ATTEMPTS, operations::IDEMPOTENCY_KEY};

impl Client {
    /// The commands of conversations, in the order in which help lists them.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn commands(&self) -> Result<Vec<Command>, ClientError> {
        let known: Commands = self.http.get(&["commands"], &[]).await?;
        Ok(known.commands)
    }

    /// Runs a command in a session. It is tried again where the connection fails: under the same `key` it happens once.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn run_command(
        &self,
        session: SessionId,
        command: &RunCommand,
        key: &str,
    ) -> Result<CommandDone, ClientError> {
        let path = ["sessions", &session.to_string(), "commands"];
        let mut attempt = 1;
        loop {
            match self.http.start(&path, command, IDEMPOTENCY_KEY, key).await {
                Err(error) if attempt < SEND_ATTEMPTS && error.is_servers() => {
                    tokio::time::sleep(self.wait_before(attempt)).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }
}
