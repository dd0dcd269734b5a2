//! The output of operations: byte streams with offsets, in files and not in the database (contract
//! A8–A10).
//!
//! Of each stream its head and its tail are kept, or all of it where that was asked for
//! ([`Outputs::keep_all`]); what lies between them, or never came, is a gap.
//! What is appended is on its way to disk, and [`Outputs::synced`] says how far it is there: only
//! that may be given up elsewhere. One task owns the files; many streams share its syncs. A stream
//! that cannot be written keeps what it has, takes no more, and says so whenever it is asked, until
//! somebody goes on where it ends ([`Outputs::resume`]). Bytes that do not follow what is there are
//! not taken for what comes after a gap, unless it is said that there is one.
//! The area belongs to one replica; one that several share can take its place behind this handle.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use shared_types::{OperationId, TenantId};
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use crate::StoreError;

mod ends;
pub(crate) mod kept;
mod page;
mod part;
mod segments;
mod stream;

pub use ends::OUTPUT_KEPT_BYTES;
use stream::StreamFiles;

/// Wishes that may wait for the task; whoever has one more waits itself. An append carries a chunk
/// of output, so this bounds the memory as well.
const WISHES: usize = 16;

/// How long what was appended may wait for a sync.
const SYNC_AFTER: Duration = Duration::from_millis(100);

/// Streams above which those that have nothing to be written are let go of.
const OPEN_STREAMS: usize = 1024;

/// Streams that are asked for at once; others have their turn in between.
const DURABLE_AT_ONCE: usize = 64;

/// One of the two streams of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A stream of an operation of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputKey {
    /// The operation's tenant.
    pub tenant: TenantId,
    /// The operation.
    pub operation: OperationId,
    /// The stream.
    pub kind: OutputKind,
}

/// Bytes that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptOutput {
    /// Where they stand in the stream.
    pub offset: u64,
    /// At least one.
    pub data: Vec<u8>,
}

/// A handle to the area. The task ends, and syncs what it has, when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Outputs {
    wishes: mpsc::Sender<Wish>,
}

impl KeptOutput {
    /// The first offset after it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.data.len() as u64)
    }
}

#[derive(Debug)]
enum Wish {
    KeepAll {
        key: OutputKey,
        reply: oneshot::Sender<io::Result<()>>,
    },
    Append {
        key: OutputKey,
        offset: u64,
        data: Vec<u8>,
    },
    Read {
        key: OutputKey,
        from: u64,
        max_bytes: usize,
        reply: oneshot::Sender<io::Result<Option<KeptOutput>>>,
    },
    End {
        key: OutputKey,
        reply: oneshot::Sender<io::Result<u64>>,
    },
    Resume {
        key: OutputKey,
        reply: oneshot::Sender<io::Result<u64>>,
    },
    Synced {
        key: OutputKey,
        reply: oneshot::Sender<io::Result<u64>>,
    },
    Remove {
        key: OutputKey,
        reply: oneshot::Sender<io::Result<()>>,
    },
    Durable {
        keys: Vec<OutputKey>,
        reply: oneshot::Sender<io::Result<Vec<u64>>>,
    },
}

impl Outputs {
    /// Starts the task over a folder, which is made where it is missing.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn start(folder: &Path) -> io::Result<Self> {
        stream::make_folder(folder)?;
        let (wishes, inbox) = mpsc::channel(WISHES);
        let area = Area {
            folder: folder.to_owned(),
            streams: HashMap::new(),
            broken: HashMap::new(),
            waiting: Vec::new(),
        };
        // Detached on purpose: it ends with the last handle.
        tokio::spawn(run(area, inbox));
        Ok(Self { wishes })
    }

    /// From now on all of the stream is kept, where nothing of it is yet; durable when this returns.
    /// What is kept once stays so, whoever appends.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if that cannot be written.
    pub async fn keep_all(&self, key: OutputKey) -> Result<(), StoreError> {
        self.ask(|reply| Wish::KeepAll { key, reply }).await
    }

    /// Appends bytes at their place. What is there already is left out. No bytes say that those
    /// before their place never come: a gap. That it cannot be written, or that bytes before it
    /// were not, is told by [`Outputs::synced`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the server stops.
    pub async fn append(
        &self,
        key: OutputKey,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<(), StoreError> {
        self.wish(Wish::Append { key, offset, data }).await
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
        let ask = |reply| Wish::Read {
            key,
            from,
            max_bytes,
            reply,
        };
        self.ask(ask).await
    }

    /// Where the stream ends as far as it came; 0 where nothing is kept of it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the files cannot be read.
    pub async fn end(&self, key: OutputKey) -> Result<u64, StoreError> {
        self.ask(|reply| Wish::End { key, reply }).await
    }

    /// From where on a stream is to be appended to by whoever begins, synced to disk: where some of
    /// it could not be written, that is tried again from there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if it still cannot be written, or if the disk did not take what it
    /// was given: what that holds is not known before the server is started again.
    pub async fn resume(&self, key: OutputKey) -> Result<u64, StoreError> {
        self.ask(|reply| Wish::Resume { key, reply }).await
    }

    /// Waits until everything that was appended to the stream before is synced to disk, and says
    /// up to which offset that is. It never falls.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if some of it could not be written.
    pub async fn synced(&self, key: OutputKey) -> Result<u64, StoreError> {
        self.ask(|reply| Wish::Synced { key, reply }).await
    }

    /// How far each of these streams is synced to disk, in their order: 0 where nothing is kept, or
    /// something could not be, which is not tried again. What this process has synced costs nothing.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the server stops.
    pub async fn durable(&self, keys: &[OutputKey]) -> Result<Vec<u64>, StoreError> {
        let mut durable = Vec::with_capacity(keys.len());
        for keys in keys.chunks(DURABLE_AT_ONCE) {
            let keys = keys.to_vec();
            durable.extend(self.ask(|reply| Wish::Durable { keys, reply }).await?);
        }
        Ok(durable)
    }

    /// Takes away everything that is kept of an operation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the files cannot be removed.
    pub async fn remove(&self, tenant: TenantId, operation: OperationId) -> Result<(), StoreError> {
        for kind in [OutputKind::Stdout, OutputKind::Stderr] {
            let key = OutputKey {
                tenant,
                operation,
                kind,
            };
            self.ask(|reply| Wish::Remove { key, reply }).await?;
        }
        Ok(())
    }

    async fn ask<T>(
        &self,
        wish: impl FnOnce(oneshot::Sender<io::Result<T>>) -> Wish,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.wish(wish(reply)).await?;
        let answer = answer.await.map_err(|_| stopped())?;
        answer.map_err(|error| StoreError::Unavailable(Box::new(error)))
    }

    async fn wish(&self, wish: Wish) -> Result<(), StoreError> {
        self.wishes.send(wish).await.map_err(|_| stopped())
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("the output area has stopped".into())
}

async fn run(mut area: Area, mut inbox: mpsc::Receiver<Wish>) {
    let mut sync_at = None;
    loop {
        let mut batch = Vec::new();
        let next = inbox.recv_many(&mut batch, WISHES);
        let came = match sync_at {
            Some(at) => timeout_at(at, next).await.ok(),
            None => Some(next.await),
        };
        if came == Some(0) {
            // Nobody is left whom this could hold up.
            area.sync();
            return;
        }
        let sync = sync_at.is_some_and(|at| Instant::now() >= at);
        // A task that blocks must not hold up the others.
        let worked = spawn_blocking(move || {
            batch.into_iter().for_each(|wish| area.grant(wish));
            if sync {
                area.sync();
            }
            area
        });
        area = match worked.await {
            Ok(area) => area,
            // The server stops: what is not synced was never said to be.
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                tracing::error!(%error, "the output area is given up");
                return;
            }
        };
        sync_at = match area.is_dirty() {
            true if sync => Some(Instant::now() + SYNC_AFTER),
            true => sync_at.or_else(|| Some(Instant::now() + SYNC_AFTER)),
            false => None,
        };
    }
}

struct Area {
    folder: PathBuf,
    streams: HashMap<OutputKey, StreamFiles>,
    /// Streams of which something was not kept.
    broken: HashMap<OutputKey, Broken>,
    /// Who waits for the next sync.
    waiting: Vec<(OutputKey, oneshot::Sender<io::Result<u64>>)>,
}

/// Why nothing more is taken of a stream.
struct Broken {
    kind: io::ErrorKind,
    why: String,
    /// A failed sync says nothing of what is on disk, and the next one nothing of the failed one.
    for_good: bool,
}

impl Area {
    fn grant(&mut self, wish: Wish) {
        // Whoever stopped waiting misses nothing.
        match wish {
            Wish::KeepAll { key, reply } => drop(reply.send(self.keep_all(key))),
            Wish::Append { key, offset, data } => {
                if self.broken.contains_key(&key) {
                    return;
                }
                let stream = self.stream(key);
                if let Err(error) = stream.and_then(|stream| stream.append(offset, &data)) {
                    self.give_up(key, &error, false);
                }
            }
            Wish::Read {
                key,
                from,
                max_bytes,
                reply,
            } => drop(reply.send(self.read(key, from, max_bytes))),
            Wish::End { key, reply } => {
                drop(reply.send(self.stream(key).map(|stream| stream.end())));
            }
            Wish::Resume { key, reply } => {
                self.resume(key);
                self.tell_synced(key, reply);
            }
            Wish::Synced { key, reply } => self.tell_synced(key, reply),
            Wish::Remove { key, reply } => {
                self.streams.remove(&key);
                self.broken.remove(&key);
                drop(reply.send(stream::remove(&self.folder, key)));
            }
            Wish::Durable { keys, reply } => {
                let durable = keys.into_iter().map(|key| self.durable(key));
                drop(reply.send(Ok(durable.collect())));
            }
        }
    }

    /// Opens it anew where something was not kept: what it has then is in the files.
    fn resume(&mut self, key: OutputKey) {
        if self.broken.get(&key).is_some_and(|broken| !broken.for_good) {
            self.streams.remove(&key);
            match self.stream(key) {
                Ok(_) => drop(self.broken.remove(&key)),
                Err(error) => self.give_up(key, &error, false),
            }
        }
    }

    fn keep_all(&mut self, key: OutputKey) -> io::Result<()> {
        let area = self.folder.clone();
        self.stream(key)?.keep_all(&area, key)
    }

    fn read(
        &mut self,
        key: OutputKey,
        from: u64,
        max_bytes: usize,
    ) -> io::Result<Option<KeptOutput>> {
        if let Err(error) = self.stream(key)?.flush() {
            self.give_up(key, &error, false);
        }
        self.stream(key)?.read(from, max_bytes)
    }

    /// Now, or after the next sync.
    fn tell_synced(&mut self, key: OutputKey, reply: oneshot::Sender<io::Result<u64>>) {
        match self.synced(key) {
            Ok(_) if self.streams[&key].is_dirty() => self.waiting.push((key, reply)),
            synced => drop(reply.send(synced)),
        }
    }

    /// At once and not with the others, so that the files of few are open at the same time.
    fn durable(&mut self, key: OutputKey) -> u64 {
        if self.broken.contains_key(&key) {
            return 0;
        }
        let written = match self.stream(key) {
            Ok(stream) => write_out(stream).map(|()| stream.synced()),
            // Whoever reads or appends hears why.
            Err(_) => return 0,
        };
        written.unwrap_or_else(|(error, for_good)| {
            self.give_up(key, &error, for_good);
            0
        })
    }

    fn synced(&mut self, key: OutputKey) -> io::Result<u64> {
        match self.broken.get(&key) {
            Some(broken) => Err(io::Error::new(broken.kind, broken.why.clone())),
            None => Ok(self.stream(key)?.synced()),
        }
    }

    /// The stream, read from its files where it is not open.
    fn stream(&mut self, key: OutputKey) -> io::Result<&mut StreamFiles> {
        if self.streams.len() >= OPEN_STREAMS && !self.streams.contains_key(&key) {
            let broken = &self.broken;
            self.streams
                .retain(|key, stream| stream.is_dirty() || broken.contains_key(key));
        }
        match self.streams.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                Ok(entry.insert(StreamFiles::open(&self.folder, key)?))
            }
        }
    }

    /// Some of what was appended is not kept.
    fn give_up(&mut self, key: OutputKey, error: &io::Error, for_good: bool) {
        let broken = Broken {
            kind: error.kind(),
            why: error.to_string(),
            for_good,
        };
        self.broken.insert(key, broken);
    }

    fn is_dirty(&self) -> bool {
        let mut dirty = self.streams.iter().filter(|(_, stream)| stream.is_dirty());
        !self.waiting.is_empty() || dirty.any(|(key, _)| !self.broken.contains_key(key))
    }

    fn sync(&mut self) {
        let mut failed = Vec::new();
        for (key, stream) in &mut self.streams {
            if self.broken.contains_key(key) {
                continue;
            }
            if let Err((error, for_good)) = write_out(stream) {
                failed.push((*key, error, for_good));
            }
        }
        for (key, error, for_good) in failed {
            self.give_up(key, &error, for_good);
        }
        for (key, reply) in std::mem::take(&mut self.waiting) {
            drop(reply.send(self.synced(key)));
        }
    }
}

/// Waits until the disk has the whole stream; where it has not, says whether that is for good.
fn write_out(stream: &mut StreamFiles) -> Result<(), (io::Error, bool)> {
    stream.flush().map_err(|error| (error, false))?;
    stream.sync().map_err(|error| (error, true))
}

#[cfg(test)]
mod tests;
