//! `gantry runners add-workspace`: one more folder of this machine's runner.
//!
//! A runner alone decides which of its folders are served, so this asks `gantry-runner`, and the server
//! takes no part.

use std::{env, path::Path, process::Command};

use anyhow::{Context as _, bail};
use shared_client::Client;

use crate::{chat::here, screen::Screen};

/// Adds the folder to those of the runner with this home, where the person may use that runner.
pub(super) async fn add(
    client: &Client,
    screen: Screen,
    (folder, name): (&Path, Option<&str>),
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
    screen.note(&format!(
        "choose it as {name}/WORKSPACE: gantry runners use, gantry exec -r, gantry chat --runner",
        name = runner.name
    ));
    Ok(())
}
