//! The readers of one link, and a check that the runner keeps the order of the protocol. For each
//! `Operation` there is one `Accepted` (or a refusal), then output in order, then one `Ended`.
//!
//! Frames of an operation without a reader are dropped. Without a reader no credit is granted
//! either, so the runner soon stops. Where the reader of a read has left, its place stays until the
//! runner has sent the end: frames on the way by then are not for the next reader.

use std::collections::{HashMap, VecDeque};

use proto::v1;
use shared_sandbox::Outcome;
use shared_types::{OperationId, limits::OUTPUT_CHUNK_BYTES};

use super::{
    inbox::{InboxError, Mail},
    passing::ControlAnswer,
};
use crate::wire::{self, Expects, Malformed};

/// The most operations that are remembered because their reader left after they began.
const MAX_LEFT: usize = 4096;

/// The place where a link puts the mail of one operation.
pub trait Post {
    /// Puts it there.
    ///
    /// # Errors
    /// The runner broke the protocol.
    fn put(&self, mail: Mail) -> Result<(), InboxError>;

    /// Puts an answer there to what was passed on.
    ///
    /// # Errors
    /// The runner broke the protocol.
    fn put_answer(&self, answer: ControlAnswer) -> Result<(), InboxError>;
}

/// The reader of an operation's output.
#[derive(Debug)]
pub struct Reader<P> {
    /// Tells the readers on one link apart.
    pub key: u64,
    /// The place for its mail.
    pub post: P,
    /// The outcomes that an operation of this kind can have.
    pub expects: Expects,
    /// Makes way for another reader that is there already.
    pub yields: bool,
}

/// The readers of a link.
#[derive(Debug)]
pub(super) struct Subscriptions<P> {
    operations: HashMap<OperationId, Subscription<P>>,
    /// The latest operations whose reader left after they began.
    left: VecDeque<OperationId>,
}

#[derive(Debug)]
struct Subscription<P> {
    reader: u64,
    /// Nothing once the reader has left.
    post: Option<P>,
    expects: Expects,
    /// `Operation` frames that the runner has not answered. While there are any, what comes is
    /// for an earlier reader.
    unanswered: u32,
    /// True if the last answer was `Accepted` and `Ended` has not come.
    open: bool,
}

impl<P: Post> Subscriptions<P> {
    pub(super) fn new() -> Self {
        Self {
            operations: HashMap::new(),
            left: VecDeque::new(),
        }
    }

    /// A reader wants the operation: returns whether the frame is to be sent.
    pub(super) fn attach(&mut self, id: OperationId, reader: Reader<P>) -> bool {
        match self.operations.get_mut(&id) {
            Some(before)
                if reader.yields && before.post.is_some() && before.reader != reader.key =>
            {
                last(&reader.post, Mail::Superseded);
                false
            }
            Some(subscription) => {
                if let Some(before) = subscription.post.replace(reader.post) {
                    last(&before, Mail::Superseded);
                }
                subscription.reader = reader.key;
                subscription.expects = reader.expects;
                subscription.unanswered += 1;
                true
            }
            None => {
                let subscription = Subscription {
                    reader: reader.key,
                    post: Some(reader.post),
                    expects: reader.expects,
                    unanswered: 1,
                    open: false,
                };
                self.operations.insert(id, subscription);
                true
            }
        }
    }

    /// The reader with this key leaves: returns whether it was there.
    pub(super) fn leave(&mut self, id: OperationId, reader: u64) -> bool {
        let subscription = self.operations.get_mut(&id);
        let Some(subscription) = subscription.filter(|subscription| subscription.reader == reader)
        else {
            return false;
        };
        if subscription.post.take().is_none() {
            return false;
        }
        if subscription.open && !self.left.contains(&id) {
            self.left.push_back(id);
            let long_ago = self.left.len().saturating_sub(MAX_LEFT);
            self.left.drain(..long_ago);
        }
        true
    }

    /// Another reader, of another link, has taken the place of the one here.
    pub(super) fn superseded(&mut self, id: OperationId) {
        if let Some(subscription) = self.operations.remove(&id)
            && let Some(post) = subscription.post
        {
            last(&post, Mail::Superseded);
        }
    }

    /// True if a reader of the operation has left after it had begun.
    pub(super) fn has_left(&self, id: OperationId) -> bool {
        self.left.contains(&id)
    }

    /// True if the operation has a reader.
    pub(super) fn is_read(&self, id: OperationId) -> bool {
        let subscription = self.operations.get(&id);
        subscription.is_some_and(|subscription| subscription.post.is_some())
    }

    /// True if this reader reads the operation.
    pub(super) fn is_read_by(&self, id: OperationId, reader: u64) -> bool {
        let subscription = self.operations.get(&id);
        let subscription = subscription.filter(|subscription| subscription.post.is_some());
        subscription.is_some_and(|subscription| subscription.reader == reader)
    }

    pub(super) fn accepted(&mut self, frame: &v1::Accepted) -> Result<(), Malformed> {
        let id = wire::operation_id(&frame.operation)?;
        let Some(subscription) = self.operations.get_mut(&id) else {
            return Ok(());
        };
        if subscription.unanswered == 0 {
            return Err(Malformed(format!("{id} was accepted twice")));
        }
        subscription.unanswered -= 1;
        subscription.open = true;
        // All answers but the last are for an earlier reader.
        match (subscription.unanswered, &subscription.post) {
            (0, Some(post)) => post
                .put_answer(ControlAnswer::Accepted)
                .map_err(|error| Malformed(format!("what came of {id} is broken: {error}"))),
            _ => Ok(()),
        }
    }

    pub(super) fn output(&mut self, frame: v1::Output) -> Result<(), Malformed> {
        let stream = wire::output_stream(frame.stream)?;
        if frame.data.len() > OUTPUT_CHUNK_BYTES {
            return Err(Malformed(format!(
                "a piece of output has {} bytes; at most {OUTPUT_CHUNK_BYTES} are allowed",
                frame.data.len()
            )));
        }
        let (offset, data) = (frame.offset, frame.data);
        let mail = Mail::Output {
            stream,
            offset,
            data,
        };
        self.post(&frame.operation, mail)
    }

    pub(super) fn gap(&mut self, frame: &v1::Gap) -> Result<(), Malformed> {
        let stream = wire::output_stream(frame.stream)?;
        let (from, to) = (frame.from, frame.to);
        self.post(&frame.operation, Mail::Gap { stream, from, to })
    }

    pub(super) fn ended(&mut self, frame: v1::Ended) -> Result<(), Malformed> {
        let id = wire::operation_id(&frame.operation)?;
        let outcome = wire::outcome(frame.outcome)?;
        let Some(subscription) = self.operations.get_mut(&id) else {
            return Ok(());
        };
        if !(subscription.expects)(&outcome) {
            return Err(Malformed(format!(
                "{id} ended with the outcome of another kind of request"
            )));
        }
        let mail = if std::mem::take(&mut subscription.open) {
            Mail::Ended(wire::believed(outcome))
        } else if let Outcome::Refused(refusal) = outcome {
            subscription.unanswered = subscription.unanswered.saturating_sub(1);
            Mail::Refused(refusal)
        } else {
            return Err(Malformed(format!("{id} ended before it was accepted")));
        };
        if subscription.unanswered == 0
            && let Some(subscription) = self.operations.remove(&id)
            && let Some(post) = subscription.post
        {
            last(&post, mail);
        }
        Ok(())
    }

    pub(super) fn input_taken(&mut self, frame: v1::InputTaken) -> Result<(), Malformed> {
        let answer = match frame.refusal {
            None => ControlAnswer::InputTaken(wire::number("the input taken", frame.up_to)?),
            Some(refusal) => ControlAnswer::InputRefused(refusal.into()),
        };
        self.answer(&frame.operation, answer)
    }

    pub(super) fn done(&mut self, frame: v1::Done) -> Result<(), Malformed> {
        let answer = ControlAnswer::Done {
            id: frame.id,
            result: frame.refusal.map_or(Ok(()), |refusal| Err(refusal.into())),
        };
        self.answer(&frame.operation, answer)
    }

    /// An answer may come after the end of its operation, which another reader may be waiting for
    /// as well. Then it is dropped, and the reader passes the control on again.
    fn answer(&mut self, operation: &str, answer: ControlAnswer) -> Result<(), Malformed> {
        let id = wire::operation_id(operation)?;
        match self.operations.get(&id) {
            Some(subscription) if subscription.open => {
                self.deliver(operation, |post| post.put_answer(answer))
            }
            _ => Ok(()),
        }
    }

    fn post(&mut self, operation: &str, mail: Mail) -> Result<(), Malformed> {
        self.deliver(operation, |post| post.put(mail))
    }

    fn deliver(
        &mut self,
        operation: &str,
        put: impl FnOnce(&P) -> Result<(), InboxError>,
    ) -> Result<(), Malformed> {
        let id = wire::operation_id(operation)?;
        let Some(subscription) = self.operations.get_mut(&id) else {
            return Ok(());
        };
        match (
            subscription.open,
            subscription.unanswered,
            &subscription.post,
        ) {
            (true, 0, Some(post)) => put(post)
                .map_err(|error| Malformed(format!("what came of {id} is broken: {error}"))),
            (true, ..) => Ok(()),
            (false, ..) => Err(Malformed(format!(
                "output of {id} came before it was accepted"
            ))),
        }
    }
}

fn last<P: Post>(post: &P, mail: Mail) {
    // Only output can break a rule.
    let _ = post.put(mail);
}
