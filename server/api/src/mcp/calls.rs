//! One call of a tool: it is carried out until it has its result, or its client leaves.

use std::time::Duration;

use serde_json::{Value, json};
use shared_types::Digest;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{
    Client,
    answer::Events,
    era::Era,
    tools::{Call, Said},
};

/// The interval between two signs of life on a stream, and between two looks at the rights of its client.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// The interval between two words on the progress of a call.
pub(super) const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// The way to tell of a call's progress.
pub(super) struct Progress<'a> {
    events: &'a Events,
    token: Option<Value>,
    began: Instant,
}

impl Progress<'_> {
    /// Tells that it goes on, where the client asked for that.
    pub(super) async fn tell(&self, words: &str) {
        let Some(token) = &self.token else { return };
        let message = json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {
                "progressToken": token,
                "progress": self.began.elapsed().as_secs_f64(),
                "message": words,
            },
        });
        self.events.send(&message).await;
    }
}

/// Carries a call out. Nothing if its client left.
pub(super) async fn carry_out(
    client: &Client,
    id: &Value,
    mut call: Call,
    events: &Events,
) -> Option<Value> {
    let key = client.era.key_of(Some(id)).unwrap_or_else(|| {
        // The key is new, so no other request names this call.
        format!("mcp-{}", Digest::of(client.new_session().as_bytes()))
    });
    let progress = Progress {
        events,
        token: call.progress.take(),
        began: Instant::now(),
    };
    let mut rights = client.doors.app.access.watch_rights(&client.ctx);
    let mut alive = interval_at(Instant::now() + ALIVE_EVERY, ALIVE_EVERY);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let work = call.run(client, &key, &progress);
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            said = &mut work => return Some(said.into_result()),
            () = events.left() => {
                left(client, &key).await;
                return None;
            }
            () = client.doors.app.stopping() => {
                let why = "this server stops; what was started goes on: look at it with read_task";
                return Some(Said::failed(why).into_result());
            }
            () = rights.changed() => {}
            _ = alive.tick() => events.keep_alive(),
        }
        if !may_go_on(client).await {
            let why = "the rights of this key changed in the meantime; call again";
            return Some(Said::failed(why).into_result());
        }
    }
}

/// In 2026-07-28 a client cancels by closing the stream. Before, a closed stream says nothing.
async fn left(client: &Client, key: &str) {
    if client.era == Era::Modern
        && let Err(error) = client.stop(key).await
    {
        tracing::debug!(%error, "a call whose client left was not stopped");
    }
}

async fn may_go_on(client: &Client) -> bool {
    let before = &client.ctx;
    match client.doors.app.access.renewed(before).await {
        Ok(Some(now)) => (now.role, now.scopes) == (before.role, before.scopes),
        Ok(None) => false,
        Err(error) => {
            tracing::debug!(%error, "rights cannot be looked up now");
            true
        }
    }
}
