//! The wishes to a command.
//!
//! Wishes are a state, not a queue. A later one takes the place of an earlier one of its kind, so
//! that they are bounded and no sender waits. Input, which has to arrive whole and in order, goes
//! another way (see `passing`).

use std::time::Duration;

use shared_sandbox::{Input, OutputStream};
use tokio::sync::watch;

use super::passing::PassingControls;

/// Passes wishes on to a command's supervisor. Cheap to clone; never waits. After the command's end
/// nothing that is wished has an effect.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    wishes: watch::Sender<ProcessWishes>,
    passing: PassingControls,
}

/// All that was wished so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ProcessWishes {
    pub(super) cancel: bool,
    /// The bytes of stdout and of stderr that are durable elsewhere.
    pub(super) committed: [u64; 2],
    /// The number of renewals, and the time of the last one.
    pub(super) renewed: (u64, Duration),
    pub(super) orphan: bool,
}

impl Control {
    pub(super) fn new(passing: PassingControls) -> (Self, watch::Receiver<ProcessWishes>) {
        let (wishes, heard) = watch::channel(ProcessWishes::default());
        (Self { wishes, passing }, heard)
    }

    /// Passes on a piece of input, which continues the piece before. An event reports how much was
    /// taken.
    pub(crate) fn input(&self, input: &Input) {
        self.passing.input(input);
    }

    /// Does something to it, once for each id; an event reports that it is done.
    pub(crate) fn control(&self, id: u64, control: shared_sandbox::Control) {
        self.passing.control(id, control);
    }

    /// Ends it, politely at first, because a caller asked.
    pub(crate) fn cancel(&self) {
        self.wish(|wishes| wishes.cancel = true);
    }

    /// Ends it, politely at first, because the runner stops. Counts once more than any renewal.
    pub(crate) fn orphan(&self) {
        self.wish(|wishes| wishes.orphan = true);
    }

    /// It may go on for this long from now without another renewal.
    pub(crate) fn renew(&self, orphan_for: Duration) {
        self.wish(|wishes| wishes.renewed = (wishes.renewed.0 + 1, orphan_for));
    }

    /// Output below `offset` is durable elsewhere and may be evicted. Never goes back.
    pub(crate) fn commit(&self, stream: OutputStream, offset: u64) {
        self.wish(|wishes| {
            let committed = &mut wishes.committed[index(stream)];
            *committed = offset.max(*committed);
        });
    }

    fn wish(&self, wish: impl FnOnce(&mut ProcessWishes)) {
        self.wishes.send_if_modified(|wishes| {
            let before = *wishes;
            wish(wishes);
            *wishes != before
        });
    }
}

/// The place of a stream in pairs of both.
pub(super) fn index(stream: OutputStream) -> usize {
    match stream {
        OutputStream::Stdout => 0,
        OutputStream::Stderr => 1,
    }
}
