//! The tools for tasks: commands that go on in the background.

use std::time::Duration;

use shared_types::Effect;

use super::{Arguments, Ask, BadArguments, Kind, Parameter, Tool};

/// The time that a look waits if the model sets none.
const DEFAULT_WAIT_MS: u64 = 30_000;
/// Less is asking again and again.
const MIN_WAIT_MS: u64 = 1_000;
/// The longest time that a command is waited for.
const MAX_WAIT_MS: u64 = 600_000;
/// The largest offset of a stream; numbers in JSON are exact up to here.
const MAX_OFFSET: u64 = (1 << 53) - 1;

/// The requests about the session's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskAsk {
    /// The list of tasks.
    Status,
    /// The output of one of them, and its end.
    Read {
        /// Its number.
        task: u32,
        /// The offsets at which to read on in stdout and stderr, in bytes.
        from: [u64; 2],
        /// The time for which to wait for its end.
        wait_for: Duration,
    },
    /// That one of them is stopped.
    Kill {
        /// Its number.
        task: u32,
    },
}

const TASK: Parameter = Parameter::required(
    "task",
    Kind::Number {
        from: 1,
        to: u32::MAX as u64,
    },
    "The number of the task.",
);

/// Shows the tasks of the session.
#[derive(Debug, Clone, Copy)]
pub struct TaskStatusTool;

impl Tool for TaskStatusTool {
    fn name(&self) -> &str {
        "task_status"
    }

    fn description(&self) -> &str {
        "Shows the commands of this conversation that went on in the background: which of them run, \
         and how the others ended."
    }

    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, _arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::Tasks(TaskAsk::Status))
    }
}

/// Reads the output of a task from an offset on, and waits for its end.
#[derive(Debug, Clone, Copy)]
pub struct TaskReadTool;

impl Tool for TaskReadTool {
    fn name(&self) -> &str {
        "task_read"
    }

    fn description(&self) -> &str {
        "Waits for the end of a command in the background, and returns what it wrote from the given \
         offsets on. Where it still runs after wait_ms, it goes on, and the result says at which \
         offsets to read on."
    }

    fn guidance(&self) -> Option<&str> {
        Some("Read on in a task with task_read.")
    }

    fn parameters(&self) -> &[Parameter] {
        const fn offset(name: &'static str, about: &'static str) -> Parameter {
            Parameter {
                name,
                kind: Kind::Number {
                    from: 0,
                    to: MAX_OFFSET,
                },
                required: false,
                about,
            }
        }
        const PARAMETERS: &[Parameter] = &[
            TASK,
            offset("stdout_from", "The first byte of stdout wanted; default 0."),
            offset("stderr_from", "The first byte of stderr wanted; default 0."),
            Parameter::optional(
                "wait_ms",
                Kind::Number {
                    from: MIN_WAIT_MS,
                    to: MAX_WAIT_MS,
                },
                "How long to wait for its end, in milliseconds; default 30000, at most 600000.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let from = |name| arguments.number(name).unwrap_or(0);
        let wait = arguments.number("wait_ms").unwrap_or(DEFAULT_WAIT_MS);
        Ok(Ask::Tasks(TaskAsk::Read {
            task: number(arguments),
            from: [from("stdout_from"), from("stderr_from")],
            wait_for: Duration::from_millis(wait),
        }))
    }
}

/// Stops a task and everything that it started.
#[derive(Debug, Clone, Copy)]
pub struct TaskKillTool;

impl Tool for TaskKillTool {
    fn name(&self) -> &str {
        "task_kill"
    }

    fn description(&self) -> &str {
        "Stops a command in the background with everything that it started, and returns the end of \
         what it wrote."
    }

    fn guidance(&self) -> Option<&str> {
        Some("Stop with task_kill what is not needed any more.")
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[TASK];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::Tasks(TaskAsk::Kill {
            task: number(arguments),
        }))
    }
}

/// The arguments were checked: it is there, and fits.
fn number(arguments: &Arguments) -> u32 {
    let number = arguments.number(TASK.name);
    number
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or(0)
}
