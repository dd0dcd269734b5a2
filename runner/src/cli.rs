//! The command line.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::FalseyValueParser};
use shared_types::{is_sandbox_name, parse_duration};

use crate::{connection::Transports, docker::Template, metrics::MetricsAt};

/// The exit codes, for service managers.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 77 not enrolled, removed or locked: enrol again";

/// The runner of Gantry: a daemon that runs commands and file tools of a Gantry server on this machine.
#[derive(Debug, Parser)]
#[command(name = "gantry-runner", version = shared_program::VERSION, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: RunnerVerb,
    /// Gantry's home folder; the runner's state is in its folder `runner` [default: ~/.gantry]
    #[arg(long, value_name = "DIR", env = "GANTRY_HOME", global = true)]
    pub(crate) home: Option<PathBuf>,
    /// The format of log lines: text or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        env = "GANTRY_LOG_FORMAT",
        global = true
    )]
    pub(crate) log_format: String,
    /// The log filter, such as `info` or `gantry_runner=debug`
    #[arg(long, value_name = "FILTER", env = "GANTRY_LOG", global = true)]
    pub(crate) log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunnerVerb {
    /// Register this machine with a server, using a join token
    Enrol(EnrolArgs),
    /// Connect to the server and run its operations until a signal
    Run(RunArgs),
    /// Change the server's addresses; its identity is unchanged. Stop the daemon first
    Servers(ServersArgs),
    /// Let operations happen in one more folder. A daemon that runs takes it up at once
    AddWorkspace(AddWorkspaceArgs),
    /// List the folders in which operations may happen
    Workspaces,
    /// Let nothing new happen in a folder that was added. The folder and what runs there stay
    RemoveWorkspace(RemoveWorkspaceArgs),
    /// Show the enrolment, the service, and whether the daemon runs and is connected; ends with 0 only where it is
    Status,
    /// Install these programs and a service that runs them; with --server, enrol first
    Install(InstallArgs),
    /// Show the log of the service
    Logs(LogsArgs),
    /// Load the server's version of these programs and go over to it; commands that run go on
    Update,
    /// Stop the runner with its commands, and remove its service and programs
    Uninstall(UninstallArgs),
    /// Write the shell completions, the man pages and the reference into a folder
    #[command(hide = true)]
    Manual {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// An address of the server, as for `enrol`. Without it the machine stays enrolled as it is
    #[arg(long = "server", value_name = "URL")]
    pub(crate) servers: Vec<String>,
    #[command(flatten)]
    pub(crate) join: JoinArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Go on with what is written from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The number of lines to show
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 200)]
    pub(crate) lines: u32,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Remove the runner's folder too, with its key and the record of its commands
    #[arg(long)]
    pub(crate) with_home: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EnrolArgs {
    /// An address of the server, such as `https://gantry.example:7443`. Repeat it for a server with several
    /// addresses: the runner tries them in turn
    #[arg(long = "server", value_name = "URL", required = true)]
    pub(crate) servers: Vec<String>,
    #[command(flatten)]
    pub(crate) join: JoinArgs,
}

/// The ways to join a server.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// The join token; `-` reads it from standard input [otherwise: --token-file, GANTRY_JOIN_TOKEN, standard input]
    #[arg(value_name = "TOKEN", allow_hyphen_values = true)]
    pub(crate) token: Option<String>,
    /// The transport of the link
    #[arg(long, value_enum, default_value_t)]
    pub(crate) transport: Transports,
    /// Read the join token from this file
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The runner's name, if the token does not fix it [default: the token's, or the host's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// A label, shown in JSON lists; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// The folder in which commands run and file tools work [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Allow http:// to another machine: anyone on the network path can read everything
    #[arg(long)]
    pub(crate) allow_plain_text: bool,
    /// Replace the runner that this home belongs to now
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServersArgs {
    /// The server's new addresses; they replace all earlier ones
    #[arg(value_name = "URL", required = true)]
    pub(crate) servers: Vec<String>,
    /// Allow http:// to another machine: anyone on the network path can read everything
    #[arg(long)]
    pub(crate) allow_plain_text: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddWorkspaceArgs {
    /// The folder
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Its name on this runner [default: the folder's own name]
    #[arg(long)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveWorkspaceArgs {
    /// The workspace, as `gantry-runner workspaces` lists it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// The allowed values of the longest wait: shorter ones would storm a server that restarts.
const LONGEST_WAIT: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// After SIGINT, stop running commands after this time. SIGTERM leaves them to the next daemon
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) drain_for: Duration,
    /// Without a connection to the server, stop commands after this time, unless their own time limit is
    /// longer
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = parse_duration)]
    pub(crate) disconnect_for: Duration,
    /// Sync the journal to disk before each command. Without it, a command in doubt after a crash of the
    /// whole machine is reported as lost, and never run again
    #[arg(long)]
    pub(crate) sync_before_start: bool,
    /// The transport of the link
    #[arg(long, value_enum, default_value_t)]
    pub(crate) transport: Transports,
    /// The supervisor program [default: gantry-supervisor beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) supervisor: Option<PathBuf>,
    /// The place of operations: the folders of this machine, or containers that are made for each user. With docker
    /// no folder of this machine is served
    #[arg(long, value_enum, default_value_t)]
    pub(crate) backend: Backend,
    #[command(flatten)]
    pub(crate) docker: DockerArgs,
    /// Offer the models of this machine's own model server (Ollama, vLLM, LM Studio), by the address above
    /// `chat/completions`, such as http://127.0.0.1:11434/v1. The server asks it through this runner
    #[arg(long, value_name = "URL", env = "GANTRY_RUNNER_MODEL_SERVER")]
    pub(crate) model_server: Option<String>,
    /// With --model-server: the file with its key, which only its owner may read. The key stays on this machine
    #[arg(long, value_name = "FILE", env = "GANTRY_RUNNER_MODEL_KEY_FILE")]
    pub(crate) model_key_file: Option<PathBuf>,
    /// The longest wait between two attempts to connect, from 100ms to 1h [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = longest_wait)]
    pub(crate) longest_wait: Option<Duration>,
    /// The address that answers GET /metrics, for Prometheus, or `off`. A port that is taken is no failure
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9465",
        env = "GANTRY_RUNNER_METRICS"
    )]
    pub(crate) metrics: MetricsAt,
    /// Send traces to this collector, by OTLP over gRPC, such as http://127.0.0.1:4317. The server says which
    /// operations are traced
    #[arg(long, value_name = "URL", env = "GANTRY_RUNNER_TRACES")]
    pub(crate) traces: Option<String>,
    /// Leave the terminal's session, as `install` starts it where there is no systemd
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Allow core dumps, and let other processes of this user read the daemon's memory, its key included
    #[arg(long, env = "GANTRY_DUMPABLE", value_parser = FalseyValueParser::new())]
    pub(crate) dumpable: bool,
}

/// The containers of a pool.
#[derive(Debug, Args)]
pub(crate) struct DockerArgs {
    /// With --backend docker: a template of sandboxes and its image; may be repeated, the first is the default.
    /// With `,sudo` behind the image its commands may be root in their container
    #[arg(long = "template", value_name = "NAME=IMAGE[,sudo]", value_parser = template, default_value = "base=gantry/base:1")]
    pub(crate) templates: Vec<Template>,
    /// With --backend docker: how many containers of each template wait, running, for a new sandbox, up to 50
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=50))]
    pub(crate) warm: u8,
    /// With --backend docker: the socket of the Docker engine
    #[arg(long, value_name = "SOCKET", env = "DOCKER_HOST", default_value = "unix:///var/run/docker.sock", value_parser = socket)]
    pub(crate) docker_host: String,
}

/// The place of operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// In folders of this machine
    #[default]
    Process,
    /// In containers
    Docker,
}

fn template(text: &str) -> Result<Template, &'static str> {
    const HOW: &str = "write a template as name=image, the name in small letters and digits; behind the image \
        can stand ,strict or ,sudo";
    let (name, of_it) = text.split_once('=').ok_or(HOW)?;
    // No name of an image has a comma.
    let (image, privilege) = of_it.split_once(',').unwrap_or((of_it, "strict"));
    match is_sandbox_name(name) && !image.is_empty() {
        true => Ok(Template {
            name: name.to_owned(),
            image: image.to_owned(),
            privilege: privilege.parse().map_err(|_| HOW)?,
        }),
        false => Err(HOW),
    }
}

/// Only an engine of this host has the folder of a sandbox's operations.
fn socket(text: &str) -> Result<String, &'static str> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    match path.starts_with('/') {
        true => Ok(format!("unix://{path}")),
        false => Err("the engine must be one of this machine: write unix:///path/to/docker.sock"),
    }
}

fn label(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a label as key=value"),
    }
}

fn longest_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_duration(text).map_err(|error| error.to_string())?;
    match LONGEST_WAIT.contains(&wait) {
        true => Ok(wait),
        false => Err("write a time from 100ms to 1h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_token_and_labels_are_read_as_they_stand() {
        let line = "gantry-runner enrol --server https://x - --label os=linux --label gpu=";
        let RunnerVerb::Enrol(args) = Cli::try_parse_from(line.split(' ')).expect("a line").verb
        else {
            panic!("another verb");
        };
        let args = args.join;
        assert_eq!(args.token.as_deref(), Some("-"));
        let pairs = [("os", "linux"), ("gpu", "")].map(|(k, v)| (k.into(), v.into()));
        assert_eq!(args.labels, pairs);
        let bad = "gantry-runner enrol --server https://x --label linux";
        assert!(Cli::try_parse_from(bad.split(' ')).is_err());
    }

    #[test]
    fn the_longest_wait_may_be_a_part_of_a_second_but_no_storm() {
        let run =
            |wait: &str| Cli::try_parse_from(["gantry-runner", "run", "--longest-wait", wait]);
        let RunnerVerb::Run(args) = run("0.2").expect("a line").verb else {
            panic!("another verb");
        };
        assert_eq!(args.longest_wait, Some(Duration::from_millis(200)));
        assert_eq!(args.disconnect_for, Duration::from_secs(15 * 60));
        assert!(run("1h").is_ok() && run("200ms").is_ok());
        for wrong in ["0", "0.09", "-1", "NaN", "inf", "3601", "2h", "soon"] {
            assert!(run(wrong).is_err(), "{wrong}");
        }
    }
}
