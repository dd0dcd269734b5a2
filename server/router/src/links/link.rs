//! One link: the task that drives [`shared_link::server::Link`] by what the runner says and by time;
//! what others want of it they do themselves (`handle`).
//!
//! The task never waits for a reader (mailboxes are bounded by credit) and never waits for the
//! runner to take a frame while there is one to read from it, so neither end can block the other.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt as _;
use proto::v1::{self, server_frame};
use shared_link::server::{self, Linked, Over, Times, TurnedAway, Unsettled};
use shared_types::{Generation, Timestamp};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, Sleep, sleep_until, timeout},
};
use tokio_util::sync::WaitForCancellationFuture;

use super::{
    Inbound, LinkEnd, LinkIdentity, Links, Serving,
    handle::{Gone, LinkHandle, Open, Outbound},
    settler,
};
use crate::ports::HelloFacts;

/// Serves a link until it ends; see [`Links::attach`].
pub(super) async fn serve(
    links: Links,
    who: LinkIdentity,
    hello: v1::Hello,
    inbound: Inbound,
    outbound: Outbound,
) -> LinkEnd {
    let who = Arc::new(who);
    let (end, claimed) = match claim(&links.serving, &who, hello).await {
        Ok((facts, generation)) => {
            tracing::Span::current().record("link.generation", generation.0);
            let link = Link::new(
                Arc::clone(&links.serving),
                &who,
                generation,
                &facts,
                &outbound,
            );
            let end = link.serve(&links, &facts, inbound, &outbound).await;
            (end, Some(generation))
        }
        Err(end) => (end, None),
    };
    if let Some(kind) = last_word(&end) {
        let last = outbound.send(Box::new(kind.into()));
        // A runner that does not take it will see the stream end.
        let _ = timeout(links.options().goodbye_within, last).await;
    }
    drop(outbound);
    if let Some(generation) = claimed {
        links.serving.rows.ended(&who, generation).await;
    }
    tracing::info!(link.end = ?end, "the link ended");
    end
}

async fn claim(
    serving: &Serving,
    who: &LinkIdentity,
    hello: v1::Hello,
) -> Result<(HelloFacts, Generation), LinkEnd> {
    let facts = server::facts(who.runner, hello)
        .map_err(|malformed| LinkEnd::Violation(malformed.to_string()))?;
    let seen = serving.rows.seen(who).await;
    let seen =
        seen.map_err(|error| LinkEnd::Failed(format!("failed to read the runner: {error}")))?;
    if seen.is_some_and(|seen| facts.went_back(&seen)) {
        return Err(LinkEnd::WentBack);
    }
    let generation = serving.rows.claim(who, &facts).await;
    let generation = generation
        .map_err(|error| LinkEnd::Failed(format!("failed to claim the link: {error}")))?;
    Ok((facts, generation))
}

fn last_word(end: &LinkEnd) -> Option<server_frame::Kind> {
    let reason = match end {
        LinkEnd::Closed | LinkEnd::Goodbye(_) | LinkEnd::Left(_) => return None,
        LinkEnd::WentBack => {
            return Some(server_frame::Kind::NewJournal(v1::NewJournal::default()));
        }
        LinkEnd::Silent => "nothing was heard for too long".to_owned(),
        LinkEnd::Replaced => "a newer link of this runner is there".to_owned(),
        LinkEnd::Revoked => "the runner was revoked".to_owned(),
        LinkEnd::Shutdown => "the server stops".to_owned(),
        LinkEnd::Violation(reason) => reason.clone(),
        LinkEnd::Failed(_) => "the server cannot serve the link now; try again later".to_owned(),
    };
    Some(server_frame::Kind::Goodbye(v1::Goodbye {
        reason,
        for_good: false,
    }))
}

/// One link's task.
struct Link {
    serving: Arc<Serving>,
    who: Arc<LinkIdentity>,
    /// The link itself, which is closed with this.
    link: LinkHandle,
    began: Instant,
    heard_at: Timestamp,
    /// Not stored again before then.
    store_heard_at: Instant,
    storing_heard: Option<JoinHandle<()>>,
}

/// What ends a link from outside, and what wakes it in time.
struct Waits<'a, 's> {
    stop: oneshot::Receiver<TurnedAway>,
    shutdown: Pin<&'a mut WaitForCancellationFuture<'s>>,
    alarm: Pin<&'a mut Sleep>,
}

/// What can happen to a link.
enum Event<'a> {
    Stopped(LinkEnd),
    Frame(Option<v1::RunnerFrame>),
    Writable(Option<mpsc::Permit<'a, Box<v1::ServerFrame>>>),
    Time,
}

impl Link {
    fn new(
        serving: Arc<Serving>,
        who: &Arc<LinkIdentity>,
        generation: Generation,
        facts: &HelloFacts,
        outbound: &Outbound,
    ) -> Self {
        let began = Instant::now();
        let options = &serving.options;
        let times = Times {
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
            heard_at: serving.clock.now(),
            store_heard_at: began + options.heard_every,
            storing_heard: None,
            serving,
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
        let stop = match links.registry.register(runner, generation).await {
            Ok(stop) => stop,
            Err(turned_away) => return turned_away.into(),
        };
        let end = self.run(links, facts, inbound, outbound, stop).await;
        // Readers learn that the link is gone from their mailboxes, then since when.
        self.link.close();
        let since = self.heard_at;
        links.registry.unregister(runner, generation, since).await;
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
        stop: oneshot::Receiver<TurnedAway>,
    ) -> LinkEnd {
        let unsettled = match self.judge(facts).await {
            Ok(unsettled) => unsettled,
            Err(end) => return end,
        };
        let handle = self.link.clone();
        links.registry.ready(self.who.runner, handle.clone()).await;
        tracing::info!(runner.hostname = %facts.hostname, "the runner is linked");
        let settler = settler::Settler {
            rows: Arc::clone(&self.serving.rows),
            who: Arc::clone(&self.who),
            link: handle,
        };
        let settling = settler.start(unsettled);
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
        settling.abort();
        end
    }

    /// Asks what is to become of the runner's inventory; returns what is to be attached to only
    /// for its outcome.
    async fn judge(&mut self, facts: &HelloFacts) -> Result<Vec<Unsettled>, LinkEnd> {
        if facts.inventory.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = facts
            .inventory
            .iter()
            .map(|entry| entry.operation)
            .collect();
        let verdicts = self.serving.rows.verdicts(&self.who, &ids).await;
        let verdicts = verdicts
            .map_err(|error| LinkEnd::Failed(format!("failed to judge the inventory: {error}")))?;
        Ok(self.link.with(|open| open.machine.judge(verdicts))?)
    }

    async fn next_event<'a>(
        &self,
        inbound: &mut Inbound,
        outbound: &'a Outbound,
        waits: &mut Waits<'_, '_>,
    ) -> Result<Event<'a>, LinkEnd> {
        let now = |open: &mut Open| (open.machine.has_frames(), open.machine.wake_at());
        let (has_frames, wake_at) = self.link.with(now)?;
        let wake_at = self.began + wake_at;
        if waits.alarm.deadline() != wake_at {
            waits.alarm.as_mut().reset(wake_at);
        }
        Ok(tokio::select! {
            stopped = &mut waits.stop => Event::Stopped(stopped.unwrap_or(TurnedAway::Older).into()),
            () = waits.shutdown.as_mut() => Event::Stopped(LinkEnd::Shutdown),
            () = waits.alarm.as_mut() => Event::Time,
            frame = inbound.next() => Event::Frame(frame),
            permit = outbound.reserve(), if has_frames => Event::Writable(permit.ok()),
        })
    }

    fn handle(&mut self, event: Event<'_>) -> Result<(), LinkEnd> {
        match event {
            Event::Stopped(end) => return Err(end),
            Event::Frame(None) | Event::Writable(None) => return Err(LinkEnd::Closed),
            Event::Frame(Some(frame)) => {
                self.heard();
                let now = self.began.elapsed();
                self.link.with(|open| open.frame(frame, now))??;
            }
            Event::Writable(Some(permit)) => {
                // Somebody else may have sent it with a frame of his own.
                if let Some(frame) = self.link.with(|open| open.machine.next_frame())? {
                    permit.send(Box::new(frame));
                }
            }
            Event::Time => {
                let mut random = [0];
                self.serving.entropy.fill(&mut random);
                let now = self.began.elapsed();
                self.link.with(|open| open.machine.tick(now, random[0]))??;
            }
        }
        Ok(())
    }

    /// A frame came: now and then that is stored.
    fn heard(&mut self) {
        let now = Instant::now();
        self.heard_at = self.serving.clock.now();
        let stored = self.storing_heard.as_ref();
        if now < self.store_heard_at || stored.is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.store_heard_at = now + self.serving.options.heard_every;
        let (serving, who) = (Arc::clone(&self.serving), Arc::clone(&self.who));
        let generation = self.link.generation();
        // Beside the link, so that a slow store never delays a frame; at most one at a time.
        self.storing_heard = Some(tokio::spawn(async move {
            serving.rows.heard(&who, generation).await;
        }));
    }
}

impl Drop for Link {
    /// Also where the task ends in a way of its own.
    fn drop(&mut self) {
        self.link.close();
    }
}

impl From<Gone> for LinkEnd {
    /// Nobody but its task closes a link.
    fn from(Gone: Gone) -> Self {
        Self::Closed
    }
}

impl From<Over> for LinkEnd {
    fn from(over: Over) -> Self {
        match over {
            Over::Goodbye(reason) => Self::Goodbye(reason),
            Over::Left(reason) => Self::Left(reason),
            Over::Silent => Self::Silent,
            Over::Violation(reason) => {
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
        }
    }
}
