//! Shell: run a command. What it does not wait for goes on in the background
//! (docs/internals/contracts.md#a18).

use std::{num::NonZeroU64, time::Duration};

use bytes::Bytes;
use shared_sandbox::{Command, Exec, ExitCause, ExitRecord, ExitStatus, Outcome, Request};
use shared_types::{
    Effect,
    event::CallOutcome,
    limits::{COMMAND_RUNS_AT_MOST, MAX_COMMAND_BYTES},
};

use super::{Arguments, Ask, BadArguments, Ended, Kind, Parameter, Prepared, Rendered, Tool};
use crate::session::spoken;

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;
/// The time for which a call waits for a command that it begins in the background: one that fails
/// at once is reported at once.
const BACKGROUND_AFTER: Duration = Duration::from_secs(1);
/// Less is no silence: programs gather what they write.
const MIN_IDLE_TIMEOUT_MS: u64 = 1_000;
/// A large build may be silent for long.
const MAX_IDLE_TIMEOUT_MS: u64 = 3_600_000;

/// Runs a shell command in the workspace.
#[derive(Debug, Clone, Copy)]
pub struct ShellTool;

impl Tool for ShellTool {
    fn name(&self) -> &str {
        "Shell"
    }

    fn aliases(&self) -> &[&str] {
        &[
            "bash",
            "sh",
            "run",
            "run_command",
            "execute_command",
            "terminal",
        ]
    }

    fn description(&self) -> &str {
        "Runs a shell command in the workspace and returns its output and exit code. It has no \
         terminal and no input. A command that takes longer than timeout_ms goes on in the \
         background as a task, for up to 24 hours: see task_read and task_kill, and do not run it \
         again. Everything that a command started is stopped at its end."
    }

    fn guidance(&self) -> Option<&str> {
        Some(
            "Run things with Shell. A command that takes longer than its call waits goes on as a task: never run it again to \
             see how it goes.",
        )
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "command",
                Kind::Command {
                    at_most: MAX_COMMAND_BYTES,
                    instead: "write a script with Write and run that",
                },
                "The command, for the shell.",
            ),
            Parameter::optional(
                "directory",
                Kind::DIRECTORY,
                "Where to run it, relative to the workspace root; default the root.",
            ),
            Parameter::optional(
                "timeout_ms",
                Kind::Number {
                    from: 1,
                    to: MAX_TIMEOUT_MS,
                },
                "How long to wait for its end, in milliseconds; then it goes on in the \
                        background. Default 120000, at most 600000.",
            ),
            Parameter::optional(
                "background",
                Kind::Flag,
                "Whether it is to go on in the background at once, as a server does; default \
                        false.",
            ),
            Parameter::optional(
                "idle_timeout_ms",
                Kind::Number {
                    from: MIN_IDLE_TIMEOUT_MS,
                    to: MAX_IDLE_TIMEOUT_MS,
                },
                "It is stopped once it has written nothing for this many milliseconds, \
                        at least 1000; default none. For long commands that may hang.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Effectful
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let timeout = arguments.number("timeout_ms").unwrap_or(DEFAULT_TIMEOUT_MS);
        let wait_for = match arguments.flag("background") {
            true => BACKGROUND_AFTER,
            false => Duration::from_millis(timeout),
        };
        Ok(Ask::Operation(Prepared {
            request: Request::Exec(Exec {
                directory: arguments.text("directory").to_owned(),
                idle_for_ms: arguments
                    .number("idle_timeout_ms")
                    .and_then(NonZeroU64::new),
                ..Exec::new(Command::Shell(arguments.text("command").to_owned()))
            }),
            run_for: COMMAND_RUNS_AT_MOST,
            wait_for: Some(wait_for),
            input: Bytes::new(),
        }))
    }

    fn render(&self, ended: &Ended<'_>, limit: usize) -> Option<Rendered> {
        let Outcome::Exited(record) = ended.outcome else {
            return None;
        };
        let mut text = ended.output.show(limit) + &ended.output.ends_before();
        if text.is_empty() {
            text.push_str("[no output]");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&epilogue(record, ended));
        Some(Rendered::new(outcome(record), text))
    }
}

fn outcome(record: &ExitRecord) -> CallOutcome {
    match (&record.status, record.cause) {
        (_, ExitCause::Timeout | ExitCause::Idle) => CallOutcome::TimedOut,
        (_, ExitCause::Cancelled) => CallOutcome::Cancelled,
        (ExitStatus::Code(_) | ExitStatus::Signal(_), ExitCause::Exited) => CallOutcome::Completed,
        // It may have done all that it was to do.
        (
            ExitStatus::Unknown,
            ExitCause::SupervisorLost | ExitCause::HostReboot | ExitCause::SandboxStopped,
        ) => CallOutcome::Unknown,
        (ExitStatus::NotStarted(_) | ExitStatus::Unknown, ExitCause::Exited)
        | (
            _,
            ExitCause::Orphaned
            | ExitCause::OutOfMemory
            | ExitCause::DiskFull
            | ExitCause::SupervisorLost
            | ExitCause::HostReboot
            | ExitCause::SandboxStopped,
        ) => CallOutcome::Failed,
    }
}

/// The end of the command. Whole seconds only: the same command with the same result must read the
/// same, or a model that goes in circles could not be recognised.
fn epilogue(record: &ExitRecord, ended: &Ended<'_>) -> String {
    let status = format!("{:.1024}", record.status.to_string());
    let cause = match record.cause {
        ExitCause::Exited => String::new(),
        ExitCause::Timeout => format!("stopped at its time limit of {}; ", spoken(ended.run_for)),
        ExitCause::Cancelled => "stopped on request; ".to_owned(),
        ExitCause::Idle => {
            let silence = idle_for(ended.request).map_or("too long".to_owned(), spoken);
            format!("stopped because it said nothing for {silence}; ")
        }
        ExitCause::Orphaned => {
            "stopped because the runner stopped or was cut off for too long; ".to_owned()
        }
        ExitCause::OutOfMemory => {
            "killed because its sandbox or host ran out of memory; ".to_owned()
        }
        ExitCause::DiskFull => {
            "stopped because its output found no room on the runner's disk; ".to_owned()
        }
        ExitCause::SupervisorLost => {
            "ended because its supervisor on the runner's host was killed; ".to_owned()
        }
        ExitCause::HostReboot => "ended because the runner's host restarted; ".to_owned(),
        ExitCause::SandboxStopped => {
            "ended because its sandbox was stopped or restarted; ".to_owned()
        }
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

/// The silence that the command was allowed.
fn idle_for(request: &Request) -> Option<Duration> {
    match request {
        Request::Exec(exec) => exec
            .idle_for_ms
            .map(|idle_for| Duration::from_millis(idle_for.get())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
