//! The signed-in person, with the server, the model and the runner; and the servers of the database.

use std::time::Duration;

use serde::Serialize;
use shared_api::{Me, ReplicaState, Runner, Session};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock, Timestamp, human::duration};

use crate::{
    chat::practice_label, pick, render::clean::clean_line, runners, screen::Screen, table::Table,
};

/// Longest line, in characters.
const MAX_LINE: usize = 180;

/// The output of `gantry status --json`.
#[derive(Serialize)]
struct Status<'a> {
    server: &'a str,
    #[serde(flatten)]
    me: &'a Me,
    /// The active runner as lists show it; absent where none is chosen, or it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<&'a Runner>,
}

pub(crate) async fn run(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let me = client.me().await?;
    let known = client.runners().await?;
    let server = client.server();
    if json {
        return screen.json(&Status {
            server: &server,
            me: &me,
            runner: known.iter().find(|runner| runner.active),
        });
    }
    let label = practice_label(&me)
        .filter(|label| !me.model.name.contains(label))
        .map_or(String::new(), |label| format!(" · {label}"));
    let lines = [
        (
            "user",
            format!("{} ({}) in {}", me.user.name, me.user.role, me.tenant),
        ),
        ("server", server),
        ("model", format!("{}{label}", me.model.name)),
        (
            "runner",
            runners::active(&me, &known, SystemClock::new().now()),
        ),
    ];
    lines.iter().try_for_each(|(name, value)| {
        let name = screen.style().dim(&format!("{name:<8}"));
        screen.line(&screen.fold(&format!("{name}{}", clean_line(value, MAX_LINE))))
    })?;
    let last = client.sessions(1).await?.into_iter().next();
    if let Some(place) = last.as_ref().and_then(|last| elsewhere(last, &me)) {
        screen.note(&clean_line(&place, MAX_LINE));
    }
    Ok(())
}

/// Lists the servers of the database.
pub(crate) async fn replicas(client: &Client, screen: Screen, json: bool) -> anyhow::Result<()> {
    let replicas = client.replicas().await?.replicas;
    if json {
        return replicas.iter().try_for_each(|replica| screen.json(replica));
    }
    let now = SystemClock::new().now();
    let heading = [
        "SERVER", "ADDRESS", "VERSION", "UP", "RENEWED", "LINKS", "TURNS", "STATE",
    ];
    let mut table = Table::new(heading)
        .whole(&[0])
        .spare(&[2, 1])
        .right(&[5, 6]);
    let ids: Vec<_> = replicas.iter().map(|one| one.id.to_string()).collect();
    for replica in &replicas {
        table.row([
            pick::beginning(&replica.id.to_string(), &ids).to_owned(),
            replica.address.clone().unwrap_or_else(none),
            replica.version.clone().unwrap_or_else(none),
            duration(now.since(replica.since)),
            replica.renewed_ms_ago.map_or_else(none, |ms| {
                format!("{} ago", duration(Duration::from_millis(ms)))
            }),
            replica.links.to_string(),
            replica.turns.to_string(),
            state(replica, now),
        ]);
    }
    screen.print(&table.show(screen.style(), screen.columns()))?;
    Ok(())
}

fn none() -> String {
    "–".to_owned()
}

/// The state of a server in words.
fn state(replica: &ReplicaState, now: Timestamp) -> String {
    let this = if replica.this { ", answers here" } else { "" };
    match replica.draining_since {
        None => format!("works{this}"),
        Some(since) => format!("drains for {}{this}", duration(now.since(since))),
    }
}

/// That the session used last does not work on the active runner, and where it works.
fn elsewhere(last: &Session, me: &Me) -> Option<String> {
    let pin = last.runner.as_ref()?;
    let is_active = Some(pin.id) == me.active_runner && pin.workspace == me.active_workspace;
    let place = runners::with_workspace(&pin.name, pin.workspace.as_deref());
    (!is_active).then(|| {
        format!(
            "the last session (gantry chat -c) is pinned to runner {place}; \
             gantry chat -c --runner - lifts the pin"
        )
    })
}
