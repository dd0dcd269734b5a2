//! The state of one connection, for other tasks: its credential, its requests, and its end. Behind a proxy that names
//! addresses, each request has a visit of its own as well.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Context,
};

use futures_util::task::AtomicWaker;
use tokio::sync::{Notify, Semaphore};

use super::strangers::{Number, Strangers};

/// Memory that a connection takes before it has said anything: buffers, and the state of its TLS.
const CONNECTION_BYTES: usize = 16 * 1024;
/// Bytes that a stranger may hold beyond that: a message of enrolment (8 KiB) with its headers, behind the
/// handshake of TLS.
const STRANGER_BYTES: usize = 12 * 1024;
/// The same for a runner whose access token holds: a whole frame of HTTP/2, in which a hello may come
/// that is too large and is to be told so.
const RUNNER_BYTES: usize = 144 * 1024;
/// Bytes of refused frames that a runner whose access token holds may still send, so that it hears why:
/// the rest of its windows.
const REFUSED_BYTES: usize = 4 * 1024 * 1024;
/// Memory that a request takes while it is carried out: its way through the server, measured with half a body.
const CARRIED_OUT_BYTES: usize = 32 * 1024;
/// Requests of a stranger that are carried out at the same time, of each kind (see [`Visit`]); the
/// others wait, which takes a small part of the memory.
const REQUESTS_AT_ONCE: usize = 1;

/// Signals between the tasks of a connection.
#[derive(Debug, Default)]
pub(super) struct VisitSignals {
    let_in: AtomicBool,
    may_greet: AtomicBool,
    cut_off: AtomicBool,
    late: AtomicBool,
    requests: AtomicUsize,
    /// Bytes that the peer's system has taken.
    taken: AtomicUsize,
    /// True if the peer's system has not taken all bytes.
    has_unsent: AtomicBool,
    /// The task that reads the connection, while it waits.
    reader: AtomicWaker,
    /// Tells the connection's own task that it is to end.
    ends: Notify,
}

impl VisitSignals {
    /// Requests that are under way.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Acquire)
    }

    /// Ends the connection now.
    pub(super) fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Release);
        self.ends.notify_one();
        self.reader.wake();
    }
}

/// A connection from its first byte to its last.
#[derive(Debug)]
pub(super) struct Visit {
    strangers: Arc<Strangers>,
    number: Number,
    signals: Arc<VisitSignals>,
    /// Bytes that came beyond the bound while no request was under way. No request holds them.
    refused: AtomicUsize,
    /// Turns of requests that show something like a credential, and of those that show none, so
    /// that these do not hold up those. Closed once it is let in.
    turns: [Semaphore; 2],
}

impl Visit {
    /// A connection that begins; the address is the one that it counts for.
    pub(super) fn of_connection(strangers: Arc<Strangers>, address: Option<IpAddr>) -> Arc<Self> {
        Self::begin(strangers, address, CONNECTION_BYTES)
    }

    /// A request on this connection, for the address that a proxy named.
    pub(super) fn of_request(&self, address: IpAddr) -> Arc<Self> {
        // The connection counts the memory that it holds.
        Self::begin(self.strangers.clone(), Some(address), 0)
    }

    fn begin(strangers: Arc<Strangers>, address: Option<IpAddr>, base: usize) -> Arc<Self> {
        let signals = Arc::<VisitSignals>::default();
        let number = strangers.comes(address, base, signals.clone());
        Arc::new(Self {
            strangers,
            number,
            signals,
            refused: AtomicUsize::new(0),
            turns: [(); 2].map(|()| Semaphore::new(REQUESTS_AT_ONCE)),
        })
    }

    /// A credential that holds was shown on it.
    pub(super) fn let_in(&self) {
        if !self.signals.let_in.swap(true, Ordering::AcqRel) {
            self.strangers.leaves(self.number);
            self.turns.iter().for_each(Semaphore::close);
            self.signals.reader.wake();
        }
    }

    /// A runner is there whose access token holds: it may say hello.
    pub(super) fn may_greet(&self) {
        self.signals.may_greet.store(true, Ordering::Release);
        self.signals.reader.wake();
    }

    /// Waits until a stranger's request may be carried out; it is as long as this is held.
    pub(super) async fn turn(&self, shows_credential: bool) -> Option<VisitTurn<'_>> {
        let turns = &self.turns[usize::from(shows_credential)];
        turns.acquire().await.ok()?.forget();
        self.strangers.takes(self.number, CARRIED_OUT_BYTES);
        Some(VisitTurn { visit: self, turns })
    }

    pub(super) fn is_let_in(&self) -> bool {
        self.signals.let_in.load(Ordering::Acquire)
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.signals.cut_off.load(Ordering::Acquire)
    }

    /// True while a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.signals.requests() > 0
    }

    /// True while a request is under way, or while a complete answer is not sent yet.
    pub(super) fn is_being_answered(&self) -> bool {
        self.is_busy() || self.signals.has_unsent.load(Ordering::Relaxed)
    }

    /// A request was not answered in time: a stranger gets no second one.
    pub(super) fn was_late(&self) {
        if !self.is_let_in() {
            self.signals.late.store(true, Ordering::Release);
            self.signals.ends.notify_one();
        }
    }

    /// True for a stranger that was too slow.
    pub(super) fn is_late(&self) -> bool {
        self.signals.late.load(Ordering::Acquire) && !self.is_let_in()
    }

    /// Waits until it is to end: it was cut off, or was late.
    pub(super) async fn is_to_end(&self) {
        self.signals.ends.notified().await;
    }

    /// The bytes that may be read now. If there are none, the reader is woken once there are.
    pub(super) fn room(&self, context: &Context<'_>) -> usize {
        if self.is_let_in() {
            return usize::MAX;
        }
        // The waker is registered before the check, so that no change is missed in between.
        self.signals.reader.register(context.waker());
        match self.left() {
            0 if self.is_busy() => 0,
            0 if self.refused.load(Ordering::Acquire) < self.may_be_refused() => REFUSED_BYTES,
            0 => {
                // Further bytes belong to no request any more.
                self.was_late();
                0
            }
            left => left,
        }
    }

    fn may_be_refused(&self) -> usize {
        match self.signals.may_greet.load(Ordering::Acquire) {
            true => REFUSED_BYTES,
            false => 0,
        }
    }

    fn left(&self) -> usize {
        let most = match self.signals.may_greet.load(Ordering::Acquire) {
            true => RUNNER_BYTES,
            false => STRANGER_BYTES,
        };
        match self.strangers.held(self.number) {
            Some(held) => most.saturating_sub(held),
            None => usize::MAX,
        }
    }

    /// So much was read.
    pub(super) fn heard(&self, bytes: usize) {
        if self.left() > 0 {
            self.strangers.holds(self.number, bytes);
        } else {
            self.refused.fetch_add(bytes, Ordering::AcqRel);
        }
    }

    /// So much was written to it; nothing, where it took nothing of what there was.
    pub(super) fn took(&self, bytes: Option<usize>) {
        let taken = bytes.unwrap_or(0);
        self.signals.taken.fetch_add(taken, Ordering::Relaxed);
        let has_unsent = bytes.is_none();
        self.signals.has_unsent.store(has_unsent, Ordering::Relaxed);
    }

    /// Bytes that were written to it so far.
    pub(super) fn taken(&self) -> usize {
        self.signals.taken.load(Ordering::Relaxed)
    }

    /// A request begins that takes this much memory.
    pub(super) fn asks(self: &Arc<Self>, bytes: usize) -> VisitUnderWay {
        let others = self.signals.requests.fetch_add(1, Ordering::AcqRel);
        if !self.is_let_in() {
            if others == 0 && self.signals.may_greet.load(Ordering::Acquire) {
                // The rest of a frame that was refused is behind it, or this would not have come.
                self.strangers.lets_go(self.number, usize::MAX);
            }
            self.strangers.holds(self.number, bytes);
        }
        VisitUnderWay {
            visit: self.clone(),
            bytes,
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if !self.is_let_in() {
            self.strangers.leaves(self.number);
        }
    }
}

/// A stranger's request that is carried out.
#[derive(Debug)]
pub(super) struct VisitTurn<'a> {
    visit: &'a Visit,
    turns: &'a Semaphore,
}

impl Drop for VisitTurn<'_> {
    fn drop(&mut self) {
        let Visit {
            strangers, number, ..
        } = self.visit;
        strangers.gives_back(*number, CARRIED_OUT_BYTES);
        self.turns.add_permits(REQUESTS_AT_ONCE);
    }
}

/// A request that is under way, until its answer has been handed over.
#[derive(Debug)]
pub(super) struct VisitUnderWay {
    visit: Arc<Visit>,
    bytes: usize,
}

impl Drop for VisitUnderWay {
    fn drop(&mut self) {
        let visit = &self.visit;
        let others = visit.signals.requests.fetch_sub(1, Ordering::AcqRel) - 1;
        if !visit.is_let_in() {
            // Without a request under way, no received bytes are held. Otherwise their owner is unknown.
            let bytes = if others == 0 { usize::MAX } else { self.bytes };
            visit.strangers.lets_go(visit.number, bytes);
            visit.refused.store(0, Ordering::Release);
            visit.signals.reader.wake();
        }
    }
}
