//! One link: its task, which alone knows who reads what on it.
//!
//! The task never waits for a reader (mailboxes are bounded by credit) and never waits for the
//! runner to take a frame while there is one to read from it, so neither end can block the other.

mod subscriptions;

use std::{collections::VecDeque, sync::Arc};

use proto::v1::{self, runner_frame, server_frame};
use shared_types::{Generation, Incarnation, OperationId, Timestamp};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use self::subscriptions::Subscriptions;
use super::{
    LinkEnd, LinkIdentity, Links, Serving,
    handle::{Command, LinkHandle},
    registry::Stop,
    settler,
};
use crate::{
    convert::{self, Malformed},
    ports::{HelloFacts, Verdict},
};

/// Serves a link until it ends; see [`Links::attach`].
pub(super) async fn serve(
    links: Links,
    who: LinkIdentity,
    hello: v1::Hello,
    inbound: mpsc::Receiver<v1::RunnerFrame>,
    outbound: mpsc::Sender<v1::ServerFrame>,
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
    if let Some(reason) = last_word(&end) {
        let goodbye = frame(server_frame::Kind::Goodbye(v1::Goodbye { reason }));
        // A runner that does not take it will see the stream end.
        let _ = timeout(links.options().goodbye_within, outbound.send(goodbye)).await;
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
    let facts = convert::hello::facts(who.runner, hello)
        .map_err(|malformed| LinkEnd::Violation(malformed.to_string()))?;
    let generation = serving.rows.claim(who, &facts).await;
    let generation = generation
        .map_err(|error| LinkEnd::Failed(format!("failed to claim the link: {error}")))?;
    Ok((facts, generation))
}

fn last_word(end: &LinkEnd) -> Option<String> {
    Some(match end {
        LinkEnd::Closed | LinkEnd::Goodbye(_) => return None,
        LinkEnd::Silent => "nothing was heard for too long".to_owned(),
        LinkEnd::Replaced => "a newer link of this runner is there".to_owned(),
        LinkEnd::Revoked => "the runner was revoked".to_owned(),
        LinkEnd::Shutdown => "the server stops".to_owned(),
        LinkEnd::Violation(reason) => reason.clone(),
        LinkEnd::Failed(_) => "the server cannot serve the link now; try again later".to_owned(),
    })
}

/// The state of one link.
struct Link {
    serving: Arc<Serving>,
    who: Arc<LinkIdentity>,
    generation: Generation,
    incarnation: Arc<Incarnation>,
    subscriptions: Subscriptions,
    /// Frames for the runner; commands are taken only when it is empty.
    outgoing: VecDeque<server_frame::Kind>,
    heard_at: Timestamp,
    /// The lease ends then.
    silent_at: Instant,
    beat_at: Instant,
    /// Not stored again before then.
    store_heard_at: Instant,
    storing_heard: Option<JoinHandle<()>>,
}

/// What can happen to a link.
enum Event<'a> {
    Stopped(LinkEnd),
    Frame(Option<v1::RunnerFrame>),
    Writable(Option<mpsc::Permit<'a, v1::ServerFrame>>),
    Command(Option<Command>),
    BeatDue,
}

impl Link {
    fn new(
        serving: Arc<Serving>,
        who: &Arc<LinkIdentity>,
        generation: Generation,
        facts: &HelloFacts,
    ) -> Self {
        let now = Instant::now();
        let options = &serving.options;
        let milliseconds =
            |time: std::time::Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let welcome = server_frame::Kind::Welcome(v1::Welcome {
            generation: generation.0,
            protocol_version: facts.protocol_version,
            heartbeat_every_ms: milliseconds(options.heartbeat_every),
            silence_ms: milliseconds(options.silence),
        });
        Self {
            who: Arc::clone(who),
            generation,
            incarnation: Arc::new(facts.incarnation.clone()),
            subscriptions: Subscriptions::default(),
            outgoing: VecDeque::from([welcome]),
            heard_at: serving.clock.now(),
            silent_at: now + options.lease,
            beat_at: now + options.heartbeat_every,
            store_heard_at: now + options.heard_every,
            storing_heard: None,
            serving,
        }
    }

    /// Registers the link, runs it, and leaves nothing of it behind.
    async fn serve(
        mut self,
        links: &Links,
        facts: &HelloFacts,
        inbound: mpsc::Receiver<v1::RunnerFrame>,
        outbound: &mpsc::Sender<v1::ServerFrame>,
    ) -> LinkEnd {
        let (runner, generation) = (self.who.runner, self.generation);
        let stop = match links.registry.register(runner, generation).await {
            Ok(stop) => stop,
            Err(Stop::Replaced) => return LinkEnd::Replaced,
            Err(Stop::Revoked) => return LinkEnd::Revoked,
        };
        let end = self.run(links, facts, inbound, outbound, stop).await;
        // Readers learn that the link is gone from their mailboxes, then since when.
        drop(self.subscriptions);
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
        mut inbound: mpsc::Receiver<v1::RunnerFrame>,
        outbound: &mpsc::Sender<v1::ServerFrame>,
        mut stop: oneshot::Receiver<Stop>,
    ) -> LinkEnd {
        let incarnation = Arc::clone(&self.incarnation);
        let (handle, mut commands) = LinkHandle::new(self.generation, incarnation);
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
                .next_event(&mut inbound, outbound, &mut commands, &mut stop)
                .await;
            if let Err(end) = self.handle(event) {
                break end;
            }
        };
        settling.abort();
        end
    }

    /// Asks what is to become of the runner's inventory and queues the answers; returns what is
    /// to be attached to only for its outcome.
    async fn judge(&mut self, facts: &HelloFacts) -> Result<Vec<settler::Unsettled>, LinkEnd> {
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
        let mut unsettled = Vec::new();
        for (id, verdict) in verdicts {
            match verdict {
                Verdict::Keep => {}
                Verdict::Forget => self.outgoing.push_back(forget(id)),
                Verdict::Settle(attachment) => {
                    unsettled.push(settler::Unsettled { id, attachment });
                }
                Verdict::Cancel(attachment) => {
                    let cancel = convert::cancel(id, attachment.epoch, &self.incarnation);
                    self.outgoing.push_back(cancel);
                    unsettled.push(settler::Unsettled { id, attachment });
                }
            }
        }
        Ok(unsettled)
    }

    async fn next_event<'a>(
        &self,
        inbound: &mut mpsc::Receiver<v1::RunnerFrame>,
        outbound: &'a mpsc::Sender<v1::ServerFrame>,
        commands: &mut mpsc::Receiver<Command>,
        stop: &mut oneshot::Receiver<Stop>,
    ) -> Event<'a> {
        let idle = self.outgoing.is_empty();
        tokio::select! {
            stopped = stop => Event::Stopped(match stopped {
                Ok(Stop::Revoked) => LinkEnd::Revoked,
                Ok(Stop::Replaced) | Err(_) => LinkEnd::Replaced,
            }),
            () = self.serving.shutdown.cancelled() => Event::Stopped(LinkEnd::Shutdown),
            () = sleep_until(self.silent_at) => Event::Stopped(LinkEnd::Silent),
            frame = inbound.recv() => Event::Frame(frame),
            permit = outbound.reserve(), if !idle => Event::Writable(permit.ok()),
            command = commands.recv(), if idle => Event::Command(command),
            () = sleep_until(self.beat_at), if idle => Event::BeatDue,
        }
    }

    fn handle(&mut self, event: Event<'_>) -> Result<(), LinkEnd> {
        match event {
            Event::Stopped(end) => return Err(end),
            Event::Frame(None) | Event::Writable(None) => return Err(LinkEnd::Closed),
            Event::Frame(Some(frame)) => {
                self.heard();
                self.frame(frame)?;
            }
            Event::Writable(Some(permit)) => {
                if let Some(kind) = self.outgoing.pop_front() {
                    permit.send(frame(kind));
                }
            }
            Event::Command(Some(command)) => self.command(command),
            // The settler and the registry hold handles as long as the link runs.
            Event::Command(None) => return Err(LinkEnd::Replaced),
            Event::BeatDue => {
                let beat = server_frame::Kind::Heartbeat(v1::Heartbeat {});
                self.outgoing.push_back(beat);
                self.beat_at = Instant::now() + self.jittered_beat();
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: v1::RunnerFrame) -> Result<(), LinkEnd> {
        use runner_frame::Kind;
        let handled = match frame.kind {
            // Nothing that this build knows: a newer runner may say more.
            None | Some(Kind::Heartbeat(_)) => Ok(()),
            Some(Kind::Hello(_)) => Err(Malformed::new("a second first message came")),
            Some(Kind::Goodbye(goodbye)) => return Err(LinkEnd::Goodbye(goodbye.reason)),
            Some(Kind::Accepted(accepted)) => self.subscriptions.accepted(&accepted),
            Some(Kind::Output(output)) => self.subscriptions.output(output),
            Some(Kind::Gap(gap)) => self.subscriptions.gap(&gap),
            Some(Kind::Ended(ended)) => self.subscriptions.ended(ended),
            Some(Kind::CancelAnswer(answer)) => self.subscriptions.cancel_answered(answer),
        };
        handled.map_err(|malformed| {
            tracing::warn!(error = %malformed, "the runner broke the protocol");
            LinkEnd::Violation(malformed.to_string())
        })
    }

    fn command(&mut self, command: Command) {
        let kind = match command {
            Command::Attach { id, frame, reader } => {
                if !self.subscriptions.attach(id, reader) {
                    return;
                }
                server_frame::Kind::Operation(*frame)
            }
            Command::Grant { id, stream, up_to } => server_frame::Kind::Credit(v1::Credit {
                operation: id.to_string(),
                stream: convert::stream_to_wire(stream),
                up_to,
            }),
            Command::Cancel { id, epoch, answer } => {
                if let Some(answer) = answer {
                    self.subscriptions.await_cancel(id, answer);
                }
                convert::cancel(id, epoch, &self.incarnation)
            }
            // Whoever reads it would wait for its end in vain; the next inventory says it again.
            Command::Forget { id } if self.subscriptions.is_read(id) => return,
            Command::Forget { id } => forget(id),
        };
        self.outgoing.push_back(kind);
    }

    /// A frame came: the lease begins anew, and now and then that is stored.
    fn heard(&mut self) {
        let now = Instant::now();
        self.heard_at = self.serving.clock.now();
        self.silent_at = now + self.serving.options.lease;
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

    /// The time between two beats, 20 % more or less, so that many runners do not beat as one.
    fn jittered_beat(&self) -> std::time::Duration {
        let mut byte = [0];
        self.serving.entropy.fill(&mut byte);
        let factor = 0.8 + 0.4 * f64::from(byte[0]) / 255.0;
        self.serving.options.heartbeat_every.mul_f64(factor)
    }
}

fn forget(id: OperationId) -> server_frame::Kind {
    server_frame::Kind::Forget(v1::Forget {
        operation: id.to_string(),
    })
}

fn frame(kind: server_frame::Kind) -> v1::ServerFrame {
    v1::ServerFrame { kind: Some(kind) }
}
