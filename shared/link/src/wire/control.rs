//! The frames that pass input, resizes and signals on to operations, and the answers to them.

use proto::v1::{self, runner_frame, server_frame};
use shared_sandbox::{Control, Input, Signal, TerminalSize};
use shared_types::{OperationId, Refusal};

use super::{from_runner, invalid};

/// The frame that carries a piece of input, or of the file of an upload.
pub(crate) fn input(operation: OperationId, input: Input) -> server_frame::Kind {
    server_frame::Kind::Input(v1::Input {
        operation: operation.to_string(),
        offset: input.offset,
        data: input.data,
        end: input.end,
    })
}

/// The frame that does something to a process.
pub(crate) fn control(operation: OperationId, id: u64, control: Control) -> server_frame::Kind {
    let operation = operation.to_string();
    match control {
        Control::Resize(size) => server_frame::Kind::Resize(v1::Resize {
            operation,
            id,
            size: Some(size_to_wire(size)),
        }),
        Control::Signal(signal) => server_frame::Kind::Signal(v1::Signal {
            operation,
            id,
            kind: signal_to_wire(signal).into(),
        }),
    }
}

/// The frame that says how far input was taken, or why it is not.
pub fn input_taken(operation: OperationId, taken: Result<u64, Refusal>) -> v1::RunnerFrame {
    let (up_to, refusal) = match taken {
        Ok(up_to) => (up_to, None),
        Err(refusal) => (0, Some(refusal.into())),
    };
    from_runner(runner_frame::Kind::InputTaken(v1::InputTaken {
        operation: operation.to_string(),
        up_to,
        refusal,
    }))
}

/// The frame that reports the result of a resize or a signal.
pub fn done(operation: OperationId, id: u64, result: Result<(), Refusal>) -> v1::RunnerFrame {
    from_runner(runner_frame::Kind::Done(v1::Done {
        operation: operation.to_string(),
        id,
        refusal: result.err().map(Into::into),
    }))
}

/// A terminal's size in its wire form.
pub(crate) fn size_to_wire(size: TerminalSize) -> v1::TerminalSize {
    v1::TerminalSize {
        rows: size.rows.into(),
        columns: size.columns.into(),
    }
}

/// The size of a terminal.
pub(crate) fn size(wire: v1::TerminalSize) -> Result<TerminalSize, Refusal> {
    let within = |number: u32| u16::try_from(number).map_err(|_| invalid("size of a terminal"));
    Ok(TerminalSize {
        rows: within(wire.rows)?,
        columns: within(wire.columns)?,
    })
}

/// The signal in a frame.
pub(crate) fn signal(wire: i32) -> Result<Signal, Refusal> {
    use v1::signal::Kind;
    Ok(match Kind::try_from(wire) {
        Ok(Kind::Hangup) => Signal::Hangup,
        Ok(Kind::Interrupt) => Signal::Interrupt,
        Ok(Kind::Quit) => Signal::Quit,
        Ok(Kind::Kill) => Signal::Kill,
        Ok(Kind::User1) => Signal::User1,
        Ok(Kind::User2) => Signal::User2,
        Ok(Kind::Terminate) => Signal::Terminate,
        Ok(Kind::Continue) => Signal::Continue,
        Ok(Kind::Stop) => Signal::Stop,
        Ok(Kind::Unspecified) | Err(_) => return Err(invalid("signal")),
    })
}

fn signal_to_wire(signal: Signal) -> v1::signal::Kind {
    use v1::signal::Kind;
    match signal {
        Signal::Hangup => Kind::Hangup,
        Signal::Interrupt => Kind::Interrupt,
        Signal::Quit => Kind::Quit,
        Signal::Kill => Kind::Kill,
        Signal::User1 => Kind::User1,
        Signal::User2 => Kind::User2,
        Signal::Terminate => Kind::Terminate,
        Signal::Continue => Kind::Continue,
        Signal::Stop => Kind::Stop,
    }
}
