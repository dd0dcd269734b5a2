//! Following a session: everything after a cursor, then what happens
//! (docs/internals/contracts.md#c6).
//!
//! Events come in order: from the hint where it carries the next ones, else from the store. A lost hint or
//! a slow reader loses none.
//! What is under way comes from the hub, and is left out once the log has what it became.

use std::collections::{BTreeSet, VecDeque};

use async_trait::async_trait;
use shared_types::{Event, SessionEvent, SessionId, TurnId};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::hub::{LiveHub, Signal, Watch, extend};
use crate::Live;

/// Events that are read at once. An event may have the size of a message or of an answer, and each
/// reader holds this many, so there are few.
const EVENTS_AT_ONCE: u32 = 16;

/// Things that a follower has not taken yet, up to which more are heard.
const HEARD_AT_ONCE: usize = 16;

/// Longest piece of text that is made of several, in bytes.
const JOINED_BYTES: usize = 16 * 1024;

/// The stored events of one session.
#[async_trait]
pub trait EventSource: Send + Sync {
    /// The reason why a subscription gives nothing now.
    type Error: Send;

    /// The events after this number, in order; at most so many.
    ///
    /// # Errors
    /// Fails if the events cannot be read; a later read may succeed.
    async fn after(&self, seq: u64, limit: u32) -> Result<Vec<SessionEvent>, Self::Error>;

    /// The error of a subscription whose server stops.
    fn stopping(&self) -> Self::Error;
}

/// An item of a subscription.
#[derive(Debug)]
pub enum Followed {
    /// The next event of the log.
    Event(SessionEvent),
    /// Every event up to this one was given; what follows happens now.
    CaughtUp(u64),
    /// Something under way.
    Live(Live),
}

/// One reader of one session.
pub struct Subscription<S> {
    source: S,
    hub: LiveHub,
    session: SessionId,
    cursor: u64,
    watch: Watch,
    queue: VecDeque<Followed>,
    /// True if the log may hold more than was read.
    behind: bool,
    caught_up: bool,
    replaced: Replaced,
}

impl<S: EventSource> Subscription<S> {
    /// Subscribes to a session, from behind event `after` on; 0 for the beginning.
    ///
    /// # Errors
    /// [`EventSource::stopping`] while the server stops.
    pub async fn start(
        source: S,
        hub: LiveHub,
        session: SessionId,
        after: u64,
    ) -> Result<Self, S::Error> {
        let watch = hub.watch(session).await;
        let watch = watch.ok_or_else(|| source.stopping())?;
        Ok(Self {
            source,
            hub,
            session,
            cursor: after,
            watch,
            queue: VecDeque::new(),
            behind: true,
            caught_up: false,
            replaced: Replaced::default(),
        })
    }

    /// The next event or piece; waits for it.
    ///
    /// # Errors
    /// If the store does not answer. The cursor stands: asking again goes on.
    pub async fn next(&mut self) -> Result<Followed, S::Error> {
        loop {
            if let Some(next) = self.queue.pop_front() {
                return Ok(next);
            }
            if self.behind {
                self.read_log().await?;
                continue;
            }
            let signal = self.watch.signals.recv().await;
            self.hear(signal).await?;
            // Of words that came faster than they were taken this makes one piece. Where the log is to be read,
            // that comes first.
            while !self.behind && self.queue.len() < HEARD_AT_ONCE {
                let signal = match self.watch.signals.try_recv() {
                    Ok(signal) => Ok(signal),
                    Err(TryRecvError::Lagged(missed)) => Err(RecvError::Lagged(missed)),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                };
                self.hear(signal).await?;
            }
        }
    }

    async fn hear(&mut self, signal: Result<Signal, RecvError>) -> Result<(), S::Error> {
        match signal {
            Ok(Signal::Appended(events)) => self.grown(&events),
            Ok(Signal::Live(live) | Signal::Relayed(live)) => self.show(live),
            Err(RecvError::Lagged(_)) => {
                let watch = self.hub.watch(self.session).await;
                self.watch = watch.ok_or_else(|| self.source.stopping())?;
                self.caught_up = false;
                self.behind = true;
            }
            Err(RecvError::Closed) => return Err(self.source.stopping()),
        }
        Ok(())
    }

    /// Takes what came with a hint, where it is what comes next; else the store is asked.
    fn grown(&mut self, events: &[SessionEvent]) {
        self.behind = events.is_empty();
        for event in events {
            // What was read from the store already is hinted at later.
            if event.seq <= self.cursor {
                continue;
            }
            if event.seq > self.cursor + 1 {
                self.behind = true;
                return;
            }
            self.take(event.clone());
        }
    }

    fn take(&mut self, event: SessionEvent) {
        self.cursor = event.seq;
        if let Some(known) = event.known() {
            self.replaced.note(known);
        }
        self.queue.push_back(Followed::Event(event));
    }

    async fn read_log(&mut self) -> Result<(), S::Error> {
        let page = self.source.after(self.cursor, EVENTS_AT_ONCE).await?;
        self.behind = page.len() == EVENTS_AT_ONCE as usize;
        page.into_iter().for_each(|event| self.take(event));
        if !self.behind && !self.caught_up {
            self.caught_up = true;
            self.queue.push_back(Followed::CaughtUp(self.cursor));
            for live in std::mem::take(&mut self.watch.under_way) {
                self.show(live);
            }
        }
        Ok(())
    }

    fn show(&mut self, live: Live) {
        if self.replaced.covers(&live) {
            return;
        }
        let joined = match self.queue.back_mut() {
            Some(Followed::Live(before)) => extend(before, &live, JOINED_BYTES),
            _ => false,
        };
        if !joined {
            self.queue.push_back(Followed::Live(live));
        }
    }
}

/// The progress of the newest turn in the log, by which older live pieces are left out.
#[derive(Default)]
pub(super) struct Replaced {
    turn: Option<TurnId>,
    answered: u32,
    ended_calls: BTreeSet<(u32, u32)>,
    ended: bool,
}

impl Replaced {
    pub(super) fn note(&mut self, event: &Event) {
        if let Some(turn) = event.turn()
            && self.turn != Some(turn)
        {
            *self = Self {
                turn: Some(turn),
                ..Self::default()
            };
        }
        match event {
            Event::AnswerRecorded { step, .. } => self.answered = self.answered.max(*step),
            Event::CallEnded { step, ordinal, .. } => {
                self.ended_calls.insert((*step, *ordinal));
            }
            Event::TurnEnded { .. } => self.ended = true,
            _ => {}
        }
    }

    pub(super) fn covers(&self, live: &Live) -> bool {
        let (turn, covered) = match live {
            Live::Said { turn, step, .. } | Live::TakenBack { turn, step, .. } => {
                (turn, *step <= self.answered)
            }
            Live::Output {
                turn,
                step,
                ordinal,
                ..
            }
            | Live::Gap {
                turn,
                step,
                ordinal,
                ..
            } => (turn, self.ended_calls.contains(&(*step, *ordinal))),
            Live::Notice { turn, .. } => (turn, false),
        };
        self.turn == Some(*turn) && (covered || self.ended)
    }
}

#[cfg(test)]
mod tests;
