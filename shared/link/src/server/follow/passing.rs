//! The input and controls that go to an operation while it is followed.

use proto::v1::server_frame;
use shared_sandbox::{Control, Input, OperationEvent};
use shared_types::Refusal;

use super::{Follow, Phase};
use crate::server::{ControlAnswer, Controlled, FollowStep};

impl Follow {
    /// Goes on with what is passed on and not answered, where `before` has followed the same operation.
    pub fn take_over(&mut self, before: Self) {
        self.passing = before.passing;
        for (progress, before) in self.progress.iter_mut().zip(&before.progress) {
            progress.take_over(before);
        }
        if let Some(asked) = &self.asked {
            self.passing.takes(&asked.request);
        }
    }

    /// True if something can be passed on: the operation was asked for over the present link.
    pub(super) fn is_attached(&self) -> bool {
        matches!(self.phase, Phase::Reading(_))
    }

    /// True if [`Follow::input`] has an answer now.
    pub fn takes_input(&self) -> bool {
        self.is_attached() && self.passing.takes_input()
    }

    /// Keeps a piece of input until the runner has taken it; returns where to go on.
    ///
    /// # Errors
    /// It takes none, or none any more.
    pub fn input(&mut self, piece: &Input) -> Result<u64, Refusal> {
        self.passing.input(piece)
    }

    /// True if there is room for [`Follow::control`].
    pub fn takes_controls(&self) -> bool {
        self.passing.takes_controls()
    }

    /// Something is to be done to the process. The answer carries `key`.
    pub fn control(&mut self, key: u64, control: Control) {
        self.passing.control(key, control);
    }

    /// Gives up the controls that were sent and not answered, because it cannot be known if they were done; returns
    /// their keys.
    pub fn give_up_sent_controls(&mut self) -> Vec<u64> {
        self.passing.give_up_sent()
    }

    /// The runner answers to what was passed on.
    pub fn answer(&mut self, answer: ControlAnswer) -> Option<Controlled> {
        if answer == ControlAnswer::Accepted {
            self.accepted();
            return None;
        }
        self.passing.answer(answer)
    }

    /// Said again over every link, and told once.
    fn accepted(&mut self) {
        if self.is_attached() && !std::mem::replace(&mut self.told_accepted, true) {
            self.steps
                .push_back(FollowStep::Tell(OperationEvent::Accepted));
        }
    }

    /// The next frame for the link over which the operation was asked for. `fresh_id` is larger
    /// than any that this runner was ever sent.
    pub fn passed_on(&mut self, fresh_id: impl FnOnce() -> u64) -> Option<server_frame::Kind> {
        match self.is_attached() {
            true => self.passing.next_frame(&mut self.progress, fresh_id),
            false => None,
        }
    }
}
