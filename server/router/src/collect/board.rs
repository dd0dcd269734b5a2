//! The known facts about one operation.
//!
//! The collector writes them; each reader takes them at its own pace ([`super::reading`]). The latest bytes lie here
//! for readers that keep up; every other reader reads them from the kept output. No bytes wait for a reader.
//!
//! An end that is not stored yet waits here for the reader with the claim, which may store it together with what it
//! concludes from it. The reader takes the end with a token. If the token is spent, the end is stored; if it is
//! dropped, or not taken in time, the collector stores the end alone. Every other reader receives the end once it is
//! stored.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use shared_sandbox::{EndToken, OperationEvent, Outcome, OutputStream};
use shared_types::{Epoch, OperationId, Timestamp};
use tokio::{sync::watch, time::timeout};

use crate::bounds::END_TAKEN_WITHIN;
use server_records::Outputs;

/// The latest bytes, for readers that keep up. Kept output is read from the disk.
const RECENT_BYTES: usize = 256 * 1024;

/// The known facts about one operation.
pub(super) struct Board {
    pub(super) id: OperationId,
    pub(super) outputs: Arc<dyn Outputs>,
    known: Mutex<BoardStatus>,
    pub(super) changed: watch::Sender<()>,
    /// True once its end was passed on, or never will be.
    settled: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct BoardStatus {
    pub(super) accepted: bool,
    /// The time since the place cannot be reached.
    pub(super) unreachable: Option<Timestamp>,
    pub(super) input_taken: Option<u64>,
    /// Of stdout and stderr.
    pub(super) shown: [ReadableOffsets; 2],
    recent: VecDeque<(OutputStream, u64, Bytes)>,
    recent_bytes: usize,
    /// All of the output is kept.
    whole: bool,
    /// New output cannot be kept now; it is requested again once it can.
    unkept: bool,
    /// The end that waits for the reader with the claim.
    pub(super) offered: Option<(Outcome, EndToken)>,
    /// The end that is stored.
    pub(super) ended: Option<Outcome>,
    /// Nothing more will be written here.
    pub(super) closed: bool,
    /// The reader that may store the end.
    claim: Option<Claim>,
    /// Claims so far.
    claims: u64,
}

/// The right of a reader to store the end.
#[derive(Debug)]
struct Claim {
    number: u64,
    /// The epoch of the operation's owner under which the reader asks.
    epoch: Epoch,
}

/// The offsets of a stream that readers may rely on. They follow what the collector's task has kept
/// ([`shared_link::server::Follow::came`]).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadableOffsets {
    /// The stream came up to here, or is known to be missing.
    pub(super) came: u64,
    /// Bytes before here that are not kept never came. It stays where the stream comes once more, so it may be ahead
    /// of `came` then.
    missing: u64,
}

impl ReadableOffsets {
    fn up_to(came: u64) -> Self {
        Self { came, missing: 0 }
    }

    fn output(&mut self, end: u64) {
        self.came = self.came.max(end);
    }

    fn gap(&mut self, to: u64) {
        self.came = self.came.max(to);
        self.missing = self.missing.max(to);
    }
}

impl Board {
    /// The board of an operation whose stdout and stderr are kept up to here. `whole`: all of them is to be kept.
    pub(super) fn open(
        id: OperationId,
        outputs: Arc<dyn Outputs>,
        kept: [u64; 2],
        whole: bool,
    ) -> Arc<Self> {
        let known = BoardStatus {
            shown: kept.map(ReadableOffsets::up_to),
            whole,
            ..BoardStatus::default()
        };
        Self::of(id, outputs, known)
    }

    /// The board of an operation that has ended, whose stdout and stderr are kept up to here.
    pub(super) fn ended(
        id: OperationId,
        outputs: Arc<dyn Outputs>,
        kept: [u64; 2],
        outcome: Outcome,
    ) -> Arc<Self> {
        let mut shown = kept.map(ReadableOffsets::up_to);
        if let Outcome::Exited(record) = &outcome {
            shown[0].output(record.stdout.offset);
            shown[1].output(record.stderr.offset);
        }
        let known = BoardStatus {
            shown,
            ended: Some(outcome),
            closed: true,
            ..BoardStatus::default()
        };
        Self::of(id, outputs, known)
    }

    fn of(id: OperationId, outputs: Arc<dyn Outputs>, known: BoardStatus) -> Arc<Self> {
        Arc::new(Self {
            id,
            outputs,
            settled: watch::Sender::new(known.closed),
            known: Mutex::new(known),
            changed: watch::Sender::new(()),
        })
    }

    /// Writes an event. Output was kept before, and an end is stored.
    pub(super) fn note(&self, event: OperationEvent) {
        if matches!(event, OperationEvent::Ended(_)) {
            self.settled.send_replace(true);
        }
        let is_read = self.changed.receiver_count() > 0;
        self.change(|known| known.note(event, is_read));
    }

    /// Gives the end to the reader that may store it, if there is one; returns true if that reader did.
    pub(super) async fn offer(&self, outcome: Outcome) -> bool {
        let (token, mut given) = EndToken::give();
        {
            let mut known = self.lock();
            if known.claim.is_none() {
                return false;
            }
            known.offered = Some((outcome, token));
        }
        self.changed.send_replace(());
        match timeout(END_TAKEN_WITHIN, given.is_spent()).await {
            Ok(spent) => spent,
            Err(_) => {
                // Taken back unless the reader has taken it.
                drop(self.lock().offered.take());
                given.is_spent().await
            }
        }
    }

    /// Records that all of the output is to be kept, by the request that is known now.
    pub(super) fn all_is_kept(&self) {
        self.lock().whole = true;
    }

    /// Records that new output cannot be kept from now on.
    pub(super) fn cannot_keep(&self) {
        self.change(|known| known.unkept = true);
    }

    /// Has readers look again for kept bytes.
    pub(super) fn look_again(&self) {
        self.changed.send_replace(());
    }

    /// Starts again behind the kept output: bytes that were not kept come once more.
    pub(super) fn begin_again(&self, kept: [u64; 2]) {
        self.change(|known| known.begin_again(kept));
    }

    /// Ends the board: readers that have read all of it receive no more.
    pub(super) fn close(&self) {
        self.settled.send_replace(true);
        self.change(|known| known.closed = true);
    }

    /// Waits until its end was passed on, or never will be.
    pub(super) async fn until_settled(&self) {
        // The sender is ours.
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }

    /// The claim of a reader that asks under this epoch; it takes the place of an earlier one.
    pub(super) fn claim(&self, epoch: Epoch) -> u64 {
        self.lock().claim(epoch)
    }

    /// The same, unless another reader has a claim under this epoch or a newer one.
    pub(super) fn claim_unless_claimed(&self, epoch: Epoch) -> Option<u64> {
        let mut known = self.lock();
        let claimed = known.claim.as_ref();
        let is_free = claimed.is_none_or(|before| before.epoch < epoch);
        is_free.then(|| known.claim(epoch))
    }

    /// The reader with this claim has gone.
    pub(super) fn unclaim(&self, claim: u64) {
        let mut known = self.lock();
        if known.is_claimed_by(claim) {
            known.claim = None;
            drop(known.offered.take());
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BoardStatus> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BoardStatus)) {
        change(&mut self.lock());
        self.changed.send_replace(());
    }
}

impl BoardStatus {
    fn note(&mut self, event: OperationEvent, is_read: bool) {
        match event {
            OperationEvent::Accepted => self.accepted = true,
            OperationEvent::Output {
                stream,
                offset,
                data,
            } => {
                let end = offset.saturating_add(data.len() as u64);
                self.shown[stream as usize].output(end);
                if is_read {
                    self.remember((stream, offset, data));
                }
            }
            OperationEvent::Gap { stream, to, .. } => self.shown[stream as usize].gap(to),
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

    fn begin_again(&mut self, kept: [u64; 2]) {
        for (shown, kept) in self.shown.iter_mut().zip(kept) {
            shown.came = kept;
        }
        self.recent.clear();
        self.recent_bytes = 0;
        self.unkept = false;
        // It comes again once all of the output is here.
        self.ended = None;
    }

    /// The bytes of the stream from this offset on, if they are among the latest.
    pub(super) fn recent_at(&self, stream: OutputStream, from: u64) -> Option<Bytes> {
        let pieces = self.recent.iter().rev();
        let mut of_stream = pieces.filter(|(of, ..)| *of == stream);
        let (_, offset, data) = of_stream.find(|(_, offset, _)| *offset <= from)?;
        let skip = usize::try_from(from - offset).ok()?;
        (skip < data.len()).then(|| data.slice(skip..))
    }

    /// Tells if bytes that are not kept at this offset will still be kept. True of bytes that could not be kept now.
    /// True of bytes behind all kept output, until the collector has seen that nothing is missing. If there is kept
    /// output behind them (`is_middle`), they are left out for good, unless all of the output is to be kept.
    pub(super) fn may_still_be_kept(
        &self,
        stream: OutputStream,
        from: u64,
        is_middle: bool,
    ) -> bool {
        let never_came = from < self.shown[stream as usize].missing;
        let is_over = self.closed || (is_middle && self.ended.is_some());
        let is_to_be_kept = self.whole || !is_middle;
        !never_came && ((self.unkept && !self.closed) || (is_to_be_kept && !is_over))
    }

    fn claim(&mut self, epoch: Epoch) -> u64 {
        self.claims += 1;
        let number = self.claims;
        self.claim = Some(Claim { number, epoch });
        number
    }

    fn is_claimed_by(&self, number: u64) -> bool {
        let claim = self.claim.as_ref();
        claim.is_some_and(|claim| claim.number == number)
    }

    /// The end, if it waits for the reader with this claim.
    pub(super) fn take_offered(&mut self, claim: Option<u64>) -> Option<(Outcome, EndToken)> {
        match claim.is_some_and(|claim| self.is_claimed_by(claim)) {
            true => self.offered.take(),
            false => None,
        }
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
