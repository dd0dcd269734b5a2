//! The command line.

mod audit;
mod chat;
mod config;
mod consent;
mod extensions;
mod keys;
mod login;
mod models;
mod people;
mod print;
mod remote;
mod runners;
mod sandboxes;
mod send;
mod sessions;
mod usage;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use shared_types::OperationId;

pub(crate) use audit::Audit;
pub(crate) use chat::Chat;
pub(crate) use config::{Config, Layer, ListConfig, values};
pub(crate) use consent::{Allow, Approvals, ListApprovals, Permissions, RuleDecision};
pub(crate) use extensions::{
    AddToolServer, Extensions, Mcp, Registered, Skills, Transport, Values,
};
pub(crate) use keys::{AddKey, Keys};
pub(crate) use login::Login;
pub(crate) use models::Models;
pub(crate) use people::{People, Role};
pub(crate) use print::{Output, Print};
pub(crate) use remote::{Attach, Copy, CopyPlace, Exec, Kill, Ps, Shell};
pub(crate) use runners::{JoinTokens, Runners};
pub(crate) use sandboxes::{Sandboxes, SetSandbox};
pub(crate) use send::Send;
pub(crate) use sessions::{ListSessions, Sessions};
pub(crate) use usage::Usage;

use crate::pick::{IdName, SessionName, operation_name};

/// The terminal client of Gantry: talk to agents that work on your own machines.
#[derive(Debug, Parser)]
#[command(name = "gantry", version = shared_program::VERSION, after_help = ENVIRONMENT)]
pub(crate) struct Args {
    /// Without a command, a conversation starts
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

// Not wider than a usual terminal, so that the columns stand.
const ENVIRONMENT: &str = "\
Environment:
  GANTRY_HOME    the folder that stores the sign-in (default ~/.gantry)
  GANTRY_SERVER  the server's address (default: the one you signed in to, else
                 http://127.0.0.1:7000); your sign-in is sent to no other
                 server: another address needs GANTRY_TOKEN or gantry login
  GANTRY_TOKEN   an API key that replaces the sign-in; it is sent to
                 GANTRY_SERVER, if that is set
  NO_COLOR       turns colours off

Exit codes:
  0    success; for chat: the turn completed
  1    failure; for chat: the turn failed, or its runner was offline
  2    wrong usage
  3    for print: something needed consent, and no person could be asked
  4    for print: the answer does not fit the schema
  130  cancelled, or left with Ctrl-C
  141  the reader of the output is gone
  exec, shell and attach exit with the command's own code, or with 255 if it
  never started.

Ids may be shortened to any unique beginning. `last` is the most recently used
session that is not archived. Runners are also found by name.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write the shell completions, the man pages and the reference into a folder
    #[command(hide = true)]
    Manual {
        /// The folder
        folder: PathBuf,
    },
    /// Sign in with a one-time code; asks for the code, or reads it from standard input
    Login(Login),
    /// Sign out and revoke this terminal's sign-in
    Logout,
    /// Send one message, or start a conversation
    Chat(Chat),
    /// Send one message from a script and print the answer; `gantry --print` is the same
    Print(Print),
    /// Send a message to a session and leave. While a turn works, the message joins it
    Send(Send),
    /// List, rename, archive, delete or share sessions
    #[command(args_conflicts_with_subcommands = true)]
    Sessions {
        #[command(flatten)]
        list: ListSessions,
        #[command(subcommand)]
        command: Option<Sessions>,
    },
    /// Show the history of a session
    Show {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// Keep printing new events and the output of background commands until Ctrl-C
        #[arg(long, short)]
        follow: bool,
        /// Print one JSON object per event, one per line
        #[arg(long)]
        json: bool,
    },
    /// Stop the running turn of a session and all of its processes
    Cancel {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// Stop only this background command; `gantry tasks` lists the numbers
        #[arg(long)]
        task: Option<u32>,
    },
    /// List the questions of your agents, and answer them
    #[command(args_conflicts_with_subcommands = true)]
    Approvals {
        #[command(flatten)]
        list: ListApprovals,
        #[command(subcommand)]
        command: Option<Approvals>,
    },
    /// List the rules about what your agents may do, change them, or test one
    Permissions {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<Permissions>,
    },
    /// List what people bring to a session (skills, agents, hooks, tool servers, plugins), and trust files
    Extensions {
        #[command(subcommand)]
        command: Option<Extensions>,
    },
    /// List your skills, and add, update, publish or remove one
    Skills {
        #[command(subcommand)]
        command: Option<Skills>,
    },
    /// List the registered roles of subagents, and add or remove one
    Agents {
        #[command(subcommand)]
        command: Option<Registered>,
    },
    /// List the registered tool servers (MCP), and add or remove one
    Mcp {
        #[command(subcommand)]
        command: Option<Mcp>,
    },
    /// List the registered hooks, and add or remove some
    Hooks {
        #[command(subcommand)]
        command: Option<Registered>,
    },
    /// Show how full the model's window is in a session, and of what
    Context {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the background commands of a session
    Tasks {
        /// The session: an id, the beginning of one, or `last`
        session: SessionName,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Run a command on a runner, as if it ran here
    Exec(Exec),
    /// Open a login shell on a runner
    Shell(Shell),
    /// Connect this terminal to a running command
    Attach(Attach),
    /// List running operations, the newest first
    Ps(Ps),
    /// Stop an operation, or send it a signal
    Kill(Kill),
    /// Copy a file or folder between here and a runner
    Cp(Copy),
    /// Print an operation's stored output
    Output {
        /// The operation; `gantry ps -a` lists them
        #[arg(value_parser = operation_name)]
        operation: IdName<OperationId>,
        /// Keep printing new output until the operation ends
        #[arg(long, short)]
        follow: bool,
        /// Print standard error instead of standard output
        #[arg(long)]
        stderr: bool,
        /// Start at this byte; a negative number counts from the end
        #[arg(
            long,
            default_value_t = 0,
            allow_negative_numbers = true,
            value_name = "BYTES"
        )]
        offset: i64,
    },
    /// List, choose, add, share or remove runners
    Runners {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<Runners>,
    },
    /// List, start, stop, limit or remove sandboxes: containers on runners that make one for each person
    Sandboxes {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<Sandboxes>,
    },
    /// List the settings with who set them, or change them
    #[command(args_conflicts_with_subcommands = true)]
    Config {
        #[command(flatten)]
        list: ListConfig,
        #[command(subcommand)]
        command: Option<Config>,
    },
    /// List the models that you may use, and add, test or remove the accounts that pay for them
    #[command(args_conflicts_with_subcommands = true)]
    Models {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<Models>,
    },
    /// List, invite or remove people and service accounts, and change their roles
    People {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<People>,
    },
    /// List, add or remove API keys and sign-ins
    Keys {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<Keys>,
    },
    /// Show the usage of models: calls, tokens and cost, by model, person or day
    Usage(Usage),
    /// Print the audit log: who did what, where, with what outcome, from which address
    Audit(Audit),
    /// Show the signed-in user, the server, the runner and the model
    Status {
        /// Print one JSON object; with `--replicas`, one per line
        #[arg(long)]
        json: bool,
        /// List the servers of the database, with their leases, links and turns. For admins of the operator's tenant
        #[arg(long)]
        replicas: bool,
    },
}

impl Default for Command {
    /// A conversation.
    fn default() -> Self {
        Self::Chat(Chat::default())
    }
}

/// The folder that stores the sign-in: the one that the environment names, else `.gantry` in the user's folder.
pub(crate) fn home(given: Option<PathBuf>, user_home: Option<PathBuf>) -> Option<PathBuf> {
    given
        .filter(|path| !path.as_os_str().is_empty())
        .or_else(|| user_home.map(|home| home.join(".gantry")))
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
    fn an_id_of_another_kind_is_wrong_usage() {
        let turn = "trn_00000000000000000000000001";
        assert!(Args::try_parse_from(["gantry", "show", turn]).is_err());
        let session = "ses_00000000000000000000000001";
        assert!(Args::try_parse_from(["gantry", "show", session]).is_ok());
    }
}
