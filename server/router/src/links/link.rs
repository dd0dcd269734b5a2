//! One link: the task that drives [`shared_link::server::Link`].
//!
//! The task never waits for a reader (mailboxes are bounded by credit) and never waits for the
//! runner to take a frame while there is one to read from it, so neither end can block the other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use proto::v1::{self, server_frame};
use shared_link::server::{
    self, CancelAnswered, Command, Linked, Over, Times, TurnedAway, Unsettled,
};
use shared_types::{Generation, OperationId, Timestamp};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use super::{
    Inbound, LinkEnd, LinkIdentity, Links, Serving,
    handle::{CancelWaiter, LinkHandle, Wish},
    settler,
};
use crate::{mailbox::Post, ports::HelloFacts};

/// Operations of one link for which a cancel's answer may be outstanding; beyond it the wish
/// counts as recorded.
const MAX_CANCELS: usize = 1024;

/// Callers that may wait for the answer to one operation's cancel.
const MAX_WAITERS: usize = 16;

/// Serves a link until it ends; see [`Links::attach`].
pub(super) async fn serve(
    links: Links,
    who: LinkIdentity,
    hello: v1::Hello,
    inbound: Inbound,
    outbound: mpsc::Sender<Box<v1::ServerFrame>>,
) -> LinkEnd {
    let who = Arc::new(who);
    let (end, claimed) = match claim(&links.serving, &who, hello).await {
        Ok((facts, generation)) => {
            tracing::Span::current().record("link.generation", generation.0);
            let link = Link::new(Arc::clone(&links.serving), &who, generation, &facts);
            let end = link.serve(&links, &facts, inbound, &outbound).await;
            (end, Some(generation))
        }
        Err(end) => (end, None),
    };
    if let kind @ Some(_) = last_word(&end) {
        let last = outbound.send(Box::new(v1::ServerFrame { kind }));
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
        LinkEnd::Closed | LinkEnd::Goodbye(_) => return None,
        LinkEnd::WentBack => return Some(server_frame::Kind::NewJournal(v1::NewJournal {})),
        LinkEnd::Silent => "nothing was heard for too long".to_owned(),
        LinkEnd::Replaced => "a newer link of this runner is there".to_owned(),
        LinkEnd::Revoked => "the runner was revoked".to_owned(),
        LinkEnd::Shutdown => "the server stops".to_owned(),
        LinkEnd::Violation(reason) => reason.clone(),
        LinkEnd::Failed(_) => "the server cannot serve the link now; try again later".to_owned(),
    };
    Some(server_frame::Kind::Goodbye(v1::Goodbye { reason }))
}

/// One link's task.
struct Link {
    serving: Arc<Serving>,
    who: Arc<LinkIdentity>,
    generation: Generation,
    began: Instant,
    machine: server::Link<Post>,
    /// Who waits for what becomes of a cancel.
    cancels: HashMap<OperationId, Vec<CancelWaiter>>,
    heard_at: Timestamp,
    /// Not stored again before then.
    store_heard_at: Instant,
    storing_heard: Option<JoinHandle<()>>,
}

/// What can happen to a link.
enum Event<'a> {
    Stopped(LinkEnd),
    Frame(Option<v1::RunnerFrame>),
    Writable(Option<mpsc::Permit<'a, Box<v1::ServerFrame>>>),
    Wish(Box<Wish>),
    Time,
}

impl Link {
    fn new(
        serving: Arc<Serving>,
        who: &Arc<LinkIdentity>,
        generation: Generation,
        facts: &HelloFacts,
    ) -> Self {
        let began = Instant::now();
        let options = &serving.options;
        let times = Times {
            heartbeat_every: options.heartbeat_every,
            silence: options.silence,
            lease: options.lease,
        };
        Self {
            who: Arc::clone(who),
            generation,
            began,
            machine: server::Link::new(facts, generation, times, Duration::ZERO),
            cancels: HashMap::new(),
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
        outbound: &mpsc::Sender<Box<v1::ServerFrame>>,
    ) -> LinkEnd {
        let (runner, generation) = (self.who.runner, self.generation);
        let stop = match links.registry.register(runner, generation).await {
            Ok(stop) => stop,
            Err(turned_away) => return turned_away.into(),
        };
        let end = self.run(links, facts, inbound, outbound, stop).await;
        // Readers learn that the link is gone from their mailboxes, then since when.
        drop(self.machine);
        let since = self.heard_at;
        links.registry.unregister(runner, generation, since).await;
        if let Some(storing) = self.storing_heard {
            storing.abort();
        }
        end
    }

    async fn run(
        &mut self,
        links: &Links,
        facts: &HelloFacts,
        mut inbound: Inbound,
        outbound: &mpsc::Sender<Box<v1::ServerFrame>>,
        mut stop: oneshot::Receiver<TurnedAway>,
    ) -> LinkEnd {
        let (handle, mut wishes) = LinkHandle::new(Linked {
            generation: self.generation,
            incarnation: facts.incarnation.clone(),
        });
        let unsettled = match self.judge(facts).await {
            Ok(unsettled) => unsettled,
            Err(end) => return end,
        };
        links.registry.ready(self.who.runner, handle.clone()).await;
        tracing::info!(runner.hostname = %facts.hostname, "the runner is linked");
        let settler = settler::Settler {
            rows: Arc::clone(&self.serving.rows),
            who: Arc::clone(&self.who),
            link: handle,
        };
        let settling = settler.start(unsettled);
        let end = loop {
            let event = self
                .next_event(&mut inbound, outbound, &mut wishes, &mut stop)
                .await;
            if let Err(end) = self.handle(event) {
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
        Ok(self.machine.judge(verdicts))
    }

    async fn next_event<'a>(
        &self,
        inbound: &mut Inbound,
        outbound: &'a mpsc::Sender<Box<v1::ServerFrame>>,
        wishes: &mut mpsc::Receiver<Box<Wish>>,
        stop: &mut oneshot::Receiver<TurnedAway>,
    ) -> Event<'a> {
        let idle = !self.machine.has_frames();
        tokio::select! {
            stopped = stop => Event::Stopped(stopped.unwrap_or(TurnedAway::Older).into()),
            () = self.serving.shutdown.cancelled() => Event::Stopped(LinkEnd::Shutdown),
            () = sleep_until(self.began + self.machine.wake_at()) => Event::Time,
            frame = inbound.next() => Event::Frame(frame),
            permit = outbound.reserve(), if !idle => Event::Writable(permit.ok()),
            // The settler and the registry hold handles as long as the link runs: without one,
            // the stop is on its way, and says why.
            Some(wish) = wishes.recv(), if idle => Event::Wish(wish),
        }
    }

    fn handle(&mut self, event: Event<'_>) -> Result<(), LinkEnd> {
        match event {
            Event::Stopped(end) => return Err(end),
            Event::Frame(None) | Event::Writable(None) => return Err(LinkEnd::Closed),
            Event::Frame(Some(frame)) => {
                self.heard();
                if let Some(answered) = self.machine.frame(frame, self.began.elapsed())? {
                    self.answered(answered);
                }
            }
            Event::Writable(Some(permit)) => {
                if let Some(frame) = self.machine.next_frame() {
                    permit.send(Box::new(frame));
                }
            }
            Event::Wish(wish) => self.wish(*wish),
            Event::Time => {
                let mut random = [0];
                self.serving.entropy.fill(&mut random);
                self.machine.tick(self.began.elapsed(), random[0])?;
            }
        }
        Ok(())
    }

    fn wish(&mut self, wish: Wish) {
        if let (Command::Cancel { id, .. }, Some(waiter)) = (&wish.command, wish.answer) {
            self.await_cancel(*id, waiter);
        }
        self.machine.command(wish.command);
    }

    /// Remembers who waits for the answer to a cancel. A waiter that finds no place is dropped,
    /// and so hears at once that there will be no answer.
    fn await_cancel(&mut self, id: OperationId, waiter: CancelWaiter) {
        let outstanding = self.cancels.len();
        if let Some(waiters) = self.cancels.get_mut(&id) {
            waiters.retain(|waiter| !waiter.is_closed());
            if waiters.len() < MAX_WAITERS {
                waiters.push(waiter);
            }
        } else if outstanding < MAX_CANCELS {
            self.cancels.insert(id, vec![waiter]);
        }
    }

    fn answered(&mut self, CancelAnswered { id, answer }: CancelAnswered) {
        for waiter in self.cancels.remove(&id).unwrap_or_default() {
            // Whoever stopped waiting was told that the wish is recorded.
            let _ = waiter.send(answer.clone());
        }
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
        let generation = self.generation;
        // Beside the link, so that a slow store never delays a frame; at most one at a time.
        self.storing_heard = Some(tokio::spawn(async move {
            serving.rows.heard(&who, generation).await;
        }));
    }
}

impl From<Over> for LinkEnd {
    fn from(over: Over) -> Self {
        match over {
            Over::Goodbye(reason) => Self::Goodbye(reason),
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
