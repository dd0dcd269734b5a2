//! Between the sandbox's words and the wire's. Strict: what a runner says and we cannot read is a
//! protocol error, never a guess.

pub(crate) mod hello;
mod outcome;

pub(crate) use outcome::{Expects, expected, outcome};

use proto::v1;
use shared_sandbox::{CancelAnswer, Command, OutputStream, Request};
use shared_types::{
    Epoch, Incarnation, OperationId, Refusal, RefusalCode, limits::MAX_FRAME_BYTES,
};

/// What a runner said cannot be read; the link cannot be trusted any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) String);

impl Malformed {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Left for everything in a frame that is not the request's own text.
const FRAME_OVERHEAD_BYTES: usize = 16 * 1024;

/// What each word or variable costs on the wire beside its text, at most.
const WORD_OVERHEAD_BYTES: usize = 16;

/// Refuses a request that no frame can carry, before anything is recorded.
pub(crate) fn fits_a_frame(request: &Request) -> Result<(), Refusal> {
    let bytes = match request {
        Request::Exec(exec) => {
            let command = match &exec.command {
                Command::Shell(script) => script.len(),
                Command::Argv(words) => words.iter().map(|w| w.len() + WORD_OVERHEAD_BYTES).sum(),
            };
            let environment: usize = exec
                .environment
                .iter()
                .map(|(name, value)| name.len() + value.len() + WORD_OVERHEAD_BYTES)
                .sum();
            command + environment + exec.directory.len()
        }
        Request::Read(read) => read.path.len(),
        Request::Write(write) => write.path.len() + write.content.len(),
        Request::Edit(edit) => edit.path.len() + edit.old.len() + edit.new.len(),
        Request::List(list) => list.path.len(),
        Request::Glob(glob) => glob.path.len() + glob.pattern.len(),
        Request::Grep(grep) => grep.path.len() + grep.pattern.len() + grep.files.len(),
    };
    let limit = MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES;
    if bytes > limit {
        return Err(Refusal::new(
            RefusalCode::Invalid,
            format!("the request has {bytes} bytes; at most {limit} can be sent at once"),
        ));
    }
    Ok(())
}

/// A request in its wire form.
pub(crate) fn request(request: &Request) -> v1::operation::Request {
    use v1::operation::Request as Wire;
    match request.clone() {
        Request::Exec(exec) => Wire::Exec(v1::Exec {
            command: Some(match exec.command {
                Command::Shell(script) => v1::exec::Command::Shell(script),
                Command::Argv(words) => v1::exec::Command::Argv(v1::Argv { words }),
            }),
            directory: exec.directory,
            environment: exec.environment.into_iter().collect(),
            merged: exec.merged,
        }),
        Request::Read(read) => Wire::Read(v1::Read {
            path: read.path,
            first_line: read.first_line,
            max_lines: read.max_lines,
            max_bytes: read.max_bytes,
        }),
        Request::Write(write) => Wire::Write(v1::Write {
            path: write.path,
            content: write.content,
        }),
        Request::Edit(edit) => Wire::Edit(v1::Edit {
            path: edit.path,
            old: edit.old,
            new: edit.new,
            every: edit.every,
        }),
        Request::List(list) => Wire::List(v1::List {
            path: list.path,
            max_entries: list.max_entries,
        }),
        Request::Glob(glob) => Wire::Glob(v1::Glob {
            path: glob.path,
            pattern: glob.pattern,
            max_paths: glob.max_paths,
        }),
        Request::Grep(grep) => Wire::Grep(v1::Grep {
            path: grep.path,
            pattern: grep.pattern,
            files: grep.files,
            ignore_case: grep.ignore_case,
            max_matches: grep.max_matches,
        }),
    }
}

/// The frame that stops an operation.
pub(crate) fn cancel(
    operation: OperationId,
    epoch: Epoch,
    incarnation: &Incarnation,
) -> v1::server_frame::Kind {
    v1::server_frame::Kind::Cancel(v1::Cancel {
        operation: operation.to_string(),
        epoch: epoch.0,
        incarnation: Some(incarnation.into()),
    })
}

/// What became of a wish to stop.
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
