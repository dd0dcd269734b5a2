//! Who reads what on one link, and whether the runner keeps the order of the protocol: one
//! `Accepted` (or a refusal) for each `Operation`, then output in order, then one `Ended`.
//!
//! A frame of an operation that nobody reads is dropped; as nobody grants credit for it either,
//! the runner soon stops.

use std::collections::HashMap;

use proto::v1;
use shared_sandbox::Outcome;
use shared_types::{OperationId, limits::OUTPUT_CHUNK_BYTES};

use crate::{
    convert::{self, Expects, Malformed},
    links::handle::{CancelWaiter, Reader},
    mailbox::{Post, PostError},
};

/// Operations of one link for which a cancel's answer may be outstanding; beyond it the wish
/// counts as recorded.
const MAX_CANCELS: usize = 1024;

/// Callers that may wait for the answer to one operation's cancel.
const MAX_WAITERS: usize = 16;

/// The readers of a link and the callers that wait for an answer.
#[derive(Default)]
pub(super) struct Subscriptions {
    operations: HashMap<OperationId, Subscription>,
    cancels: HashMap<OperationId, Vec<CancelWaiter>>,
}

struct Subscription {
    post: Post,
    expects: Expects,
    /// `Operation` frames that the runner has not answered. While there are any, what comes is
    /// for an earlier reader.
    unanswered: u32,
    /// Whether the last answer was `Accepted` and `Ended` has not come.
    open: bool,
}

impl Subscriptions {
    /// A reader wants the operation: returns whether the frame is to be sent.
    pub(super) fn attach(&mut self, id: OperationId, reader: Reader) -> bool {
        match self.operations.get_mut(&id) {
            Some(_) if reader.yields => {
                reader.post.superseded();
                false
            }
            Some(subscription) => {
                std::mem::replace(&mut subscription.post, reader.post).superseded();
                subscription.unanswered += 1;
                true
            }
            None => {
                let subscription = Subscription {
                    post: reader.post,
                    expects: reader.expects,
                    unanswered: 1,
                    open: false,
                };
                self.operations.insert(id, subscription);
                true
            }
        }
    }

    /// Whether somebody reads the operation.
    pub(super) fn is_read(&self, id: OperationId) -> bool {
        self.operations.contains_key(&id)
    }

    pub(super) fn accepted(&mut self, frame: &v1::Accepted) -> Result<(), Malformed> {
        let id = convert::operation_id(&frame.operation)?;
        let Some(subscription) = self.operations.get_mut(&id) else {
            return Ok(());
        };
        if subscription.unanswered == 0 {
            return Err(Malformed(format!("{id} was accepted twice")));
        }
        subscription.unanswered -= 1;
        subscription.open = true;
        Ok(())
    }

    pub(super) fn output(&mut self, frame: v1::Output) -> Result<(), Malformed> {
        let stream = convert::output_stream(frame.stream)?;
        if frame.data.len() > OUTPUT_CHUNK_BYTES {
            return Err(Malformed(format!(
                "a piece of output has {} bytes; at most {OUTPUT_CHUNK_BYTES} are allowed",
                frame.data.len()
            )));
        }
        self.post(&frame.operation, |post| {
            post.output(stream, frame.offset, frame.data)
        })
    }

    pub(super) fn gap(&mut self, frame: &v1::Gap) -> Result<(), Malformed> {
        let stream = convert::output_stream(frame.stream)?;
        self.post(&frame.operation, |post| {
            post.gap(stream, frame.from, frame.to)
        })
    }

    pub(super) fn ended(&mut self, frame: v1::Ended) -> Result<(), Malformed> {
        let id = convert::operation_id(&frame.operation)?;
        let outcome = convert::outcome(frame.outcome)?;
        let Some(subscription) = self.operations.get_mut(&id) else {
            return Ok(());
        };
        if !(subscription.expects)(&outcome) {
            return Err(Malformed(format!(
                "{id} ended with the outcome of another kind of request"
            )));
        }
        if subscription.open {
            subscription.open = false;
            if subscription.unanswered == 0
                && let Some(subscription) = self.operations.remove(&id)
            {
                subscription.post.ended(outcome);
            }
            return Ok(());
        }
        let Outcome::Refused(refusal) = outcome else {
            return Err(Malformed(format!("{id} ended before it was accepted")));
        };
        subscription.unanswered -= 1;
        if subscription.unanswered == 0
            && let Some(subscription) = self.operations.remove(&id)
        {
            subscription.post.refused(refusal);
        }
        Ok(())
    }

    /// Remembers who waits for the answer to a cancel. A waiter that finds no place is dropped,
    /// and so hears at once that there will be no answer.
    pub(super) fn await_cancel(&mut self, id: OperationId, waiter: CancelWaiter) {
        let outstanding = self.cancels.len();
        if let Some(waiters) = self.cancels.get_mut(&id) {
            waiters.retain(|waiter| !waiter.is_closed());
            if waiters.len() < MAX_WAITERS {
                waiters.push(waiter);
            }
        } else if outstanding < MAX_CANCELS {
            self.cancels.insert(id, vec![waiter]);
        }
    }

    pub(super) fn cancel_answered(&mut self, frame: v1::CancelAnswer) -> Result<(), Malformed> {
        let id = convert::operation_id(&frame.operation)?;
        let answer = convert::cancel_answer(frame)?;
        for waiter in self.cancels.remove(&id).unwrap_or_default() {
            // Whoever stopped waiting was told that the wish is recorded.
            let _ = waiter.send(answer.clone());
        }
        Ok(())
    }

    fn post(
        &mut self,
        operation: &str,
        put: impl FnOnce(&Post) -> Result<(), PostError>,
    ) -> Result<(), Malformed> {
        let id = convert::operation_id(operation)?;
        let Some(subscription) = self.operations.get_mut(&id) else {
            return Ok(());
        };
        match (subscription.open, subscription.unanswered) {
            (true, 0) => put(&subscription.post)
                .map_err(|error| Malformed(format!("the output of {id} is broken: {error}"))),
            (true, _) => Ok(()),
            (false, _) => Err(Malformed(format!(
                "output of {id} came before it was accepted"
            ))),
        }
    }
}
