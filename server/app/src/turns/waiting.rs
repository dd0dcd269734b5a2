//! Turns that wait without a worker (docs/internals/contracts.md#c5): the hints that wake them, and
//! the view of them for watchers.
//!
//! The rows alone tell if a wait is over ([`server_store::Store::turns_to_wake`]). A hint only says
//! that a look is worth it. Without a hint, the look comes when the next wait is over, and now and
//! then.

use std::{sync::Arc, time::Duration};

use server_agent::{SessionPorts, WaitingCall, show_waiting};
use server_store::{StoreError, WaitsOver};
use shared_types::{Timestamp, TurnId};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{Bench, Key, RETRY_AFTER, START_PAGE};

/// The pause between two looks without a hint.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The pause between two looks, however many hints come: many operations end in a second.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Shows those who watch a session what happens to the calls of a turn that waits; until it is dropped.
pub(super) struct View {
    _task: AbortOnDropHandle<()>,
}

impl View {
    pub(super) fn start(ports: SessionPorts, turn: TurnId, calls: Vec<WaitingCall>) -> Self {
        let view = async move { show_waiting(&ports, turn, calls).await };
        Self {
            _task: AbortOnDropHandle::new(tokio::spawn(view)),
        }
    }
}

impl Bench {
    /// The bounds by which a wait is over now. A wait that an earlier process has left is not over by its
    /// time limit alone, while its runner may still come back.
    pub(super) fn waits_over(&self) -> WaitsOver {
        let now = self.clock.now();
        WaitsOver {
            replica: self.replica,
            at: now,
            of_others_at: match Instant::now() < self.started.until() {
                true => Timestamp::from_micros(i64::MIN),
                false => now,
            },
        }
    }
}

/// Wakes the turns whose wait is over, until `stop`.
pub(super) async fn wake_waiting(
    bench: Arc<Bench>,
    wake: mpsc::Sender<Key>,
    stop: CancellationToken,
) {
    loop {
        let pause = match look(&bench, &wake).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::error!(%error, "the turns that wait cannot be read; trying again");
                RETRY_AFTER
            }
        };
        tokio::select! {
            () = async { sleep(LOOK_PAUSE).await; bench.hub.waits_to_look_at().await } => {}
            () = sleep(pause.max(LOOK_PAUSE)) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Wakes sessions whose turns no worker has begun for a while, until `stop`. Mostly these wait behind others,
/// or the answer of the commit that stored them was lost.
pub(super) async fn wake_queued(
    bench: Arc<Bench>,
    wake: mpsc::Sender<Key>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = stop.cancelled() => return,
        }
        // The next look finds what this one could not read.
        if let Err(error) = look_at_queued(&bench, &wake).await {
            tracing::error!(%error, "the turns that nobody has begun cannot be read; trying again");
        }
    }
}

async fn look_at_queued(bench: &Bench, wake: &mpsc::Sender<Key>) -> Result<(), StoreError> {
    let every = i64::try_from(LOOK_EVERY.as_micros()).unwrap_or(i64::MAX);
    let now = bench.clock.now().as_micros();
    let since = Timestamp::from_micros(now.saturating_sub(every));
    let mut after = None;
    loop {
        let turns = bench.store.queued_turns(since, after, START_PAGE).await?;
        let Some(last) = turns.last() else {
            return Ok(());
        };
        after = Some(last.turn);
        for turn in turns {
            let _ = wake.send((turn.tenant, turn.session)).await;
        }
    }
}

/// Looks once; returns how long it need not be looked without a hint.
async fn look(bench: &Bench, wake: &mpsc::Sender<Key>) -> Result<Duration, StoreError> {
    let (store, over) = (&bench.store, bench.waits_over());
    let mut after = None;
    loop {
        let turns = store.turns_to_wake(over, after, START_PAGE).await?;
        let Some(last) = turns.last() else { break };
        after = Some(last.turn);
        for turn in turns {
            // The receiver is gone only while the server stops.
            let _ = wake.send((turn.tenant, turn.session)).await;
        }
    }
    let next = store.next_wait_over_at(over.at).await?;
    let until_next = next.map_or(LOOK_EVERY, |next| next.since(over.at));
    Ok(until_next.min(LOOK_EVERY))
}
