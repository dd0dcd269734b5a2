//! Listens to one operation until its end: starts it or attaches to it, listens, waits for a runner
//! that is gone, and stops it when the turn is cancelled. Every wait has an end.

use std::time::Duration;

use bytes::Bytes;
use shared_sandbox::{
    CancelAnswer, EndToken, Events, Operation, OperationEvent, Outcome, OutputStream, Request,
};
use shared_types::{
    CallWait, OperationId, RefusalCode, Timestamp, WaitsFor, event::Awaited, limits::LINK_LEASE,
};
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    conclusion::Conclusion,
    feeding::Feeding,
    show::{CallPlace, Show},
    site::Site,
};
use crate::{
    bounds::{AFTER_RETURN, ATTACH_AT_MOST, CATCH_UP_WITHIN},
    tools::{CommandOutput, Prepared, WholeFile},
    wait::WaitingCall,
};

/// Listens to one operation.
pub(super) struct Listener<'a> {
    site: &'a Site<'a>,
    id: OperationId,
    /// The operation to start; nothing if it is only read.
    operation: Option<Operation>,
    /// Its output, from the offset at which it is read.
    pub(super) output: CommandOutput,
    /// The file, where it reads one as a whole.
    pub(super) file: WholeFile,
    /// True if the sandbox took it.
    pub(super) attached: bool,
    runner: Option<String>,
    events: Option<Box<dyn Events>>,
    /// The right to store its end.
    token: Option<EndToken>,
    /// All of its input; empty where it takes none.
    input: Bytes,
    feeding: Option<Feeding>,
    gone: Option<Gone>,
    /// The time to wait for its end, if it may go on in the background after that.
    wait_for: Option<Duration>,
    /// From then on it may go on in the background; not known before its place has it, nor while
    /// the place is gone.
    background_from: Option<Instant>,
    /// By then its end is known, or never will be.
    latest: Instant,
    /// The time without news of its place after which the turn can be parked, if it can be.
    parks_after: Option<Duration>,
    /// The time of the last news of its place.
    news_at: Instant,
    /// Until when an earlier worker waited for its runner.
    waited_for_until: Option<Timestamp>,
    /// True if an earlier worker listened to it, and `background_from` is from then.
    listened_before: bool,
}

/// A runner that is gone.
#[derive(Debug, Clone, Copy)]
struct Gone {
    since: Timestamp,
    wait_until: Instant,
}

impl<'a> Listener<'a> {
    /// Listens to its end, or where it may go on in the background until it ran for so long in sight.
    pub(super) fn start(site: &'a Site<'a>, operation: Operation, prepared: &Prepared) -> Self {
        let wait_for = prepared.wait_for;
        let limits = &site.engine.limits;
        let (id, run_for) = (operation.id, operation.limits.run_for);
        let longest = limits.start_within + wait_for.unwrap_or(run_for);
        let output = CommandOutput::new(limits.result_bytes);
        let file = match &operation.request {
            Request::Download(download) => WholeFile::of_at_most(download.max_bytes),
            _ => WholeFile::default(),
        };
        let mut listener = Self {
            operation: Some(operation),
            file,
            wait_for,
            input: prepared.input.clone(),
            parks_after: Some(limits.parks_after),
            ..Self::of(site, id, output, longest)
        };
        listener.go_on_waiting();
        listener
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
            file: WholeFile::default(),
            attached: false,
            runner: None,
            events: None,
            token: None,
            input: Bytes::new(),
            feeding: None,
            gone: None,
            wait_for: None,
            background_from: None,
            latest: Instant::now() + longest,
            parks_after: None,
            news_at: Instant::now(),
            waited_for_until: None,
            listened_before: false,
        }
    }

    /// Goes on with the wait of an earlier worker, where that waited for this operation.
    fn go_on_waiting(&mut self) {
        let Some(waited) = self.waited() else { return };
        let for_runner = matches!(waited.waits_for, WaitsFor::Runner(_));
        self.waited_for_until = for_runner.then_some(waited.until);
        if let Some(until) = waited.listens_until {
            let now = Instant::now();
            self.background_from = Some(self.instant(until).max(now + CATCH_UP_WITHIN));
            self.listened_before = true;
        }
    }

    fn waited(&self) -> Option<&'a CallWait> {
        let waited = self.site.waited.as_ref();
        waited.filter(|waited| waited.waits_for.operation() == Some(self.id))
    }

    fn instant(&self, moment: Timestamp) -> Instant {
        Instant::now() + moment.since(self.site.engine.clock.now())
    }

    fn timestamp(&self, moment: Instant) -> Timestamp {
        let left = moment.saturating_duration_since(Instant::now());
        self.site.engine.clock.now().after(left)
    }

    /// Itself, as it is waited for without a worker.
    pub(super) fn waiting_call(&self, until: Instant, awaits: Awaited) -> WaitingCall {
        let CallPlace { step, ordinal, .. } = self.site.place;
        let wait = CallWait {
            step,
            ordinal,
            waits_for: match awaits {
                Awaited::Command => WaitsFor::Operation(self.id),
                Awaited::Runner => WaitsFor::Runner(self.id),
            },
            until: self.timestamp(until),
            listens_until: self.background_from.map(|from| self.timestamp(from)),
        };
        WaitingCall::new(wait, self.output.ends())
    }

    /// The runner's name, where it is known.
    pub(super) fn runner(&self) -> &str {
        self.runner.as_deref().unwrap_or("?")
    }

    /// The folder of the session.
    pub(super) fn directory(&self) -> &str {
        &self.site.directory
    }

    /// Its id, its events where they are open, and the right to store its end.
    pub(super) fn into_parts(self) -> (OperationId, Option<Box<dyn Events>>, Option<EndToken>) {
        (self.id, self.events, self.token)
    }

    /// Starts it, or attaches to it, and listens; stops it once the turn is cancelled. Where that
    /// was wished before, it is stopped without being started.
    pub(super) async fn run_to_its_end(&mut self) -> Conclusion {
        let cancel = &self.site.cancel;
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            conclusion = self.listen() => return conclusion,
        }
        self.stop_it().await
    }

    /// Listens for so long, and longer where its runner is away; not once the turn is cancelled: it
    /// goes on all the same.
    pub(super) async fn look(&mut self, wait_for: Duration) -> Conclusion {
        let cancel = &self.site.cancel;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Conclusion::StillRuns,
            looked = self.look_on(wait_for) => looked,
        }
    }

    async fn look_on(&mut self, wait_for: Duration) -> Conclusion {
        let began = Instant::now();
        let wait_for = match self.waited() {
            Some(waited) => (self.instant(waited.until) - began).max(CATCH_UP_WITHIN),
            None => wait_for,
        };
        let parks_after = self.site.engine.limits.parks_after;
        if wait_for.saturating_sub(parks_after) > parks_after {
            let looked = timeout(parks_after, self.listen()).await;
            return looked.unwrap_or_else(|_| Conclusion::Waits {
                until: began + wait_for,
                awaits: self.awaited(),
            });
        }
        if let Ok(looked) = timeout(wait_for, self.listen()).await {
            return looked;
        }
        let now = self.site.engine.clock.now();
        let is_away = self
            .gone_since()
            .is_some_and(|since| now.since(since) < LINK_LEASE);
        if !is_away {
            return Conclusion::StillRuns;
        }
        let until = began + self.site.engine.limits.away_at_most;
        let looked = timeout_at(until, self.listen()).await;
        looked.unwrap_or(Conclusion::StillRuns)
    }

    /// Stops it, and waits for its end as long as that may take.
    pub(super) async fn stop_it(&mut self) -> Conclusion {
        (self.wait_for, self.background_from) = (None, None);
        self.parks_after = None;
        let within = self.site.engine.limits.stop_within;
        timeout(within, self.stop())
            .await
            .unwrap_or(Conclusion::StopUnanswered)
    }

    /// The event that the call still waits for after this conclusion.
    pub(super) fn awaits(&self, conclusion: &Conclusion) -> Option<Awaited> {
        match conclusion {
            Conclusion::StillRuns => Some(self.awaited()),
            Conclusion::Parked { .. } => Some(Awaited::Runner),
            _ => None,
        }
    }

    fn awaited(&self) -> Awaited {
        match self.gone {
            Some(_) => Awaited::Runner,
            None => Awaited::Command,
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
    async fn listen(&mut self) -> Conclusion {
        for _ in 0..ATTACH_AT_MOST {
            if let Err(conclusion) = self.attach().await {
                return conclusion;
            }
            if let Some(conclusion) = self.hear_out().await {
                return conclusion;
            }
            self.events = None;
        }
        Conclusion::Silent
    }

    async fn attach(&mut self) -> Result<(), Conclusion> {
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
            .map_err(|_| Conclusion::Silent)?
            .map_err(Conclusion::Refused)?;
        self.attached = true;
        self.news_at = Instant::now();
        self.runner = Some(running.place.runner_name);
        self.events = Some(running.events);
        if !self.input.is_empty() {
            self.feeding = Some(Feeding::new(running.controls, self.input.clone()));
        }
        Ok(())
    }

    /// Listens until the end; `None` where the events break off before it.
    async fn hear_out(&mut self) -> Option<Conclusion> {
        loop {
            let (until, then) = self.patience();
            let feeding = self.feeding.as_mut().filter(|feeding| !feeding.is_done());
            let heard = next_event(self.events.as_mut()?, feeding);
            match timeout_at(until, heard).await {
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

    /// Until when it is listened to, and what has become of it if nothing comes by then. A short wait, and
    /// what is left of a longer one, is waited for here.
    fn patience(&self) -> (Instant, Conclusion) {
        let (until, then) = match (self.gone, self.background_from) {
            (Some(Gone { since, wait_until }), _) => (wait_until, Conclusion::Parked { since }),
            (None, Some(background_from)) => (background_from, Conclusion::StillRuns),
            (None, None) => return (self.latest, Conclusion::Silent),
        };
        let until = until.min(self.latest);
        if let Some(parks_after) = self.parks_after {
            let (parks_at, awaits) = (self.news_at + parks_after, self.awaited());
            if until.saturating_duration_since(parks_at) > parks_after {
                return (parks_at, Conclusion::Waits { until, awaits });
            }
        }
        (until, then)
    }

    /// From now on, or from this long on, it may go on in the background.
    fn may_go_on_after(&mut self, wait: Duration) {
        if self.wait_for.is_some() {
            let from = Instant::now() + wait;
            let later = self.background_from.map_or(from, |before| before.max(from));
            self.background_from = Some(later);
        }
    }

    fn hear(&mut self, event: OperationEvent) -> Option<Conclusion> {
        match event {
            OperationEvent::Accepted => {
                self.news_at = Instant::now();
                if !self.listened_before {
                    self.may_go_on_after(self.wait_for.unwrap_or_default());
                }
            }
            OperationEvent::Output { offset, data, .. } if self.is_download() => {
                self.file.push(offset, &data)
            }
            OperationEvent::Output {
                stream,
                offset,
                data,
            } => {
                self.output.push(stream, offset, &data);
                self.show().output(stream, offset, data);
            }
            OperationEvent::Gap { stream, from, to } => {
                self.output.skip_to(stream, to);
                self.show().gap(stream, from, to);
            }
            OperationEvent::Unreachable { since } => self.lose(since),
            OperationEvent::Reachable => {
                self.gone = None;
                self.news_at = Instant::now();
                if self.background_from.is_some() {
                    self.may_go_on_after(AFTER_RETURN);
                }
                self.show().back(self.runner());
            }
            OperationEvent::InputTaken(through) => {
                if let Some(feeding) = &mut self.feeding {
                    feeding.taken(through);
                }
            }
            OperationEvent::Ended(Outcome::Refused(refusal)) => {
                return Some(Conclusion::DidNotStart(refusal));
            }
            OperationEvent::Ended(outcome) => {
                if let Outcome::Exited(record) = &outcome {
                    // Output that was written and did not arrive is shown as missing.
                    let (stdout, stderr) = (record.stdout.offset, record.stderr.offset);
                    self.output.skip_to(OutputStream::Stdout, stdout);
                    self.output.skip_to(OutputStream::Stderr, stderr);
                }
                return Some(Conclusion::Ended(outcome));
            }
        }
        None
    }

    /// True if its output is a file, which is not shown to people while it comes.
    fn is_download(&self) -> bool {
        let request = self.operation.as_ref().map(|operation| &operation.request);
        request.is_some_and(Request::is_download)
    }

    fn lose(&mut self, since: Timestamp) {
        let wait = self.site.engine.limits.parked_at_most;
        // An earlier worker's wait continues, unless the runner was back since then.
        let waited = self.waited_for_until.take();
        let waited = waited.filter(|until| since.after(wait) <= *until);
        let wait_until = match waited {
            Some(until) => self.instant(until),
            None => Instant::now() + wait,
        };
        self.gone.get_or_insert(Gone { since, wait_until });
        self.news_at = Instant::now();
        self.show().away(self.runner(), since);
    }

    /// Asks the sandbox to stop it, and waits for its end where there will be one.
    async fn stop(&mut self) -> Conclusion {
        let sandbox = &self.site.ports.sandbox;
        match sandbox.cancel(self.id, self.site.epoch).await {
            Ok(CancelAnswer::NeverStarted) => Conclusion::NotRun,
            Ok(CancelAnswer::Recorded) => Conclusion::StopRecorded,
            Ok(CancelAnswer::AlreadyExited | CancelAnswer::Cancelled) => self.listen().await,
            Err(refusal) if refusal.code == RefusalCode::StaleEpoch => Conclusion::Refused(refusal),
            Err(_) if self.attached => self.listen().await,
            Err(refusal) if refusal.code == RefusalCode::NotFound => Conclusion::NotRun,
            Err(_) => Conclusion::StopUnanswered,
        }
    }

    fn show(&self) -> Show<'_> {
        Show {
            live: &*self.site.ports.live,
            place: self.site.place,
            operation: self.id,
        }
    }
}

/// The next event of an operation. Until it comes, the operation is fed its input.
pub(super) async fn next_event(
    events: &mut Box<dyn Events>,
    mut feeding: Option<&mut Feeding>,
) -> Option<OperationEvent> {
    loop {
        let open = feeding.as_mut().filter(|feeding| !feeding.is_done());
        let Some(open) = open else {
            return events.recv().await;
        };
        tokio::select! {
            // All of the input is on its way before the end is heard.
            biased;
            () = open.give() => {}
            event = events.recv() => return event,
        }
    }
}
