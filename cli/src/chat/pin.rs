//! The runner on which one session works, whatever runner its user works on otherwise.

use shared_client::Client;
use shared_types::{Clock as _, SessionId, SystemClock};

use super::{Chat, MAX_LINE};
use crate::{pick, render::clean::clean_line, runners};

/// The word that removes the pin; no runner can have this name.
pub(super) const NONE: &str = "-";

/// Pins a session to the runner of this name or id, or lifts its pin.
pub(super) async fn set(client: &Client, id: SessionId, name: &str) -> anyhow::Result<()> {
    if name == NONE {
        return Ok(client.unpin_session(id).await?);
    }
    let runners = client.runners().await?;
    let place = pick::place(&runners, name)?;
    client.pin_session(id, &place).await?;
    Ok(())
}

/// The place where the session works, in words.
pub(super) async fn place(chat: &Chat) -> anyhow::Result<String> {
    let known = chat.client.runners().await?;
    let directory = match chat.session.directory.as_str() {
        "" => String::new(),
        directory => format!(" · in {directory}"),
    };
    let now = SystemClock::new().now();
    let Some(pin) = &chat.session.runner else {
        let me = chat.client.me().await?;
        let words = format!("runner {}{directory}", runners::active(&me, &known, now));
        return Ok(clean_line(&words, MAX_LINE));
    };
    let words = match known.iter().find(|runner| runner.id == pin.id) {
        None => format!("runner {}, which was removed (/runner NAME)", pin.name),
        Some(runner) => {
            let name = runners::with_workspace(&runner.name, pin.workspace.as_deref());
            let state = runners::state(runner, now);
            let isolation = runners::isolation(runner);
            format!("runner {name} for this session{directory} · {state} · isolation: {isolation}")
        }
    };
    Ok(clean_line(&words, MAX_LINE))
}
