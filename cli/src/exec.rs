//! Running commands on runners, and coming back to those that run.

use std::{collections::BTreeMap, io, io::IsTerminal as _};

use anyhow::{Context as _, bail};
use shared_api::{Exec, InputKind, OperationState, StartOperation};
use shared_client::{Attach, Attached, Client, Controls};

use crate::{
    args,
    exit::Exit,
    patience::lost,
    pick,
    remote::{self, Ties, keyboard},
    screen::Screen,
};

/// The script that `gantry shell` runs.
const LOGIN_SHELL: &str = "exec \"${SHELL:-/bin/sh}\" -l";

/// The variable that tells a program what its terminal can do.
const TERM: &str = "TERM";

/// The stream that a terminal shows.
const STDOUT: &str = "stdout";

/// Runs a command.
pub(crate) async fn run(
    client: Client,
    screen: Screen,
    args: args::Exec,
    term: Option<String>,
) -> anyhow::Result<Exit> {
    if args.terminal && !args.detach {
        needs_terminal("-t")?;
    }
    let mut environment: BTreeMap<String, String> = args.environment.into_iter().collect();
    if args.terminal {
        pass_on(term, &mut environment);
    }
    let exec = Exec {
        argv: Some(args.command),
        directory: args.directory,
        environment,
        input: args.input,
        terminal: args.terminal.then(|| keyboard::window(io::stdin())),
        ..Exec::default()
    };
    let (attach, controls) = client.start(StartOperation {
        runner: args.runner,
        exec: Some(exec),
        timeout_ms: args.timeout,
        ..StartOperation::default()
    });
    if args.detach {
        return detach(screen, attach, controls).await;
    }
    let ties = Ties {
        input: args.input || args.terminal,
        terminal: args.terminal,
        is_ours: true,
    };
    remote::run(client, screen, attach, controls, ties).await
}

/// Opens the user's login shell on a runner.
pub(crate) async fn shell(
    client: Client,
    screen: Screen,
    args: args::Shell,
    term: Option<String>,
) -> anyhow::Result<Exit> {
    needs_terminal("gantry shell")?;
    let mut environment = BTreeMap::new();
    pass_on(term, &mut environment);
    let exec = Exec {
        script: Some(LOGIN_SHELL.to_owned()),
        environment,
        terminal: Some(keyboard::window(io::stdin())),
        ..Exec::default()
    };
    let (attach, controls) = client.start(StartOperation {
        runner: args.runner,
        exec: Some(exec),
        ..StartOperation::default()
    });
    let ties = Ties {
        input: true,
        terminal: true,
        is_ours: true,
    };
    remote::run(client, screen, attach, controls, ties).await
}

/// Takes up a command that runs.
pub(crate) async fn attach(
    client: Client,
    screen: Screen,
    args: args::Attach,
) -> anyhow::Result<Exit> {
    let id = pick::operation(&client, &args.operation).await?;
    let operation = client.operation(id).await?;
    if matches!(
        operation.kind.as_str(),
        "download" | "upload" | "pack" | "unpack"
    ) {
        bail!("failed to attach to {id}: it copies files, and gantry cp reads it");
    }
    let has_terminal = operation.input == Some(InputKind::Terminal);
    let is_open = operation.state == OperationState::Open;
    let terminal = has_terminal && is_open && io::stdin().is_terminal();
    let ties = Ties {
        input: terminal || (args.input && is_open),
        terminal,
        is_ours: false,
    };
    // Output that was drawn for another terminal is useless here: the program draws again for this
    // one.
    let from = match terminal {
        true => client.output(id, STDOUT, -1).await?.end,
        false => 0,
    };
    let (attach, controls) = client.attach(id, from, 0);
    remote::run(client, screen, attach, controls, ties).await
}

/// Waits until the command has started, and prints its id.
async fn detach(screen: Screen, mut attach: Attach, _controls: Controls) -> anyhow::Result<Exit> {
    loop {
        match attach
            .next()
            .await
            .context("the operation ended without a word")??
        {
            Attached::Operation(operation) => {
                screen.line(&operation.id.to_string())?;
                return Ok(Exit::Done);
            }
            Attached::Lost { reason, is_refused } => {
                let answer = is_refused.then_some(&*reason);
                screen.note(&format!("gantry: {}", lost(answer)));
            }
            Attached::Recovered => screen.note("gantry: connected again"),
            _ => {}
        }
    }
}

fn needs_terminal(what: &str) -> anyhow::Result<()> {
    match io::stdin().is_terminal() {
        true => Ok(()),
        false => bail!("{what} needs a terminal as standard input; for a pipe: gantry exec -i"),
    }
}

fn pass_on(term: Option<String>, environment: &mut BTreeMap<String, String>) {
    if let Some(term) = term {
        environment.entry(TERM.to_owned()).or_insert(term);
    }
}
