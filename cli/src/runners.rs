//! Runners: listing, choosing, adding, sharing and removing them.

use std::path::Path;

use serde::Serialize;
use shared_api::{
    ChangeRunner, CreateJoinToken, JoinToken, Me, Pool, Runner, RunnerFigures, Workspace,
};
use shared_client::Client;
use shared_types::{
    Clock as _, SystemClock, Timestamp,
    address::is_loopback_host,
    human::{ago, duration},
};

use crate::{
    agreed::agreed, args::Runners, pick, render::clean::clean_line, screen::Screen, table::Table,
};

mod paste;
mod tokens;
mod workspace;

/// Longest words about one runner, in characters.
const MAX_WORDS: usize = 120;

/// The free disk space, in bytes, below which a runner is shown as short of it.
const LOW_ON_DISK_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The advice where no runner is active.
const CHOOSE: &str = "choose one with: gantry runners use NAME";

/// The advice where there is no runner to choose.
const ASK: &str = "ask its owner to share one, or add a machine: gantry runners add";

/// The meaning of the star in the list.
const STAR: &str = "* your active runner, on which your tools run";

/// Carries out a command about runners; without one, lists them. `home` has the enrolment of this machine's runner.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    json: bool,
    command: Option<Runners>,
    home: &Path,
) -> anyhow::Result<()> {
    match command {
        None => list(client, screen, json).await,
        Some(Runners::List { json: also }) => list(client, screen, json || also).await,
        Some(Runners::Use { name }) => choose(client, screen, &name).await,
        Some(Runners::Add(terms)) => {
            let json = json || terms.json;
            add(client, screen, &terms.terms(), json).await
        }
        Some(Runners::Tokens {
            json: also,
            command,
        }) => tokens::run(client, screen, json || also, command).await,
        Some(Runners::AddWorkspace { folder, name }) => {
            workspace::add(client, screen, &folder, name.as_deref(), home).await
        }
        Some(Runners::Rename { name, new }) => rename(client, screen, &name, &new).await,
        Some(Runners::Drain { name }) => drain(client, screen, &name, true).await,
        Some(Runners::Undrain { name }) => drain(client, screen, &name, false).await,
        Some(Runners::Remove { name, yes }) => remove(client, screen, &name, yes).await,
        Some(Runners::Share { name, with }) => share(client, screen, &name, &with).await,
        Some(Runners::Unshare { name, with }) => {
            unshare(client, screen, &name, with.as_deref()).await
        }
        Some(Runners::Take { name }) => take(client, screen, &name).await,
        Some(Runners::Trust { name }) => trust(client, screen, &name, true).await,
        Some(Runners::Distrust { name }) => trust(client, screen, &name, false).await,
    }
}

pub(crate) async fn list(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    if json {
        return runners.iter().try_for_each(|runner| screen.json(runner));
    }
    let now = SystemClock::new().now();
    let heading = [
        "",
        "RUNNER",
        "STATE",
        "",
        "ISOLATION",
        "SYSTEM",
        "OWNER",
        "SHARED WITH",
        "WORKSPACE",
    ];
    let mut table = Table::new(heading).whole(&[0]).spare(&[5, 3]);
    for runner in &runners {
        table.row([
            if runner.active { "*" } else { "" }.to_owned(),
            runner.name.clone(),
            state(runner, now),
            if runner.ephemeral { "ephemeral" } else { "" }.to_owned(),
            isolation(runner),
            runner.platform.clone(),
            owner(runner),
            shared_with(runner),
            match &runner.pool {
                None => format!("{}:{}", runner.hostname, runner.workspace),
                Some(pool) => made_with(pool),
            },
        ]);
        for workspace in runner.sandboxes.iter().skip(1) {
            table.row(of_workspace(runner, workspace));
        }
    }
    match runners.is_empty() {
        true => screen.note(&format!("you see no runner; {ASK}")),
        false => screen.print(&table.show(screen.style(), screen.columns()))?,
    }
    for runner in &runners {
        if let Some(policy) = policy(runner) {
            screen.note(&format!("{} · {policy}", runner.name));
        }
    }
    if runners.iter().any(|runner| runner.active) {
        screen.note(STAR);
        return Ok(());
    }
    let me = client.me().await?;
    match (&me.active_runner, runners.is_empty()) {
        (Some(_), _) => screen.note(&format!("active: {}", active(&me, &runners, now))),
        (None, false) => screen.note(&format!("no runner is active; {CHOOSE}")),
        (None, true) => {}
    }
    Ok(())
}

/// The kind of sandboxes that a runner makes, or the reason why it cannot.
fn made_with(pool: &Pool) -> String {
    let templates = pool
        .templates
        .iter()
        .map(|name| match pool.sudo_templates.contains(name) {
            true => format!("{name} with sudo"),
            false => name.clone(),
        });
    let templates = templates.collect::<Vec<_>>().join(", ");
    match &pool.problem {
        None => format!("a sandbox for each person ({}: {templates})", pool.backend),
        Some(problem) => format!("no sandboxes now: {}", clean_line(problem, MAX_WORDS)),
    }
}

/// A line below a runner's own, of a workspace beside its first one.
fn of_workspace(runner: &Runner, workspace: &Workspace) -> [String; 9] {
    let mut cells = [const { String::new() }; 9];
    cells[1] = format!("{}/{}", runner.name, workspace.name);
    if workspace.problem.is_some() {
        cells[2] = "not served".to_owned();
    }
    cells[8] = format!("{}:{}", runner.hostname, workspace.root);
    cells
}

/// The isolation that a runner reports, and who has granted it.
pub(crate) fn isolation(runner: &Runner) -> String {
    let whose = match (&runner.isolation_granted_by, runner.isolation_believed) {
        (Some(name), _) => format!("granted by {name}"),
        (None, true) => "granted by the operator".to_owned(),
        (None, false) => "reported".to_owned(),
    };
    format!("{} ({whose})", runner.isolation)
}

/// The bound that the machine's own policy sets to agents; nothing where it has none.
fn policy(runner: &Runner) -> Option<String> {
    let mode = runner.ceiling?;
    Some(format!("policy: at most mode {mode} (its machine's own)"))
}

/// The runner on which the person works, in words.
pub(crate) fn active(me: &Me, runners: &[Runner], now: Timestamp) -> String {
    let advice = match runners.is_empty() {
        true => ASK,
        false => CHOOSE,
    };
    let Some(id) = me.active_runner else {
        return format!("none: {advice}");
    };
    if let Some(runner) = runners.iter().find(|runner| runner.id == id) {
        let ephemeral = if runner.ephemeral {
            " · ephemeral"
        } else {
            ""
        };
        let name = with_workspace(&runner.name, me.active_workspace.as_deref());
        let state = state(runner, now);
        let whose = match me.active_runner_is_default {
            true => " · the tenant's default",
            false => "",
        };
        let policy = policy(runner).map_or_else(String::new, |policy| format!(" · {policy}"));
        return format!(
            "{name}{whose} · {state}{ephemeral} · isolation: {}{policy}",
            isolation(runner)
        );
    }
    let Some(name) = &me.active_runner_name else {
        return format!("{id} (not there); {advice}");
    };
    let gone = match me.active_runner_removed {
        true => "removed",
        false => "not shared with you any more",
    };
    let namesake = match runners.iter().any(|runner| runner.name == *name) {
        true => format!("; the {name} that is enrolled now is another one"),
        false => String::new(),
    };
    format!("{name} ({gone}){namesake}; {advice}")
}

async fn choose(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let place = pick::place(&runners, name)?;
    let runner = client.use_runner(&place).await?;
    let state = state(&runner, SystemClock::new().now());
    let workspace = place.split_once('/').map(|(_, workspace)| workspace);
    let using = format!(
        "{} is your active runner now ({state}, isolation: {})",
        with_workspace(&runner.name, workspace),
        isolation(&runner)
    );
    screen.line(&clean_line(&using, MAX_WORDS))
}

/// A place as it is named: `RUNNER`, or `RUNNER/WORKSPACE`.
pub(crate) fn with_workspace(runner: &str, workspace: Option<&str>) -> String {
    match workspace {
        Some(workspace) => format!("{runner}/{workspace}"),
        None => runner.to_owned(),
    }
}

async fn remove(client: &Client, screen: Screen, name: &str, yes: bool) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let runner = pick::runner(&runners, name)?;
    if !yes && !agreed(&format!("remove runner {}", runner.name))? {
        screen.note("nothing was removed");
        return Ok(());
    }
    client.remove_runner(runner.id).await?;
    if runner.active {
        screen.note(&format!("{} was the active runner; {CHOOSE}", runner.name));
    }
    screen.line(&format!("removed {}", runner.name))
}

async fn rename(client: &Client, screen: Screen, name: &str, new: &str) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let runner = pick::runner(&runners, name)?;
    let change = ChangeRunner {
        name: Some(new.to_owned()),
        ..ChangeRunner::default()
    };
    let renamed = client.change_runner(runner.id, &change).await?;
    screen.line(&format!("{} is called {} now", runner.name, renamed.name))
}

async fn drain(client: &Client, screen: Screen, name: &str, drains: bool) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let id = pick::runner(&runners, name)?.id;
    let change = ChangeRunner {
        draining: Some(drains),
        ..ChangeRunner::default()
    };
    let runner = client.change_runner(id, &change).await?;
    screen.line(&match drains {
        true => format!(
            "{} drains: it is given nothing new to run, and what runs there goes on",
            runner.name
        ),
        false => format!("{} takes work again", runner.name),
    })?;
    if drains {
        screen.note(&format!(
            "give it work again with: gantry runners undrain {}",
            runner.name
        ));
    }
    Ok(())
}

async fn share(client: &Client, screen: Screen, name: &str, with: &str) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let id = pick::runner(&runners, name)?.id;
    let runner = client.share_runner(id, with).await?;
    tell_shares(screen, &runner)
}

async fn unshare(
    client: &Client,
    screen: Screen,
    name: &str,
    with: Option<&str>,
) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let id = pick::runner(&runners, name)?.id;
    let runner = client.unshare_runner(id, with).await?;
    tell_shares(screen, &runner)
}

async fn take(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let id = pick::runner(&runners, name)?.id;
    let runner = client.take_runner(id).await?;
    screen.line(&format!("{} is yours now", runner.name))
}

async fn trust(client: &Client, screen: Screen, name: &str, trusted: bool) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let id = pick::runner(&runners, name)?.id;
    let runner = client.trust_runner(id, trusted).await?;
    screen.line(&format!(
        "{}: isolation: {}",
        runner.name,
        isolation(&runner)
    ))
}

fn tell_shares(screen: Screen, runner: &Runner) -> anyhow::Result<()> {
    let told = match shared_with(runner) {
        none if none.is_empty() => format!("{} is shared with no one", runner.name),
        some => format!("{} is shared with {some}", runner.name),
    };
    screen.line(&clean_line(&told, MAX_WORDS))
}

fn owner(runner: &Runner) -> String {
    let nobody = || "nobody (removed)".to_owned();
    runner.owner.clone().unwrap_or_else(nobody)
}

fn shared_with(runner: &Runner) -> String {
    let everyone = runner.shared_with_everyone.then(|| "everyone".to_owned());
    let people = runner.shared_with.iter().cloned();
    everyone
        .into_iter()
        .chain(people)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The output of `gantry runners add --json`.
#[derive(Serialize)]
struct Added<'a> {
    #[serde(flatten)]
    token: &'a JoinToken,
    /// For `gantry-runner enrol --server`.
    server: &'a str,
}

async fn add(
    client: &Client,
    screen: Screen,
    terms: &CreateJoinToken,
    json: bool,
) -> anyhow::Result<()> {
    let token = client.create_join_token(terms).await?;
    let server = client.server();
    if json {
        let (token, server) = (&token, server.as_str());
        return screen.json(&Added { token, server });
    }
    let often = match terms.uses {
        None | Some(1) => {
            match token.archives.is_empty() {
                true => screen.note("paste this on the other machine:"),
                false => {
                    paste::tell(client, screen, &token)?;
                    screen.note("where gantry-runner is installed already, paste this instead:");
                }
            }
            screen.line(&format!(
                "gantry-runner enrol --server {server} {}",
                token.token
            ))?;
            "once".to_owned()
        }
        // Every user of a machine can read its command lines, and this one stays good.
        Some(uses) => {
            screen.note("the token, which belongs on no command line:");
            screen.line(&token.token)?;
            screen.note("run this on the other machines, with the token as its standard input:");
            screen.line(&format!("gantry-runner enrol --server {server} -"))?;
            paste::tell_fleet(client, screen, &token)?;
            format!("{uses} times")
        }
    };
    let left = token.expires_at.since(SystemClock::new().now());
    let left = duration(left);
    screen.note(&match token.archives.is_empty() || often != "once" {
        true => format!("it works {often}, within {left}; then: gantry-runner run"),
        false => format!("the token works {often}, within {left}"),
    });
    screen.note(&format!(
        "end it with: gantry runners tokens remove {}",
        token.id
    ));
    let host = url::Url::parse(&server).ok();
    let host = host.as_ref().and_then(url::Url::host_str);
    if host.is_some_and(is_loopback_host) {
        screen.note(&format!(
            "{server} is this machine only: put an address in its place that the other one reaches"
        ));
    }
    Ok(())
}

pub(crate) fn state(runner: &Runner, now: Timestamp) -> String {
    let state = link_state(runner, now);
    match runner.server_went_back {
        Some(noticed) => format!(
            "{state}; the server was restored from an older copy (noticed {})",
            ago(now.since(noticed))
        ),
        None => state,
    }
}

/// The figures of a runner that a person should see.
fn told(figures: &RunnerFigures) -> String {
    let running = match figures.operations_running {
        0 => String::new(),
        running => format!(", {running} running"),
    };
    let room = match figures.disk_free_bytes {
        free if free < LOW_ON_DISK_BYTES => {
            format!(", {} MiB left on its disk", free / (1024 * 1024))
        }
        _ => String::new(),
    };
    running + &room
}

fn link_state(runner: &Runner, now: Timestamp) -> String {
    match runner.last_seen {
        _ if runner.locked => "locked: its folder was copied".to_owned(),
        _ if runner.online => {
            let word = if runner.draining {
                "draining"
            } else {
                "online"
            };
            let figures = runner.figures.as_ref();
            word.to_owned() + &figures.map_or_else(String::new, told)
        }
        _ if let Some(reason) = &runner.refused => format!("refused: {reason}"),
        Some(seen) => {
            let drains = if runner.draining { ", draining" } else { "" };
            format!("offline, last seen {}{drains}", ago(now.since(seen)))
        }
        None => "never connected".to_owned(),
    }
}
