//! Runs a process and says how it ended.
//!
//! The process leads a group of its own. Its end comes from waiting for it by pid, never from the
//! end of its output: a grandchild may hold the pipes for ever. So after the leader's end the
//! output is drained until it is silent, what is left of the group is killed (no descendant
//! outlives its exec), and only then the record is made.

mod group;
mod pump;
mod start;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use shared_sandbox::{
    Exec, ExitCause, ExitRecord, ExitStatus, NotStarted, Outcome, OutputStream, StreamEnd,
};
use shared_types::{Clock, Refusal, RefusalCode};
use tokio::sync::{mpsc, watch};

use self::{
    group::Group,
    pump::{Phase, Pump, Pumped},
    start::{StartError, Started},
};
use crate::{HostEvent, performing::Stopping, plan, workspace::Workspace};

/// How long output may go on after the leader's end, however busy it is: then the group is killed.
const DRAIN_AT_MOST: Duration = Duration::from_secs(2);

/// What an exec needs of its host.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) kill_grace: Duration,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Runs `exec` for at most `run_for`. Its output goes to `events`; the end is what this returns.
pub(crate) async fn run(
    exec: Exec,
    place: Arc<Place>,
    run_for: Duration,
    events: mpsc::Sender<HostEvent>,
    mut stopping: Stopping,
) -> Outcome {
    if let Err(refusal) = plan::check(&exec) {
        return Outcome::Refused(refusal);
    }
    if let Some(cause) = stopping.now() {
        return not_started(stopped_before(), cause);
    }
    let began = place.clock.monotonic();
    let starting = Arc::clone(&place);
    let started = tokio::task::spawn_blocking(move || start::start(&exec, &starting)).await;
    let Started {
        mut group,
        stdout,
        stderr,
    } = match started {
        Ok(Ok(started)) => started,
        Ok(Err(StartError::NotStarted(reason))) => return not_started(reason, ExitCause::Exited),
        Ok(Err(StartError::Lost(reason))) => return lost(&reason),
        Err(error) => return lost(&error.to_string()),
    };

    let (phase, heard) = watch::channel(Phase::Flow);
    let (busy, quiet) = mpsc::channel(1);
    let stdout = Pump::new(stdout, OutputStream::Stdout, events.clone());
    let stderr = stderr.map(|pipe| Pump::new(pipe, OutputStream::Stderr, events));
    let (stdout, stderr) = (
        stdout.run(heard.clone(), busy.clone()),
        run_if_separate(stderr, heard, busy),
    );
    let control = async {
        let cause = until_end(&group, run_for, &mut stopping).await;
        if cause == ExitCause::Exited {
            phase.send_replace(Phase::Drain);
            until_quiet(quiet, &mut stopping).await;
        } else {
            group.ask_to_end(place.kill_grace).await;
        }
        let ended = group.end().await;
        phase.send_replace(Phase::Stop);
        (cause, ended)
    };
    let ((cause, ended), stdout, stderr) = tokio::join!(control, stdout, stderr);

    let wall = place.clock.monotonic().saturating_sub(began);
    let Some((status, group_gone)) = ended else {
        return lost("the host has not let it go although it was killed");
    };
    Outcome::Exited(ExitRecord {
        status,
        cause,
        stdout: stdout.end,
        stderr: stderr.end,
        wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: group_gone && stdout.closed && stderr.closed,
    })
}

/// Waits for the first reason to end.
async fn until_end(group: &Group, run_for: Duration, stopping: &mut Stopping) -> ExitCause {
    tokio::select! {
        biased;
        () = group.leader_exited() => ExitCause::Exited,
        cause = stopping.wanted() => cause,
        () = tokio::time::sleep(run_for) => ExitCause::Timeout,
    }
}

/// Waits until no pump expects more, which is when each has dropped its end of `quiet`.
async fn until_quiet(mut quiet: mpsc::Receiver<pump::Busy>, stopping: &mut Stopping) {
    tokio::select! {
        _ = quiet.recv() => {}
        _ = stopping.wanted() => {}
        () = tokio::time::sleep(DRAIN_AT_MOST) => {}
    }
}

async fn run_if_separate(
    pump: Option<Pump>,
    phase: watch::Receiver<Phase>,
    busy: mpsc::Sender<pump::Busy>,
) -> Pumped {
    match pump {
        Some(pump) => pump.run(phase, busy).await,
        None => Pumped::nothing(),
    }
}

fn stopped_before() -> NotStarted {
    NotStarted::Host("it was stopped before it started".to_owned())
}

fn not_started(reason: NotStarted, cause: ExitCause) -> Outcome {
    Outcome::Exited(ExitRecord {
        status: ExitStatus::NotStarted(reason),
        cause,
        stdout: StreamEnd::default(),
        stderr: StreamEnd::default(),
        wall_ms: 0,
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: true,
    })
}

fn lost(reason: &str) -> Outcome {
    let message = format!("what became of the command is not known: {reason}");
    Outcome::Refused(Refusal::new(RefusalCode::Lost, message))
}

#[cfg(test)]
mod tests;
