//! Input and controls on their way to a command. All of it is kept until the supervisor has it, and
//! passed on again where the connection to the supervisor was lost.
//!
//! A supervisor takes as much as it has room for and drops the rest, so one piece goes at a time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use runner_supervisor::SupervisedOperation;
use rustix::process::Signal as Number;
use shared_link::feed::Feed;
use shared_sandbox::{Control, Input, Signal};
use shared_types::limits::{INPUT_CHUNK_BYTES, INPUT_WINDOW_BYTES};
use tokio::sync::Notify;

/// Shared by the senders of wishes and the command's task.
#[derive(Debug, Clone)]
pub(crate) struct PassingControls(Arc<PassingQueue>);

#[derive(Debug)]
struct PassingQueue {
    waiting: Mutex<Unsent>,
    changed: Notify,
}

/// The input and controls that the supervisor does not have yet. The table of operations bounds
/// both.
#[derive(Debug)]
struct Unsent {
    feed: Feed,
    controls: VecDeque<(u64, Control)>,
}

/// The part of it that was sent to the supervisor over the present connection; belongs to the task.
#[derive(Debug, Default)]
pub(super) struct SentControls {
    controls: usize,
    /// The number of answers that it has yet to give about input, until another piece may follow.
    input_answers: u8,
}

impl PassingControls {
    /// Of a command that takes nothing yet.
    pub(crate) fn new() -> Self {
        Self(Arc::new(PassingQueue {
            waiting: Mutex::new(Unsent {
                feed: Feed::new(INPUT_WINDOW_BYTES as usize),
                controls: VecDeque::new(),
            }),
            changed: Notify::new(),
        }))
    }

    /// Adds a piece of input.
    pub(crate) fn input(&self, input: &Input) {
        if let Err(refusal) = self.lock().feed.offer(input) {
            tracing::error!(%refusal, "input came that cannot be passed on");
        }
        self.0.changed.notify_one();
    }

    /// Adds something to be done.
    pub(crate) fn control(&self, id: u64, control: Control) {
        self.lock().controls.push_back((id, control));
        self.0.changed.notify_one();
    }

    /// Waits until something may be new.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Another connection begins. `taken` is the input that the supervisor took, where that is
    /// known.
    pub(super) fn connected(&self, sent: &mut SentControls, taken: Option<u64>) {
        *sent = SentControls::default();
        let mut waiting = self.lock();
        waiting.feed.disconnect();
        if let Some(taken) = taken {
            waiting.feed.taken(taken);
        }
    }

    /// Takes the supervisor's report on input. A piece that it took only in part is answered a
    /// second time, when there is room for the rest.
    pub(super) fn taken(&self, sent: &mut SentControls, up_to: u64) {
        let mut waiting = self.lock();
        waiting.feed.taken(up_to);
        sent.input_answers = match sent.input_answers {
            2 if waiting.feed.waits() => 1,
            _ => 0,
        };
    }

    /// The supervisor has done it.
    pub(super) fn done(&self, sent: &mut SentControls, id: u64) {
        let controls = &mut self.lock().controls;
        if let Some(at) = controls.iter().position(|(waiting, _)| *waiting == id) {
            controls.remove(at);
            sent.controls = sent
                .controls
                .saturating_sub(usize::from(at < sent.controls));
        }
    }

    /// Passes on what the supervisor can take. If the supervisor is gone, the next read finds that
    /// out, not this.
    pub(super) fn pass_on(&self, sent: &mut SentControls, operation: &mut SupervisedOperation) {
        let mut waiting = self.lock();
        while let Some((id, control)) = waiting.controls.get(sent.controls)
            && !operation.is_behind()
        {
            let _ = match control {
                Control::Resize(size) => operation.resize(*id, size.rows, size.columns),
                Control::Signal(signal) => operation.signal(*id, number(*signal).as_raw()),
            };
            sent.controls += 1;
        }
        if sent.input_answers > 0 || operation.is_behind() {
            return;
        }
        if waiting.feed.waits() {
            // The rest of a piece was dropped.
            let taken = waiting.feed.taken_up_to();
            waiting.feed.disconnect();
            waiting.feed.taken(taken);
        }
        if let Some(piece) = waiting.feed.next(INPUT_CHUNK_BYTES) {
            let _ = operation.input(piece.offset, &piece.data, piece.end);
            sent.input_answers = 2;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Unsent> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(signal: Signal) -> Number {
    match signal {
        Signal::Hangup => Number::HUP,
        Signal::Interrupt => Number::INT,
        Signal::Quit => Number::QUIT,
        Signal::Kill => Number::KILL,
        Signal::User1 => Number::USR1,
        Signal::User2 => Number::USR2,
        Signal::Terminate => Number::TERM,
        Signal::Continue => Number::CONT,
        Signal::Stop => Number::STOP,
    }
}
