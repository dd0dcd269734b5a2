//! The input, the controls and the commits of output that go to one operation, over every link.
//!
//! Everything that is not answered is kept, within bounds, and sent again over the next link.

use std::collections::VecDeque;

use proto::v1::server_frame;
use shared_sandbox::{Control, Input, OutputStream, Request};
use shared_types::{
    OperationId, Refusal, RefusalCode,
    limits::{INPUT_CHUNK_BYTES, INPUT_WINDOW_BYTES, MAX_CONTROLS_WAITING},
};

use super::progress::OutputProgress;
use crate::{feed::Feed, wire};

/// An answer of the runner about input and controls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAnswer {
    /// The runner has the operation.
    Accepted,
    /// Input below this offset is taken.
    InputTaken(u64),
    /// Input is not taken, for this reason.
    InputRefused(Refusal),
    /// The control with this id was done, or cannot be.
    Done {
        /// Its id.
        id: u64,
        /// Its result.
        result: Result<(), Refusal>,
    },
}

/// The result of a [`Control`], for the caller that chose this key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controlled {
    /// The key that the caller gave.
    pub key: u64,
    /// The result.
    pub result: Result<(), Refusal>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct PassingControls {
    operation: OperationId,
    takes_input: bool,
    feed: Feed,
    /// The reason why the runner takes no input.
    refused: Option<Refusal>,
    /// The offset that the reader was last told.
    told: Option<u64>,
    controls: VecDeque<WaitingControl>,
}

#[derive(Debug)]
struct WaitingControl {
    key: u64,
    control: Control,
    /// Given when it is sent for the first time.
    id: Option<u64>,
    sent: bool,
}

impl PassingControls {
    pub(super) fn new(operation: OperationId, request: Option<&Request>) -> Self {
        Self {
            operation,
            takes_input: request.is_some_and(Request::takes_input),
            feed: Feed::new(INPUT_WINDOW_BYTES as usize),
            refused: None,
            told: None,
            controls: VecDeque::new(),
        }
    }

    /// This is the operation's request, which was not known before.
    pub(super) fn takes(&mut self, request: &Request) {
        self.takes_input = request.takes_input();
    }

    /// True if a piece of input would be kept, or refused.
    pub(super) fn takes_input(&self) -> bool {
        !self.takes_input
            || self.refused.is_some()
            || (self.feed.is_connected() && self.feed.has_room())
    }

    pub(super) fn input(&mut self, piece: &Input) -> Result<u64, Refusal> {
        if !self.takes_input {
            let message = "the operation takes no input; ask for it with the request";
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        if piece.data.len() as u64 > INPUT_WINDOW_BYTES {
            let message = format!(
                "a piece of input has more than {INPUT_WINDOW_BYTES} bytes; send less at once"
            );
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        match &self.refused {
            Some(refusal) => Err(refusal.clone()),
            None => self.feed.offer(piece),
        }
    }

    /// True if there is room for one more control that waits for its answer.
    pub(super) fn takes_controls(&self) -> bool {
        self.controls.len() < MAX_CONTROLS_WAITING
    }

    pub(super) fn control(&mut self, key: u64, control: Control) {
        self.controls.push_back(WaitingControl {
            key,
            control,
            id: None,
            sent: false,
        });
    }

    /// The operation was asked for over a link.
    pub(super) fn attached(&mut self) {
        self.feed.disconnect();
        self.refused = None;
        self.told = None;
        self.controls
            .iter_mut()
            .for_each(|waiting| waiting.sent = false);
    }

    /// Gives up the controls that were sent, over any link, and not answered; returns their keys.
    pub(super) fn give_up_sent(&mut self) -> Vec<u64> {
        let (sent, kept) = self
            .controls
            .drain(..)
            .partition::<Vec<_>, _>(|one| one.id.is_some());
        self.controls = kept.into();
        sent.into_iter().map(|one| one.key).collect()
    }

    /// The runner answers.
    pub(super) fn answer(&mut self, answer: ControlAnswer) -> Option<Controlled> {
        match answer {
            // Of the operation, and of nothing that was passed on.
            ControlAnswer::Accepted => {}
            ControlAnswer::InputTaken(up_to) => self.feed.taken(up_to),
            ControlAnswer::InputRefused(refusal) => self.refused = Some(refusal),
            ControlAnswer::Done { id, result } => {
                let at = self.controls.iter().position(|w| w.id == Some(id))?;
                let key = self.controls.remove(at)?.key;
                return Some(Controlled { key, result });
            }
        }
        None
    }

    /// The offset up to which input is taken, where the reader does not know it yet.
    pub(super) fn tell(&mut self) -> Option<u64> {
        if !self.feed.is_connected() {
            return None;
        }
        let taken = self.feed.taken_up_to();
        (self.told.replace(taken) != Some(taken)).then_some(taken)
    }

    /// The next frame: what is small first. `progress` has the commits of stdout and stderr. `fresh_id`: larger than any before of this operation.
    pub(super) fn next_frame(
        &mut self,
        progress: &mut [OutputProgress; 2],
        fresh_id: impl FnOnce() -> u64,
    ) -> Option<server_frame::Kind> {
        if let Some(waiting) = self.controls.iter_mut().find(|waiting| !waiting.sent) {
            waiting.sent = true;
            let id = *waiting.id.get_or_insert_with(fresh_id);
            return Some(wire::control(self.operation, id, waiting.control));
        }
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            if let Some(up_to) = progress[stream as usize].report_due() {
                return Some(wire::commit(self.operation, stream, up_to));
            }
        }
        if self.refused.is_some() {
            return None;
        }
        let piece = self.feed.next(INPUT_CHUNK_BYTES)?;
        Some(wire::input(self.operation, piece))
    }
}

#[cfg(test)]
mod tests;
