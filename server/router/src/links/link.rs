//! One link: the task that drives [`shared_link::server::Link`] by the runner's frames and by time. Other tasks do
//! their requests to a link themselves (`handle`).
//!
//! The task never waits for a reader, because mailboxes are bounded by credit. It never waits for the runner to take a
//! frame while there is one to read from it. So neither end can block the other.

use std::{
    collections::HashSet,
    pin::{Pin, pin},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::StreamExt as _;
use proto::v1::{self, server_frame};
use shared_link::server::{self, LinkOver, LinkTimes, Linked, TurnedAway};
use shared_types::{Generation, OperationId, Timestamp, backoff::aged_at};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, Sleep, sleep_until, timeout},
};
use tokio_util::sync::WaitForCancellationFuture;

use super::{
    Inbound, LinkEnd, LinkIdentity, LinkServices, Links,
    handle::{LinkGone, LinkHandle, Open, Outbound},
    registry,
    reports::{Reporting, Reports},
    shown::ReportedMemory,
};
use crate::bounds::{ACCEPTED_STORED_WITHIN, RECONNECT_MS_PER_LINK, RECONNECT_MS_WHEN_AGED};
use server_records::Heard;
use shared_link::server::HelloFacts;

/// Serves a link until it ends; see [`Links::attach`].
pub(super) async fn serve(
    links: Links,
    who: LinkIdentity,
    hello: v1::Hello,
    inbound: Inbound,
    outbound: Outbound,
) -> LinkEnd {
    let who = Arc::new(who);
    // Held until the link has ended: a revocation from now on is remembered for as long, and the claim finds an earlier
    // one in the store.
    let _gate = links.gate(who.runner).await;
    let serving = Arc::clone(&links.serving);
    serving.links.fetch_add(1, Ordering::Relaxed);
    let (end, claimed) = match claim(&links, &who, hello).await {
        Ok((facts, generation)) => {
            tracing::Span::current().record("link.generation", generation.0);
            let link = LinkTask::new(&links, &who, generation, &facts, &outbound);
            let shown = Arc::clone(&link.shown);
            let end = link.serve(&links, &facts, inbound, &outbound).await;
            (end, Some((generation, shown)))
        }
        Err(end) => (end, None),
    };
    let served = match end {
        // All links end now, and each runner gets the number of all.
        LinkEnd::Shutdown => serving.links.load(Ordering::Relaxed),
        _ => serving.links.fetch_sub(1, Ordering::Relaxed),
    };
    if let Some(kind) = last_word(&end, served) {
        let last = outbound.send(Box::new(kind.into()));
        // A runner that does not take it will see the stream end.
        let _ = timeout(links.options().goodbye_within, last).await;
    }
    drop(outbound);
    if let Some((generation, shown)) = claimed {
        let accepted = shown.accepted();
        links.serving.figures.forget(who.runner, generation);
        links.serving.rows.ended(&who, generation, accepted).await;
    }
    tracing::info!(link.end = ?end, "the link ended");
    end
}

async fn claim(
    links: &Links,
    who: &LinkIdentity,
    hello: v1::Hello,
) -> Result<(HelloFacts, Generation), LinkEnd> {
    let serving = &links.serving;
    let facts = server::facts(who.runner, hello)
        .map_err(|malformed| LinkEnd::Violation(malformed.to_string()))?;
    let seen = serving.rows.seen(who).await;
    let seen =
        seen.map_err(|error| LinkEnd::Failed(format!("failed to read the runner: {error}")))?;
    // An earlier link may have heard facts that are not stored yet.
    let heard = links.registry.seen(who.runner).await;
    let mut all_seen = seen.iter().chain(&heard);
    if all_seen.any(|seen| facts.went_back(seen)) {
        return Err(LinkEnd::WentBack);
    }
    let generation = serving.rows.claim(who, &facts).await;
    let generation = generation
        .map_err(|error| LinkEnd::Failed(format!("failed to claim the link: {error}")))?;
    Ok((facts, generation))
}

/// The last frame to the runner. `served` is the number of links, this one included.
fn last_word(end: &LinkEnd, served: u32) -> Option<server_frame::Kind> {
    let reason = match end {
        LinkEnd::Closed | LinkEnd::Goodbye(_) | LinkEnd::Left(_) => return None,
        LinkEnd::WentBack => {
            return Some(server_frame::Kind::NewJournal(v1::NewJournal::default()));
        }
        LinkEnd::Silent => "nothing was heard for too long".to_owned(),
        LinkEnd::Replaced => "a newer link of this runner is there".to_owned(),
        LinkEnd::Revoked => "the runner was revoked".to_owned(),
        LinkEnd::Locked => "the runner is locked, because its folder was copied".to_owned(),
        LinkEnd::Shutdown => "the server stops".to_owned(),
        LinkEnd::Drained => "the server drains; link to another one".to_owned(),
        LinkEnd::Rotated => "the server has another link key; sign in again".to_owned(),
        LinkEnd::Aged => "the link has reached its greatest age; link again".to_owned(),
        LinkEnd::Violation(reason) => reason.clone(),
        LinkEnd::Failed(_) => "the server cannot serve the link now; try again later".to_owned(),
    };
    Some(server_frame::Kind::Goodbye(v1::Goodbye {
        reason,
        for_good: false,
        reconnect_within_ms: match end {
            LinkEnd::Shutdown | LinkEnd::Drained | LinkEnd::Rotated => {
                served.saturating_mul(RECONNECT_MS_PER_LINK)
            }
            LinkEnd::Aged => RECONNECT_MS_WHEN_AGED,
            _ => 0,
        },
        aged: matches!(end, LinkEnd::Aged),
    }))
}

/// One link's task.
struct LinkTask {
    serving: Arc<LinkServices>,
    registry: registry::Handle,
    who: Arc<LinkIdentity>,
    /// The link itself, which is closed with this.
    link: LinkHandle,
    began: Instant,
    /// The time when it reaches its greatest age.
    aged_at: Option<Instant>,
    heard_at: Timestamp,
    /// The runner's memory as this link shows it.
    shown: Arc<ReportedMemory>,
    /// The states of the sandboxes of its pool, and its models, to be stored.
    reports: Arc<Reports>,
    /// The time when the last-heard time is stored and the store is asked if the link still holds.
    store_heard_at: Instant,
    storing_heard: Option<JoinHandle<()>>,
}

/// The signals that end a link from outside, and the alarm that wakes it in time.
struct Waits<'a, 's> {
    stop: oneshot::Receiver<LinkEnd>,
    shutdown: Pin<&'a mut WaitForCancellationFuture<'s>>,
    alarm: Pin<&'a mut Sleep>,
}

/// An event of a link.
enum LinkEvent<'a> {
    Stopped(LinkEnd),
    Frame(Option<v1::RunnerFrame>),
    Writable(Option<mpsc::Permit<'a, Box<v1::ServerFrame>>>),
    Time,
}

impl Reporting {
    fn of(link: &LinkTask) -> Self {
        Self {
            reports: Arc::clone(&link.reports),
            serving: Arc::clone(&link.serving),
            who: Arc::clone(&link.who),
            link: link.link.clone(),
        }
    }
}

impl LinkTask {
    fn new(
        links: &Links,
        who: &Arc<LinkIdentity>,
        generation: Generation,
        facts: &HelloFacts,
        outbound: &Outbound,
    ) -> Self {
        let began = Instant::now();
        let (serving, registry) = (Arc::clone(&links.serving), links.registry.clone());
        let options = &serving.options;
        let aged_at = options.age_at_most.map(|age| {
            let mut random = [0; 8];
            serving.entropy.fill(&mut random);
            began + aged_at(age, u64::from_be_bytes(random))
        });
        let times = LinkTimes {
            heartbeat_every: options.heartbeat_every,
            silence: options.silence,
            lease: options.lease,
        };
        let linked = Linked {
            generation,
            incarnation: facts.incarnation.clone(),
        };
        let machine = server::Link::new(facts, generation, times, Duration::ZERO);
        Self {
            who: Arc::clone(who),
            link: LinkHandle::open(linked, machine, outbound.clone()),
            began,
            aged_at,
            heard_at: serving.clock.now(),
            shown: Arc::new(ReportedMemory::of(facts)),
            store_heard_at: began + options.heard_every,
            storing_heard: None,
            reports: Arc::default(),
            serving,
            registry,
        }
    }

    /// Registers the link, runs it, and leaves nothing of it behind.
    async fn serve(
        mut self,
        links: &Links,
        facts: &HelloFacts,
        inbound: Inbound,
        outbound: &Outbound,
    ) -> LinkEnd {
        let (runner, generation) = (self.who.runner, self.link.generation());
        let shown = Arc::clone(&self.shown);
        let stop = match links.registry.register(runner, generation, shown).await {
            Ok(stop) => stop,
            Err(turned_away) => return turned_away.into(),
        };
        let end = self.run(links, facts, inbound, outbound, stop).await;
        // Readers learn from their mailboxes that the link is gone, and then since when.
        self.link.close();
        let since = self.heard_at;
        links.unregister(runner, generation, since).await;
        if let Some(storing) = &self.storing_heard {
            storing.abort();
        }
        end
    }

    async fn run(
        &mut self,
        links: &Links,
        facts: &HelloFacts,
        mut inbound: Inbound,
        outbound: &Outbound,
        stop: oneshot::Receiver<LinkEnd>,
    ) -> LinkEnd {
        let found = match self.judge(facts).await {
            Ok(found) => found,
            Err(end) => return end,
        };
        let handle = self.link.clone();
        links.registry.ready(self.who.runner, handle).await;
        tracing::info!(runner.hostname = %facts.hostname, "the runner is linked");
        let has_ended = facts.inventory.iter().filter(|entry| entry.ended);
        let has_ended: HashSet<_> = has_ended.map(|entry| entry.operation).collect();
        let (ended, running) = found.into_iter().partition(|id| has_ended.contains(id));
        let ports = links.ports(self.serving.rows.operations(&self.who));
        let collecting = links.collectors.attach_all(ports, ended, running);
        let reporting = tokio::spawn(Reporting::of(self).run());
        let serving = Arc::clone(&self.serving);
        let mut waits = Waits {
            stop,
            shutdown: pin!(serving.shutdown.cancelled()),
            alarm: pin!(sleep_until(self.began)),
        };
        let end = loop {
            let event = self.next_event(&mut inbound, outbound, &mut waits).await;
            if let Err(end) = event.and_then(|event| self.handle(event)) {
                break end;
            }
        };
        collecting.abort();
        reporting.abort();
        end
    }

    /// Settles operations that the inventory lacks and that no server will send any more. Then gets the verdicts on
    /// those that it lists, and returns the operations to collect.
    async fn judge(&mut self, facts: &HelloFacts) -> Result<Vec<OperationId>, LinkEnd> {
        let (rows, link) = (&self.serving.rows, self.link.generation());
        let settled = rows.settle_unheard(&self.who, link, facts).await;
        settled.map_err(|error| {
            LinkEnd::Failed(format!(
                "failed to settle operations that it never had: {error}"
            ))
        })?;
        if facts.inventory.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = facts
            .inventory
            .iter()
            .map(|entry| entry.operation)
            .collect();
        let verdicts = rows.verdicts(&self.who, &ids).await;
        let verdicts = verdicts
            .map_err(|error| LinkEnd::Failed(format!("failed to judge the inventory: {error}")))?;
        Ok(self.link.with(|open| open.machine.judge(verdicts))?)
    }

    async fn next_event<'a>(
        &self,
        inbound: &mut Inbound,
        outbound: &'a Outbound,
        waits: &mut Waits<'_, '_>,
    ) -> Result<LinkEvent<'a>, LinkEnd> {
        let now = |open: &mut Open| (open.machine.has_frames(), open.machine.wake_at());
        let (has_frames, wake_at) = self.link.with(now)?;
        let wake_at = (self.began + wake_at).min(self.store_heard_at);
        let wake_at = self.aged_at.map_or(wake_at, |aged_at| wake_at.min(aged_at));
        if waits.alarm.deadline() != wake_at {
            waits.alarm.as_mut().reset(wake_at);
        }
        Ok(tokio::select! {
            stopped = &mut waits.stop => LinkEvent::Stopped(stopped.unwrap_or(LinkEnd::Replaced)),
            () = waits.shutdown.as_mut() => LinkEvent::Stopped(LinkEnd::Shutdown),
            () = waits.alarm.as_mut() => LinkEvent::Time,
            frame = inbound.next() => LinkEvent::Frame(frame),
            permit = outbound.reserve(), if has_frames => LinkEvent::Writable(permit.ok()),
        })
    }

    fn handle(&mut self, event: LinkEvent<'_>) -> Result<(), LinkEnd> {
        match event {
            LinkEvent::Stopped(end) => return Err(end),
            LinkEvent::Frame(None) | LinkEvent::Writable(None) => return Err(LinkEnd::Closed),
            LinkEvent::Frame(Some(frame)) => {
                self.heard_at = self.serving.clock.now();
                let now = self.began.elapsed();
                let accepted = self.link.with(|open| {
                    let heard = open.frame(frame, now);
                    heard.map(|()| open.machine.accepted_sequence())
                })??;
                self.accepted(accepted);
                let (reports, figures, models) = self.link.with(|open| {
                    let machine = &mut open.machine;
                    let (reports, figures) = (machine.take_reports(), machine.take_figures());
                    (reports, figures, machine.take_models())
                })?;
                self.reports.add(reports);
                self.reports.add_models(models);
                if let Some(figures) = figures {
                    let (runner, link) = (self.who.runner, self.link.generation());
                    self.serving.figures.report(runner, link, figures);
                }
            }
            LinkEvent::Writable(Some(permit)) => {
                // Another task may have sent it in place of its own.
                self.link
                    .with(|open| open.send_next(|frame| permit.send(frame)))?;
            }
            LinkEvent::Time => {
                if self.aged_at.is_some_and(|at| at <= Instant::now()) {
                    return Err(LinkEnd::Aged);
                }
                let mut random = [0];
                self.serving.entropy.fill(&mut random);
                let now = self.began.elapsed();
                self.link.with(|open| open.machine.tick(now, random[0]))??;
                self.store_heard();
            }
        }
        Ok(())
    }

    /// Has the number of operations that the runner has accepted stored soon.
    fn accepted(&mut self, accepted: u64) {
        if accepted > self.shown.accepted() {
            self.shown.raise(accepted);
            let soon = Instant::now() + ACCEPTED_STORED_WITHIN;
            self.store_heard_at = self.store_heard_at.min(soon);
        }
    }

    /// Stores the last-heard time and the number of accepted operations when it is time for that. Ends a link that the
    /// store knows to be over: another replica may have heard of the end, and this one may not.
    fn store_heard(&mut self) {
        let now = Instant::now();
        if now < self.store_heard_at {
            return;
        }
        let stored = self.storing_heard.as_ref();
        if stored.is_some_and(|task| !task.is_finished()) {
            self.store_heard_at = now + ACCEPTED_STORED_WITHIN;
            return;
        }
        self.store_heard_at = now + self.serving.options.heard_every;
        let heard = Heard {
            generation: self.link.generation(),
            at: self.heard_at,
            accepted: self.shown.accepted(),
        };
        let (serving, registry) = (Arc::clone(&self.serving), self.registry.clone());
        let who = Arc::clone(&self.who);
        // Beside the link, so that a slow store never delays a frame; at most one at a time.
        self.storing_heard = Some(tokio::spawn(async move {
            if let Some(why) = serving.rows.heard(&who, heard).await {
                registry
                    .turned_away(who.runner, heard.generation, why)
                    .await;
            }
        }));
    }
}

impl Drop for LinkTask {
    /// Closes the link also if the task panics or is aborted.
    fn drop(&mut self) {
        self.link.close();
    }
}

impl From<LinkGone> for LinkEnd {
    /// Only its task closes a link.
    fn from(LinkGone: LinkGone) -> Self {
        Self::Closed
    }
}

impl From<LinkOver> for LinkEnd {
    fn from(over: LinkOver) -> Self {
        match over {
            LinkOver::Goodbye(reason) => Self::Goodbye(reason),
            LinkOver::Left(reason) => Self::Left(reason),
            LinkOver::Silent => Self::Silent,
            LinkOver::Violation(reason) => {
                tracing::warn!(reason, "the runner broke the protocol");
                Self::Violation(reason)
            }
        }
    }
}

impl From<TurnedAway> for LinkEnd {
    fn from(why: TurnedAway) -> Self {
        match why {
            TurnedAway::Older => Self::Replaced,
            TurnedAway::Revoked => Self::Revoked,
            TurnedAway::Locked => Self::Locked,
        }
    }
}
