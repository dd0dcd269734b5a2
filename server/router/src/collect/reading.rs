//! The place of one reader in an operation's events, and its next event.

use std::{fmt, mem::take, pin::Pin, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use shared_sandbox::{EndToken, Events, OperationEvent, OutputStream};
use shared_types::{Epoch, Timestamp};
use tokio::sync::watch;

use super::board::Board;
use server_records::PortError;

/// Both streams, in this order everywhere.
const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

type StoredPiece = Result<Option<(u64, Bytes)>, PortError>;

/// A read of the kept output of a stream.
struct Fetching {
    stream: OutputStream,
    /// The offset that the stream had reached when the read began. Later bytes may be kept without being seen by it.
    came: u64,
    kept: Pin<Box<dyn Future<Output = StoredPiece> + Send>>,
}

/// Reads one operation, from its place to its end: first the kept output, then new output. A dropped reader stops
/// nothing, and a slow one delays nothing.
pub struct OperationReader {
    board: Arc<Board>,
    changed: watch::Receiver<()>,
    /// The offsets up to which it has received stdout and stderr.
    told: [u64; 2],
    /// The stream whose turn it is, so that neither waits for the other.
    turn: usize,
    told_accepted: bool,
    told_unreachable: Option<Timestamp>,
    told_input: Option<u64>,
    told_end: bool,
    fetching: Option<Fetching>,
    /// Its right to receive the end before that is stored.
    claim: Option<u64>,
    token: Option<EndToken>,
}

/// The next action of a reader.
enum ReaderAction {
    Tell(OperationEvent),
    /// Read the kept output of the stream, which has come up to here.
    Fetch(OutputStream, u64),
    Wait,
    Over,
}

impl OperationReader {
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
            claim: None,
            token: None,
        }
    }

    /// The reader that may store the end; an earlier one may no more.
    pub(super) fn claiming(board: Arc<Board>, epoch: Epoch) -> Self {
        let claim = board.claim(epoch);
        let mut reading = Self::new(board, [0, 0]);
        reading.claim = Some(claim);
        reading
    }

    /// A reader from these offsets on, which may store the end unless another one may.
    pub(super) fn claiming_if_free(board: Arc<Board>, from: [u64; 2], epoch: Epoch) -> Self {
        let claim = board.claim_unless_claimed(epoch);
        let mut reading = Self::new(board, from);
        reading.claim = claim;
        reading
    }

    /// The next event; none after the end. If kept output cannot be read now, it returns none without an end: read
    /// again later. Cancel-safe.
    pub async fn next(&mut self) -> Option<OperationEvent> {
        loop {
            if let Some(fetching) = &mut self.fetching {
                let kept = fetching.kept.as_mut().await;
                let (stream, came) = (fetching.stream, fetching.came);
                self.fetching = None;
                match kept.map(|kept| self.piece(stream, came, kept)) {
                    Ok(Some(event)) => return Some(event),
                    Ok(None) => self.until_changed().await,
                    Err(error) => {
                        tracing::warn!(operation.id = %self.board.id, %error, "kept output cannot be read");
                        self.told_end = true;
                        return None;
                    }
                }
            }
            self.changed.mark_unchanged();
            match self.find() {
                ReaderAction::Tell(event) => return Some(event),
                ReaderAction::Over => return None,
                ReaderAction::Fetch(stream, came) => self.fetch(stream, came),
                ReaderAction::Wait => self.until_changed().await,
            }
        }
    }

    async fn until_changed(&mut self) {
        // The sender is the board's, which we hold.
        let _ = self.changed.changed().await;
    }

    /// Finds the next event: small ones first, the end last.
    fn find(&mut self) -> ReaderAction {
        let board = Arc::clone(&self.board);
        let mut known = board.lock();
        if self.told_end {
            return ReaderAction::Over;
        }
        if known.accepted && !self.told_accepted {
            self.told_accepted = true;
            return ReaderAction::Tell(OperationEvent::Accepted);
        }
        if known.unreachable != self.told_unreachable {
            self.told_unreachable = known.unreachable;
            return ReaderAction::Tell(match known.unreachable {
                Some(since) => OperationEvent::Unreachable { since },
                None => OperationEvent::Reachable,
            });
        }
        if let Some(up_to) = known.input_taken
            && self.told_input != Some(up_to)
        {
            self.told_input = Some(up_to);
            return ReaderAction::Tell(OperationEvent::InputTaken(up_to));
        }
        for index in [self.turn, 1 - self.turn] {
            let (stream, from) = (STREAMS[index], self.told[index]);
            let came = known.shown[index].came;
            if from >= came {
                continue;
            }
            self.turn = 1 - index;
            return match known.recent_at(stream, from) {
                Some(data) => {
                    self.told[index] = from + data.len() as u64;
                    ReaderAction::Tell(OperationEvent::Output {
                        stream,
                        offset: from,
                        data,
                    })
                }
                None => ReaderAction::Fetch(stream, came),
            };
        }
        let ended = match known.take_offered(self.claim) {
            Some((outcome, token)) => {
                self.token = Some(token);
                Some(outcome)
            }
            None => known.ended.clone(),
        };
        match ended {
            Some(outcome) => {
                self.told_end = true;
                ReaderAction::Tell(OperationEvent::Ended(outcome))
            }
            None if known.closed => ReaderAction::Over,
            None => ReaderAction::Wait,
        }
    }

    fn fetch(&mut self, stream: OutputStream, came: u64) {
        let (outputs, id) = (Arc::clone(&self.board.outputs), self.board.id);
        let from = self.told[stream as usize];
        self.fetching = Some(Fetching {
            stream,
            came,
            kept: Box::pin(async move { outputs.read(id, stream, from).await }),
        });
    }

    /// The next event from the kept output at the reader's place, which was read for bytes up to `came`. For bytes that
    /// are not kept it is a gap, unless they may still be kept.
    fn piece(
        &mut self,
        stream: OutputStream,
        came: u64,
        kept: Option<(u64, Bytes)>,
    ) -> Option<OperationEvent> {
        let known = self.board.lock();
        // Less, if the bytes come once more.
        let came = came.min(known.shown[stream as usize].came);
        let told = &mut self.told[stream as usize];
        let from = *told;
        match kept {
            Some((offset, mut data)) if offset == from => {
                let room = usize::try_from(came.saturating_sub(from)).unwrap_or(usize::MAX);
                data.truncate(room);
                *told = from + data.len() as u64;
                (!data.is_empty()).then_some(OperationEvent::Output {
                    stream,
                    offset,
                    data,
                })
            }
            ref kept if known.may_still_be_kept(stream, from, kept.is_some()) => None,
            later => {
                *told = later.map_or(came, |(offset, _)| offset.min(came)).max(from);
                let to = *told;
                (from < to).then_some(OperationEvent::Gap { stream, from, to })
            }
        }
    }
}

#[async_trait]
impl Events for OperationReader {
    async fn recv(&mut self) -> Option<OperationEvent> {
        self.next().await
    }

    fn came(&self) -> [u64; 2] {
        self.board.lock().shown.map(|shown| shown.came)
    }

    fn end_token(&mut self) -> Option<EndToken> {
        take(&mut self.token)
    }
}

impl Drop for OperationReader {
    fn drop(&mut self) {
        if let Some(claim) = self.claim {
            self.board.unclaim(claim);
        }
    }
}

impl fmt::Debug for OperationReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("operation", &self.board.id)
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
