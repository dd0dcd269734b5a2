//! One operation from its committed intent to its stored outcome, over every link.
//!
//! Which of these applies is read from the store on each link, so that a restart, a reconnect and
//! the normal path are one path. What may be sent to whom:
//! - the request itself goes only to the incarnation for which the intent was committed, only
//!   while no outcome is stored and only until the deadline; a runner starts an id at most once
//!   within an incarnation, so sending it again is an attach;
//! - otherwise only an attach without a request, which can start nothing;
//! - so also to another incarnation, which may remember the operation: a runner that does not list
//!   it when it links has forgotten it, and it is lost with the claim of that link.

use std::{collections::VecDeque, time::Duration};

use proto::v1;
use shared_sandbox::{Operation, OperationEvent, Outcome, OutputStream};
use shared_types::{
    Generation, Incarnation, Refusal, RefusalCode, Timestamp, clock::BootMoment, event::Place,
};

use super::{
    Connection, Mail, RunnerState, Settled, StoredIntent,
    passing::Passing,
    refusals::{expired, forgotten, lost_to_revocation},
    sums::Sums,
};
use crate::wire;

/// What following needs to know of a link that carries operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// Its generation.
    pub generation: Generation,
    /// What the runner's memory is worth.
    pub incarnation: Incarnation,
}

/// What the driver does next, and which method takes the answer.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Wait until the connection is not as it was (the first time, take it as it is):
    /// [`Follow::connection`].
    Connection,
    /// The same, but the driver may give up as soon as nobody reads the events: the next
    /// inventory brings the outcome.
    Return,
    /// Read the intent from the store: [`Follow::found`].
    Find,
    /// Read the runner's state from the store: [`Follow::runner_state`].
    RunnerState,
    /// Store the outcome; the first one stays: [`Follow::settled`].
    Settle(Outcome),
    /// Tell the reader the outcome, which it may store together with what it concludes from it,
    /// and wait until it has gone: [`Follow::offered`]. A link that ends meanwhile changes nothing.
    Offer(Outcome),
    /// Send a cancel whose answer nobody needs. No answer, but [`Follow::link_lost`].
    Cancel,
    /// Take a seat in the inbox and attach with [`Follow::frame`]: [`Follow::attached`], or
    /// [`Follow::link_lost`].
    Attach,
    /// Wait for mail: [`Follow::mail`].
    Mail,
    /// Read the first bytes that are kept of the stream from this offset on: [`Follow::kept`].
    Kept(OutputStream, u64),
    /// Keep it, where output is kept, and tell the reader; wait until it took what is kept nowhere.
    /// No answer.
    Tell(OperationEvent),
    /// Tell the inbox that this was taken, and grant what it says. No answer.
    Taken(OutputStream, u64),
    /// There is nothing more to do.
    Over,
}

/// See the module.
#[derive(Debug)]
pub struct Follow {
    operation: Operation,
    place: Place,
    /// The one for which the intent was committed.
    incarnation: Incarnation,
    /// The one of the link that was there last.
    linked: Incarnation,
    /// What has just been stored, and the link that was there before: as long as that one lives,
    /// whoever cancels says so to the runner itself, and nobody else can have settled it.
    fresh: Option<(Generation, StoredIntent)>,
    /// How much of stdout and stderr the reader was told, or is told without this: it is kept.
    told: [u64; 2],
    /// Of stdout and stderr.
    sums: Sums,
    told_accepted: bool,
    told_unreachable: bool,
    phase: Phase,
    /// To be done before the phase goes on.
    steps: VecDeque<Step>,
    /// What is passed on to the operation.
    passing: Passing,
}

#[derive(Debug)]
enum Phase {
    Connecting,
    Away,
    AskingState,
    Finding,
    Attaching(Attempt),
    Reading(Attempt),
    /// What is kept of its output is read, to be held to the checksums in its end.
    Summing(Outcome, (OutputStream, u64)),
    /// The runner has said how it ended.
    Offering(Outcome),
    /// The reader has gone; it may have stored the outcome.
    Checking(Outcome),
    /// It has not, and needs to be told nothing.
    Keeping(Outcome),
    Settling(Outcome),
    Over,
}

/// One attempt to read, over one link.
#[derive(Debug, Clone)]
struct Attempt {
    intent: StoredIntent,
    /// Whether the request went with it, which is decided when the frame is made.
    may_start: bool,
}

impl Follow {
    /// Follows an operation whose intent is stored. `fresh`: it has just been committed, while
    /// the link of this generation was there. `told`: how much of stdout and stderr the reader
    /// is told without this, because it is kept here.
    pub fn new(
        operation: Operation,
        intent: StoredIntent,
        fresh: Option<Generation>,
        told: [u64; 2],
    ) -> Self {
        let mut follow = Self {
            place: intent.place.clone(),
            incarnation: intent.incarnation.clone(),
            linked: intent.incarnation.clone(),
            fresh: None,
            told,
            sums: Sums::after(told),
            told_accepted: false,
            told_unreachable: false,
            phase: Phase::Connecting,
            steps: VecDeque::new(),
            passing: Passing::new(operation.id, &operation.request),
            operation,
        };
        match &intent.outcome {
            // All of it is here; whether the runner can be reached makes no difference.
            Some(outcome) if !follow.output_is_missing(outcome) => {
                follow.phase = Phase::Settling(outcome.clone());
            }
            _ => follow.fresh = fresh.map(|link| (link, intent)),
        }
        follow
    }

    /// What it follows.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// What to do next. A step without an answer is returned once.
    pub fn step(&mut self) -> Step {
        if let Some(step) = self.steps.pop_front() {
            return step;
        }
        if self.is_attached()
            && let Some(taken) = self.passing.tell()
        {
            return Step::Tell(OperationEvent::InputTaken(taken));
        }
        match &self.phase {
            Phase::Connecting => Step::Connection,
            Phase::Away => Step::Return,
            Phase::AskingState => Step::RunnerState,
            Phase::Finding | Phase::Checking(_) => Step::Find,
            Phase::Attaching(_) => Step::Attach,
            Phase::Reading(_) => Step::Mail,
            Phase::Summing(_, (stream, from)) => Step::Kept(*stream, *from),
            Phase::Offering(outcome) => Step::Offer(outcome.clone()),
            Phase::Settling(outcome) | Phase::Keeping(outcome) => Step::Settle(outcome.clone()),
            Phase::Over => Step::Over,
        }
    }

    /// How the runner is connected now.
    pub fn connection(&mut self, connection: Connection<Linked>) {
        self.phase = Phase::Connecting;
        match connection {
            Connection::Online(link) => {
                self.linked = link.incarnation;
                if std::mem::take(&mut self.told_unreachable) {
                    self.steps.push_back(Step::Tell(OperationEvent::Reachable));
                }
                match self.fresh.take() {
                    Some((same, intent)) if same == link.generation => {
                        self.attempt(intent);
                    }
                    // Read after the link was there, so that an outcome stored before it is not
                    // overlooked: the runner may have been told to forget the operation.
                    _ => self.phase = Phase::Finding,
                }
            }
            Connection::Revoked => self.lost(lost_to_revocation()),
            Connection::Linking => {}
            Connection::Offline { since: None } => self.phase = Phase::AskingState,
            Connection::Offline { since: Some(since) } => self.away(since),
        }
    }

    /// What the store says of the runner, which this replica has not heard of.
    pub fn runner_state(&mut self, state: RunnerState, now: Timestamp) {
        match state {
            RunnerState::Revoked => self.lost(lost_to_revocation()),
            RunnerState::Offline { since } => self.away(since.unwrap_or(now)),
            // The store has not heard yet, or it is from before this server was started.
            RunnerState::Online => self.away(now),
        }
    }

    /// What is stored of the operation; nothing, if it was removed.
    pub fn found(&mut self, intent: Option<StoredIntent>) {
        match (intent, &self.phase) {
            (Some(StoredIntent { outcome: None, .. }), Phase::Checking(outcome)) => {
                self.phase = Phase::Keeping(outcome.clone());
            }
            (None, _) | (_, Phase::Checking(_)) => self.phase = Phase::Over,
            (Some(intent), _) => self.attempt(intent),
        }
    }

    /// The frame that asks for the operation, from these offsets on; empty where nothing is to
    /// be attached to.
    pub fn frame(&mut self, from: [u64; 2], now: &BootMoment) -> v1::Operation {
        let Phase::Attaching(Attempt { intent, may_start }) = &mut self.phase else {
            return v1::Operation::default();
        };
        // Now, and not when the intent was read: frames reach the runner in this order, so that of
        // two readers none starts it after the other has heard that it was too late for that.
        let start_by = intent.start_by.as_ref();
        let left = start_by.map_or(Duration::ZERO, |start_by| start_by.left(now));
        *may_start = intent.outcome.is_none() && !left.is_zero() && self.linked == self.incarnation;
        let operation = &self.operation;
        // 0 says that the request is absent on purpose, and not of a kind that is unknown there.
        let start_within_ms = match may_start {
            true => milliseconds(left).max(1),
            false => 0,
        };
        v1::Operation {
            operation: operation.id.to_string(),
            digest: intent.digest.as_bytes().to_vec(),
            sandbox: self.place.sandbox.to_string(),
            owner: operation.owner.to_string(),
            epoch: operation.epoch.0,
            incarnation: Some((&self.linked).into()),
            start_within_ms,
            run_for_ms: milliseconds(operation.limits.run_for),
            stdout_from: from[0],
            stderr_from: from[1],
            request: may_start.then(|| wire::request(&operation.request)),
        }
    }

    /// The link took the frame.
    pub fn attached(&mut self) {
        if let Phase::Attaching(attempt) = &self.phase {
            self.phase = Phase::Reading(attempt.clone());
            self.passing.attached();
        }
    }

    /// The link did not take something: the operation goes on.
    pub fn link_lost(&mut self) {
        self.steps.clear();
        self.phase = Phase::Connecting;
    }

    /// Something came over the link.
    pub fn mail(&mut self, mail: Mail) {
        let Phase::Reading(attempt) = &self.phase else {
            return;
        };
        match mail {
            Mail::Output {
                stream,
                offset,
                data,
            } => {
                let up_to = offset.saturating_add(data.len() as u64);
                self.sums.add(stream, &data);
                let event = OperationEvent::Output {
                    stream,
                    offset,
                    data,
                };
                self.output(event, stream, up_to);
            }
            Mail::Gap { stream, from, to } => {
                self.sums.miss(stream, to);
                self.output(OperationEvent::Gap { stream, from, to }, stream, to);
            }
            Mail::Ended(outcome) => match &attempt.intent.outcome {
                // Only the output was missing, and an operation has one end.
                Some(stored) => self.phase = Phase::Settling(stored.clone()),
                None => self.ended(outcome),
            },
            Mail::Refused(refusal) => {
                let attempt = attempt.clone();
                self.refused(refusal, attempt);
            }
            Mail::Detached => self.phase = Phase::Connecting,
            Mail::Superseded => self.phase = Phase::Over,
        }
    }

    /// The reader was told the outcome and has gone.
    pub fn offered(&mut self) {
        if let Phase::Offering(outcome) = &self.phase {
            self.phase = Phase::Checking(outcome.clone());
        }
    }

    /// The outcome is stored, this one or the one before: tells a reader who was not told, after
    /// all that is known of the output.
    pub fn settled(&mut self, settled: Settled) {
        let Phase::Settling(outcome) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return;
        };
        let outcome = match settled {
            Settled::First => outcome,
            Settled::Already(stored) => stored,
        };
        self.tell_missing(&outcome);
        self.end(outcome);
    }

    fn attempt(&mut self, intent: StoredIntent) {
        if let Some(outcome) = &intent.outcome
            && !self.output_is_missing(outcome)
        {
            self.phase = Phase::Settling(outcome.clone());
            return;
        }
        if intent.cancel_requested && intent.outcome.is_none() {
            // Before the operation itself: what the runner does not know yet must not start.
            self.steps.push_back(Step::Cancel);
        }
        self.phase = Phase::Attaching(Attempt {
            intent,
            may_start: false,
        });
    }

    /// The runner did not take the operation.
    fn refused(&mut self, refusal: Refusal, attempt: Attempt) {
        if let Some(outcome) = attempt.intent.outcome {
            self.phase = Phase::Settling(outcome);
            return;
        }
        self.phase = match refusal.code {
            // These speak of this attempt to read, not of the operation: it may be running.
            RefusalCode::StaleEpoch | RefusalCode::Conflict => {
                self.end(Outcome::Refused(refusal));
                Phase::Over
            }
            _ if self.linked != self.incarnation => Phase::Settling(Outcome::Refused(forgotten())),
            // It was asked without a request because the time to start it has passed.
            RefusalCode::NotFound if !attempt.may_start => {
                Phase::Settling(Outcome::Refused(expired()))
            }
            _ => Phase::Settling(Outcome::Refused(refusal)),
        };
    }

    fn lost(&mut self, refusal: Refusal) {
        self.phase = Phase::Settling(Outcome::Refused(refusal));
    }

    fn away(&mut self, since: Timestamp) {
        self.phase = Phase::Away;
        if !self.told_unreachable {
            self.told_unreachable = true;
            let event = OperationEvent::Unreachable { since };
            self.steps.push_back(Step::Tell(event));
        }
    }

    fn end(&mut self, outcome: Outcome) {
        let ended = OperationEvent::Ended(outcome);
        self.steps.push_back(Step::Tell(ended));
    }
}

/// Whole milliseconds.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

mod output;
mod passing;
