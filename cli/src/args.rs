//! The command line.

use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};
use shared_types::{CredentialId, Digest, OperationId, SessionId};
use url::Url;

/// Talk to AI agents whose hands are on your own machines.
#[derive(Debug, Parser)]
#[command(name = "gantry", version, after_help = ENVIRONMENT)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const ENVIRONMENT: &str = "\
Environment:
  GANTRY_HOME    where the sign-in is kept (default ~/.gantry)
  GANTRY_SERVER  the server, where nobody signed in yet (default http://127.0.0.1:7000)
  GANTRY_TOKEN   an API key to use instead of the sign-in; goes to GANTRY_SERVER, if that is set
  NO_COLOR       no colours

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 cancelled";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sign in with the one-time code that the server printed
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
        /// The session
        session: SessionId,
        /// One JSON object per event and line
        #[arg(long)]
        json: bool,
    },
    /// Stop what a session is doing, down to the processes
    Cancel {
        /// The session
        session: SessionId,
        /// Only this command that goes on in the background; `gantry tasks` names them
        #[arg(long)]
        task: Option<u32>,
    },
    /// List the commands of a session that went on in the background
    Tasks {
        /// The session
        session: SessionId,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Write what an operation wrote, as far as it is kept
    Output {
        /// The operation; `gantry show --json` names them
        operation: OperationId,
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
    Status,
}

#[derive(Debug, Arguments)]
pub(crate) struct Login {
    /// The code; `-` reads it from standard input; asked for where it is absent
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

#[derive(Debug, Arguments)]
pub(crate) struct Chat {
    /// The message; `-` reads it from standard input; without one, a conversation begins
    pub(crate) text: Vec<String>,
    /// Go on with this session
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    pub(crate) session: Option<SessionId>,
    /// Go on with the session that was used last
    #[arg(long = "continue", short = 'c')]
    pub(crate) resume: bool,
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
    /// Make a token with which one more machine can enrol
    Add {
        /// The name that it will have; without one, the machine says
        name: Option<String>,
        /// How many seconds the token can be used, up to 30 days [default: 600]
        #[arg(long, value_name = "SECONDS")]
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
    },
    /// Revoke and forget a runner
    Remove {
        /// Its name or id
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make an API key
    Add {
        /// What lists call it
        name: String,
    },
    /// Revoke a key or sign-in
    Remove {
        /// Its id
        id: CredentialId,
    },
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
