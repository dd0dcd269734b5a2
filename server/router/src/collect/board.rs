//! What is known of one operation, and where its readers stand.
//!
//! The collector writes it up; each reader takes from it at its own pace. A reader that keeps up takes
//! the bytes as they come; every other one reads them from where they are kept. No bytes wait for a
//! reader.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use shared_sandbox::{OperationEvent, Outcome, OutputStream};
use shared_types::{OperationId, Timestamp};
use tokio::sync::watch;

use crate::ports::{Outputs, PortError};

/// Both streams, in this order everywhere.
const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

/// Bytes that came last, for readers that keep up. What is kept is read from the disk.
const RECENT_BYTES: usize = 256 * 1024;

/// How much is known of one operation.
pub(super) struct Board {
    id: OperationId,
    outputs: Arc<dyn Outputs>,
    known: Mutex<Known>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Known {
    accepted: bool,
    /// Since when the place cannot be reached.
    unreachable: Option<Timestamp>,
    input_taken: Option<u64>,
    /// Below this stdout and stderr are kept, or are known to be missing.
    came: [u64; 2],
    recent: VecDeque<(OutputStream, u64, Bytes)>,
    recent_bytes: usize,
    ended: Option<Outcome>,
    /// Nothing more will be written here.
    closed: bool,
}

impl Board {
    /// Of an operation of whose stdout and stderr this much is kept.
    pub(super) fn open(id: OperationId, outputs: Arc<dyn Outputs>, came: [u64; 2]) -> Arc<Self> {
        Self::of(
            id,
            outputs,
            Known {
                came,
                ..Known::default()
            },
        )
    }

    /// Of an operation that has ended.
    pub(super) fn ended(id: OperationId, outputs: Arc<dyn Outputs>, outcome: Outcome) -> Arc<Self> {
        let came = match &outcome {
            Outcome::Exited(record) => [record.stdout.offset, record.stderr.offset],
            _ => [0, 0],
        };
        let known = Known {
            came,
            ended: Some(outcome),
            closed: true,
            ..Known::default()
        };
        Self::of(id, outputs, known)
    }

    fn of(id: OperationId, outputs: Arc<dyn Outputs>, known: Known) -> Arc<Self> {
        Arc::new(Self {
            id,
            outputs,
            known: Mutex::new(known),
            changed: watch::Sender::new(()),
        })
    }

    /// Something happened. Output was kept before.
    pub(super) fn note(&self, event: OperationEvent) {
        self.lock().note(event, self.changed.receiver_count() > 0);
        self.changed.send_replace(());
    }

    /// Nothing more is written: readers that were told all hear no more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.send_replace(());
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, event: OperationEvent, is_read: bool) {
        match event {
            OperationEvent::Accepted => self.accepted = true,
            OperationEvent::Output {
                stream,
                offset,
                data,
            } => {
                let came = &mut self.came[stream as usize];
                *came = (*came).max(offset.saturating_add(data.len() as u64));
                if is_read {
                    self.remember((stream, offset, data));
                }
            }
            OperationEvent::Gap { stream, to, .. } => {
                let came = &mut self.came[stream as usize];
                *came = (*came).max(to);
            }
            OperationEvent::Unreachable { since } => self.unreachable = Some(since),
            OperationEvent::Reachable => self.unreachable = None,
            OperationEvent::InputTaken(up_to) => self.input_taken = Some(up_to),
            OperationEvent::Ended(outcome) => self.ended = Some(outcome),
        }
    }

    fn remember(&mut self, piece: (OutputStream, u64, Bytes)) {
        self.recent_bytes += piece.2.len();
        self.recent.push_back(piece);
        while self.recent_bytes > RECENT_BYTES
            && let Some((_, _, data)) = self.recent.pop_front()
        {
            self.recent_bytes -= data.len();
        }
    }

    /// The bytes of the stream from this offset on, if they came just now.
    fn recent_at(&self, stream: OutputStream, from: u64) -> Option<Bytes> {
        let pieces = self.recent.iter().rev();
        let mut of_stream = pieces.filter(|(of, ..)| *of == stream);
        let (_, offset, data) = of_stream.find(|(_, offset, _)| *offset <= from)?;
        let skip = usize::try_from(from - offset).ok()?;
        (skip < data.len()).then(|| data.slice(skip..))
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("id", &self.id)
            .field("known", &self.lock())
            .finish_non_exhaustive()
    }
}

type Kept = Result<Option<(u64, Bytes)>, PortError>;

type Fetching = Pin<Box<dyn Future<Output = Kept> + Send>>;

/// Reads one operation, from where it stands to its end. A reader that is dropped stops nothing.
pub struct Reading {
    board: Arc<Board>,
    changed: watch::Receiver<()>,
    /// Below this it was told of stdout and stderr.
    told: [u64; 2],
    /// The stream whose turn it is, so that neither waits for the other.
    turn: usize,
    told_accepted: bool,
    told_unreachable: Option<Timestamp>,
    told_input: Option<u64>,
    told_end: bool,
    fetching: Option<(OutputStream, Fetching)>,
}

/// What a reader does next.
enum Next {
    Tell(OperationEvent),
    Fetch(OutputStream),
    Wait,
    Over,
}

impl Reading {
    pub(super) fn new(board: Arc<Board>, from: [u64; 2]) -> Self {
        Self {
            changed: board.changed.subscribe(),
            board,
            told: from,
            turn: 0,
            told_accepted: false,
            told_unreachable: None,
            told_input: None,
            told_end: false,
            fetching: None,
        }
    }

    /// What happens next; nothing after the end. Where the server gives an operation up, because its
    /// own store does not answer for instance, there is no end: read again later. Cancel-safe.
    pub async fn next(&mut self) -> Option<OperationEvent> {
        loop {
            if let Some((stream, fetching)) = &mut self.fetching {
                let (stream, kept) = (*stream, fetching.await);
                self.fetching = None;
                match kept {
                    Ok(kept) => return Some(self.piece(stream, kept)),
                    Err(error) => {
                        tracing::warn!(operation.id = %self.board.id, %error, "kept output cannot be read");
                        self.told_end = true;
                        return None;
                    }
                }
            }
            self.changed.mark_unchanged();
            match self.find() {
                Next::Tell(event) => return Some(event),
                Next::Over => return None,
                Next::Fetch(stream) => self.fetch(stream),
                // The sender is the board's, which we hold.
                Next::Wait => drop(self.changed.changed().await),
            }
        }
    }

    /// What is small first, the end last.
    fn find(&mut self) -> Next {
        let board = Arc::clone(&self.board);
        let known = board.lock();
        if self.told_end {
            return Next::Over;
        }
        if known.accepted && !self.told_accepted {
            self.told_accepted = true;
            return Next::Tell(OperationEvent::Accepted);
        }
        if known.unreachable != self.told_unreachable {
            self.told_unreachable = known.unreachable;
            return Next::Tell(match known.unreachable {
                Some(since) => OperationEvent::Unreachable { since },
                None => OperationEvent::Reachable,
            });
        }
        if let Some(up_to) = known.input_taken
            && self.told_input != Some(up_to)
        {
            self.told_input = Some(up_to);
            return Next::Tell(OperationEvent::InputTaken(up_to));
        }
        for index in [self.turn, 1 - self.turn] {
            let (stream, from) = (STREAMS[index], self.told[index]);
            if from >= known.came[index] {
                continue;
            }
            self.turn = 1 - index;
            return match known.recent_at(stream, from) {
                Some(data) => {
                    self.told[index] = from + data.len() as u64;
                    Next::Tell(OperationEvent::Output {
                        stream,
                        offset: from,
                        data,
                    })
                }
                None => Next::Fetch(stream),
            };
        }
        match &known.ended {
            Some(outcome) => {
                self.told_end = true;
                Next::Tell(OperationEvent::Ended(outcome.clone()))
            }
            None if known.closed => Next::Over,
            None => Next::Wait,
        }
    }

    fn fetch(&mut self, stream: OutputStream) {
        let (outputs, id) = (Arc::clone(&self.board.outputs), self.board.id);
        let from = self.told[stream as usize];
        let reading = Box::pin(async move { outputs.read(id, stream, from).await });
        self.fetching = Some((stream, reading));
    }

    /// What the reader is told of what is kept where it stands; of what is not kept, that it is missing.
    fn piece(&mut self, stream: OutputStream, kept: Option<(u64, Bytes)>) -> OperationEvent {
        let came = self.board.lock().came[stream as usize];
        let told = &mut self.told[stream as usize];
        let from = *told;
        match kept {
            Some((offset, mut data)) if offset == from => {
                data.truncate(usize::try_from(came - from).unwrap_or(usize::MAX));
                *told = from + data.len() as u64;
                OperationEvent::Output {
                    stream,
                    offset,
                    data,
                }
            }
            later => {
                *told = later.map_or(came, |(offset, _)| offset.min(came));
                let to = *told;
                OperationEvent::Gap { stream, from, to }
            }
        }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("operation", &self.board.id)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}
