//! The wire on one side, the sandbox contract on the other.
//!
//! What cannot be understood is refused here, with the id that it came with, so that the table of
//! operations sees well-formed ones only. A request must have the digest that came with it: a
//! field that this build does not know would otherwise change what is run without anyone noticing.

use std::time::Duration;

use proto::v1::{self, operation::Request as WireRequest, runner_frame, server_frame};
use shared_sandbox::{Command, Edit, Exec, Glob, Grep, List, OutputStream, Read, Request, Write};
use shared_types::{
    Digest, Epoch, Incarnation, OperationId, Owner, Refusal, RefusalCode, SandboxId,
};

mod outcome;

pub(crate) use outcome::ended;

/// A frame from the server, understood.
#[derive(Debug, PartialEq)]
pub(crate) enum Received {
    /// For the table of operations.
    Order(Order),
    /// It cannot be understood; this is the answer.
    Answer(v1::RunnerFrame),
    /// The server ends the link on purpose.
    Goodbye(String),
    /// Nothing to do: a sign of life, a commit (what is kept is bounded by itself, and stays for
    /// another replay until it is forgotten), or a kind of frame that this build does not know.
    Nothing,
}

/// What the server wants of the table of operations.
#[derive(Debug, PartialEq)]
pub(crate) enum Order {
    Operation(Box<Incoming>),
    Credit {
        operation: OperationId,
        stream: OutputStream,
        up_to: u64,
    },
    Cancel {
        operation: OperationId,
        epoch: Epoch,
        incarnation: Option<Incarnation>,
    },
    Forget(OperationId),
}

/// An operation as it came over the link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Incoming {
    pub(crate) id: OperationId,
    pub(crate) digest: Digest,
    pub(crate) sandbox: SandboxId,
    pub(crate) owner: Owner,
    pub(crate) epoch: Epoch,
    /// `None` where it is absent or not one: it fits no runner then.
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) start_within: Duration,
    pub(crate) run_for: Duration,
    /// Where the reader stands in stdout and stderr.
    pub(crate) from: [u64; 2],
    /// `None`: attach only to what is known.
    pub(crate) request: Option<Request>,
}

/// Understands a frame.
pub(crate) fn received(frame: v1::ServerFrame) -> Received {
    let order = match frame.kind {
        Some(server_frame::Kind::Operation(wire)) => {
            let text = wire.operation.clone();
            return match operation(wire) {
                Ok(incoming) => Received::Order(Order::Operation(Box::new(incoming))),
                Err(refusal) => Received::Answer(refused(text, refusal)),
            };
        }
        Some(server_frame::Kind::Cancel(wire)) => {
            let Ok(operation) = wire.operation.parse() else {
                return Received::Answer(cancel_refused(wire.operation, invalid("operation id")));
            };
            Some(Order::Cancel {
                operation,
                epoch: Epoch(wire.epoch),
                incarnation: proto::convert::incarnation(wire.incarnation),
            })
        }
        Some(server_frame::Kind::Credit(wire)) => credit(&wire),
        Some(server_frame::Kind::Forget(wire)) => wire.operation.parse().ok().map(Order::Forget),
        Some(server_frame::Kind::Goodbye(wire)) => return Received::Goodbye(wire.reason),
        _ => None,
    };
    order.map_or(Received::Nothing, Received::Order)
}

/// A frame to the server.
pub(crate) fn frame(kind: runner_frame::Kind) -> v1::RunnerFrame {
    v1::RunnerFrame { kind: Some(kind) }
}

/// The end of an operation that did not start.
pub(crate) fn refused(operation: String, refusal: Refusal) -> v1::RunnerFrame {
    frame(runner_frame::Kind::Ended(v1::Ended {
        operation: short(operation),
        outcome: Some(v1::ended::Outcome::Refused(refusal.into())),
    }))
}

/// The answer to a cancel that is not carried out.
pub(crate) fn cancel_refused(operation: String, refusal: Refusal) -> v1::RunnerFrame {
    frame(runner_frame::Kind::CancelAnswer(v1::CancelAnswer {
        operation: short(operation),
        answer: v1::cancel_answer::Answer::Unspecified.into(),
        refusal: Some(refusal.into()),
    }))
}

/// The wire's name of a stream.
pub(crate) fn wire_stream(stream: OutputStream) -> v1::OutputStream {
    match stream {
        OutputStream::Stdout => v1::OutputStream::Stdout,
        OutputStream::Stderr => v1::OutputStream::Stderr,
    }
}

fn operation(wire: v1::Operation) -> Result<Incoming, Refusal> {
    let id = wire
        .operation
        .parse()
        .map_err(|_| invalid("operation id"))?;
    let digest = Digest::from_slice(&wire.digest).ok_or_else(|| invalid("digest"))?;
    // With no time left to start in, the server means only to attach.
    let request = match wire.request {
        None if wire.start_within_ms > 0 => {
            return Err(Refusal::new(
                RefusalCode::Unsupported,
                "the runner does not know this kind of request: update gantry-runner",
            ));
        }
        None => None,
        Some(wire) => Some(request(wire)?),
    };
    if request.as_ref().is_some_and(|r| r.digest() != digest) {
        return Err(Refusal::new(
            RefusalCode::Invalid,
            "the request does not have the digest that came with it: the server and the runner may be of versions too far apart",
        ));
    }
    let session = wire.owner.parse().map(Owner::Session);
    let owner = session.or_else(|_| wire.owner.parse().map(Owner::Sandbox));
    Ok(Incoming {
        id,
        digest,
        sandbox: wire.sandbox.parse().map_err(|_| invalid("sandbox id"))?,
        owner: owner.map_err(|_| invalid("owner"))?,
        epoch: Epoch(wire.epoch),
        incarnation: proto::convert::incarnation(wire.incarnation),
        start_within: Duration::from_millis(wire.start_within_ms),
        run_for: Duration::from_millis(wire.run_for_ms),
        from: [wire.stdout_from, wire.stderr_from],
        request,
    })
}

fn request(wire: WireRequest) -> Result<Request, Refusal> {
    Ok(match wire {
        WireRequest::Exec(wire) => Request::Exec(exec(wire)?),
        WireRequest::Read(wire) => Request::Read(Read {
            path: wire.path,
            first_line: wire.first_line,
            max_lines: wire.max_lines,
            max_bytes: wire.max_bytes,
        }),
        WireRequest::Write(wire) => Request::Write(Write {
            path: wire.path,
            content: wire.content,
        }),
        WireRequest::Edit(wire) => Request::Edit(Edit {
            path: wire.path,
            old: wire.old,
            new: wire.new,
            every: wire.every,
        }),
        WireRequest::List(wire) => Request::List(List {
            path: wire.path,
            max_entries: wire.max_entries,
        }),
        WireRequest::Glob(wire) => Request::Glob(Glob {
            path: wire.path,
            pattern: wire.pattern,
            max_paths: wire.max_paths,
        }),
        WireRequest::Grep(wire) => Request::Grep(Grep {
            path: wire.path,
            pattern: wire.pattern,
            files: wire.files,
            ignore_case: wire.ignore_case,
            max_matches: wire.max_matches,
        }),
    })
}

fn exec(wire: v1::Exec) -> Result<Exec, Refusal> {
    let command = match wire.command {
        Some(v1::exec::Command::Shell(script)) => Command::Shell(script),
        Some(v1::exec::Command::Argv(argv)) => Command::Argv(argv.words),
        None => return Err(invalid("command")),
    };
    Ok(Exec {
        command,
        directory: wire.directory,
        environment: wire.environment.into_iter().collect(),
        merged: wire.merged,
    })
}

fn credit(wire: &v1::Credit) -> Option<Order> {
    let stream = match wire.stream() {
        v1::OutputStream::Stdout => OutputStream::Stdout,
        v1::OutputStream::Stderr => OutputStream::Stderr,
        v1::OutputStream::Unspecified => return None,
    };
    Some(Order::Credit {
        operation: wire.operation.parse().ok()?,
        stream,
        up_to: wire.up_to,
    })
}

fn invalid(what: &str) -> Refusal {
    let message = format!("the frame carries no {what} that can be understood");
    Refusal::new(RefusalCode::Invalid, message)
}

/// An id that is sent back as it came, unless it is no id at all and long.
fn short(mut id: String) -> String {
    const LONGEST_ID: usize = 64;
    if let Some((end, _)) = id.char_indices().find(|(end, _)| *end >= LONGEST_ID) {
        id.truncate(end);
    }
    id
}

#[cfg(test)]
mod tests;
