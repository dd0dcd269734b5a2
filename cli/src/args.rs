//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args as Arguments, Parser, Subcommand, ValueEnum};
use shared_api::{CreateJoinToken, CreateKey, ScopeName};
use shared_types::{Digest, Mode, OperationId, parse_duration};
use url::Url;

use crate::pick::{IdName, SessionName, operation_name};

mod config;
mod consent;
mod extensions;
mod print;
mod remote;
mod send;
mod sessions;
mod usage;

pub(crate) use config::{Config, Layer, ListConfig, values};
pub(crate) use consent::{Allow, Approvals, ListApprovals, Permissions, RuleDecision};
pub(crate) use extensions::{Extensions, Mcp, Registered, Skills, Values};
pub(crate) use print::{Output, Print};
pub(crate) use remote::{Attach, Copy, CopyPlace, Exec, Kill, Ps, Shell};
pub(crate) use send::Send;
pub(crate) use sessions::{ListSessions, Sessions};
pub(crate) use usage::Usage;

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

#[derive(Debug, Arguments)]
pub(crate) struct Login {
    /// Only `-`: the code is always read from standard input
    #[arg(hide = true)]
    pub(crate) code: Option<String>,
    /// The server's address
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<Url>,
    /// The SHA-256 of the server's certificate, if no public authority signed it
    #[arg(long, value_name = "HEX", value_parser = fingerprint)]
    pub(crate) fingerprint: Option<Digest>,
    /// Allow plain HTTP to another host: anyone on the network path can read everything and sign in as you
    #[arg(long)]
    pub(crate) allow_plain_text: bool,
}

#[derive(Debug, Default, Arguments)]
pub(crate) struct Chat {
    /// The message; without one, a conversation starts. Piped standard input is appended to the
    /// message. End the message with `-` to wait for slow standard input; use </dev/null to append nothing
    pub(crate) text: Vec<String>,
    /// Continue this session
    #[arg(long, value_name = "ID", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,
    /// Continue the most recently used session that is not archived, as --session last
    #[arg(long = "continue", short = 'c')]
    pub(crate) resume: bool,
    /// Pin the session to this runner (name or id); `-` removes the pin
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) runner: Option<String>,
    /// Show this image to the model with the message: a PNG, JPEG, GIF or WebP of this machine; may be repeated. In the
    /// message, @FILE does the same
    #[arg(long = "image", value_name = "FILE", requires = "text")]
    pub(crate) images: Vec<PathBuf>,
    /// Answer in this session with this model, tier (vanguard, balance, swift) or list of models; `-` goes back
    /// to your own choice
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) model: Option<String>,
    /// Work in this directory of the runner's workspace. Without it and --runner, a new session works in the
    /// present folder if that is in the workspace of this machine's runner
    #[arg(long = "dir", value_name = "DIR", conflicts_with_all = ["session", "resume"])]
    pub(crate) directory: Option<String>,
    /// Work in this mode: plan (only reads), ask (asks before changes), auto (asks where the sandbox does not
    /// protect) or full (does not ask)
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// Print one JSON object per line: events and live output. Nobody can be asked then: what needs consent does
    /// not run
    #[arg(long)]
    pub(crate) json: bool,
    /// Write plain lines one after the other, and draw none again: for screen readers. TERM=dumb does the same
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sandboxes {
    /// List sandboxes (the default): yours, and those of all users for admins
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show the recent changes of a sandbox's state, with reasons
    Logs {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
    },
    /// Start a sandbox now instead of with its next command
    Start {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
    },
    /// Stop a sandbox and its commands. Its files stay, and its next command starts it again
    Stop {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
    },
    /// Remove a sandbox and its files
    Remove {
        /// The sandbox's id, or the runner that has your sandbox
        sandbox: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Change a sandbox's template, and its limits (admins), from its next start on
    Set(SetSandbox),
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SandboxChanges {
    /// The template of the sandbox, one of its runner's. Its files stay
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
    /// The memory limit, such as 512MiB or 2GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// The limit of processors, such as 0.5 or 2
    #[arg(long, value_name = "NUMBER", value_parser = processors)]
    pub(crate) cpus: Option<u32>,
    /// The most processes and threads at the same time
    #[arg(long, value_name = "NUMBER")]
    pub(crate) processes: Option<u32>,
    /// Stop it after this time without a command, such as 30m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) idle_for: Option<Duration>,
    /// The network that it reaches: none, or open for all that its runner's host reaches
    #[arg(long, value_name = "none|open")]
    pub(crate) network: Option<String>,
}

#[derive(Debug, clap::Args)]
// A line that names all options has no room.
#[command(override_usage = "gantry sandboxes set [OPTIONS] <SANDBOX>")]
pub(crate) struct SetSandbox {
    /// The sandbox's id, or the runner that has your sandbox
    pub(crate) sandbox: String,
    #[command(flatten)]
    pub(crate) changes: SandboxChanges,
}

/// A number of bytes, with a unit.
fn size(text: &str) -> Result<u64, &'static str> {
    const UNITS: [(&str, u64); 4] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("", 1),
    ];
    let (digits, unit) = UNITS
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1));
    let number: Option<u64> = digits.trim().parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or("write a size such as 512MiB or 2GiB")
}

/// Thousandths of a processor.
fn processors(text: &str) -> Result<u32, &'static str> {
    let wrong = "write a number of processors such as 0.5 or 2";
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 3 || whole.is_empty() {
        return Err(wrong);
    }
    let thousandths = format!("{whole}{part:0<3}").parse();
    thousandths.map_err(|_| wrong)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runners {
    /// Choose your active runner, on which your sessions work
    Use {
        /// The runner's name or id; RUNNER/WORKSPACE for a workspace beside its first one
        name: String,
    },
    /// List them (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Create a join token, with which a machine enrols as a runner
    Add(AddRunner),
    /// List or end the join tokens with which machines can still enrol
    Tokens {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(subcommand)]
        command: Option<JoinTokens>,
    },
    /// Add a folder of this machine as a workspace of its runner
    AddWorkspace {
        /// The folder
        #[arg(value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        /// The name of the workspace on its runner [default: the folder's name]
        #[arg(long)]
        name: Option<String>,
    },
    /// Rename a runner: it stays the same one wherever it was chosen
    Rename {
        /// The runner's name or id
        name: String,
        /// Its new name: a-z, 0-9, dashes, dots and underscores
        new: String,
    },
    /// Let a runner drain: it is given nothing new to run, and what runs there goes on
    Drain {
        /// The runner's name or id
        name: String,
    },
    /// Give a runner that drains work again
    Undrain {
        /// The runner's name or id
        name: String,
    },
    /// Remove a runner: it can never connect again
    Remove {
        /// The runner's name or id
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Let a person, or everyone, use a runner of yours
    Share {
        /// The runner's name or id
        name: String,
        /// The person's name, or `everyone`
        #[arg(long, value_name = "PERSON")]
        with: String,
    },
    /// Stop sharing a runner
    Unshare {
        /// The runner's name or id
        name: String,
        /// The person's name, or `everyone` [default: all people that it is shared with]
        #[arg(long, value_name = "PERSON")]
        with: Option<String>,
    },
    /// Become the owner of a runner (admins)
    Take {
        /// The runner's name or id
        name: String,
    },
    /// Grant the isolation that a runner reports, which the server cannot check (admins)
    Trust {
        /// The runner's name or id
        name: String,
    },
    /// Withdraw that grant (admins)
    Distrust {
        /// The runner's name or id
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum JoinTokens {
    /// List them (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// End a join token: no machine enrols with it any more
    Remove {
        /// The token's id, or the beginning of it
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List them (the default)
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Add your account at a provider, or replace it: asks for the key, and tries it
    Add {
        /// The provider, such as anthropic, openai or gemini; or a name of your own, with --url
        provider: String,
        /// The account's name [default: that of the provider]
        #[arg(long)]
        name: Option<String>,
        /// The address of the server [default: that of the provider]
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// The wire format: openai-chat, openai-responses, anthropic-messages or gemini [default: the provider's]
        #[arg(long)]
        format: Option<String>,
        /// A model that it offers; may be given several times [default: the models that the server knows]
        #[arg(long = "model", value_name = "MODEL")]
        models: Vec<String>,
        /// The server asks for no key
        #[arg(long)]
        no_key: bool,
        /// Add it for all people of the tenant
        #[arg(long)]
        tenant: bool,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Ask a model, or an account's first model, one small thing
    Test {
        /// The name of the model or the account
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove an account, with its key
    Remove {
        /// The account's name or id
        name: String,
        /// Remove the account of the tenant
        #[arg(long)]
        tenant: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum People {
    /// List them (the default)
    List {
        /// List those with this text in their names
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Invite a person with a one-time code, which works for seven days
    Invite {
        /// The person's name: a-z, 0-9 and dashes
        name: String,
        /// The person's role [default: the role of an earlier invitation, else member]
        #[arg(long, value_enum)]
        role: Option<Role>,
        /// Print one JSON object with the code
        #[arg(long)]
        json: bool,
    },
    /// Add a service account: it has keys (gantry keys add KEY --service NAME), and never signs in
    AddService {
        /// The account's name: a-z, 0-9 and dashes
        name: String,
        /// The account's role; not owner
        #[arg(long, value_enum, default_value = "member")]
        role: Role,
    },
    /// Change the role of a person or a service account
    Role {
        /// The person's name or id
        name: String,
        /// The new role
        #[arg(value_enum)]
        role: Role,
    },
    /// Remove a person or a service account: keys and sign-ins end at once, and running operations are stopped
    Remove {
        /// The person's name or id; `me` to leave
        name: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// The role of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Everything
    Owner,
    /// People who are no owners, all runners, settings, the audit log
    Admin,
    /// To work, on runners of their own and on shared ones
    Member,
    /// To look
    Viewer,
}

#[derive(Debug, Arguments)]
pub(crate) struct AddRunner {
    /// The runner's name; without it, the machine chooses
    name: Option<String>,
    /// The validity of the token, such as 90s or 1h; at most 30d [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = valid_for)]
    valid_for: Option<u32>,
    /// The number of machines that may enrol with the token, at most 1000 [default: 1]
    #[arg(long, value_name = "MACHINES")]
    uses: Option<u32>,
    /// Remove these runners when they stop with nothing running, or after a day of silence
    #[arg(long)]
    ephemeral: bool,
    /// A label of these runners; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// The source addresses that may enrol, such as 10.0.0.0/8 [default: all]
    #[arg(long, value_name = "ADDRESSES")]
    from: Option<String>,
    /// Print one JSON object with the token and the server
    #[arg(long)]
    pub(crate) json: bool,
}

impl AddRunner {
    /// The request to the server.
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
    /// List them (the default)
    List {
        /// List the keys of this service account
        #[arg(long, value_name = "NAME")]
        service: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Create an API key
    Add(AddKey),
    /// Revoke a key or sign-in
    Remove {
        /// The key's id, the beginning of it, or its name
        key: String,
        /// Revoke a key of this service account
        #[arg(long, value_name = "NAME")]
        service: Option<String>,
    },
}

#[derive(Debug, Arguments)]
pub(crate) struct AddKey {
    /// The key's name in lists
    name: String,
    /// Create a key of this service account, which an admin adds with: gantry people add-service NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// The scopes of the key, separated by commas: chat, runners, exec, read, metrics, admin
    /// [default: chat,runners,exec,read]
    #[arg(long = "scope", value_name = "SCOPES", value_delimiter = ',', value_parser = scope)]
    scopes: Option<Vec<ScopeName>>,
    /// The validity of the key, such as 12h or 30d [default: no expiry]
    #[arg(long, value_name = "TIME", value_parser = key_valid_for)]
    valid_for: Option<u32>,
    /// The source addresses that may use the key, such as 10.0.0.0/8 [default: all]
    #[arg(long, value_name = "ADDRESSES")]
    from: Option<String>,
}

impl AddKey {
    /// The request to the server.
    pub(crate) fn terms(self) -> CreateKey {
        CreateKey {
            name: self.name,
            scopes: self.scopes,
            valid_for_s: self.valid_for,
            from: self.from,
        }
    }
}

#[derive(Debug, Arguments)]
pub(crate) struct Audit {
    /// Keep printing new entries until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print only this person's actions; also takes a runner's id, or `system`
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,
    /// Print only entries of this past time, such as 2h or 7d [default: the newest entries]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) since: Option<Duration>,
    /// The most entries to print without --since
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

fn scope(text: &str) -> Result<ScopeName, String> {
    let word = serde_json::Value::String(text.to_owned());
    serde_json::from_value(word)
        .map_err(|_| "choose among chat, runners, exec, read, metrics, admin".to_owned())
}

fn key_valid_for(text: &str) -> Result<u32, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    u32::try_from(time.as_secs()).map_err(|_| "3660d is the longest".to_owned())
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

/// The folder that stores the sign-in: the one that the environment names, else `.gantry` in the user's folder.
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
