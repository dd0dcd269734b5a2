//! The output of operations.

use async_trait::async_trait;
use bytes::Bytes;
use shared_sandbox::{OutputStream, Request, Retention};
use shared_types::OperationId;

use crate::PortError;

/// The store of operations' output (docs/internals/contracts.md#a8 to #a10).
#[async_trait]
pub trait Outputs: Send + Sync {
    /// The first kept bytes of a stream from this offset on, and their offset; none if there are no more.
    ///
    /// # Errors
    /// It cannot be read.
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError>;

    /// Keeps all of this operation's output from now on, and not only its head and its tail. That is durable when this
    /// returns. It also holds for later appends by a caller that does not know the request.
    ///
    /// # Errors
    /// It cannot be written.
    async fn keep_all(&self, id: OperationId) -> Result<(), PortError>;

    /// Keeps bytes at their offset; bytes that are kept already are left out. An empty append declares that the bytes
    /// before its offset never come. [`Outputs::synced`] reports a failed write, or missing bytes before it: by its
    /// error, or by an offset before their end.
    ///
    /// # Errors
    /// The server stops.
    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError>;

    /// The offsets at which a new writer continues stdout and stderr. Bytes before them are durable, and bytes that
    /// could not be written are tried again.
    ///
    /// # Errors
    /// It still cannot be written.
    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError>;

    /// Waits until the appended bytes are durable; returns the offsets up to which stdout and stderr are. They never
    /// fall.
    ///
    /// # Errors
    /// Some of it could not be written.
    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError>;
}

/// Tells if the output of a request is kept nowhere but on its runner, so that the operation waits for its one reader.
pub fn is_kept_nowhere(request: &Request) -> bool {
    match request {
        Request::Exec(exec) => exec.retention == Retention::None,
        request => request.is_download(),
    }
}
