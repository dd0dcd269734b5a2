//! The readers of an operation's events: any number of them, or one.

use std::{collections::VecDeque, future::pending, sync::Arc};

use shared_sandbox::{OperationEvent, Outcome};
use tokio::sync::mpsc;

use super::board::Board;

/// Events that may wait for the one reader; what waits beside them is bounded by the credit.
const EVENTS: usize = 4;

/// See the module.
pub(super) enum Audience {
    /// Readers of the board. Output is kept, and waits for none of them.
    Board(Arc<Board>),
    /// One reader of output that is kept nowhere: the output waits for it.
    One(One),
}

/// The one reader.
pub(super) struct One {
    events: mpsc::Sender<OperationEvent>,
    /// The events that it receives next.
    waiting: VecDeque<OperationEvent>,
    has_left: bool,
}

impl One {
    pub(super) fn pair() -> (Self, mpsc::Receiver<OperationEvent>) {
        let (events, receiver) = mpsc::channel(EVENTS);
        let one = Self {
            events,
            waiting: VecDeque::new(),
            has_left: false,
        };
        (one, receiver)
    }
}

impl Audience {
    /// Passes on an event. Output that is to be kept was kept before.
    pub(super) fn note(&mut self, event: OperationEvent) {
        match self {
            Self::Board(board) => board.note(event),
            Self::One(one) if one.has_left => {}
            Self::One(one) => one.waiting.push_back(event),
        }
    }

    /// True if the next event has to wait.
    pub(super) fn is_behind(&self) -> bool {
        match self {
            Self::Board(_) => false,
            Self::One(one) => !one.waiting.is_empty(),
        }
    }

    /// True if there was one reader, and it has gone.
    pub(super) fn has_left(&self) -> bool {
        match self {
            Self::Board(_) => false,
            Self::One(one) => one.has_left,
        }
    }

    /// Gives the one reader its next event, or waits until it has gone. Cancel-safe.
    pub(super) async fn attend(&mut self) {
        let one = match self {
            Self::One(one) if !one.has_left => one,
            _ => return pending().await,
        };
        if one.waiting.is_empty() {
            one.events.closed().await;
            one.has_left = true;
            return;
        }
        match one.events.reserve().await {
            Ok(room) => {
                if let Some(event) = one.waiting.pop_front() {
                    room.send(event);
                }
            }
            Err(_) => {
                one.waiting.clear();
                one.has_left = true;
            }
        }
    }

    /// Gives the end to the reader that may store it; returns true if that reader did.
    pub(super) async fn offer(&self, outcome: Outcome) -> bool {
        match self {
            Self::Board(board) => board.offer(outcome).await,
            // The one reader concludes nothing from it.
            Self::One(_) => false,
        }
    }
}
