//! The signed-in person, with the server, the model and the runner.

use serde::Serialize;
use shared_api::{Me, Runner, Session};
use shared_client::Client;
use shared_types::{Clock as _, SystemClock};

use crate::{chat::practice_label, render::clean::clean_line, runners, screen::Screen};

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
