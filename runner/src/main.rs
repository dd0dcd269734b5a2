//! `gantry-runner`: enrols this machine with a server, and serves its operations.
//!
//! The composition root: here, and nowhere below, the environment, the clock and the random
//! source are taken from the system.

// A closed pipe must not end a program with a panic: see `shared_program::say`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod backoff;
mod cli;
mod connection;
mod daemon;
mod docker;
mod endpoints;
mod enrol;
mod enrolment;
mod heap;
mod home;
mod install;
mod journal;
mod key;
mod link;
mod metrics;
mod model_server;
mod names;
mod network;
mod operations;
mod policy;
mod processes;
mod room;
mod sandboxes;
mod server_url;
mod status;
#[cfg(test)]
mod testing;
mod token_source;
mod workspaces;

use std::{
    fs,
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::{CommandFactory as _, Parser};
use runner_host::allowed_environment;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use shared_program::{note, say};
use shared_telemetry::{runner, traces::TraceOptions};
use shared_types::{OsEntropy, SystemClock, Token, clean::clean};

use cli::{
    AddWorkspaceArgs, Backend, Cli, JoinArgs, RemoveWorkspaceArgs, RunArgs, RunnerVerb, ServersArgs,
};
use daemon::{DaemonError, DaemonOptions, HostFacts};
use docker::DockerOptions;
use endpoints::Endpoints;
use enrol::Enrolment;
use home::Home;
use install::Machine;
use metrics::MetricsAt;
use model_server::ModelServer;
use policy::PolicySource;
use token_source::Sources;

/// The exit code where only a new enrolment helps: a service manager must not restart the daemon
/// (sysexits(3), `EX_NOPERM`).
const TO_BE_ENROLLED: u8 = 77;

fn main() -> ExitCode {
    // Before anything else: the environment may hold a token, and memory will hold the runner's key.
    let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let cli = Cli::parse();
    let kept = hidden.and_then(|()| match &cli.verb {
        RunnerVerb::Run(args) if args.dumpable => set_dumpable_behavior(DumpableBehavior::Dumpable),
        _ => Ok(()),
    });
    let verb = match cli.verb {
        RunnerVerb::Enrol(_) => "enrol",
        RunnerVerb::Run(_) => "run",
        RunnerVerb::Servers(_) => "change the server's addresses",
        RunnerVerb::AddWorkspace(_) => "add the workspace",
        RunnerVerb::Workspaces => "list the workspaces",
        RunnerVerb::RemoveWorkspace(_) => "remove the workspace",
        RunnerVerb::Status => "say the status",
        RunnerVerb::Install(_) => "install",
        RunnerVerb::Logs(_) => "show the log",
        RunnerVerb::Update => "update",
        RunnerVerb::Uninstall(_) => "uninstall",
        RunnerVerb::Manual { .. } => "write the manual",
    };
    let acted = kept
        .context("cannot keep other processes from reading this one's memory")
        .and_then(|()| act(cli));
    match acted {
        Ok(code) => code,
        Err(error) => {
            note!("gantry-runner: failed to {verb}: {}", told(&error));
            exit_code(&error)
        }
    }
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<DaemonError>() {
        Some(error) if error.wants_enrolment() => ExitCode::from(TO_BE_ENROLLED),
        _ => ExitCode::FAILURE,
    }
}

/// The error and its causes; most tell their cause themselves, and it is not said twice.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    // A library quotes what it was sent, too.
    clean(&text)
}

fn act(cli: Cli) -> anyhow::Result<ExitCode> {
    heap::keep();
    names::settle();
    shared_tls::install_provider();
    let journal = variable(shared_telemetry::JOURNAL_STREAM);
    shared_telemetry::init_logs(
        cli.log_format.parse()?,
        cli.log.as_deref(),
        journal.as_deref(),
        Arc::new(SystemClock::new()),
    )?;
    let gantry_home = match cli.home {
        Some(home) => home,
        None => default_home().context("no home: give --home, or set GANTRY_HOME or HOME")?,
    };
    let home = Home::within(&gantry_home);
    let machine = || {
        let user_home = variable("HOME").map(PathBuf::from);
        Machine::here(&gantry_home, user_home.as_deref())
    };
    match cli.verb {
        RunnerVerb::Enrol(args) => {
            let token = join_token(&args.join)?;
            enrol_here(&home, &args.servers, args.join, token)?;
        }
        RunnerVerb::Run(args) => serve(home, &args)?,
        RunnerVerb::Servers(args) => change_servers(&home, &args)?,
        RunnerVerb::AddWorkspace(AddWorkspaceArgs { folder, name }) => {
            say!("{}", workspaces::add(&home, &folder, name)?)?;
        }
        RunnerVerb::Workspaces => {
            say!("{}", workspaces::list(&home)?)?;
        }
        RunnerVerb::RemoveWorkspace(RemoveWorkspaceArgs { name }) => {
            say!("{}", workspaces::remove(&home, &name)?)?;
        }
        RunnerVerb::Status => {
            let status = status::of(&home, &PolicySource::of_machine())?;
            say!("{status}")?;
            // Without a user's folder there is no service of the user's either.
            if let Ok(machine) = machine() {
                say!("service    {}", machine.service_state())?;
            }
            if !status.is_linked() {
                return Ok(ExitCode::FAILURE);
            }
        }
        RunnerVerb::Install(args) => {
            let machine = machine()?;
            if args.servers.is_empty() {
                machine.start(&machine.add_programs()?)?;
            } else {
                let token = join_token(&args.join)?;
                match args.join.replace || machine.joins(&token)? {
                    true => {
                        let folder = machine.add_programs()?;
                        enrol_here(&home, &args.servers, args.join, token)?;
                        machine.start(&folder)?;
                    }
                    // An installation that broke off before the daemon ran is finished.
                    false if !home.is_taken() => machine.start(&machine.add_programs()?)?,
                    false => {}
                }
            }
        }
        RunnerVerb::Logs(args) => machine()?.logs(args.follow, args.lines)?,
        RunnerVerb::Update => machine()?.update(&OsEntropy)?,
        RunnerVerb::Uninstall(args) => machine()?.uninstall(args.yes, args.with_home)?,
        RunnerVerb::Manual { folder } => shared_program::write_manual(Cli::command(), &folder)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn join_token(args: &JoinArgs) -> anyhow::Result<Token> {
    let variable = variable(token_source::VARIABLE);
    let sources = Sources {
        argument: args.token.as_deref(),
        file: args.token_file.as_deref(),
        variable: variable.as_deref(),
        stdin_is_terminal: io::stdin().is_terminal(),
        stdin: io::stdin(),
    };
    Ok(sources.token()?)
}

fn enrol_here(home: &Home, servers: &[String], args: JoinArgs, token: Token) -> anyhow::Result<()> {
    let endpoints = Endpoints::parse(servers, args.allow_plain_text)?;
    let endpoints = endpoints.over(args.transport);
    let workspace = match args.workspace {
        Some(workspace) => workspace,
        None => std::env::current_dir().context("cannot tell the current directory")?,
    };
    let wanted = Enrolment {
        endpoints,
        allow_plain_text: args.allow_plain_text,
        token,
        name: args.name,
        labels: args.labels,
        hostname: hostname(),
        workspace,
        replace: args.replace,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(enrol::enrol(home, wanted, &OsEntropy))?;
    say!("{report}")?;
    Ok(())
}

fn change_servers(home: &Home, args: &ServersArgs) -> anyhow::Result<()> {
    let endpoints = Endpoints::parse(&args.servers, args.allow_plain_text)?;
    let lock = home.lock()?;
    let mut enrolled = home.enrolled()?.ok_or(DaemonError::NotEnrolled)?;
    enrolled.servers = endpoints.texts();
    enrolled.allow_plain_text = args.allow_plain_text;
    home.save(&enrolled)?;
    drop(lock);
    say!("{}", status::of(home, &PolicySource::of_machine())?)?;
    Ok(())
}

fn serve(home: Home, args: &RunArgs) -> anyhow::Result<()> {
    if args.detached {
        rustix::process::setsid().context("cannot leave the terminal's session")?;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .context("cannot tell one boot of this host from another")?;
    let supervisor = match &args.supervisor {
        Some(path) => std::path::absolute(path).context("cannot tell where --supervisor is")?,
        None => beside_this_program().context("cannot tell where gantry-supervisor is")?,
    };
    let options = DaemonOptions {
        home,
        policy: PolicySource::of_machine(),
        model_server: model_server(args)?,
        sync_before_start: args.sync_before_start,
        transports: args.transport,
        disconnect_for: args.disconnect_for,
        is_detached: args.detached,
        supervisor,
        backend: match args.backend {
            Backend::Process => None,
            Backend::Docker => Some(DockerOptions {
                socket: args.docker.docker_host.clone(),
                templates: args.docker.templates.clone(),
                warm: usize::from(args.docker.warm),
            }),
        },
        drain_for: args.drain_for,
        longest_wait: args.longest_wait.unwrap_or(backoff::LONGEST),
        environment: environment(),
        facts: HostFacts {
            boot: boot.trim().to_owned(),
            hostname: hostname(),
        },
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(OsEntropy),
    };
    // One thread is enough beside the link's, and this one is there already.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let stop = daemon::signals().context("cannot listen for signals")?;
        // A variable that is set to nothing names nothing.
        if let Some(collector) = args.traces.as_ref().filter(|url| !url.is_empty()) {
            send_traces(collector)?;
        }
        if let MetricsAt::Address(address) = args.metrics {
            let shown = shared_telemetry::install_metrics(runner::ALL, env!("CARGO_PKG_VERSION"))?;
            tokio::spawn(metrics::serve(address, shown));
        }
        let ended = daemon::run(options, stop).await;
        shared_telemetry::traces::flush().await;
        Ok(ended?)
    });
    // A thread that still hangs in the host's file system does not keep the process.
    runtime.shutdown_background();
    served
}

/// The model server that the options name. A variable that is set to nothing names nothing.
fn model_server(args: &RunArgs) -> anyhow::Result<Option<ModelServer>> {
    let key_file = args.model_key_file.as_deref();
    let key_file = key_file.filter(|path| !path.as_os_str().is_empty());
    match args.model_server.as_deref().filter(|url| !url.is_empty()) {
        Some(address) => Ok(Some(ModelServer::new(address, key_file)?)),
        None if key_file.is_some() => {
            bail!("--model-key-file is for a model server: name it with --model-server")
        }
        None => Ok(None),
    }
}

/// Sends spans from here as well, for work that the server traces.
fn send_traces(collector: &str) -> anyhow::Result<()> {
    let options = TraceOptions {
        endpoint: collector.to_owned(),
        // It begins no trace of its own.
        sample: 0.0,
        service: "gantry-runner",
        version: env!("CARGO_PKG_VERSION"),
        instance: hostname(),
        sent: &runner::SPANS_SENT,
        dropped: &runner::SPANS_DROPPED,
    };
    Ok(shared_telemetry::traces::install_traces(
        &options,
        Arc::new(OsEntropy),
    )?)
}

fn beside_this_program() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("gantry-supervisor"))
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn default_home() -> Option<PathBuf> {
    Some(PathBuf::from(variable("HOME")?).join(".gantry"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the `main` that passes it down"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The environment for commands, without what is not UTF-8.
fn environment() -> std::collections::BTreeMap<String, String> {
    let text = std::env::vars_os();
    let text = text
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    allowed_environment(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systemd_unit_leaves_a_runner_alone_that_must_be_enrolled() {
        let unit = include_str!("../../deploy/gantry-runner.service");
        let prevented = format!("RestartPreventExitStatus={TO_BE_ENROLLED}\n");
        assert!(unit.contains(&prevented), "{unit}");
        assert!(cli::EXIT_CODES.contains(&format!("{TO_BE_ENROLLED} not enrolled")));
        let removed = anyhow::Error::new(DaemonError::NotEnrolled).context("serve");
        assert_eq!(exit_code(&removed), ExitCode::from(TO_BE_ENROLLED));
        let broken = anyhow::Error::new(DaemonError::Broken("link"));
        assert_eq!(exit_code(&broken), ExitCode::FAILURE);
    }

    #[test]
    fn a_cause_is_told_once() {
        let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "timed out");
        let silent = anyhow::Error::new(timed_out()).context("cannot tell where it is");
        assert_eq!(told(&silent), "cannot tell where it is: timed out");
        let telling = anyhow::Error::new(timed_out()).context("cannot reach it: timed out");
        assert_eq!(told(&telling), "cannot reach it: timed out");
    }
}
