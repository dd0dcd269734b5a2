//! The records in the runner's journal about its operations, in the order in which they happened.

use std::time::Duration;

use proto::v1::cancel_answer::Answer;
use serde::{Deserialize, Serialize};
use shared_sandbox::{Outcome, Request};
use shared_types::{Digest, Epoch, OperationId, Owner, SandboxId, TraceContext};

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
        /// The owner.
        owner: Owner,
        /// The holder's number.
        epoch: Epoch,
        /// The time when a frame of the owner came last, on the clock of
        /// [`OperationTable::order`](super::OperationTable::order); absent in records of an older runner.
        #[serde(default)]
        at: Option<Duration>,
    },
    /// An operation is over.
    Ended {
        /// The operation.
        operation: OperationId,
        /// The outcome.
        outcome: Outcome,
        /// True if a cancel was carried out before.
        stopped: bool,
    },
    /// It was accepted, never ran, and may be started again.
    Released(OperationId),
    /// It is gone, and must never start.
    Receipt(Receipt),
    /// The same of many.
    Receipts(ReceiptBlock),
}

/// All records of a journal, in their order.
#[derive(Debug, Clone, Default)]
pub struct Records {
    of_earlier_boots: Vec<Record>,
    of_this_boot: Vec<Record>,
}

impl Records {
    /// The next one.
    pub fn push(&mut self, record: Record) {
        self.of_this_boot.push(record);
    }

    /// The host was restarted: what follows is of another incarnation, and another clock.
    pub fn begin_boot(&mut self) {
        self.of_earlier_boots.append(&mut self.of_this_boot);
    }

    /// Those of earlier boots of the host, and those of the present one.
    pub(super) fn into_parts(self) -> (Vec<Record>, Vec<Record>) {
        (self.of_earlier_boots, self.of_this_boot)
    }
}

impl FromIterator<Record> for Records {
    /// All of the present boot.
    fn from_iter<T: IntoIterator<Item = Record>>(records: T) -> Self {
        Self {
            of_earlier_boots: Vec::new(),
            of_this_boot: records.into_iter().collect(),
        }
    }
}

/// An operation that will be carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The operation.
    pub operation: OperationId,
    /// The sandbox where it happens; absent in records of a runner with one sandbox, which mean its
    /// first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxId>,
    /// Of its canonical request.
    pub digest: Digest,
    /// The owner that it belongs to.
    pub owner: Owner,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// The time when a frame of its owner came last, as in [`Record::Epoch`].
    #[serde(default)]
    pub at: Option<Duration>,
    /// The kinds of input and control that it takes.
    #[serde(default, skip_serializing_if = "Takes::is_nothing")]
    pub takes: Takes,
    /// Its span, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

/// The kinds of input and control that an operation takes while it is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takes {
    /// Input.
    pub input: bool,
    /// Another size of its terminal.
    pub terminal: bool,
    /// Signals.
    pub signals: bool,
}

impl Takes {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The kinds of input and control that an operation with this request takes.
    pub fn of(request: &Request) -> Self {
        Self {
            input: request.takes_input(),
            terminal: request.has_terminal(),
            signals: request.takes_signals(),
        }
    }
}

/// The remains of an operation that is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The operation.
    pub operation: OperationId,
    end: ReceiptEnd,
    /// The time since which it is kept, as in [`Record::Epoch`].
    #[serde(default)]
    pub(super) at: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReceiptEnd {
    NeverStarted,
    AlreadyExited,
    Cancelled,
}

/// Receipts that were kept one by one once: of operations that are gone in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiptBlock {
    end: ReceiptEnd,
    /// The time since which the last of them is kept.
    pub(super) until: Duration,
    /// In ascending order.
    ids: Vec<OperationId>,
}

impl ReceiptBlock {
    /// The blocks of these receipts. The newest receipts are kept since `until`.
    pub(super) fn of(
        receipts: impl IntoIterator<Item = (OperationId, Answer)>,
        until: Duration,
    ) -> impl Iterator<Item = Self> {
        let mut by_end = [
            ReceiptEnd::NeverStarted,
            ReceiptEnd::AlreadyExited,
            ReceiptEnd::Cancelled,
        ]
        .map(|end| (end, Vec::new()));
        for (id, answer) in receipts {
            let of_it = ReceiptEnd::of(answer);
            let block = by_end.iter_mut().find(|(end, _)| *end == of_it);
            block.expect("each end is there").1.push(id);
        }
        by_end.into_iter().filter_map(move |(end, mut ids)| {
            ids.sort_unstable();
            (!ids.is_empty()).then_some(Self { end, until, ids })
        })
    }

    pub(super) fn answer(&self, id: OperationId) -> Option<Answer> {
        let found = self.ids.binary_search(&id);
        found.is_ok().then(|| self.end.answer())
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

impl ReceiptEnd {
    fn of(answer: Answer) -> Self {
        match answer {
            Answer::NeverStarted => Self::NeverStarted,
            Answer::Cancelled => Self::Cancelled,
            Answer::AlreadyExited | Answer::Unspecified => Self::AlreadyExited,
        }
    }

    fn answer(self) -> Answer {
        match self {
            Self::NeverStarted => Answer::NeverStarted,
            Self::AlreadyExited => Answer::AlreadyExited,
            Self::Cancelled => Answer::Cancelled,
        }
    }
}

impl Receipt {
    pub(super) fn new(operation: OperationId, answer: Answer, at: Duration) -> Self {
        Self {
            operation,
            end: ReceiptEnd::of(answer),
            at: Some(at),
        }
    }

    /// The answer to a cancel of it.
    pub(super) fn answer(&self) -> Answer {
        self.end.answer()
    }
}
