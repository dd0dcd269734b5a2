//! Hints between the servers that share a database: what one commits, the others look at.
//!
//! - `outbox` sends the hints of this server's commits, several together, outside of their transactions.
//! - `reader` applies those of other servers to the parts of this one that wait for commits.
//! - `seen` and the look of this file find what no hint told.
//!
//! The rows are the truth. So hints may be lost, and a restart and the normal path are one path. A database that is a
//! file has one server and none of this.

mod outbox;
mod reader;
mod seen;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use server_agent::Turns;
use server_router::links::Links;
use server_store::{Store, StoreError};
use shared_types::{Entropy, backoff::full_jitter};
use tokio::{sync::mpsc, time::sleep};
use tokio_util::task::TaskTracker;

pub(crate) use outbox::Outbox;
use reader::HintReader;
pub(crate) use reader::Listeners;
pub(crate) use seen::{FollowedLog, SeenLogs};

use crate::{Parts, commits::Commits};

/// News of hints that may wait to be applied.
const NEWS: usize = 64;

/// The least pause between two looks for events that no hint told.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// The part of the pause that is at random, so that servers look one after another.
const LOOK_SPREAD: Duration = Duration::from_secs(2);

/// Sessions that one statement asks for.
const SESSIONS_AT_ONCE: usize = 4096;

/// Sends and hears hints, and looks for those that were lost, until everything is to end.
pub(crate) fn start(
    parts: &Parts,
    commits: &Commits,
    turns: &Turns,
    links: &Links,
    tasks: &TaskTracker,
) -> Listeners {
    let listeners = Listeners::of(commits, turns, links);
    let Some(wire) = parts.store.hints() else {
        return listeners;
    };
    let (outbox, stop) = (commits.outbox.clone(), &parts.stop);
    tasks.spawn(outbox.send_by(wire.clone(), parts.replica, stop.clone()));
    let (to, news) = mpsc::channel(NEWS);
    let reading = HintReader::new(listeners.clone(), parts.replica).read(news);
    let hearing = async move { tokio::join!(wire.listen(to), reading) };
    tasks.spawn(stop.clone().run_until_cancelled_owned(hearing));
    let look = look_now_and_then(
        parts.store.clone(),
        commits.seen.clone(),
        listeners.clone(),
        parts.entropy.clone(),
    );
    tasks.spawn(stop.clone().run_until_cancelled_owned(look));
    listeners
}

/// Finds the logs that other servers have added to without a hint, of the sessions that are followed or worked on here.
async fn look_now_and_then(
    store: Store,
    seen: SeenLogs,
    listeners: Listeners,
    entropy: Arc<dyn Entropy>,
) {
    loop {
        let mut random = [0; 8];
        entropy.fill(&mut random);
        let spread = full_jitter(LOOK_SPREAD, LOOK_SPREAD, 1, u64::from_be_bytes(random));
        sleep(LOOK_EVERY + spread).await;
        if let Err(error) = look(&store, &seen, &listeners).await {
            // The next look finds the same.
            tracing::debug!(%error, "the newest events of sessions cannot be read");
        }
    }
}

async fn look(store: &Store, seen: &SeenLogs, listeners: &Listeners) -> Result<(), StoreError> {
    let mut here = BTreeSet::from_iter(seen.followed());
    here.extend(listeners.turns.sessions().await);
    let here: Vec<_> = here.into_iter().collect();
    let mut newest = Vec::with_capacity(here.len());
    for some in here.chunks(SESSIONS_AT_ONCE) {
        newest.extend(store.last_events(some.iter().copied()).await?);
    }
    for session in seen.grown(newest) {
        listeners.session(session).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
