//! `gantry runners add-workspace`: one more folder of this machine's runner.
//!
//! A runner alone decides which of its folders are served, so this asks `gantry-runner`, and the server
//! takes no part.

use std::{env, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, bail};
use shared_client::Client;
use shared_types::RunnerId;
use tokio::time::{Instant, sleep};

use super::MAX_WORDS;
use crate::{here, render::clean::clean_line, screen::Screen};

/// The longest wait until the server knows of a workspace.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// The interval between checks of that.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Adds the folder to those of the runner with this home, where the person may use that runner.
pub(super) async fn add(
    client: &Client,
    screen: Screen,
    folder: &Path,
    name: Option<&str>,
    home: &Path,
) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let ours = here::runner(home);
    let Some(runner) = runners.iter().find(|runner| Some(runner.id) == ours) else {
        bail!(
            "this machine has no runner of this server that you may use; on the runner's machine, type: \
             gantry-runner add-workspace FOLDER --name NAME"
        );
    };
    let program = env::current_exe()
        .context("failed to tell where gantry-runner is")?
        .with_file_name("gantry-runner");
    let mut command = Command::new(&program);
    command.arg("--home").arg(home).arg("add-workspace");
    command.args(name.map(|name| format!("--name={name}")));
    let added = command.arg("--").arg(folder).status();
    let added = added.with_context(|| {
        format!(
            "failed to start {}; where that program is, type: gantry-runner add-workspace FOLDER",
            program.display()
        )
    })?;
    if !added.success() {
        bail!("the workspace was not added");
    }
    let folder = folder.canonicalize().unwrap_or_default();
    let place = match known_as(client, runner.id, &folder).await? {
        Some(workspace) => format!("{}/{workspace}", runner.name),
        None => {
            screen.note("the server has not heard of it yet: does the runner run?");
            return Ok(());
        }
    };
    screen.line(&clean_line(
        &format!("choose it with: gantry runners use {place}, gantry exec -r {place}"),
        MAX_WORDS,
    ))
}

/// The runner's name for the workspace in this folder, once the server knows of it.
async fn known_as(
    client: &Client,
    runner: RunnerId,
    folder: &Path,
) -> anyhow::Result<Option<String>> {
    let until = Instant::now() + HEARD_WITHIN;
    loop {
        let runners = client.runners().await?;
        let ours = runners.into_iter().find(|known| known.id == runner);
        let online = ours.filter(|runner| runner.online);
        let mut workspaces = online.into_iter().flat_map(|runner| runner.sandboxes);
        if let Some(known) = workspaces.find(|known| Path::new(&known.root) == folder) {
            return Ok(Some(known.name));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        sleep(LOOK_EVERY).await;
    }
}
