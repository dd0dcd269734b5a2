//! `gantry`: the terminal client. `main` reads the command line and the environment, chooses the
//! clock and the source of randomness, and tells every failure in one place.

// A closed pipe must not end a program with a panic: see `shared_program::say`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

use std::{process::ExitCode, sync::Arc};

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};
use cli_screen::surface::{GUARDIAN_ARGUMENT, Reflow, guardian};
use shared_api::ExtensionKind;
use shared_client::ClientError;
use shared_types::{Entropy, OsEntropy};

mod above;
mod agreed;
mod approvals;
mod args;
mod audit;
mod browser;
mod chat;
mod config;
mod context;
mod copy;
mod exec;
mod exit;
mod extensions;
mod here;
mod keys;
mod login;
mod mcp;
mod models;
mod output;
mod painted;
mod patience;
mod pending;
mod people;
mod permissions;
mod pick;
mod ps;
mod remote;
mod render;
mod runners;
mod sandboxes;
mod screen;
mod send;
mod server;
mod sessions;
mod settings;
mod show;
mod signals;
mod skills;
mod status;
mod style;
mod table;
mod tasks;
mod tui;
mod unechoed;
mod usage;
mod view;
mod watch;

use args::{Args, Command};
use exit::Exit;
use remote::Signals;
use screen::{ReaderGone, Screen};
use server::Environment;
use settings::Settings;
use tui::TerminalFacts;

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == GUARDIAN_ARGUMENT)
    {
        return guardian::run();
    }
    let args = Args::parse_from(spelled_out(std::env::args_os()));
    let Surroundings {
        environment,
        home,
        screen,
        terminal,
    } = read_environment();
    let Some(home) = args::home(home, std::env::home_dir()) else {
        screen.note("gantry: failed to find your home folder: set GANTRY_HOME");
        return ExitCode::FAILURE;
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            screen.note(&format!("gantry: failed to start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let command = args.command.unwrap_or_default();
    let failure = failure(&command);
    let advice = server::advice(&environment);
    let result = runtime.block_on(run(
        command,
        Settings::in_home(home),
        environment,
        screen,
        terminal,
    ));
    // A thread that still waits for standard input must not hold up the exit.
    runtime.shutdown_background();
    match result {
        Ok(exit) => exit.into(),
        Err(error) if error.is::<ReaderGone>() => Exit::ReaderGone.into(),
        Err(error) => {
            screen.note(&format!("gantry: {}", told(&error, advice)));
            failure
        }
    }
}

/// The command line with the option that stands for a command in place of one.
fn spelled_out(
    words: impl Iterator<Item = std::ffi::OsString>,
) -> impl Iterator<Item = std::ffi::OsString> {
    words.enumerate().map(|(place, word)| match place {
        1 if word == "--print" || word == "-p" => "print".into(),
        _ => word,
    })
}

/// The exit code of a failure: one that a command on a runner can hardly have, where there is one.
fn failure(command: &Command) -> ExitCode {
    match command {
        Command::Exec(_) | Command::Shell(_) | Command::Attach(_) => remote::UNKNOWN.into(),
        _ => ExitCode::FAILURE,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment is read here and passed down"
)]
fn read_environment() -> Surroundings {
    let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let environment = Environment {
        server: text("GANTRY_SERVER"),
        token: shared_program::take_secret("GANTRY_TOKEN").filter(|text| !text.is_empty()),
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let term = text("TERM");
    let is_dumb = term.as_deref() == Some("dumb");
    let inputrc = std::env::var_os("INPUTRC").map(std::path::PathBuf::from);
    Surroundings {
        environment,
        home: std::env::var_os("GANTRY_HOME").map(Into::into),
        screen: Screen::new(no_color, is_dumb),
        terminal: TerminalFacts {
            reflow: Reflow::of(|name| text(name)),
            no_color,
            term,
            is_tmux: std::env::var_os("TMUX").is_some(),
            editor: text("VISUAL").or_else(|| text("EDITOR")),
            browser: browser::Opener::of(text),
            inputrc: inputrc.or_else(|| Some(std::env::home_dir()?.join(".inputrc"))),
        },
    }
}

/// The facts that the environment tells.
struct Surroundings {
    environment: Environment,
    home: Option<std::path::PathBuf>,
    screen: Screen,
    terminal: TerminalFacts,
}

async fn run(
    command: Command,
    settings: Settings,
    environment: Environment,
    screen: Screen,
    terminal: TerminalFacts,
) -> anyhow::Result<Exit> {
    let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
    match command {
        Command::Manual { folder } => {
            shared_program::write_manual(Args::command(), &folder)?;
            return Ok(Exit::Done);
        }
        Command::Login(args) => {
            login::login(&settings, &environment, screen, entropy, args).await?;
            return Ok(Exit::Done);
        }
        Command::Logout => {
            login::logout(&settings, screen, entropy).await?;
            return Ok(Exit::Done);
        }
        _ => {}
    }
    let advice = server::advice(&environment);
    let client = server::client(settings.load()?.as_ref(), &environment, entropy)?;
    match command {
        Command::Chat(args) => {
            let place = chat::Place {
                home: settings.home(),
                advice,
                terminal: &terminal,
            };
            let chat = chat::run(client, screen, args, place);
            let mut signals = Signals::listen().context("failed to listen for signals")?;
            return tokio::select! {
                exit = chat => exit,
                // Dropping the conversation restores the terminal.
                code = signals.killed() => Ok(Exit::Code(code)),
            };
        }
        Command::Print(args) => {
            let print = chat::print::run(client, screen, args, settings.home());
            let mut signals = Signals::listen().context("failed to listen for signals")?;
            return tokio::select! {
                exit = print => exit,
                code = signals.killed() => Ok(Exit::Code(code)),
            };
        }
        Command::Exec(args) => return exec::run(client, screen, args, terminal.term).await,
        Command::Shell(args) => return exec::shell(client, screen, args, terminal.term).await,
        Command::Attach(args) => return exec::attach(client, screen, args).await,
        Command::Cp(args) => return copy::run(client, screen, args).await,
        Command::Ps(args) => ps::list(&client, screen, args).await?,
        Command::Kill(args) => ps::kill(&client, screen, args).await?,
        Command::Send(args) => send::run(&client, screen, args).await?,
        Command::Sessions { list, command } => match command {
            None => sessions::list(&client, screen, &list).await?,
            Some(command) => sessions::run(&client, screen, command).await?,
        },
        Command::Show {
            session,
            follow,
            json,
        } => {
            let session = pick::session_id(&client, &session).await?;
            if follow {
                return show::follow(client, screen, session, json).await;
            }
            show::run(&client, screen, session, json).await?;
        }
        Command::Cancel { session, task } => {
            let session = pick::session_id(&client, &session).await?;
            match task {
                None => tasks::cancel_turn(&client, screen, session).await?,
                Some(task) => tasks::cancel(&client, screen, session, task).await?,
            }
        }
        Command::Approvals { list, command } => {
            approvals::run(&client, screen, list, command).await?
        }
        Command::Permissions { json, command } => {
            permissions::run(&client, screen, json, command).await?;
        }
        Command::Extensions { command } => extensions::run(&client, screen, command).await?,
        Command::Skills { command } => skills::run(&client, screen, command).await?,
        Command::Agents { command } => {
            extensions::registered(&client, screen, ExtensionKind::Agent, command).await?;
        }
        Command::Mcp { command } => {
            return mcp::run(&client, screen, terminal.browser, command).await;
        }
        Command::Hooks { command } => {
            extensions::registered(&client, screen, ExtensionKind::Hooks, command).await?;
        }
        Command::Context { session, json } => {
            let session = pick::session_id(&client, &session).await?;
            context::show(&client, screen, session, json).await?;
        }
        Command::Tasks { session, json } => {
            let session = pick::session_id(&client, &session).await?;
            tasks::list(&client, screen, session, json).await?;
        }
        Command::Output {
            operation,
            follow,
            stderr,
            offset,
        } => {
            let stream = if stderr { "stderr" } else { "stdout" };
            let operation = pick::operation(&client, &operation).await?;
            output::run(&client, screen, operation, stream, offset, follow).await?;
        }
        Command::Runners { json, command } => {
            runners::run(&client, screen, json, command, settings.home()).await?;
        }
        Command::Sandboxes { json, command } => {
            sandboxes::run(&client, screen, json, command).await?;
        }
        Command::Config { list, command } => match command {
            None => config::list(&client, screen, &list).await?,
            Some(command) => config::run(&client, screen, command).await?,
        },
        Command::People { json, command } => people::run(&client, screen, json, command).await?,
        Command::Models { json, command } => models::run(&client, screen, json, command).await?,
        Command::Keys { json, command } => keys::run(&client, screen, json, command).await?,
        Command::Usage(args) => usage::run(&client, screen, args).await?,
        Command::Audit(args) => audit::run(&client, screen, args).await?,
        Command::Status {
            json,
            replicas: true,
        } => status::replicas(&client, screen, json).await?,
        Command::Status { json, .. } => status::run(&client, screen, json).await?,
        Command::Login(_) | Command::Logout | Command::Manual { .. } => {}
    }
    Ok(Exit::Done)
}

/// A failure in words; with this advice where the server takes no such credential.
fn told(error: &anyhow::Error, advice: &str) -> String {
    let words = render::clean::clean(&format!("{error:#}"));
    let unauthenticated = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<ClientError>())
        .any(ClientError::is_unauthenticated);
    match unauthenticated {
        true => format!("{words}\n{advice}"),
        false => words,
    }
}
