//! The command line.

use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};
use shared_api::CreateJoinToken;
use shared_types::{Digest, OperationId, parse_duration};
use url::Url;

use crate::pick::{IdName, SessionName, operation_name};

mod remote;

pub(crate) use remote::{Attach, Copy, Exec, Kill, Ps, Shell};

/// Talk to AI agents whose hands are on your own machines.
#[derive(Debug, Parser)]
#[command(name = "gantry", version, after_help = ENVIRONMENT)]
pub(crate) struct Args {
    /// Without one, a conversation begins
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const ENVIRONMENT: &str = "\
Environment:
  GANTRY_HOME    where the sign-in is kept (default ~/.gantry)
  GANTRY_SERVER  the server, where nobody signed in yet (default http://127.0.0.1:7000)
  GANTRY_TOKEN   an API key to use instead of the sign-in; goes to GANTRY_SERVER, if that is set
  NO_COLOR       no colours

Exit codes:
  0    done; for chat: the turn was completed
  1    failed; for chat: the turn failed, or no runner could be given its commands
  2    wrong usage
  130  cancelled, or left with Ctrl-C
For exec, shell and attach: the command's own, or 255 where it never started.

A session is named by its id, by the beginning of its id where only one begins so, or by `last`;
operations, keys and runners by their ids or the beginnings of them, runners also by name.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sign in with the one-time code that the server printed; asks for it, or reads it from
    /// standard input
    Login(Login),
    /// Sign out, and revoke this terminal's sign-in
    Logout,
    /// Send a message, or hold a conversation
    Chat(Chat),
    /// List sessions, the most recently used first
    Sessions {
        /// How many
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show what happened in a session
    Show {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// Go on with what happens from now on, and with what its background commands write, until
        /// Ctrl-C
        #[arg(long, short)]
        follow: bool,
        /// One JSON object per event and line
        #[arg(long)]
        json: bool,
    },
    /// Stop what a session is doing, down to the processes
    Cancel {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// Only this command that goes on in the background; `gantry tasks` names them
        #[arg(long)]
        task: Option<u32>,
    },
    /// List the commands of a session that went on in the background
    Tasks {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Run a command on a runner as if it ran here
    Exec(Exec),
    /// Open a login shell on a runner
    Shell(Shell),
    /// Take up a command that runs, from any terminal
    Attach(Attach),
    /// List what runs on the runners, the newest first
    Ps(Ps),
    /// Stop what runs on a runner, or send it a signal
    Kill(Kill),
    /// Copy a file between here and a runner
    Cp(Copy),
    /// Print an operation's stored output
    Output {
        /// The operation; `gantry ps -a` lists them
        #[arg(value_parser = operation_name)]
        operation: IdName<OperationId>,
        /// Go on with what it writes from now on, until it ends
        #[arg(long, short)]
        follow: bool,
        /// What it wrote to standard error
        #[arg(long)]
        stderr: bool,
        /// From this byte on; a negative number counts from the end
        #[arg(
            long,
            default_value_t = 0,
            allow_negative_numbers = true,
            value_name = "BYTES"
        )]
        offset: i64,
    },
    /// List, choose, add or remove runners
    Runners {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<Runners>,
    },
    /// List, add or remove API keys and sign-ins
    Keys {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<Keys>,
    },
    /// Show who is signed in, and with what they work
    Status {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Default for Command {
    /// A conversation.
    fn default() -> Self {
        Self::Chat(Chat::default())
    }
}

#[derive(Debug, Arguments)]
pub(crate) struct Login {
    /// Only `-`, which is standard input, where a code is read from in any case
    #[arg(hide = true)]
    pub(crate) code: Option<String>,
    /// The server's address
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<Url>,
    /// SHA-256 of the server's certificate, where no public authority vouches for it
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    pub(crate) fingerprint: Option<Digest>,
    /// Allow plain text to another host: everyone on the way can read along and sign in as you
    #[arg(long)]
    pub(crate) allow_plain_text: bool,
}

#[derive(Debug, Default, Arguments)]
pub(crate) struct Chat {
    /// The message; without one, a conversation begins. Standard input that is no terminal is sent
    /// behind it (</dev/null: nothing); with `-` as the last word it is waited for however long it takes
    pub(crate) text: Vec<String>,
    /// Go on with this session
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,
    /// Go on with the session that was used last
    #[arg(long = "continue", short = 'c')]
    pub(crate) resume: bool,
    /// Pin the session to this runner, by name or id; `-` goes back to the one that you use
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) runner: Option<String>,
    /// One JSON object per line: events, and what is under way
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runners {
    /// Choose the runner that your sessions work on
    Use {
        /// Its name or id
        name: String,
    },
    /// List them, as without a command
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Make a token with which one more machine can enrol
    Add(AddRunner),
    /// Revoke and forget a runner
    Remove {
        /// Its name or id
        name: String,
    },
}

#[derive(Debug, Arguments)]
pub(crate) struct AddRunner {
    /// The name that it will have; without one, the machine says
    name: Option<String>,
    /// How long the token can be used, such as 90s, 1h or 30d, which is the longest [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = valid_for)]
    valid_for: Option<u32>,
    /// How many machines may enrol with it, up to 1000 [default: 1]
    #[arg(long, value_name = "MACHINES")]
    uses: Option<u32>,
    /// Remove those runners when they leave for good, or stay away
    #[arg(long)]
    ephemeral: bool,
    /// A label that they will have; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// From where they may enrol, as the server sees it, such as 10.0.0.0/8 [default: anywhere]
    #[arg(long, value_name = "ADDRESSES")]
    from: Option<String>,
    /// One JSON object, with the token and the server
    #[arg(long)]
    pub(crate) json: bool,
}

impl AddRunner {
    /// What the server is asked for.
    pub(crate) fn terms(self) -> CreateJoinToken {
        CreateJoinToken {
            name: self.name.unwrap_or_default(),
            valid_for_s: self.valid_for,
            uses: self.uses,
            ephemeral: self.ephemeral,
            labels: self.labels.into_iter().collect(),
            from: self.from,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// List them, as without a command
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Make an API key
    Add {
        /// What lists call it
        name: String,
    },
    /// Revoke a key or sign-in
    Remove {
        /// Its id, or the beginning of it
        id: String,
    },
}

fn valid_for(text: &str) -> Result<u32, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    u32::try_from(time.as_secs()).map_err(|_| "30d is the longest".to_owned())
}

fn label(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a label as key=value"),
    }
}

/// Where the sign-in is kept: what the environment names, else `.gantry` in the user's folder.
pub(crate) fn home(given: Option<PathBuf>, user_home: Option<PathBuf>) -> Option<PathBuf> {
    given
        .filter(|path| !path.as_os_str().is_empty())
        .or_else(|| user_home.map(|home| home.join(".gantry")))
}

/// A fingerprint as people copy it: with or without colons, in either case.
fn fingerprint(text: &str) -> Result<Digest, String> {
    let plain: String = text.chars().filter(|letter| *letter != ':').collect();
    Digest::from_hex(plain.trim())
        .ok_or_else(|| "expected the 64 hexadecimal digits of a SHA-256".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_fingerprint_may_have_colons() {
        let plain = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        assert_eq!(fingerprint(&plain), fingerprint(&colons));
        assert!(fingerprint("abc").is_err());
    }

    #[test]
    fn an_id_of_another_kind_is_wrong_usage() {
        let turn = "trn_00000000000000000000000001";
        assert!(Args::try_parse_from(["gantry", "show", turn]).is_err());
        let session = "ses_00000000000000000000000001";
        assert!(Args::try_parse_from(["gantry", "show", session]).is_ok());
    }
}
