//! The hints that wake turns, and the looks without a hint: when the next wait is over, and now and then.

use std::{sync::Arc, time::Duration};

use server_records::{PortError, SessionKey};
use shared_types::Timestamp;
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

use crate::turn::{Bench, RETRY_AFTER, START_PAGE};

/// The pause between two looks without a hint.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The time after which a turn in the queue is looked at by every replica: the one that was sent it may be full. Also
/// the pause between two of these looks.
const QUEUED_FOR: Duration = Duration::from_secs(5);

/// The pause between two looks, however many hints come: many operations end in a second.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Wakes the turns whose wait is over, until `stop`.
pub(crate) async fn wake_waiting(
    bench: Arc<Bench>,
    wake: mpsc::Sender<SessionKey>,
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
pub(crate) async fn wake_queued(
    bench: Arc<Bench>,
    wake: mpsc::Sender<SessionKey>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = sleep(QUEUED_FOR) => {}
            () = stop.cancelled() => return,
        }
        // The next look finds what this one could not read.
        if let Err(error) = look_at_queued(&bench, &wake).await {
            tracing::error!(%error, "the turns that nobody has begun cannot be read; trying again");
        }
    }
}

async fn look_at_queued(bench: &Bench, wake: &mpsc::Sender<SessionKey>) -> Result<(), PortError> {
    let queued_for = i64::try_from(QUEUED_FOR.as_micros()).unwrap_or(i64::MAX);
    let now = bench.clock.now().as_micros();
    let since = Timestamp::from_micros(now.saturating_sub(queued_for));
    let mut after = None;
    loop {
        let turns = bench.turns.queued(since, after, START_PAGE).await?;
        let Some(last) = turns.last() else {
            return Ok(());
        };
        after = Some(last.turn);
        for turn in turns {
            let _ = wake.send(turn.key()).await;
        }
    }
}

/// Looks once; returns how long it need not be looked without a hint.
async fn look(bench: &Bench, wake: &mpsc::Sender<SessionKey>) -> Result<Duration, PortError> {
    let (rows, over) = (&bench.turns, bench.waits_over());
    let mut after = None;
    loop {
        let turns = rows.to_wake(over, after, START_PAGE).await?;
        let Some(last) = turns.last() else { break };
        after = Some(last.turn);
        for turn in turns {
            // The receiver is gone only while the server stops.
            let _ = wake.send(turn.key()).await;
        }
    }
    let next = rows.next_wait_over_at(over.at).await?;
    let until_next = next.map_or(LOOK_EVERY, |next| next.since(over.at));
    Ok(until_next.min(LOOK_EVERY))
}
