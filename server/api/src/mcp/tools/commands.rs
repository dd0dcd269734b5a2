//! Commands that are listened to, in the call that started them or later.

use server_app::{AppError, CallState, ListenedCall};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Said;
use crate::mcp::calls::{PROGRESS_EVERY, Progress};

/// Listens to an operation until its end, or as long as its call waits. Tells of its progress.
pub(super) async fn listen(
    listened: &mut ListenedCall,
    progress: &Progress<'_>,
) -> Result<CallState, AppError> {
    let mut ticks = interval_at(Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            state = listened.state() => return state,
            _ = ticks.tick() => {}
        }
        let (runner, bytes) = (listened.runner_name(), listened.output_bytes());
        let words = format!("it runs on {runner}; {bytes} bytes of output so far");
        progress.tell(&words).await;
    }
}

/// The words on a command that goes on without its caller.
pub(super) fn goes_on(listened: &ListenedCall, state: CallState) -> Said {
    let CallState::Runs {
        output,
        ends: [stdout, stderr],
        unreachable_since,
    } = state
    else {
        return Said::text(String::new());
    };
    let (id, runner) = (listened.operation(), listened.runner_name());
    let place = match unreachable_since {
        Some(since) => format!(
            "it ran when runner {runner} went offline at {since:.0}; what has become of it is known when the runner is back"
        ),
        None => format!("it still runs on runner {runner}, in the background as {id}"),
    };
    let mut text = output;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!(
        "[{place}; do not run it again: read on with read_task \
         {{\"id\":\"{id}\",\"stdout_from\":{stdout},\"stderr_from\":{stderr}}}; stop_task stops it]"
    ));
    Said::text(text)
}
