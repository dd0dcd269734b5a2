//! The output of operations: byte streams with offsets (contract A8–A10), in files where the database is
//! one ([`files`]), and in the database where several servers share it ([`rows`]).
//!
//! Of each stream its head and its tail are kept, or all of it if that was requested ([`Outputs::keep_all`]). Bytes
//! between them, and bytes that never came, are a gap. Appended bytes are on their way to disk, and [`Outputs::synced`]
//! gives the offset up to which they are there: other holders may give up only those. A stream that cannot be written
//! keeps its bytes, takes no more, and reports the error to each request, until a caller continues where it ends
//! ([`Outputs::resume`]). An append that leaves a hole is refused, unless the caller has declared the gap before.

use std::{io, path::Path, time::Duration};

use shared_sandbox::OutputStream;
use shared_types::{OperationId, TenantId};
use tokio::sync::{mpsc, oneshot};

use crate::{Store, StoreError};

mod ends;
mod files;
pub(crate) mod kept;
mod page;
mod part;
mod rows;
mod segments;
mod stream;

pub use ends::OUTPUT_KEPT_BYTES;
use rows::OutputRows;

/// Wishes that may wait for the task; a caller with one more waits itself. An append carries a chunk of output, so this
/// bounds the memory as well.
const WISHES: usize = 16;

/// The longest wait of appended bytes for a sync.
const SYNC_AFTER: Duration = Duration::from_millis(100);

/// The number of streams above which those with nothing to be written are closed.
const OPEN_STREAMS: usize = 1024;

/// The most streams that one request asks for; other requests have their turn in between.
const DURABLE_AT_ONCE: usize = 64;

/// A stream of an operation of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputKey {
    /// The operation's tenant.
    pub tenant: TenantId,
    /// The operation.
    pub operation: OperationId,
    /// The stream.
    pub stream: OutputStream,
}

/// Bytes that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptOutput {
    /// Their offset in the stream.
    pub offset: u64,
    /// At least one.
    pub data: Vec<u8>,
}

/// A handle to the area. The task ends, and syncs what it has, when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Outputs {
    wishes: mpsc::Sender<OutputRequest>,
}

impl KeptOutput {
    /// The first offset after it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.data.len() as u64)
    }
}

type Reply<T> = oneshot::Sender<io::Result<T>>;

/// A request of the handle to the task.
#[derive(Debug)]
enum OutputRequest {
    Of(OutputKey, What),
    Durable(Vec<OutputKey>, Reply<Vec<u64>>),
    KeepAll(Vec<OutputKey>, Reply<()>),
}

/// A request about one stream.
#[derive(Debug)]
enum What {
    Append(u64, Vec<u8>),
    Read(u64, usize, Reply<Option<KeptOutput>>),
    End(Reply<u64>),
    Resume(Reply<u64>),
    Synced(Reply<u64>),
    Remove(Reply<()>),
    /// Asks if anything is known of the stream.
    IsThere(Reply<bool>),
}

impl What {
    /// Answers that it cannot be done. Bytes of an append are dropped: [`Outputs::synced`] then ends before them.
    fn refuse(self, error: io::Error) {
        match self {
            Self::Append(..) => {}
            Self::Remove(reply) => drop(reply.send(Err(error))),
            Self::Read(.., reply) => drop(reply.send(Err(error))),
            Self::End(reply) | Self::Resume(reply) | Self::Synced(reply) => {
                drop(reply.send(Err(error)));
            }
            Self::IsThere(reply) => drop(reply.send(Err(error))),
        }
    }
}

impl Outputs {
    /// Output in the files of a folder, which is made where it is missing.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn start(folder: &Path) -> io::Result<Self> {
        let wishes = files::start(folder)?;
        Ok(Self { wishes })
    }

    /// Output in the database if several servers share it, else in the files of the folder. Streams that lie at the
    /// other place, because the database was moved or restored, are read and continued there.
    ///
    /// # Errors
    /// The folder cannot be made or read, or the database does not answer.
    pub async fn open(folder: &Path, store: &Store) -> Result<Self, StoreError> {
        let files = files::start(folder).map_err(unavailable)?;
        if !store.is_shared() && !rows::are_there(store).await? {
            return Ok(Self { wishes: files });
        }
        let mut entries = std::fs::read_dir(folder).map_err(unavailable)?;
        // A server of a database that is a file may make some.
        let files = (!store.is_shared() || entries.next().is_some()).then_some(files);
        let (wishes, inbox) = mpsc::channel(WISHES);
        tokio::spawn(OutputRows::new(store.clone(), files).run(inbox));
        Ok(Self { wishes })
    }

    /// Keeps all output of these streams of one operation from now on, if none of a stream is there yet; durable when
    /// this returns. A kept stream stays so, also for appends of later callers.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if that cannot be written.
    pub async fn keep_all(&self, keys: &[OutputKey]) -> Result<(), StoreError> {
        let keys = keys.to_vec();
        self.asked(|reply| OutputRequest::KeepAll(keys, reply))
            .await
    }

    /// Appends bytes at their offset. Bytes that are there already are left out. An empty append declares that the
    /// bytes before its offset never come: a gap. [`Outputs::synced`] reports that they could not be written, or that
    /// bytes before them were missing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the server stops.
    pub async fn append(
        &self,
        key: OutputKey,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<(), StoreError> {
        self.wish(OutputRequest::Of(key, What::Append(offset, data)))
            .await
    }

    /// The first bytes that are kept from this offset on, `max_bytes` at most; they begin later
    /// where there is a gap. Nothing, where the stream has no more.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the files cannot be read.
    pub async fn read(
        &self,
        key: OutputKey,
        from: u64,
        max_bytes: usize,
    ) -> Result<Option<KeptOutput>, StoreError> {
        let read = |reply| What::Read(from, max_bytes, reply);
        self.ask(key, read).await
    }

    /// The end of the stream as far as it came; 0 if nothing of it is kept.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the files cannot be read.
    pub async fn end(&self, key: OutputKey) -> Result<u64, StoreError> {
        self.ask(key, What::End).await
    }

    /// The offset at which a new writer continues the stream, synced to disk. If some of the stream could not be
    /// written, that is tried again from there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if it still cannot be written, or if an earlier sync failed: then the content of the
    /// disk is not known before the server is started again.
    pub async fn resume(&self, key: OutputKey) -> Result<u64, StoreError> {
        self.ask(key, What::Resume).await
    }

    /// Waits until everything that was appended to the stream before is synced to disk, and returns the offset up to
    /// which it is. The offset never falls.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if some of it could not be written.
    pub async fn synced(&self, key: OutputKey) -> Result<u64, StoreError> {
        self.ask(key, What::Synced).await
    }

    /// The offset up to which each of these streams is synced to disk, in their order. It is 0 if nothing is kept, or
    /// if a write failed, which is not tried again. Streams that this process has synced cost nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the server stops.
    pub async fn durable(&self, keys: &[OutputKey]) -> Result<Vec<u64>, StoreError> {
        let mut durable = Vec::with_capacity(keys.len());
        for keys in keys.chunks(DURABLE_AT_ONCE) {
            let keys = keys.to_vec();
            let ask = |reply| OutputRequest::Durable(keys, reply);
            durable.extend(self.asked(ask).await?);
        }
        Ok(durable)
    }

    /// Takes away everything that is kept of an operation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the files cannot be removed.
    pub async fn remove(&self, tenant: TenantId, operation: OperationId) -> Result<(), StoreError> {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let key = OutputKey {
                tenant,
                operation,
                stream,
            };
            self.ask(key, What::Remove).await?;
        }
        Ok(())
    }

    async fn ask<T>(
        &self,
        key: OutputKey,
        what: impl FnOnce(Reply<T>) -> What,
    ) -> Result<T, StoreError> {
        self.asked(|reply| OutputRequest::Of(key, what(reply)))
            .await
    }

    async fn asked<T>(
        &self,
        wish: impl FnOnce(Reply<T>) -> OutputRequest,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.wish(wish(reply)).await?;
        let answer = answer.await.map_err(|_| stopped())?;
        answer.map_err(unavailable)
    }

    async fn wish(&self, wish: OutputRequest) -> Result<(), StoreError> {
        self.wishes.send(wish).await.map_err(|_| stopped())
    }
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the output area has stopped".into())
}

#[cfg(test)]
mod tests;
