//! Streams in files. One task owns them; many streams share its syncs.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    io,
    path::{Path, PathBuf},
};

use tokio::{
    sync::mpsc,
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use super::{
    KeptOutput, OPEN_STREAMS, OutputKey, OutputRequest, Reply, SYNC_AFTER, WISHES, What, part,
    segments::Segments,
    stream::{self, StreamFiles},
};

/// Starts the task over a folder, which is made where it is missing. It ends with the last sender.
pub(super) fn start(folder: &Path) -> io::Result<mpsc::Sender<OutputRequest>> {
    part::make_folder(folder)?;
    let (wishes, inbox) = mpsc::channel(WISHES);
    let area = Area {
        folder: folder.to_owned(),
        streams: HashMap::new(),
        broken: HashMap::new(),
        waiting: Vec::new(),
    };
    // Detached on purpose: it ends with the last handle.
    tokio::spawn(run(area, inbox));
    Ok(wishes)
}

async fn run(mut area: Area, mut inbox: mpsc::Receiver<OutputRequest>) {
    let mut sync_at = None;
    loop {
        let mut batch = Vec::new();
        let next = inbox.recv_many(&mut batch, WISHES);
        let came = match sync_at {
            Some(at) => timeout_at(at, next).await.ok(),
            None => Some(next.await),
        };
        if came == Some(0) {
            // All handles are gone, so this delays no caller.
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
            // The server stops: no caller was told that the unsynced bytes are on disk.
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
    /// Streams that have lost bytes.
    broken: HashMap<OutputKey, BrokenFile>,
    /// Callers that wait for the next sync.
    waiting: Vec<(OutputKey, Reply<u64>)>,
}

/// The reason why a stream takes no more bytes.
struct BrokenFile {
    kind: io::ErrorKind,
    why: String,
    /// A failed sync does not tell what is on disk, and a later sync does not make up for it.
    for_good: bool,
}

impl Area {
    fn grant(&mut self, wish: OutputRequest) {
        // A caller that stopped waiting misses nothing.
        match wish {
            OutputRequest::Of(key, what) => self.grant_of(key, what),
            OutputRequest::Durable(keys, reply) => {
                let durable = keys.into_iter().map(|key| self.durable(key));
                drop(reply.send(Ok(durable.collect())));
            }
            OutputRequest::KeepAll(keys, reply) => drop(reply.send(self.keep_all(&keys))),
        }
    }

    fn grant_of(&mut self, key: OutputKey, what: What) {
        match what {
            What::Append(offset, data) => {
                if self.broken.contains_key(&key) {
                    return;
                }
                let stream = self.stream(key);
                if let Err(error) = stream.and_then(|stream| stream.append(offset, &data)) {
                    self.give_up(key, &error, false);
                }
            }
            What::Read(from, max_bytes, reply) => drop(reply.send(self.read(key, from, max_bytes))),
            What::End(reply) => drop(reply.send(self.stream(key).map(|stream| stream.end()))),
            What::Resume(reply) => {
                self.resume(key);
                self.tell_synced(key, reply);
            }
            What::Synced(reply) => self.tell_synced(key, reply),
            What::Remove(reply) => {
                self.streams.remove(&key);
                self.broken.remove(&key);
                drop(reply.send(stream::remove(&self.folder, key)));
            }
            What::IsThere(reply) => {
                drop(reply.send(self.stream(key).map(|stream| stream.is_there())));
            }
        }
    }

    /// Opens the stream again if some of it was not kept: the files then hold all of it that there
    /// is.
    fn resume(&mut self, key: OutputKey) {
        if self.broken.get(&key).is_some_and(|broken| !broken.for_good) {
            self.streams.remove(&key);
            match self.stream(key) {
                Ok(_) => drop(self.broken.remove(&key)),
                Err(error) => self.give_up(key, &error, false),
            }
        }
    }

    fn keep_all(&mut self, keys: &[OutputKey]) -> io::Result<()> {
        let (mut begun, mut folders) = (Vec::new(), BTreeSet::new());
        for &key in keys {
            if self.stream(key)?.is_untouched() {
                let (folder, name) = stream::place(&self.folder, key);
                begun.push((key, Segments::make(&folder, &name)?));
                folders.insert(folder);
            }
        }
        // The streams of an operation lie in one folder.
        for folder in folders {
            File::open(folder)?.sync_all()?;
        }
        for (key, segments) in begun {
            self.stream(key)?.keep_in(segments);
        }
        Ok(())
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

    /// Answers now, or after the next sync.
    fn tell_synced(&mut self, key: OutputKey, reply: Reply<u64>) {
        match self.synced(key) {
            Ok(_) if self.streams[&key].is_dirty() => self.waiting.push((key, reply)),
            synced => drop(reply.send(synced)),
        }
    }

    /// Syncs at once and not with the others, so that few files are open at the same time.
    fn durable(&mut self, key: OutputKey) -> u64 {
        if self.broken.contains_key(&key) {
            return 0;
        }
        let written = match self.stream(key) {
            Ok(stream) => write_out(stream).map(|()| stream.synced()),
            // The next read or append gets the error.
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

    /// Marks the stream as broken: some appended bytes are not kept.
    fn give_up(&mut self, key: OutputKey, error: &io::Error, for_good: bool) {
        let broken = BrokenFile {
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

/// Waits until the disk has the whole stream. An error comes with true if it is for good.
fn write_out(stream: &mut StreamFiles) -> Result<(), (io::Error, bool)> {
    stream.flush().map_err(|error| (error, false))?;
    stream.sync().map_err(|error| (error, true))
}
