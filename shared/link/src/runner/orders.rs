//! The orders to the table, read from the server's frames.
//!
//! A frame that cannot be understood is refused here, with the id that it came with, so that the
//! table sees well-formed orders only. A request must have the digest that came with it. Else a
//! field that this build does not know would change the request unnoticed.

use std::time::Duration;

use proto::v1::{self, runner_frame, server_frame};
use shared_sandbox::{Consent, Control, Input, OutputStream, Request};
use shared_types::{
    Digest, Epoch, Incarnation, OperationId, Owner, Refusal, RefusalCode, SandboxId, SandboxSpec,
    SandboxState, TraceContext,
};

use crate::wire::{
    self, ModelOrder, SandboxReport, from_runner, invalid, read_consent, read_request,
};

/// A frame from the server, understood.
#[derive(Debug, PartialEq)]
pub enum ReceivedFrame {
    /// For the table of operations.
    Order(Order),
    /// For the asks of the machine's model server.
    Model(ModelOrder),
    /// It cannot be understood; this is the answer.
    Answer(v1::RunnerFrame),
    /// Nothing to do: a sign of life, or a kind of frame that this build does not know.
    Nothing,
}

/// An order of the server to the table of operations.
#[derive(Debug, PartialEq)]
pub enum Order {
    /// Start it, or attach to it.
    Operation(Box<Incoming>),
    /// Its reader has more room.
    Credit {
        /// The operation.
        operation: OperationId,
        /// The stream.
        stream: OutputStream,
        /// The first byte that there is no room for.
        up_to: u64,
    },
    /// Stop it, or never start it.
    Cancel {
        /// The operation.
        operation: OperationId,
        /// The owner that it belongs to.
        owner: Owner,
        /// The owner's epoch.
        epoch: Epoch,
        /// Of the runner that it was sent to; `None` where it is absent or not one.
        incarnation: Option<Incarnation>,
    },
    /// Its output below this offset is durable with the server.
    Commit {
        /// The operation.
        operation: OperationId,
        /// The stream.
        stream: OutputStream,
        /// The first byte that is still needed.
        up_to: u64,
    },
    /// A piece of its input.
    Input {
        /// The operation.
        operation: OperationId,
        /// The piece.
        piece: Input,
    },
    /// Something is to be done to its process.
    Control {
        /// The operation.
        operation: OperationId,
        /// Larger than any before, or it is a repeat.
        id: u64,
        /// The control.
        control: Control,
    },
    /// Its end is stored: drop it.
    Forget(OperationId),
    /// Its reader has left: drop it, if it only reads.
    LetGo(OperationId),
    /// An order about a sandbox of the pool.
    Sandbox(SandboxId, SandboxOrder),
}

impl Order {
    /// The operation to start, where the order brings a request for one.
    pub fn asked(&self) -> Option<&Incoming> {
        match self {
            Self::Operation(incoming) if incoming.request.is_some() => Some(incoming),
            _ => None,
        }
    }

    /// This machine does not permit the operation, for this reason. Nothing changes for one that has begun.
    pub fn forbid(&mut self, reason: Refusal) {
        if let Self::Operation(incoming) = self {
            incoming.forbidden = Some(reason);
        }
    }
}

/// An order of the server about a sandbox of the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxOrder {
    /// Make it fit this specification. It starts at once where `start` is set; else with its next
    /// operation.
    Ensure {
        /// The specification.
        spec: SandboxSpec,
        /// Start it now.
        start: bool,
    },
    /// Stop it, and keep its files.
    Stop,
    /// Remove it with its files.
    Remove,
}

/// An operation as it came over the link.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming {
    /// The operation.
    pub id: OperationId,
    /// Of its canonical request.
    pub digest: Digest,
    /// The sandbox where it happens.
    pub sandbox: SandboxId,
    /// The owner that it belongs to.
    pub owner: Owner,
    /// The owner's epoch.
    pub epoch: Epoch,
    /// `None` where it is absent or not one: it fits no runner then.
    pub incarnation: Option<Incarnation>,
    /// The time that is left to start in.
    pub start_within: Duration,
    /// The longest time that it may run.
    pub run_for: Duration,
    /// The offsets of the reader in stdout and stderr.
    pub from: [u64; 2],
    /// `None`: attach only to what is known.
    pub request: Option<Request>,
    /// The consent that covers the request.
    pub consent: Consent,
    /// The reason why this machine does not permit it, where it does not. Nothing that came says so: the driver asks
    /// the machine's policy ([`Order::forbid`]).
    pub forbidden: Option<Refusal>,
    /// Its span, as the server sees it.
    pub trace: Option<TraceContext>,
}

/// Understands a frame.
pub fn received(kind: Option<server_frame::Kind>) -> ReceivedFrame {
    let order = match kind {
        Some(server_frame::Kind::Operation(wire)) => {
            let text = wire.operation.clone();
            return match operation(*wire) {
                Ok(incoming) => ReceivedFrame::Order(Order::Operation(Box::new(incoming))),
                Err(refusal) => ReceivedFrame::Answer(refused(text, refusal)),
            };
        }
        Some(server_frame::Kind::Cancel(wire)) => {
            let text = wire.operation.clone();
            return match cancel(wire) {
                Ok(order) => ReceivedFrame::Order(order),
                Err(refusal) => ReceivedFrame::Answer(cancel_refused(text, refusal)),
            };
        }
        Some(server_frame::Kind::Credit(wire)) => credit(&wire),
        Some(server_frame::Kind::Commit(wire)) => commit(&wire),
        Some(server_frame::Kind::Input(wire)) => input(wire),
        Some(server_frame::Kind::Resize(wire)) => {
            let size = wire.size.ok_or_else(|| invalid("size of a terminal"));
            let control = size.and_then(wire::size).map(Control::Resize);
            return control_of(&wire.operation, wire.id, control);
        }
        Some(server_frame::Kind::Signal(wire)) => {
            let control = wire::signal(wire.kind).map(Control::Signal);
            return control_of(&wire.operation, wire.id, control);
        }
        Some(server_frame::Kind::Forget(wire)) => wire.operation.parse().ok().map(Order::Forget),
        Some(server_frame::Kind::LetGo(wire)) => wire.operation.parse().ok().map(Order::LetGo),
        Some(server_frame::Kind::EnsureSandbox(wire)) => {
            let named = wire::sandbox_id(&wire.sandbox);
            match (wire::read_ensure(wire), named) {
                (Ok((sandbox, spec, start)), _) => Some(Order::Sandbox(
                    sandbox,
                    SandboxOrder::Ensure { spec, start },
                )),
                (Err(refusal), Some(sandbox)) => {
                    return ReceivedFrame::Answer(wire::report(&SandboxReport {
                        sandbox,
                        state: SandboxState::Failed,
                        reason: refusal.to_string(),
                        privilege: shared_types::SandboxPrivilege::Strict,
                    }));
                }
                (Err(_), None) => None,
            }
        }
        Some(server_frame::Kind::StopSandbox(wire)) => wire::sandbox_id(&wire.sandbox)
            .map(|sandbox| Order::Sandbox(sandbox, SandboxOrder::Stop)),
        Some(server_frame::Kind::RemoveSandbox(wire)) => wire::sandbox_id(&wire.sandbox)
            .map(|sandbox| Order::Sandbox(sandbox, SandboxOrder::Remove)),
        Some(kind) => {
            return wire::read_model_order(&kind)
                .map_or(ReceivedFrame::Nothing, ReceivedFrame::Model);
        }
        None => None,
    };
    order.map_or(ReceivedFrame::Nothing, ReceivedFrame::Order)
}

/// The end of an operation that did not start.
pub(crate) fn refused(operation: String, refusal: Refusal) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::Ended(v1::Ended {
        operation: short(operation),
        outcome: Some(v1::ended::Outcome::Refused(refusal.into())),
    }))
}

/// The answer to a cancel that is not carried out.
pub(super) fn cancel_refused(operation: String, refusal: Refusal) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::CancelAnswer(v1::CancelAnswer {
        operation: short(operation),
        answer: v1::cancel_answer::Answer::Unspecified.into(),
        refusal: Some(refusal.into()),
    }))
}

fn cancel(wire: v1::Cancel) -> Result<Order, Refusal> {
    let operation = wire.operation.parse();
    Ok(Order::Cancel {
        operation: operation.map_err(|_| invalid("operation id"))?,
        owner: owner(&wire.owner)?,
        epoch: Epoch(wire.epoch),
        incarnation: proto::convert::incarnation(wire.incarnation),
    })
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
        Some(wire) => Some(read_request(wire)?),
    };
    if request.as_ref().is_some_and(|r| r.digest() != digest) {
        return Err(Refusal::new(
            RefusalCode::Invalid,
            "the request does not have the digest that came with it: the server and the runner may be of versions too far apart",
        ));
    }
    Ok(Incoming {
        id,
        digest,
        sandbox: wire.sandbox.parse().map_err(|_| invalid("sandbox id"))?,
        owner: owner(&wire.owner)?,
        epoch: Epoch(wire.epoch),
        incarnation: proto::convert::incarnation(wire.incarnation),
        start_within: Duration::from_millis(wire.start_within_ms),
        run_for: Duration::from_millis(wire.run_for_ms),
        from: [wire.stdout_from, wire.stderr_from],
        request,
        consent: read_consent(wire.consent)?,
        forbidden: None,
        // One of another version is none: that is no reason to refuse the work.
        trace: wire.traceparent.parse().ok(),
    })
}

fn owner(text: &str) -> Result<Owner, Refusal> {
    let session = text.parse().map(Owner::Session);
    let owner = session.or_else(|_| text.parse().map(Owner::Sandbox));
    owner.map_err(|_| invalid("owner"))
}

fn credit(wire: &v1::Credit) -> Option<Order> {
    Some(Order::Credit {
        operation: wire.operation.parse().ok()?,
        stream: output_stream(wire.stream)?,
        up_to: wire.up_to,
    })
}

fn commit(wire: &v1::Commit) -> Option<Order> {
    Some(Order::Commit {
        operation: wire.operation.parse().ok()?,
        stream: output_stream(wire.stream)?,
        up_to: wire.up_to,
    })
}

fn input(wire: v1::Input) -> Option<Order> {
    Some(Order::Input {
        operation: wire.operation.parse().ok()?,
        piece: Input {
            offset: wire.offset,
            data: wire.data,
            end: wire.end,
        },
    })
}

fn control_of(operation: &str, id: u64, control: Result<Control, Refusal>) -> ReceivedFrame {
    let Ok(operation) = operation.parse() else {
        return ReceivedFrame::Nothing;
    };
    match control {
        Ok(control) => ReceivedFrame::Order(Order::Control {
            operation,
            id,
            control,
        }),
        Err(refusal) => ReceivedFrame::Answer(wire::done(operation, id, Err(refusal))),
    }
}

fn output_stream(wire: i32) -> Option<OutputStream> {
    crate::wire::output_stream(wire).ok()
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
