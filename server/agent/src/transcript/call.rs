//! One answer of the model, its calls and their results.

mod recorded;

use std::sync::Arc;

use shared_types::{
    ApprovalId, Digest, OperationId, SessionId, Timestamp,
    event::{
        Answer, Awaited, CallOutcome, FileSeen, Finish, Origin, Parts, Place, ToolCall, TurnLimit,
    },
};

use super::{AgentCall, NOT_RUN};

/// One answer of the model with the calls that it asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) number: u32,
    /// The model that answered.
    pub(crate) model: String,
    /// The wire format and the account that the answer came from; `None` if an earlier release recorded it.
    pub(crate) origin: Option<Origin>,
    /// The answer; its calls are in `calls`, with their results.
    pub(crate) parts: Parts,
    /// Most bytes that are sent of the text; its calls share as many.
    pub(crate) longest: usize,
    /// The number of changes before it to what stood before it ([`Transcript::prefix`]).
    pub(crate) prefix: u32,
    /// The tokens of the request, as the server estimated them and as the vendor counted them; 0 where unknown.
    pub(crate) estimated: u64,
    pub(crate) counted: u64,
    /// The tokens that were sent and came back, as the vendor counted them.
    pub(crate) tokens: u64,
    /// The time that the model took, in milliseconds; 0 where unknown.
    pub(crate) model_ms: u64,
    /// The limit that the turn had reached before it: this is the summary.
    pub(crate) limit: Option<TurnLimit>,
    pub(crate) finish: Finish,
    pub(crate) calls: Vec<Call>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Its number in the session, from 1.
    pub(crate) number: u32,
    pub(crate) asked: ToolCall,
    /// The newest question to people about it.
    pub(crate) approval: Option<Approval>,
    /// Once an operation of it was placed, it may have happened.
    pub(crate) placed: Option<Placed>,
    /// The agent that works for it.
    pub(crate) agent: Option<AgentCall>,
    /// The conversation that it has begun, if it has begun one.
    pub(crate) chat: Option<SessionId>,
    /// The time at which it was sent to a tool server: from then on it may have happened.
    pub(crate) requested: Option<Timestamp>,
    pub(crate) result: Option<CallResult>,
    /// The end of its operation, in words, where that came after the result.
    pub(crate) settled: Option<String>,
    /// The form in which the model is sent the result.
    pub(crate) sent: SentAs,
}

/// A question to people about a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Approval {
    pub(crate) id: ApprovalId,
    /// The number of it among the questions about the call, from 1.
    pub(crate) number: u32,
    /// The digest of the request that is approved; nothing if nothing is asked of a runner.
    pub(crate) plan: Option<Digest>,
    /// After that no answer counts.
    pub(crate) until: Timestamp,
    /// The outcome, once there is one.
    pub(crate) answer: Option<Answer>,
}

/// The form in which the model is sent a result.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum SentAs {
    /// The result itself.
    #[default]
    Whole,
    /// A short form of it.
    Masked {
        /// The call that had changed the file since, where it read one.
        stale_by: Option<u32>,
    },
    /// This text in its place.
    Edited(Arc<str>),
}

/// The place of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The time at which an operation of it was first placed.
    pub at: Timestamp,
    /// The one that was placed last.
    pub operation: OperationId,
    /// The place of that one.
    pub place: Place,
}

/// The result of a call, for the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult {
    pub(crate) outcome: CallOutcome,
    pub(crate) parts: Parts,
    /// No runner could be given it.
    pub(crate) unplaced: bool,
    /// The event that it still waited for.
    pub(crate) awaits: Option<Awaited>,
    /// The file that it read, wrote or edited.
    pub(crate) file: Option<FileSeen>,
    /// The whole text, where the result is a part of it.
    pub(crate) whole: Option<Digest>,
    /// The tools that it found.
    pub(crate) tools: Vec<String>,
}

impl Step {
    /// The number of its last call; 0 without one.
    pub(crate) fn number_of_last(&self) -> u32 {
        self.calls.last().map_or(0, |call| call.number)
    }

    /// The reason that no runner could be given the calls of this step, if so.
    pub(crate) fn unplaced(&self) -> Option<String> {
        let results = self.calls.iter().filter_map(|call| call.result.as_ref());
        let unplaced = results.into_iter().find(|result| result.unplaced);
        unplaced.map(|result| {
            let words = result.parts.words();
            match words.strip_prefix(NOT_RUN) {
                Some(reason) => reason.to_owned(),
                None => words.into_owned(),
            }
        })
    }

    /// True if the end of one of these calls is not known because its runner stayed away.
    pub(crate) fn is_cut_off(&self) -> bool {
        let mut results = self.calls.iter().filter_map(|call| call.result.as_ref());
        results.any(|result| {
            let CallResult {
                outcome, awaits, ..
            } = result;
            *outcome == CallOutcome::Unknown && *awaits == Some(Awaited::Runner)
        })
    }

    /// True if the answer has words for the reader.
    pub(crate) fn has_words(&self) -> bool {
        !self.parts.words().trim().is_empty()
    }

    /// The calls that have no result yet, by their place in the answer.
    pub(crate) fn pending(&self) -> Vec<u32> {
        (0..)
            .zip(&self.calls)
            .filter(|(_, call)| call.result.is_none())
            .map(|(ordinal, _)| ordinal)
            .collect()
    }
}

impl CallResult {
    /// True if both say the same to the model.
    pub(crate) fn says_what(&self, other: &Self) -> bool {
        (self.outcome, &self.parts) == (other.outcome, &other.parts)
            && (self.unplaced, self.awaits) == (other.unplaced, other.awaits)
    }
}

impl Call {
    /// The file that it read, wrote or edited.
    pub(crate) fn file(&self) -> Option<&FileSeen> {
        self.result.as_ref()?.file.as_ref()
    }

    fn new(asked: ToolCall) -> Self {
        Self {
            number: 0,
            asked,
            approval: None,
            placed: None,
            agent: None,
            chat: None,
            requested: None,
            result: None,
            settled: None,
            sent: SentAs::Whole,
        }
    }
}
