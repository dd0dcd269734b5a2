//! Requests, in both directions.

use std::num::NonZeroU64;

use proto::v1::{self, operation::Request as Wire};
use shared_sandbox::{Command, Exec, Request, Retention};
use shared_types::{Refusal, RefusalCode};

use super::{
    alike::{OnWire, alike},
    control, invalid,
};

/// Makes both directions from one list of kinds; a kind that is missing does not compile.
macro_rules! requests {
    ($($kind:ident)*) => {
        /// A request in its wire form.
        pub fn request(request: &Request) -> Wire {
            match request.clone() {
                $(Request::$kind(request) => Wire::$kind(OnWire::<Refusal>::to_wire(request)),)*
            }
        }

        /// The request in a frame.
        pub(crate) fn read_request(wire: Wire) -> Result<Request, Refusal> {
            Ok(match wire {
                $(Wire::$kind(wire) => Request::$kind(OnWire::<Refusal>::from_wire(wire)?),)*
            })
        }
    };
}

requests! {
    Exec Read Write Edit List Glob Grep Download Upload Stat MakeDirectory Move Remove Pack
    Unpack Survey
}

alike! {
    Read { path, first_line, max_lines, max_bytes }
    Write { path, content }
    Edit { path, old, new, every, expected }
    List { path, max_entries, tree, after }
    Glob { path, pattern, max_paths }
    Grep { path, pattern, files, ignore_case, max_matches }
    Download { path, algorithm, max_bytes }
    Upload { path, bytes, digest, mode, modified_us }
    Stat { path, follow }
    MakeDirectory { path }
    Move { from, to, replace }
    Remove { path, tree }
    Pack { path, entries, algorithm }
    Unpack { path, bytes, digest }
    Survey { path, max_bytes, of_user, extension_bytes }
}

impl OnWire<Refusal> for Exec {
    type Wire = v1::Exec;

    fn to_wire(self) -> v1::Exec {
        v1::Exec {
            command: Some(match self.command {
                Command::Shell(script) => v1::exec::Command::Shell(script),
                Command::Argv(words) => v1::exec::Command::Argv(v1::Argv { words }),
            }),
            directory: self.directory,
            environment: self.environment.into_iter().collect(),
            merged: self.merged,
            input: self.input,
            terminal: self.terminal.map(control::size_to_wire),
            retention: retention_to_wire(self.retention),
            idle_for_ms: self.idle_for_ms.map_or(0, NonZeroU64::get),
        }
    }

    fn from_wire(wire: v1::Exec) -> Result<Self, Refusal> {
        let command = match wire.command {
            Some(v1::exec::Command::Shell(script)) => Command::Shell(script),
            Some(v1::exec::Command::Argv(argv)) => Command::Argv(argv.words),
            None => return Err(invalid("command")),
        };
        Ok(Self {
            command,
            directory: wire.directory,
            environment: wire.environment.into_iter().collect(),
            merged: wire.merged,
            input: wire.input,
            terminal: wire.terminal.map(control::size).transpose()?,
            retention: retention(wire.retention)?,
            idle_for_ms: NonZeroU64::new(wire.idle_for_ms),
        })
    }
}

fn retention_to_wire(retention: Retention) -> i32 {
    match retention {
        Retention::Bounded => v1::Retention::Bounded,
        Retention::All => v1::Retention::All,
        Retention::None => v1::Retention::None,
    }
    .into()
}

fn retention(wire: i32) -> Result<Retention, Refusal> {
    match v1::Retention::try_from(wire) {
        Ok(v1::Retention::Bounded) => Ok(Retention::Bounded),
        Ok(v1::Retention::All) => Ok(Retention::All),
        Ok(v1::Retention::None) => Ok(Retention::None),
        Err(_) => Err(Refusal::new(
            RefusalCode::Unsupported,
            "the runner does not know this kind of retention: update gantry-runner",
        )),
    }
}
