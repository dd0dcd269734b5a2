//! Operations: one method for each route, and attaching to one.

use reqwest::Method;
use shared_api::{
    Operation, OperationCancelled, Operations, Output, SendSignal, Signal, StartOperation,
};
use shared_types::OperationId;

use crate::{
    Attach, Client, ClientError, Controls,
    attach::{AttachTarget, GIVE_UP_AFTER},
    http::Http,
    offsets::Offsets,
};

/// Attempts to send a stop request while the server is unreachable.
const STOP_ATTEMPTS: u32 = 20;

/// The header with the key under which an operation is started at most once.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

impl Client {
    /// Starts an operation and attaches to it. The start is tried again where its answer was lost:
    /// it happens at most once. Must be called within a tokio runtime.
    pub fn start(&self, request: StartOperation) -> (Attach, Controls) {
        let target = AttachTarget::New(Box::new(request), self.new_client_id());
        Attach::start(
            self.http.clone(),
            self.entropy.clone(),
            target,
            Offsets::default(),
        )
    }

    /// Attaches to an operation, from these offsets of its output on. Must be called within a tokio
    /// runtime.
    pub fn attach(&self, id: OperationId, stdout: u64, stderr: u64) -> (Attach, Controls) {
        Attach::start(
            self.http.clone(),
            self.entropy.clone(),
            AttachTarget::Known(id),
            Offsets::new(stdout, stderr),
        )
    }

    /// One operation.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn operation(&self, id: OperationId) -> Result<Operation, ClientError> {
        self.http.get(&["operations", &id.to_string()], &[]).await
    }

    /// The user's operations and those of the user's sessions, the newest first, at most `limit`;
    /// without `ended` only those that are open.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn operations(&self, ended: bool, limit: u32) -> Result<Vec<Operation>, ClientError> {
        let query = [("state", if ended { "all" } else { "open" }.to_owned())];
        let found = self
            .http
            .list::<Operations>(&["operations"], &query, limit as usize);
        found.await
    }

    /// The operations whose ids begin so, the newest first, at most `limit`.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn operations_beginning(
        &self,
        beginning: &str,
        limit: u32,
    ) -> Result<Vec<Operation>, ClientError> {
        let query = [
            ("state", "all".to_owned()),
            ("prefix", beginning.to_owned()),
        ];
        let found = self
            .http
            .list::<Operations>(&["operations"], &query, limit as usize);
        found.await
    }

    /// The output of an operation on `stdout` or `stderr` from this offset on, one run of bytes; a
    /// negative offset counts from the end.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn output(
        &self,
        operation: OperationId,
        stream: &str,
        offset: i64,
    ) -> Result<Output, ClientError> {
        self.output_within(operation, stream, offset, 0).await
    }

    /// The same; where nothing lies behind the offset yet, the server waits for more, for at most so
    /// many milliseconds.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn output_within(
        &self,
        operation: OperationId,
        stream: &str,
        offset: i64,
        wait_ms: u32,
    ) -> Result<Output, ClientError> {
        let path = ["operations", &operation.to_string(), "output"];
        let mut query = vec![
            ("stream", stream.to_owned()),
            ("offset", offset.to_string()),
        ];
        if wait_ms > 0 {
            query.push(("wait_ms", wait_ms.to_string()));
        }
        self.http.get(&path, &query).await
    }

    /// Sends a signal to the processes of an operation.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn signal_operation(
        &self,
        id: OperationId,
        signal: Signal,
    ) -> Result<(), ClientError> {
        let path = ["operations", &id.to_string(), "signal"];
        self.http.tell(&path, &SendSignal { signal }).await
    }

    /// The same as [`Client::cancel_operation`], tried again for a minute or more where the server
    /// cannot be reached.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn stop_operation(&self, id: OperationId) -> Result<OperationCancelled, ClientError> {
        let mut failures = 0;
        loop {
            match self.cancel_operation(id).await {
                Err(error) if error.is_passing() && failures < STOP_ATTEMPTS => {
                    failures += 1;
                    self.wait_again(failures, error).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Waits before another attempt after so many failures in a row, from 1.
    ///
    /// # Errors
    /// Fails with the last failure once the server counts as gone.
    pub async fn wait_again(&self, failures: u32, last: ClientError) -> Result<(), ClientError> {
        if failures > GIVE_UP_AFTER {
            return Err(last);
        }
        tokio::time::sleep(self.wait_before(failures)).await;
        Ok(())
    }

    /// Stops an operation with everything that it started. Asking twice changes nothing.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn cancel_operation(
        &self,
        id: OperationId,
    ) -> Result<OperationCancelled, ClientError> {
        let path = ["operations", &id.to_string(), "cancel"];
        self.http
            .call(Method::POST, &path, &serde_json::json!({}))
            .await
    }
}

/// Starts an operation under a key: the same one twice is one operation.
pub(crate) async fn start(
    http: &Http,
    request: &StartOperation,
    key: &str,
) -> Result<Operation, ClientError> {
    http.start(&["operations"], request, IDEMPOTENCY_KEY, key)
        .await
}
