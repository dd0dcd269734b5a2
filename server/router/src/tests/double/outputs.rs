//! Output in memory, until the disk is full.
//!
//! Servers that share a store share what is durable. What one has appended and not synced is its own: it alone reads
//! that, and it is gone with it.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use shared_sandbox::{Outcome, OutputStream};
use shared_types::OperationId;

use super::weather::Weather;
use server_records::{Outputs, PortError};

const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// Output in memory, until the disk is full.
pub(in crate::tests) struct Area {
    shared: Arc<Shared>,
    own: Mutex<Own>,
    weather: Arc<dyn Weather>,
}

/// What all servers have.
#[derive(Default)]
struct Shared {
    full: AtomicBool,
    /// Whoever waited for a sync was told that the disk is full.
    told_full: AtomicBool,
    /// What is appended is lost, of which only a later piece of the stream tells.
    loses: AtomicBool,
    /// No stream can be read from its beginning now.
    holds_beginnings: AtomicBool,
    /// What is durable.
    kept: Mutex<HashMap<Key, Kept>>,
}

/// What one server has.
#[derive(Default)]
struct Own {
    streams: HashMap<Key, Appended>,
    /// Of which something was not kept.
    broken: HashSet<OperationId>,
}

type Key = (OperationId, OutputStream);

/// What a server has appended to a stream and not synced.
#[derive(Default)]
struct Appended {
    pieces: Pieces,
    /// Where it takes the stream to end.
    end: u64,
}

/// Bytes and where they stand; no bytes stand for those before them, which never come.
type Pieces = Vec<(u64, Bytes)>;

/// What is durable of a stream.
#[derive(Default, Clone)]
pub(in crate::tests) struct Kept {
    pub(in crate::tests) pieces: Pieces,
}

impl Area {
    pub(super) fn under(weather: Arc<dyn Weather>) -> Self {
        Self {
            shared: Arc::default(),
            own: Mutex::default(),
            weather,
        }
    }

    /// The same, as another server has it.
    pub(super) fn elsewhere(&self, weather: Arc<dyn Weather>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            own: Mutex::default(),
            weather,
        }
    }

    pub(in crate::tests) fn fill(&self, full: bool) {
        self.shared.full.store(full, Ordering::Relaxed);
    }

    pub(in crate::tests) fn lose(&self, loses: bool) {
        self.shared.loses.store(loses, Ordering::Relaxed);
    }

    pub(super) fn has_told_full(&self) -> bool {
        self.shared.told_full.load(Ordering::Relaxed)
    }

    pub(super) fn hold_the_beginnings(&self, hold: bool) {
        let held = &self.shared.holds_beginnings;
        held.store(hold, Ordering::Relaxed);
    }

    /// What is durable of a stream.
    pub(in crate::tests) fn kept_of(&self, id: OperationId, stream: OutputStream) -> Kept {
        self.kept().get(&(id, stream)).cloned().unwrap_or_default()
    }

    /// The server dies: of what it has not synced so much of each stream is left.
    pub(in crate::tests) fn crash(&self, mut left: impl FnMut(u64) -> u64) {
        let own = std::mem::take(&mut *self.own());
        let mut kept = self.kept();
        let mut streams: Vec<_> = own.streams.into_iter().collect();
        streams.sort_by_key(|(stream, _)| *stream);
        for (stream, appended) in streams {
            let kept = kept.entry(stream).or_default();
            let end = kept.end() + left(appended.end.saturating_sub(kept.end()));
            for (offset, mut data) in appended.pieces {
                if offset <= end {
                    data.truncate((end - offset).min(data.len() as u64) as usize);
                    kept.push(offset, data);
                }
            }
        }
    }

    /// How far it is durable once it is synced; nobody knows once the disk is full.
    pub(super) fn durable(&self, id: OperationId) -> [u64; 2] {
        match self.cannot_keep(id) {
            true => [0, 0],
            false => STREAMS.map(|stream| self.sync((id, stream))),
        }
    }

    /// Whether all of the output of what ended so is durable.
    pub(super) fn is_whole(&self, id: OperationId, outcome: &Outcome) -> bool {
        let Outcome::Exited(record) = outcome else {
            return true;
        };
        let [stdout, stderr] = self.durable(id);
        stdout >= record.stdout.offset && stderr >= record.stderr.offset
    }

    /// What this server has appended becomes durable, behind what others have written since. Says where it takes the
    /// stream to end.
    fn sync(&self, stream: Key) -> u64 {
        let (mut own, mut all) = (self.own(), self.kept());
        let kept = all.entry(stream).or_default();
        let appended = own
            .streams
            .entry(stream)
            .or_insert_with(|| kept.unchanged());
        if !appended.pieces.is_empty() {
            for (offset, data) in appended.pieces.drain(..) {
                kept.push(offset, data);
            }
            appended.end = kept.end();
        }
        appended.end
    }

    fn cannot_keep(&self, id: OperationId) -> bool {
        self.shared.full.load(Ordering::Relaxed) || self.own().broken.contains(&id)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        self.shared.kept.lock().expect("no test panics with it")
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().expect("no test panics with it")
    }
}

#[async_trait]
impl Outputs for Area {
    async fn read(
        &self,
        id: OperationId,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError> {
        let held = &self.shared.holds_beginnings;
        while from == 0 && held.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.weather.before().await?;
        let piece = {
            let (own, kept) = (self.own(), self.kept());
            let stream = (id, stream);
            let kept = kept.get(&stream).into_iter().flat_map(|kept| &kept.pieces);
            let appended = own.streams.get(&stream);
            let appended = appended.into_iter().flat_map(|own| &own.pieces);
            let mut pieces = kept.chain(appended).filter(|(_, data)| !data.is_empty());
            let found = pieces.find(|(offset, data)| offset + data.len() as u64 > from);
            found.map(|(offset, data)| {
                let begin = from.max(*offset);
                (begin, data.slice((begin - offset) as usize..))
            })
        };
        self.weather.after().await?;
        Ok(piece)
    }

    async fn keep_all(&self, id: OperationId) -> Result<(), PortError> {
        self.weather.before().await?;
        let stream = (id, OutputStream::Stdout);
        let is_kept = self.own().streams.contains_key(&stream) || self.kept().contains_key(&stream);
        match self.shared.full.load(Ordering::Relaxed) && !is_kept {
            true => Err(PortError::new("the disk is full")),
            // Everything is, here.
            false => Ok(()),
        }
    }

    async fn append(
        &self,
        id: OperationId,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PortError> {
        if self.shared.loses.load(Ordering::Relaxed) || self.weather.loses() {
            return Ok(());
        }
        let cannot_keep = self.cannot_keep(id);
        let (mut own, mut all) = (self.own(), self.kept());
        let own = &mut *own;
        let kept = all.entry((id, stream)).or_default();
        let appended = own.streams.entry((id, stream));
        let appended = appended.or_insert_with(|| kept.unchanged());
        let end = appended.end;
        let follows = data.is_empty() || offset <= end;
        if cannot_keep || !follows {
            own.broken.insert(id);
        } else if data.is_empty() && offset > end {
            appended.end = offset;
            appended.pieces.push((offset, data));
        } else if offset + data.len() as u64 > end {
            let data = data.slice((end - offset) as usize..);
            appended.end += data.len() as u64;
            appended.pieces.push((end, data));
        }
        Ok(())
    }

    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        if !self.shared.full.load(Ordering::Relaxed) {
            self.own().broken.remove(&id);
            for stream in STREAMS {
                self.sync((id, stream));
                // Another server may have written more.
                self.own().streams.remove(&(id, stream));
            }
        }
        self.synced(id).await
    }

    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        self.weather.before().await?;
        if self.cannot_keep(id) {
            self.shared.told_full.store(true, Ordering::Relaxed);
            return Err(PortError::new("the disk is full"));
        }
        let durable = self.durable(id);
        self.weather.after().await?;
        Ok(durable)
    }
}

impl Kept {
    pub(in crate::tests) fn end(&self) -> u64 {
        let last = self.pieces.last();
        last.map_or(0, |(offset, data)| offset + data.len() as u64)
    }

    /// As a server has it that has appended nothing.
    fn unchanged(&self) -> Appended {
        Appended {
            pieces: Vec::new(),
            end: self.end(),
        }
    }

    /// What is there already is left out.
    fn push(&mut self, offset: u64, data: Bytes) {
        let end = self.end();
        assert!(data.is_empty() || offset <= end, "something is left out");
        if data.is_empty() && offset > end {
            self.pieces.push((offset, data));
        } else if offset + data.len() as u64 > end {
            let new = data.slice((end - offset) as usize..);
            self.pieces.push((end, new));
        }
    }
}
