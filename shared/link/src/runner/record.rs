//! What the runner's journal holds of its operations, in the order in which it happened.

use proto::v1::cancel_answer::Answer;
use serde::{Deserialize, Serialize};
use shared_sandbox::{Outcome, Request};
use shared_types::{Digest, Epoch, OperationId, Owner};

/// One thing that must outlive the daemon. Reading all of them again gives the same memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// So many operations were accepted before those whose records follow.
    Sequence(u64),
    /// An operation will be carried out.
    Accepted(Accepted),
    /// An owner has a newer holder.
    Epoch {
        /// Whose.
        owner: Owner,
        /// The holder's number.
        epoch: Epoch,
    },
    /// An operation is over.
    Ended {
        /// Which one.
        operation: OperationId,
        /// How.
        outcome: Outcome,
        /// Whether a cancel was carried out before.
        stopped: bool,
    },
    /// It was accepted, never ran, and may be started anew.
    Released(OperationId),
    /// It is gone, and must never start.
    Receipt(Receipt),
}

/// An operation that will be carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// Which one.
    pub operation: OperationId,
    /// Of its canonical request.
    pub digest: Digest,
    /// What it belongs to.
    pub owner: Owner,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// What can be passed on to it.
    #[serde(default, skip_serializing_if = "Takes::is_nothing")]
    pub takes: Takes,
}

/// What can be passed on to an operation while it is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takes {
    /// Input.
    pub input: bool,
    /// Its input comes as the pieces of a file.
    #[serde(default)]
    pub is_file: bool,
    /// Another size of its terminal.
    pub terminal: bool,
    /// Signals.
    pub signals: bool,
}

impl Takes {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// What can be passed on to an operation that asks for this.
    pub fn of(request: &Request) -> Self {
        Self {
            input: request.takes_input(),
            is_file: request.is_upload(),
            terminal: request.has_terminal(),
            signals: request.takes_signals(),
        }
    }
}

/// What is left of an operation that is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which one.
    pub operation: OperationId,
    end: ReceiptEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReceiptEnd {
    NeverStarted,
    AlreadyExited,
    Cancelled,
}

impl Receipt {
    pub(super) fn new(operation: OperationId, answer: Answer) -> Self {
        let end = match answer {
            Answer::NeverStarted => ReceiptEnd::NeverStarted,
            Answer::Cancelled => ReceiptEnd::Cancelled,
            Answer::AlreadyExited | Answer::Unspecified => ReceiptEnd::AlreadyExited,
        };
        Self { operation, end }
    }

    /// What a cancel of it is answered with.
    pub(super) fn answer(&self) -> Answer {
        match self.end {
            ReceiptEnd::NeverStarted => Answer::NeverStarted,
            ReceiptEnd::AlreadyExited => Answer::AlreadyExited,
            ReceiptEnd::Cancelled => Answer::Cancelled,
        }
    }
}
