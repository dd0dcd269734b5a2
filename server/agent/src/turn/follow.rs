//! Follows one operation to its end: starts it or attaches to it, listens, waits for a runner
//! that is gone, and stops it when the turn is cancelled. Every wait has an end.

use std::time::Duration;

use shared_sandbox::{
    CancelAnswer, EndToken, Events, Operation, OperationEvent, Outcome, OutputStream,
};
use shared_types::{
    OperationId, Refusal, RefusalCode, Timestamp, event::Awaited, limits::LINK_LEASE,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::call::{CallPlace, Site};
use crate::{
    bounds::{AFTER_RETURN, ATTACH_AT_MOST},
    session::Live,
    tools::CommandOutput,
};

/// What became of an operation.
#[derive(Debug)]
pub(super) enum Followed {
    /// It ended; not by a refusal.
    Ended(Outcome),
    /// The sandbox took it, and it did not start or is lost.
    DidNotStart(Refusal),
    /// It runs, and its end is not waited for any longer.
    StillRuns,
    /// The sandbox did not take it.
    Refused(Refusal),
    /// The runner was gone for too long.
    Parked { since: Timestamp },
    /// Nothing was heard of it in time.
    Silent,
    /// It was cancelled before it started.
    NotRun,
    /// It is stopped when the runner is back.
    StopRecorded,
    /// It was to be stopped, and nothing was heard of it in time.
    StopUnanswered,
}

impl Followed {
    /// The reason for which it was refused.
    pub(super) fn refusal(&self) -> Option<RefusalCode> {
        match self {
            Self::Refused(refusal) | Self::DidNotStart(refusal) => Some(refusal.code),
            _ => None,
        }
    }

    /// Its end, where that is known.
    pub(super) fn into_outcome(self) -> Option<Outcome> {
        match self {
            Self::Ended(outcome) => Some(outcome),
            Self::DidNotStart(refusal) => Some(Outcome::Refused(refusal)),
            _ => None,
        }
    }
}

/// An operation that is being followed.
pub(super) struct Follow<'a> {
    site: &'a Site<'a>,
    id: OperationId,
    /// What is asked; nothing where it is only read.
    operation: Option<Operation>,
    /// What it wrote, from where it is read.
    pub(super) output: CommandOutput,
    /// Whether the sandbox took it.
    pub(super) attached: bool,
    runner: Option<String>,
    events: Option<Box<dyn Events>>,
    /// The right to store its end.
    token: Option<EndToken>,
    gone: Option<Gone>,
    /// How long its end is waited for, where it may go on without that.
    wait_for: Option<Duration>,
    /// From then on it may go on in the background; not known before its place has it, nor while
    /// the place is gone.
    background_from: Option<Instant>,
    /// By then its end is known, or never will be.
    latest: Instant,
}

/// A runner that is gone.
#[derive(Debug, Clone, Copy)]
struct Gone {
    since: Timestamp,
    wait_until: Instant,
}

impl<'a> Follow<'a> {
    /// Follows it to its end, or where `wait_for` is given until it ran for so long in sight.
    pub(super) fn start(
        site: &'a Site<'a>,
        operation: Operation,
        wait_for: Option<Duration>,
    ) -> Self {
        let limits = &site.engine.limits;
        let (id, run_for) = (operation.id, operation.limits.run_for);
        let longest = limits.start_within + wait_for.unwrap_or(run_for);
        let output = CommandOutput::new(limits.result_bytes);
        Self {
            operation: Some(operation),
            wait_for,
            ..Self::of(site, id, output, longest)
        }
    }

    /// Reads what went on in the background before, from these offsets on, for `longest` at most.
    pub(super) fn read(
        site: &'a Site<'a>,
        id: OperationId,
        from: [u64; 2],
        longest: Duration,
    ) -> Self {
        let output = CommandOutput::starting_at(site.engine.limits.result_bytes, from);
        Self::of(site, id, output, longest)
    }

    fn of(site: &'a Site<'a>, id: OperationId, output: CommandOutput, longest: Duration) -> Self {
        let limits = &site.engine.limits;
        let longest = longest + limits.stop_within + limits.parked_at_most;
        Self {
            site,
            id,
            operation: None,
            output,
            attached: false,
            runner: None,
            events: None,
            token: None,
            gone: None,
            wait_for: None,
            background_from: None,
            latest: Instant::now() + longest,
        }
    }

    /// The runner's name, where it is known.
    pub(super) fn runner(&self) -> &str {
        self.runner.as_deref().unwrap_or("?")
    }

    /// Its id, its events where they are open, and the right to store its end.
    pub(super) fn into_parts(self) -> (OperationId, Option<Box<dyn Events>>, Option<EndToken>) {
        (self.id, self.events, self.token)
    }

    /// Starts it, or attaches to it, and listens; stops it once the turn is cancelled. Where that
    /// was wished before, it is stopped without being started.
    pub(super) async fn run_to_its_end(&mut self) -> Followed {
        let cancel = &self.site.cancel;
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            followed = self.listen() => return followed,
        }
        self.stop_it().await
    }

    /// Listens for so long, and longer where its runner is away; not once the turn is cancelled: it
    /// goes on all the same.
    pub(super) async fn look(&mut self, wait_for: Duration) -> Followed {
        let cancel = &self.site.cancel;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Followed::StillRuns,
            looked = self.look_on(wait_for) => looked,
        }
    }

    async fn look_on(&mut self, wait_for: Duration) -> Followed {
        let began = Instant::now();
        if let Ok(looked) = timeout(wait_for, self.listen()).await {
            return looked;
        }
        let now = self.site.engine.clock.now();
        let is_away = self
            .gone_since()
            .is_some_and(|since| now.since(since) < LINK_LEASE);
        if !is_away {
            return Followed::StillRuns;
        }
        let until = began + self.site.engine.limits.away_at_most;
        let looked = timeout_at(until, self.listen()).await;
        looked.unwrap_or(Followed::StillRuns)
    }

    /// Stops it, and waits for its end as long as that may take.
    pub(super) async fn stop_it(&mut self) -> Followed {
        (self.wait_for, self.background_from) = (None, None);
        let within = self.site.engine.limits.stop_within;
        timeout(within, self.stop())
            .await
            .unwrap_or(Followed::StopUnanswered)
    }

    /// What is still waited for where it became this.
    pub(super) fn awaits(&self, followed: &Followed) -> Option<Awaited> {
        match followed {
            Followed::StillRuns if self.gone.is_none() => Some(Awaited::Command),
            Followed::StillRuns | Followed::Parked { .. } => Some(Awaited::Runner),
            _ => None,
        }
    }

    /// Takes note of how much it wrote, also of what is not read.
    pub(super) fn note_came(&mut self) {
        if let Some(events) = &self.events {
            self.output.note_came(events.came());
        }
    }

    /// Since when its runner is gone.
    pub(super) fn gone_since(&self) -> Option<Timestamp> {
        self.gone.map(|gone| gone.since)
    }

    /// Dropping this between two events loses nothing: listening again goes on.
    async fn listen(&mut self) -> Followed {
        for _ in 0..ATTACH_AT_MOST {
            if let Err(followed) = self.attach().await {
                return followed;
            }
            if let Some(followed) = self.hear_out().await {
                return followed;
            }
            self.events = None;
        }
        Followed::Silent
    }

    async fn attach(&mut self) -> Result<(), Followed> {
        if self.events.is_some() {
            return Ok(());
        }
        let sandbox = &self.site.ports.sandbox;
        let attach = match &self.operation {
            Some(operation) => sandbox.start(operation.clone()),
            None => sandbox.read(self.id, self.output.ends()),
        };
        let attached = timeout_at(self.latest, attach).await;
        let running = attached
            .map_err(|_| Followed::Silent)?
            .map_err(Followed::Refused)?;
        self.attached = true;
        self.runner = Some(running.place.runner_name);
        self.events = Some(running.events);
        Ok(())
    }

    /// Listens until the end; `None` where the events break off before it.
    async fn hear_out(&mut self) -> Option<Followed> {
        loop {
            let (until, then) = self.patience();
            match timeout_at(until, self.events.as_mut()?.recv()).await {
                Err(_) => return Some(then),
                Ok(event) => {
                    if let Some(ended) = self.hear(event?) {
                        self.token = self.events.as_mut()?.end_token();
                        return Some(ended);
                    }
                }
            }
        }
    }

    /// Until when it is listened to, and what has become of it if nothing comes by then.
    fn patience(&self) -> (Instant, Followed) {
        let (until, then) = match (self.gone, self.background_from) {
            (Some(Gone { since, wait_until }), _) => (wait_until, Followed::Parked { since }),
            (None, Some(background_from)) => (background_from, Followed::StillRuns),
            (None, None) => (self.latest, Followed::Silent),
        };
        (until.min(self.latest), then)
    }

    /// From now on, or from this long on, it may go on in the background.
    fn may_go_on_after(&mut self, wait: Duration) {
        if self.wait_for.is_some() {
            let from = Instant::now() + wait;
            let later = self.background_from.map_or(from, |before| before.max(from));
            self.background_from = Some(later);
        }
    }

    fn hear(&mut self, event: OperationEvent) -> Option<Followed> {
        match event {
            OperationEvent::Accepted => {
                self.may_go_on_after(self.wait_for.unwrap_or_default());
            }
            OperationEvent::Output {
                stream,
                offset,
                data,
            } => {
                self.output.push(stream, offset, &data);
                self.publish_output(stream, offset, data);
            }
            OperationEvent::Gap { stream, from, to } => {
                self.output.skip_to(stream, to);
                self.publish_gap(stream, from, to);
            }
            OperationEvent::Unreachable { since } => self.lose(since),
            OperationEvent::Reachable => {
                self.gone = None;
                if self.background_from.is_some() {
                    self.may_go_on_after(AFTER_RETURN);
                }
                self.notice(format!("runner {} is back", self.runner()));
            }
            // No tool gives input.
            OperationEvent::InputTaken(_) => {}
            OperationEvent::Ended(Outcome::Refused(refusal)) => {
                return Some(Followed::DidNotStart(refusal));
            }
            OperationEvent::Ended(outcome) => {
                if let Outcome::Exited(record) = &outcome {
                    // What was written and did not arrive is said to be missing.
                    let (stdout, stderr) = (record.stdout.offset, record.stderr.offset);
                    self.output.skip_to(OutputStream::Stdout, stdout);
                    self.output.skip_to(OutputStream::Stderr, stderr);
                }
                return Some(Followed::Ended(outcome));
            }
        }
        None
    }

    fn lose(&mut self, since: Timestamp) {
        let wait = self.site.engine.limits.parked_at_most;
        self.gone.get_or_insert(Gone {
            since,
            wait_until: Instant::now() + wait,
        });
        self.notice(format!(
            "runner {} offline since {since:.0}; waiting",
            self.runner()
        ));
    }

    /// Asks the sandbox to stop it, and waits for its end where there will be one.
    async fn stop(&mut self) -> Followed {
        let sandbox = &self.site.ports.sandbox;
        match sandbox.cancel(self.id, self.site.epoch).await {
            Ok(CancelAnswer::NeverStarted) => Followed::NotRun,
            Ok(CancelAnswer::Recorded) => Followed::StopRecorded,
            Ok(CancelAnswer::AlreadyExited | CancelAnswer::Cancelled) => self.listen().await,
            Err(refusal) if refusal.code == RefusalCode::StaleEpoch => Followed::Refused(refusal),
            Err(_) if self.attached => self.listen().await,
            Err(refusal) if refusal.code == RefusalCode::NotFound => Followed::NotRun,
            Err(_) => Followed::StopUnanswered,
        }
    }

    fn publish_output(&self, stream: OutputStream, offset: u64, data: bytes::Bytes) {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = self.site.place;
        self.site.ports.live.publish(Live::Output {
            turn,
            step,
            ordinal,
            operation: self.id,
            stream,
            offset,
            data,
        });
    }

    fn publish_gap(&self, stream: OutputStream, from: u64, to: u64) {
        let CallPlace {
            turn,
            step,
            ordinal,
        } = self.site.place;
        self.site.ports.live.publish(Live::Gap {
            turn,
            step,
            ordinal,
            operation: self.id,
            stream,
            from,
            to,
        });
    }

    fn notice(&self, text: String) {
        let turn = self.site.place.turn;
        self.site.ports.live.publish(Live::Notice { turn, text });
    }
}
