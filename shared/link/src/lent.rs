//! The end that lends a runner's link to another server of the same database.
//!
//! To the server that borrows it, a lent link is a link: it sends the orders that it would send the runner, and gets
//! the answers that the runner would give. This end reads the orders ([`received`]) and makes the answers.

use bytes::Bytes;
use proto::v1::{self, runner_frame};
use shared_sandbox::{CancelAnswer, OutputStream};
use shared_types::{OperationId, Refusal};

use crate::wire::{from_runner, stream_to_wire};
pub use crate::{
    runner::{Incoming, ModelOrder, Order, ReceivedFrame, SandboxOrder, received},
    wire::{done, ended, input_taken, model_answer},
};

/// The operation is known, and starts unless it has started.
pub fn accepted(operation: OperationId) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::Accepted(v1::Accepted {
        operation: operation.to_string(),
        journal_sequence: 0,
    }))
}

/// Bytes of a stream of the operation, at most [`shared_types::limits::OUTPUT_CHUNK_BYTES`].
pub fn output(
    operation: OperationId,
    stream: OutputStream,
    offset: u64,
    data: Bytes,
) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::Output(v1::Output {
        operation: operation.to_string(),
        stream: stream_to_wire(stream),
        offset,
        data,
    }))
}

/// Bytes of a stream of the operation that are not kept.
pub fn gap(operation: OperationId, stream: OutputStream, from: u64, to: u64) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::Gap(v1::Gap {
        operation: operation.to_string(),
        stream: stream_to_wire(stream),
        from,
        to,
    }))
}

/// The runner's answer to a cancel; `None` for [`CancelAnswer::Recorded`], which no runner gives.
pub fn cancel_answer(
    operation: OperationId,
    answer: Result<CancelAnswer, Refusal>,
) -> Option<v1::RunnerFrame> {
    use v1::cancel_answer::Answer;
    let (answer, refusal) = match answer {
        Ok(CancelAnswer::NeverStarted) => (Answer::NeverStarted, None),
        Ok(CancelAnswer::AlreadyExited) => (Answer::AlreadyExited, None),
        Ok(CancelAnswer::Cancelled) => (Answer::Cancelled, None),
        Ok(CancelAnswer::Recorded) => return None,
        Err(refusal) => (Answer::Unspecified, Some(refusal.into())),
    };
    let frame = v1::CancelAnswer {
        operation: operation.to_string(),
        answer: answer.into(),
        refusal,
    };
    Some(from_runner(runner_frame::Kind::CancelAnswer(frame)))
}
