//! Streams in the database, if several servers share it: the server that has the runner's link continues a stream where
//! the server before it ended.
//!
//! Appended bytes wait in memory until they are written together with those of the other streams, in one transaction
//! for each tenant. A stream stays where it began. Streams that lie in files, from a time before the database was
//! shared, are left to the task that has the files ([`super::files`]). If the database is a file, new streams go to
//! files as well; its rows come from a backup that was restored there.

mod stream;

use std::{collections::HashMap, io};

use shared_types::TenantId;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use self::stream::{RowStream, rows_of};
use super::{OPEN_STREAMS, OutputKey, OutputRequest, Reply, SYNC_AFTER, WISHES, What};
use crate::{
    Store, StoreError,
    database::{query, retried},
};

/// Bytes of all streams that may wait in memory.
const PENDING_BYTES: usize = 4 * 1024 * 1024;

/// The most tries to append behind the bytes of another server.
const APPENDS: u32 = 8;

/// The task; see the module.
pub(super) struct OutputRows {
    store: Store,
    /// The task that has the files, unless there are none.
    files: Option<mpsc::Sender<OutputRequest>>,
    streams: HashMap<OutputKey, StreamStorage>,
    /// Callers that wait for the next write.
    waiting: Vec<(OutputKey, Reply<u64>)>,
}

/// The place of a stream.
enum StreamStorage {
    Files,
    Rows(RowStream),
}

impl OutputRows {
    /// Over this database; `files` are asked first, where there are any.
    pub(super) fn new(store: Store, files: Option<mpsc::Sender<OutputRequest>>) -> Self {
        Self {
            store,
            files,
            streams: HashMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Grants wishes until the last handle is dropped, and writes the rest.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<OutputRequest>) {
        let mut write_at = None;
        loop {
            let mut batch = Vec::new();
            let next = inbox.recv_many(&mut batch, WISHES);
            let came = match write_at {
                Some(at) => timeout_at(at, next).await.ok(),
                None => Some(next.await),
            };
            if came == Some(0) {
                self.write().await;
                return;
            }
            for wish in batch {
                self.grant(wish).await;
            }
            let is_due = write_at.is_some_and(|at| Instant::now() >= at);
            if is_due || self.pending_bytes() >= PENDING_BYTES {
                self.write().await;
                write_at = None;
            }
            if write_at.is_none() && self.is_dirty() {
                write_at = Some(Instant::now() + SYNC_AFTER);
            }
        }
    }

    async fn grant(&mut self, wish: OutputRequest) {
        // A caller that stopped waiting misses nothing.
        match wish {
            OutputRequest::Of(key, what) => match self.place(key).await {
                Ok(StreamStorage::Rows(_)) => self.grant_in_rows(key, what).await,
                Ok(StreamStorage::Files) => self.leave_to_files(key, what).await,
                Err(error) => what.refuse(error),
            },
            OutputRequest::Durable(keys, reply) => {
                let mut durable = Vec::with_capacity(keys.len());
                for key in keys {
                    durable.push(self.durable(key).await.unwrap_or(0));
                }
                drop(reply.send(Ok(durable)));
            }
            OutputRequest::KeepAll(keys, reply) => self.keep_all(&keys, reply).await,
        }
    }

    async fn grant_in_rows(&mut self, key: OutputKey, what: What) {
        match what {
            What::Append(offset, data) => {
                if let Some(StreamStorage::Rows(stream)) = self.streams.get_mut(&key) {
                    stream.append(offset, data);
                }
            }
            What::Read(from, max_bytes, reply) => {
                self.write_one(key).await;
                let store = self.store.clone();
                // Readers hold up neither each other nor the writers.
                tokio::spawn(async move {
                    let read = stream::read(&store, key, from, max_bytes).await;
                    drop(reply.send(read.map_err(io::Error::other)));
                });
            }
            What::End(reply) => drop(reply.send(self.end(key).await)),
            What::Resume(reply) => drop(reply.send(self.resume(key).await)),
            What::Synced(reply) => match self.row_stream(key) {
                Some(stream) if stream.is_dirty() => self.waiting.push((key, reply)),
                Some(stream) => drop(reply.send(stream.synced())),
                None => {}
            },
            What::Remove(reply) => {
                self.streams.remove(&key);
                let removed = stream::remove(&self.store, key).await;
                drop(reply.send(removed.map_err(io::Error::other)));
            }
            What::IsThere(reply) => {
                let is_there = self.row_stream(key).is_some_and(|stream| stream.exists);
                drop(reply.send(Ok(is_there)));
            }
        }
    }

    async fn leave_to_files(&mut self, key: OutputKey, what: What) {
        if matches!(what, What::Remove(_)) {
            self.streams.remove(&key);
        }
        if let Some(files) = &self.files {
            // If that task has ended, the caller learns it from its reply.
            let _ = files.send(OutputRequest::Of(key, what)).await;
        }
    }

    /// The place of the stream; looked up if it is not known.
    async fn place(&mut self, key: OutputKey) -> io::Result<&StreamStorage> {
        if !self.streams.contains_key(&key) {
            let place = self.found(key).await?;
            if self.streams.len() >= OPEN_STREAMS {
                self.streams.retain(|_, place| match place {
                    StreamStorage::Files => false,
                    StreamStorage::Rows(stream) => stream.is_dirty() || stream.broken.is_some(),
                });
            }
            self.streams.insert(key, place);
        }
        Ok(&self.streams[&key])
    }

    async fn found(&self, key: OutputKey) -> io::Result<StreamStorage> {
        if let Some(files) = &self.files {
            let is_there = ask(files, |reply| OutputRequest::Of(key, What::IsThere(reply))).await?;
            if is_there {
                return Ok(StreamStorage::Files);
            }
        }
        let stream = self.load(key).await?;
        Ok(match stream.exists || self.store.is_shared() {
            true => StreamStorage::Rows(stream),
            false => StreamStorage::Files,
        })
    }

    async fn load(&self, key: OutputKey) -> io::Result<RowStream> {
        let loaded = RowStream::load(&self.store, key).await;
        loaded.map_err(io::Error::other)
    }

    fn row_stream(&self, key: OutputKey) -> Option<&RowStream> {
        match self.streams.get(&key) {
            Some(StreamStorage::Rows(stream)) => Some(stream),
            _ => None,
        }
    }

    async fn keep_all(&mut self, keys: &[OutputKey], reply: Reply<()>) {
        let begun = self.begin_whole(keys).await;
        match (begun, &self.files) {
            // Their task answers.
            (Ok(in_files), Some(files)) if !in_files.is_empty() => {
                let _ = files.send(OutputRequest::KeepAll(in_files, reply)).await;
            }
            (begun, _) => drop(reply.send(begun.map(drop))),
        }
    }

    /// Does so for streams that lie in rows; returns the others.
    async fn begin_whole(&mut self, keys: &[OutputKey]) -> io::Result<Vec<OutputKey>> {
        let (mut in_rows, mut in_files) = (Vec::new(), Vec::new());
        for &key in keys {
            match self.place(key).await? {
                StreamStorage::Rows(stream) if stream.is_untouched() => in_rows.push(key),
                StreamStorage::Rows(_) => {}
                StreamStorage::Files => in_files.push(key),
            }
        }
        if !in_rows.is_empty() {
            let begun = stream::begin_whole(&self.store, &in_rows).await;
            begun.map_err(io::Error::other)?;
        }
        for key in in_rows {
            let stream = self.load(key).await?;
            self.streams.insert(key, StreamStorage::Rows(stream));
        }
        Ok(in_files)
    }

    /// The end of the stream. It is read again unless bytes are pending, because another server may have appended some.
    async fn end(&mut self, key: OutputKey) -> io::Result<u64> {
        match self.row_stream(key) {
            Some(stream) if stream.is_dirty() => Ok(stream.end()),
            _ => Ok(self.load(key).await?.end()),
        }
    }

    async fn resume(&mut self, key: OutputKey) -> io::Result<u64> {
        self.write_one(key).await;
        let stream = self.load(key).await?;
        let end = stream.end();
        self.streams.insert(key, StreamStorage::Rows(stream));
        Ok(end)
    }

    async fn durable(&mut self, key: OutputKey) -> io::Result<u64> {
        if matches!(self.place(key).await?, StreamStorage::Files) {
            let Some(files) = &self.files else {
                return Ok(0);
            };
            let durable = ask(files, |reply| OutputRequest::Durable(vec![key], reply)).await?;
            return Ok(durable.first().copied().unwrap_or(0));
        }
        self.write_one(key).await;
        match self.row_stream(key) {
            Some(stream) if stream.broken.is_some() => Ok(0),
            // Known to have something: it only grows.
            Some(stream) if stream.end() > 0 => Ok(stream.end()),
            _ => Ok(self.load(key).await?.end()),
        }
    }

    fn pending_bytes(&self) -> usize {
        rows_of(self.streams.values())
            .map(RowStream::pending_bytes)
            .sum()
    }

    fn is_dirty(&self) -> bool {
        !self.waiting.is_empty() || rows_of(self.streams.values()).any(RowStream::is_dirty)
    }

    async fn write_one(&mut self, key: OutputKey) {
        if self.row_stream(key).is_some_and(RowStream::is_dirty) {
            self.write_of(key.tenant, &[key]).await;
        }
    }

    /// Writes the pending bytes, and answers the callers that wait for them.
    async fn write(&mut self) {
        let mut dirty = HashMap::<TenantId, Vec<OutputKey>>::new();
        for (key, place) in &self.streams {
            if let StreamStorage::Rows(stream) = place
                && stream.is_dirty()
            {
                dirty.entry(key.tenant).or_default().push(*key);
            }
        }
        for (tenant, keys) in dirty {
            self.write_of(tenant, &keys).await;
        }
        for (key, reply) in std::mem::take(&mut self.waiting) {
            if let Some(stream) = self.row_stream(key) {
                drop(reply.send(stream.synced()));
            }
        }
    }

    /// Writes streams of one tenant. If another server has appended to one since, this server continues behind its
    /// bytes: the bytes at an offset are the same from either server.
    async fn write_of(&mut self, tenant: TenantId, keys: &[OutputKey]) {
        let mut refused = keys.to_vec();
        for _ in 0..APPENDS {
            refused = self.write_once(tenant, &refused).await;
            if refused.is_empty() {
                return;
            }
            for key in &refused {
                self.go_on_behind(*key).await;
            }
            refused.retain(|key| self.row_stream(*key).is_some_and(RowStream::is_dirty));
        }
        for key in refused {
            if let Some(StreamStorage::Rows(stream)) = self.streams.get_mut(&key) {
                stream.give_up("another server appends to it all the time");
            }
        }
    }

    /// Writes them in one transaction; returns the streams whose end another server has moved.
    async fn write_once(&mut self, tenant: TenantId, keys: &[OutputKey]) -> Vec<OutputKey> {
        let written: Result<Vec<bool>, StoreError> = retried!({
            let mut tx = self.store.write(tenant).await?;
            let mut written = Vec::with_capacity(keys.len());
            for key in keys {
                let stream = self.row_stream(*key).expect("it is dirty");
                written.push(stream.write(&mut tx, *key).await?);
            }
            tx.commit().await?;
            Ok(written)
        });
        let mut refused = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let Some(StreamStorage::Rows(stream)) = self.streams.get_mut(key) else {
                continue;
            };
            match &written {
                Ok(written) if written[number] => stream.was_written(),
                Ok(_) => refused.push(*key),
                Err(error) => stream.give_up(&error.to_string()),
            }
        }
        refused
    }

    async fn go_on_behind(&mut self, key: OutputKey) {
        let found = self.load(key).await;
        let Some(StreamStorage::Rows(stream)) = self.streams.get_mut(&key) else {
            return;
        };
        match found {
            Ok(found) => stream.go_on_behind(found),
            Err(error) => stream.give_up(&error.to_string()),
        }
    }
}

/// Tells if any output lies in rows.
pub(super) async fn are_there(store: &Store) -> Result<bool, StoreError> {
    let mut connection = store.read_any("it is about all output").await?;
    let found = query("SELECT 1 FROM outputs LIMIT 1").fetch_optional(&mut connection);
    Ok(found.await?.is_some())
}

async fn ask<T>(
    files: &mpsc::Sender<OutputRequest>,
    wish: impl FnOnce(Reply<T>) -> OutputRequest,
) -> io::Result<T> {
    let (reply, answer) = oneshot::channel();
    let stopped = || io::Error::other("the output area has stopped");
    files.send(wish(reply)).await.map_err(|_| stopped())?;
    answer.await.map_err(|_| stopped())?
}
