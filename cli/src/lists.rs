//! Lists, and what is done with single entries of them.

use anyhow::Context as _;
use shared_api::{CreateJoinToken, Runner};
use shared_client::{Client, ClientError};
use shared_types::{Clock, CredentialId, SessionId, SystemClock, Timestamp};

use crate::{
    chat::practice_label,
    render::{clean::clean_line, duration},
    screen::Screen,
    table::Table,
};

/// Longest title in a list, in characters.
const MAX_TITLE: usize = 60;

pub(crate) async fn sessions(
    client: &Client,
    screen: Screen,
    limit: u32,
    json: bool,
) -> anyhow::Result<()> {
    let sessions = client.sessions(limit).await?;
    if json {
        return sessions.iter().try_for_each(|session| screen.json(session));
    }
    if sessions.is_empty() {
        screen.note("no sessions yet; begin one with: gantry chat \"…\"");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["SESSION", "LAST USED", "", "TITLE"]);
    for session in &sessions {
        let state = session.running_turn.map_or("", |_| "working");
        table.row([
            session.id.to_string(),
            ago(now, session.updated_at),
            state.to_owned(),
            clean_line(&session.title, MAX_TITLE),
        ]);
    }
    screen.print(&table.show(screen.style()))
}

pub(crate) async fn runners(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    if json {
        return runners.iter().try_for_each(|runner| screen.json(runner));
    }
    if runners.is_empty() {
        screen.note("no runners yet; add a machine with: gantry runners add");
        return Ok(());
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["", "RUNNER", "STATE", "ISOLATION", "SYSTEM", "WORKSPACE"]);
    for runner in &runners {
        table.row([
            if runner.active { "*" } else { "" }.to_owned(),
            runner.name.clone(),
            state(runner, now),
            runner.isolation.clone(),
            runner.platform.clone(),
            format!("{}:{}", runner.hostname, runner.workspace),
        ]);
    }
    screen.print(&table.show(screen.style()))?;
    if !runners.iter().any(|runner| runner.active) {
        screen.note("none is chosen; choose one with: gantry runners use NAME");
    }
    Ok(())
}

pub(crate) async fn use_runner(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let runner = client.use_runner(name).await?;
    let state = state(&runner, SystemClock::new().now());
    screen.line(&clean_line(
        &format!(
            "using {} ({state}, isolation: {})",
            runner.name, runner.isolation
        ),
        MAX_TITLE * 2,
    ))
}

pub(crate) async fn add_runner(
    client: &Client,
    screen: Screen,
    terms: &CreateJoinToken,
) -> anyhow::Result<()> {
    let token = client.create_join_token(terms).await?;
    let server = client.server();
    let often = match terms.uses {
        None | Some(1) => {
            screen.note("paste this on the other machine:");
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
            format!("{uses} times")
        }
    };
    let left = token.expires_at.since(SystemClock::new().now());
    let left = duration(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
    screen.note(&format!(
        "it works {often}, within {left}; then: gantry-runner run"
    ));
    if is_loopback(&server) {
        screen.note(&format!(
            "{server} is this machine only: put an address in its place that the other one reaches"
        ));
    }
    Ok(())
}

pub(crate) async fn remove_runner(
    client: &Client,
    screen: Screen,
    name: &str,
) -> anyhow::Result<()> {
    let runners = client.runners().await?;
    let known = |runner: &&Runner| runner.name == name || runner.id.to_string() == name;
    let runner = runners.iter().find(known).with_context(|| {
        format!("failed to find a runner called {name:?}: gantry runners lists them")
    })?;
    client.remove_runner(runner.id).await?;
    screen.line(&format!("removed {}", runner.name))
}

pub(crate) async fn keys(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let keys = client.keys().await?;
    if json {
        return keys.iter().try_for_each(|key| screen.json(key));
    }
    let now = SystemClock::new().now();
    let mut table = Table::new(["KEY", "KIND", "MADE", "NAME"]);
    for key in &keys {
        table.row([
            key.id.to_string(),
            key.kind.replace('_', " "),
            ago(now, key.created_at),
            clean_line(&key.name, MAX_TITLE),
        ]);
    }
    screen.print(&table.show(screen.style()))
}

pub(crate) async fn add_key(client: &Client, screen: Screen, name: &str) -> anyhow::Result<()> {
    let created = client.create_key(name).await?;
    screen.note("this key is shown once; whoever has it acts as you:");
    screen.line(&created.key)?;
    screen.note(&format!(
        "revoke it with: gantry keys remove {}",
        created.entry.id
    ));
    Ok(())
}

pub(crate) async fn remove_key(
    client: &Client,
    screen: Screen,
    id: CredentialId,
) -> anyhow::Result<()> {
    client.remove_key(id).await?;
    screen.line(&format!("removed {id}"))
}

pub(crate) async fn cancel(
    client: &Client,
    screen: Screen,
    session: SessionId,
) -> anyhow::Result<()> {
    let cancelled = client.cancel(session).await?;
    screen.line(match cancelled.turn {
        Some(_) => "stopping…",
        None => "nothing is under way",
    })
}

/// Who, where, with which model, on which runner.
pub(crate) async fn status(client: &Client, screen: Screen) -> anyhow::Result<()> {
    let me = client.me().await?;
    let active = active_runner(client, &me).await?;
    let label = practice_label(&me)
        .filter(|label| !me.model.name.contains(label))
        .map_or(String::new(), |label| format!(" · {label}"));
    let lines = [
        (
            "user",
            format!("{} ({}) in {}", me.user.name, me.user.role, me.tenant),
        ),
        ("server", client.server()),
        ("model", format!("{}{label}", me.model.name)),
        ("runner", active),
    ];
    lines.iter().try_for_each(|(name, value)| {
        let name = screen.style().dim(&format!("{name:<8}"));
        screen.line(&format!("{name}{}", clean_line(value, MAX_TITLE * 3)))
    })
}

async fn active_runner(client: &Client, me: &shared_api::Me) -> Result<String, ClientError> {
    let Some(id) = me.active_runner else {
        return Ok("none chosen; choose one with: gantry runners use NAME".to_owned());
    };
    let now = SystemClock::new().now();
    let known = client
        .runners()
        .await?
        .into_iter()
        .find(|runner| runner.id == id);
    Ok(known.map_or_else(
        || id.to_string(),
        |runner| {
            let state = state(&runner, now);
            format!(
                "{} · {state} · isolation: {}",
                runner.name, runner.isolation
            )
        },
    ))
}

fn state(runner: &Runner, now: Timestamp) -> String {
    match runner.last_seen {
        _ if runner.locked => "locked: its folder was copied".to_owned(),
        _ if runner.online => "online".to_owned(),
        _ if let Some(reason) = &runner.refused => format!("refused: {reason}"),
        Some(seen) => format!("offline, last seen {}", ago(now, seen)),
        None => "never connected".to_owned(),
    }
}

pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    match now.since(then).as_secs() {
        0..60 => "just now".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

fn is_loopback(server: &str) -> bool {
    let host = url::Url::parse(server).ok();
    match host.as_ref().and_then(url::Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
