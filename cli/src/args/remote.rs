//! The commands that use a runner directly: run, list, stop and copy.

use std::{path::PathBuf, str::FromStr};

use clap::Args as Arguments;
use shared_types::{OperationId, parse_duration};

use crate::{
    pick::{IdName, operation_name},
    signals,
};

/// The longest time limit of a command, in milliseconds: a day.
const MAX_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

/// The fate of processes that a command leaves running, for the help text.
const EXEC: &str = "\
Processes that a command leaves running in the background end with it. To keep
one running, start it as a command of its own, with -d.

";

/// The escapes of a terminal and the exit code, for help texts.
const ESCAPES: &str = "\
In a terminal, at the beginning of a line:
  ~.  leave; the command keeps running, and `gantry attach` reconnects to it
  ~?  list these escapes
  ~~  type a ~

Without a terminal, Ctrl-C interrupts the command. A second Ctrl-C within 2 s
stops the command and everything that it started. The exit code is the
command's own, 128 + n if signal n ended it, or 255 if it never started or its
end is unknown.";

#[derive(Debug, Arguments)]
#[command(after_help = format!("{EXEC}{ESCAPES}"))]
pub(crate) struct Exec {
    /// The runner (name or id) [default: your active runner]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) runner: Option<String>,
    /// Send standard input to the command; without -i its input is empty
    #[arg(long, short)]
    pub(crate) input: bool,
    /// Give the command a terminal
    #[arg(long, short)]
    pub(crate) terminal: bool,
    /// Print the operation's id and leave the command running
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Run the command in this folder of the workspace
    #[arg(
        long,
        short = 'w',
        value_name = "FOLDER",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) directory: String,
    /// Set an environment variable; may be repeated
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<(String, String)>,
    /// Stop the command after this time, such as 90s or 1h; at most 24h [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = timeout_ms)]
    pub(crate) timeout: Option<u64>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Arguments)]
#[command(after_help = ESCAPES)]
pub(crate) struct Shell {
    /// The runner (name or id) [default: your active runner]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) runner: Option<String>,
}

#[derive(Debug, Arguments)]
#[command(after_help = ESCAPES)]
pub(crate) struct Attach {
    /// The operation's id; `gantry ps` lists them
    #[arg(value_parser = operation_name)]
    pub(crate) operation: IdName<OperationId>,
    /// Send standard input to the command; a command with a terminal always gets what you type
    #[arg(long, short)]
    pub(crate) input: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Ps {
    /// Include operations that have ended
    #[arg(long, short)]
    pub(crate) all: bool,
    /// The most operations to list
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Kill {
    /// The operation's id; `gantry ps` lists them
    #[arg(value_parser = operation_name)]
    pub(crate) operation: IdName<OperationId>,
    /// Send only this signal (INT, HUP, 9, …) instead of stopping the command and everything that it started
    #[arg(long, short, value_name = "SIGNAL", value_parser = signals::named)]
    pub(crate) signal: Option<shared_api::Signal>,
}

/// The rules of `gantry cp` for its target, for the help text.
const COPIES: &str = "\
A folder is copied with its whole content. If the target is a folder, the copy
goes into it. Otherwise the target is the path of the copy, and missing folders
above it are made. A target that ends in / is a folder. FOLDER/. stands for the
content of FOLDER. NAME: is the runner's workspace.

Existing files are replaced and keep their permissions; new files get those of
the source, less the umask. A link in a folder is copied as a link if it leads
to something in that folder. If entries are left out, gantry cp names them and
exits with 1.";

#[derive(Debug, Arguments)]
#[command(after_help = COPIES)]
pub(crate) struct Copy {
    /// Keep modification times and permissions of files, also of those that are replaced
    #[arg(short, long)]
    pub(crate) preserve: bool,
    /// A file or folder here, or NAME:PATH on the runner NAME
    pub(crate) source: CopyPlace,
    /// The file or folder that it becomes, or the folder that it goes to, here or on a runner
    pub(crate) target: CopyPlace,
}

fn timeout_ms(text: &str) -> Result<u64, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match u64::try_from(time.as_millis()) {
        Ok(millis @ 1000..=MAX_TIMEOUT_MS) => Ok(millis),
        _ => Err("1s is the shortest and 24h the longest".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write a variable as NAME=VALUE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_run_is_between_a_second_and_a_day() {
        assert_eq!(timeout_ms("90s"), Ok(90_000));
        assert_eq!(timeout_ms("1d"), Ok(MAX_TIMEOUT_MS));
        for wrong in ["0", "10ms", "25h", "soon"] {
            assert!(timeout_ms(wrong).is_err(), "{wrong}");
        }
    }
}

/// One side of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CopyPlace {
    Here(PathBuf),
    There {
        runner: String,
        /// Relative to the workspace.
        path: String,
    },
}

impl FromStr for CopyPlace {
    type Err = std::convert::Infallible;

    /// Reads NAME:PATH. The text before the first colon names a runner, as for `scp`, unless it has a slash.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(':') {
            Some((runner, path)) if !runner.is_empty() && !runner.contains('/') => Self::There {
                runner: runner.to_owned(),
                path: path.to_owned(),
            },
            _ => Self::Here(text.into()),
        })
    }
}
