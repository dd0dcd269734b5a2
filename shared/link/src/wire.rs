//! Between the sandbox's words and the wire's, in both directions.
//!
//! Strict: what the other end says and this one cannot read is a protocol error or a refusal,
//! never a guess.

mod alike;
mod consent;
mod control;
mod exit;
mod failure;
mod figures;
mod model;
mod numbers;
mod outcome;
mod request;
mod sandbox;

pub use consent::{consent, mode_to_wire};
pub(crate) use consent::{mode_from_wire, read_consent};
pub(crate) use control::{control, input, signal, size};
pub use control::{done, input_taken};
pub(crate) use figures::read_figures;
pub use figures::{Figures, heartbeat};
pub use model::{
    ANSWER_HEADERS, AnswerHead, AnswerPart, AskFailure, AskFailureKind, AskKind,
    MAX_ANSWER_HEADER_BYTES, MODELS_FEATURE, ModelOrder, ModelsReport, model_answer, model_ask,
    model_credit, model_drop, models_report,
};
pub(crate) use model::{read_model_answer, read_model_order, read_models_report};
pub(crate) use numbers::{believed, number};
pub use outcome::ended;
pub(crate) use outcome::outcome;
pub(crate) use request::read_request;
pub use request::request;
pub use sandbox::{
    PoolFacts, SandboxReport, ensure_sandbox, read_report, remove_sandbox, report, stop_sandbox,
};
pub(crate) use sandbox::{read_ensure, sandbox_id};

use proto::v1::{self, runner_frame, server_frame};
use shared_sandbox::{CancelAnswer, OutputStream};
pub use shared_sandbox::{Expects, expected};
use shared_types::{
    Epoch, Incarnation, OperationId, Owner, Refusal, RefusalCode, clean::clean_line,
    limits::MAX_PEER_TEXT,
};

/// A runner's message that cannot be read; the link cannot be trusted any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", words(.0))]
pub struct Malformed(pub(crate) String);

impl Malformed {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Words of the other end, as they may stand in logs, lists and terminals.
pub(crate) fn words(text: &str) -> String {
    clean_line(text, MAX_PEER_TEXT)
}

/// The frame that stops an operation.
pub(crate) fn cancel(
    operation: OperationId,
    owner: Owner,
    epoch: Epoch,
    incarnation: &Incarnation,
) -> server_frame::Kind {
    server_frame::Kind::Cancel(v1::Cancel {
        operation: operation.to_string(),
        owner: owner.to_string(),
        epoch: epoch.0,
        incarnation: Some(incarnation.into()),
    })
}

/// The answer to a cancel.
pub(crate) fn cancel_answer(
    wire: v1::CancelAnswer,
) -> Result<Result<CancelAnswer, Refusal>, Malformed> {
    use v1::cancel_answer::Answer;
    let answer = wire.answer();
    if let Some(refusal) = wire.refusal {
        return Ok(Err(refusal.into()));
    }
    Ok(Ok(match answer {
        Answer::NeverStarted => CancelAnswer::NeverStarted,
        Answer::AlreadyExited => CancelAnswer::AlreadyExited,
        Answer::Cancelled => CancelAnswer::Cancelled,
        Answer::Unspecified => return Err(Malformed::new("a cancel answer says nothing")),
    }))
}

/// The frame that lets the runner drop an operation.
pub(crate) fn forget(operation: OperationId) -> server_frame::Kind {
    server_frame::Kind::Forget(v1::Forget {
        operation: operation.to_string(),
    })
}

/// The frame that has the runner let go of an operation that only reads.
pub(crate) fn let_go(operation: OperationId) -> server_frame::Kind {
    server_frame::Kind::LetGo(v1::LetGo {
        operation: operation.to_string(),
    })
}

/// The frame that tells the runner that output below this offset is durable with the server.
pub(crate) fn commit(
    operation: OperationId,
    stream: OutputStream,
    up_to: u64,
) -> server_frame::Kind {
    server_frame::Kind::Commit(v1::Commit {
        operation: operation.to_string(),
        stream: stream_to_wire(stream),
        up_to,
    })
}

/// The id in a frame.
pub(crate) fn operation_id(text: &str) -> Result<OperationId, Malformed> {
    text.parse()
        .map_err(|error| Malformed(format!("an operation's id cannot be read: {error}")))
}

/// The stream that a frame is about.
pub(crate) fn output_stream(wire: i32) -> Result<OutputStream, Malformed> {
    match v1::OutputStream::try_from(wire) {
        Ok(v1::OutputStream::Stdout) => Ok(OutputStream::Stdout),
        Ok(v1::OutputStream::Stderr) => Ok(OutputStream::Stderr),
        Ok(v1::OutputStream::Unspecified) | Err(_) => {
            Err(Malformed(format!("output names stream {wire}")))
        }
    }
}

/// A stream in its wire form.
pub(crate) fn stream_to_wire(stream: OutputStream) -> i32 {
    match stream {
        OutputStream::Stdout => v1::OutputStream::Stdout,
        OutputStream::Stderr => v1::OutputStream::Stderr,
    }
    .into()
}

/// A frame to the server.
pub(crate) fn from_runner(kind: runner_frame::Kind) -> v1::RunnerFrame {
    v1::RunnerFrame { kind: Some(kind) }
}

/// A frame to the runner.
pub(crate) fn from_server(kind: server_frame::Kind) -> v1::ServerFrame {
    kind.into()
}

/// The refusal of a frame that does not carry this.
pub(crate) fn invalid(what: &str) -> Refusal {
    let message = format!("the frame carries no {what} that can be understood");
    Refusal::new(RefusalCode::Invalid, message)
}
