//! Output in memory, until the disk is full.

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
    full: AtomicBool,
    /// Whoever waited for a sync was told that the disk is full.
    told_full: AtomicBool,
    kept: Mutex<HashMap<(OperationId, OutputStream), Kept>>,
    /// What is appended is lost, of which only a later piece of the stream tells.
    loses: AtomicBool,
    /// Of which something was not kept.
    broken: Mutex<HashSet<OperationId>>,
    /// No stream can be read from its beginning now.
    holds_beginnings: AtomicBool,
    weather: Arc<dyn Weather>,
}

/// One stream.
#[derive(Default, Clone)]
pub(in crate::tests) struct Kept {
    /// Bytes and where they stand; no bytes stand for those before them, which never come.
    pub(in crate::tests) pieces: Vec<(u64, Bytes)>,
    /// Below this no crash takes anything away.
    pub(in crate::tests) durable: u64,
}

impl Area {
    pub(super) fn under(weather: Arc<dyn Weather>) -> Self {
        Self {
            full: AtomicBool::default(),
            told_full: AtomicBool::default(),
            kept: Mutex::default(),
            loses: AtomicBool::default(),
            broken: Mutex::default(),
            holds_beginnings: AtomicBool::default(),
            weather,
        }
    }

    pub(in crate::tests) fn fill(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    pub(in crate::tests) fn lose(&self, loses: bool) {
        self.loses.store(loses, Ordering::Relaxed);
    }

    pub(super) fn has_told_full(&self) -> bool {
        self.told_full.load(Ordering::Relaxed)
    }

    pub(super) fn hold_the_beginnings(&self, hold: bool) {
        self.holds_beginnings.store(hold, Ordering::Relaxed);
    }

    /// What is kept of a stream.
    pub(in crate::tests) fn kept_of(&self, id: OperationId, stream: OutputStream) -> Kept {
        self.kept().get(&(id, stream)).cloned().unwrap_or_default()
    }

    /// The server dies: of what is not durable so much of each stream is left.
    pub(in crate::tests) fn crash(&self, mut left: impl FnMut(u64) -> u64) {
        self.broken().clear();
        let mut kept = self.kept();
        let mut streams: Vec<_> = kept.iter_mut().collect();
        streams.sort_by_key(|(stream, _)| **stream);
        for (_, kept) in streams {
            let end = kept.durable + left(kept.end() - kept.durable);
            kept.cut(end);
        }
    }

    /// How far it is durable once it is synced; nobody knows once the disk is full.
    pub(super) fn durable(&self, id: OperationId) -> [u64; 2] {
        if self.cannot_keep(id) {
            return [0, 0];
        }
        let mut kept = self.kept();
        STREAMS.map(|stream| match kept.get_mut(&(id, stream)) {
            Some(kept) => {
                kept.durable = kept.end();
                kept.durable
            }
            None => 0,
        })
    }

    /// Whether all of the output of what ended so is durable.
    pub(super) fn is_whole(&self, id: OperationId, outcome: &Outcome) -> bool {
        let Outcome::Exited(record) = outcome else {
            return true;
        };
        let [stdout, stderr] = self.durable(id);
        stdout >= record.stdout.offset && stderr >= record.stderr.offset
    }

    fn cannot_keep(&self, id: OperationId) -> bool {
        self.full.load(Ordering::Relaxed) || self.broken().contains(&id)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<(OperationId, OutputStream), Kept>> {
        self.kept.lock().expect("no test panics with it")
    }

    fn broken(&self) -> MutexGuard<'_, HashSet<OperationId>> {
        self.broken.lock().expect("no test panics with it")
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
        while from == 0 && self.holds_beginnings.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.weather.before().await?;
        let piece = self.kept().get(&(id, stream)).and_then(|kept| {
            let pieces = kept.pieces.iter();
            let mut pieces = pieces.filter(|(_, data)| !data.is_empty());
            let (offset, data) = pieces.find(|(offset, data)| offset + data.len() as u64 > from)?;
            let begin = from.max(*offset);
            Some((begin, data.slice((begin - offset) as usize..)))
        });
        self.weather.after().await?;
        Ok(piece)
    }

    async fn keep_all(&self, id: OperationId) -> Result<(), PortError> {
        self.weather.before().await?;
        let is_kept = self.kept().contains_key(&(id, OutputStream::Stdout));
        match self.full.load(Ordering::Relaxed) && !is_kept {
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
        if self.loses.load(Ordering::Relaxed) || self.weather.loses() {
            return Ok(());
        }
        let cannot_keep = self.cannot_keep(id);
        let mut all = self.kept();
        let kept = all.entry((id, stream)).or_default();
        let end = kept.end();
        let follows = data.is_empty() || offset <= end;
        if cannot_keep || !follows {
            self.broken().insert(id);
        } else if data.is_empty() && offset > end {
            kept.pieces.push((offset, data));
        } else if offset + data.len() as u64 > end {
            kept.pieces
                .push((end, data.slice((end - offset) as usize..)));
        }
        Ok(())
    }

    async fn resume(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        if !self.full.load(Ordering::Relaxed) {
            self.broken().remove(&id);
        }
        self.synced(id).await
    }

    async fn synced(&self, id: OperationId) -> Result<[u64; 2], PortError> {
        self.weather.before().await?;
        if self.cannot_keep(id) {
            self.told_full.store(true, Ordering::Relaxed);
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

    fn cut(&mut self, end: u64) {
        self.pieces.retain(|(offset, _)| *offset <= end);
        if let Some((offset, data)) = self.pieces.last_mut() {
            let len = (end - *offset).min(data.len() as u64);
            data.truncate(len as usize);
        }
    }
}
