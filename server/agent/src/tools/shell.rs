//! Shell: run a command.

use std::time::Duration;

use shared_sandbox::{Command, Exec, ExitCause, ExitRecord, ExitStatus, Outcome, Request};
use shared_types::{Effect, event::CallOutcome, limits::MAX_COMMAND_BYTES};

use super::{Arguments, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool};
use crate::session::spoken;

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// Long enough for a large build.
const MAX_TIMEOUT_MS: u64 = 3_600_000;

/// Runs a shell command in the workspace.
#[derive(Debug, Clone, Copy)]
pub struct ShellTool;

impl Tool for ShellTool {
    fn name(&self) -> &'static str {
        "Shell"
    }

    fn description(&self) -> &'static str {
        "Runs a shell command in the workspace and returns its output and exit code. It has no \
         terminal and no input. Everything that it started is stopped at its end or time limit."
    }

    fn parameters(&self) -> &'static [Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter {
                name: "command",
                kind: Kind::Text {
                    empty: false,
                    at_most: MAX_COMMAND_BYTES,
                    instead: "write a script with Write and run that",
                },
                required: true,
                about: "The command, for the shell.",
            },
            Parameter {
                name: "directory",
                kind: Kind::DIRECTORY,
                required: false,
                about: "Where to run it, relative to the workspace root; default the root.",
            },
            Parameter {
                name: "timeout_ms",
                kind: Kind::Number {
                    from: 1,
                    to: MAX_TIMEOUT_MS,
                },
                required: false,
                about: "It is stopped after this many milliseconds; default 120000, at most 3600000.",
            },
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Effectful
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Prepared, BadArguments> {
        let timeout = arguments.number("timeout_ms").unwrap_or(DEFAULT_TIMEOUT_MS);
        Ok(Prepared {
            request: Request::Exec(Exec {
                directory: arguments.text("directory").to_owned(),
                ..Exec::new(Command::Shell(arguments.text("command").to_owned()))
            }),
            run_for: Duration::from_millis(timeout),
        })
    }

    fn render(&self, ended: &Ended<'_>, limit: usize) -> Option<Rendered> {
        let Outcome::Exited(record) = ended.outcome else {
            return None;
        };
        let mut text = ended.output.show(limit);
        if text.is_empty() {
            text.push_str("[no output]");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&epilogue(record, ended.run_for));
        Some(Rendered {
            outcome: outcome(record),
            text,
        })
    }
}

fn outcome(record: &ExitRecord) -> CallOutcome {
    match (&record.status, record.cause) {
        (_, ExitCause::Timeout) => CallOutcome::TimedOut,
        (_, ExitCause::Cancelled) => CallOutcome::Cancelled,
        (ExitStatus::Code(_) | ExitStatus::Signal(_), ExitCause::Exited) => CallOutcome::Completed,
        // It may have done all that it was to do.
        (ExitStatus::Unknown, ExitCause::SupervisorLost | ExitCause::HostReboot) => {
            CallOutcome::Unknown
        }
        (ExitStatus::NotStarted(_) | ExitStatus::Unknown, ExitCause::Exited)
        | (
            _,
            ExitCause::Idle
            | ExitCause::Orphaned
            | ExitCause::OutOfMemory
            | ExitCause::DiskFull
            | ExitCause::SupervisorLost
            | ExitCause::HostReboot,
        ) => CallOutcome::Failed,
    }
}

/// How it ended. Whole seconds only: the same command with the same result must read the same,
/// or a model that goes in circles could not be recognised.
fn epilogue(record: &ExitRecord, run_for: Duration) -> String {
    let status = format!("{:.1024}", record.status.to_string());
    let cause = match record.cause {
        ExitCause::Exited => String::new(),
        ExitCause::Timeout => format!("stopped at its time limit of {}; ", spoken(run_for)),
        ExitCause::Cancelled => "stopped because the turn was cancelled; ".to_owned(),
        ExitCause::Idle => "stopped because it was silent for too long; ".to_owned(),
        ExitCause::Orphaned => {
            "stopped because the runner stopped or was cut off for too long; ".to_owned()
        }
        ExitCause::OutOfMemory => "killed because the runner's host ran out of memory; ".to_owned(),
        ExitCause::DiskFull => {
            "stopped because its output found no room on the runner's disk; ".to_owned()
        }
        ExitCause::SupervisorLost => {
            "ended because its supervisor on the runner's host was killed; ".to_owned()
        }
        ExitCause::HostReboot => "ended because the runner's host restarted; ".to_owned(),
    };
    let took = match record.wall_ms / 1000 {
        0 => String::new(),
        seconds => format!(", after {seconds} s"),
    };
    let left = match record.tree_gone {
        true => "",
        false => "; processes that it started may still run",
    };
    format!("[{cause}{status}{took}{left}]")
}

#[cfg(test)]
mod tests;
