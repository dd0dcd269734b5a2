//! One operation from its committed intent to its stored outcome, over every link.
//!
//! The store is read on each link, so that a restart, a reconnect and the normal path are one path. The
//! rules for what may be sent:
//! - The request itself goes only to the incarnation for which the intent was committed. No outcome may be
//!   stored, the call must not have ended, and no caller may want it stopped. The time to start must not have
//!   passed, and the epoch must be the newest of its owner. A runner starts an id at most once within an
//!   incarnation, so sending it again is an attach. A download is an exception, because it only reads: it is
//!   also sent later, while a reader lacks some of the bytes, which are only in the file.
//! - Otherwise only an attach without a request is sent, which can start nothing. This is also so where the
//!   request is not known here.
//! - An attach may also go to another incarnation, which may remember the operation. A runner that does not
//!   list it when it links has forgotten it, and it is lost with the claim of that link.
//!
//! A runner without room is sent the same operation again until the time to start has passed. If the runner
//! does not know an operation that no caller will send any more, it is asked to fence it. So it is if the time to start
//! is on the clock of another host: the server there may be about to send it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use proto::v1;
use shared_sandbox::{Operation, OperationEvent, Outcome, OutputStream, Request};
use shared_types::{
    Epoch, Generation, Incarnation, OperationId, Owner, Refusal, RefusalCode, RunnerId, SandboxId,
    SpanId, Timestamp, TraceId, clock::BootMoment,
};

use super::{
    Mail, RunnerConnection, RunnerState, Settlement, StoredIntent,
    bounds::{EPOCHS, RESEND_AFTER_AT_LEAST, RESEND_AFTER_AT_MOST},
    passing::PassingControls,
    progress::OutputProgress,
    refusals::{expired, forgotten, lost_to_revocation, never_started},
};
use crate::wire;

/// The facts about a link that carries operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// Its generation.
    pub generation: Generation,
    /// The identity of the runner's memory.
    pub incarnation: Incarnation,
}

/// The next action of the driver, with the method that takes its answer.
#[derive(Debug, PartialEq)]
pub enum FollowStep {
    /// Wait until the connection is not as it was (the first time, take it as it is):
    /// [`Follow::connection`].
    Connection,
    /// Read the intent from the store: [`Follow::found`].
    Find,
    /// Read the runner's state from the store: [`Follow::runner_state`].
    RunnerState,
    /// Store the outcome; the first one stays: [`Follow::settled`].
    Settle(Outcome),
    /// Offer the end to the reader that may store it together with its own conclusions, where there is one,
    /// and wait for the result: [`Follow::offered`]. A link that ends in between changes nothing.
    Offer(Outcome),
    /// Send a cancel whose answer is not needed. No answer, but [`Follow::link_lost`].
    Cancel,
    /// Send a cancel and wait for its answer: [`Follow::fenced`].
    Fence,
    /// Take a seat in the inbox and attach with [`Follow::frame`]: [`Follow::attached`], or
    /// [`Follow::link_lost`].
    Attach,
    /// Wait so long, because the runner refuses the operation for now, and say why:
    /// [`Follow::waited`], or [`Follow::connection`].
    Wait(Duration, Refusal),
    /// Wait for mail: [`Follow::mail`].
    Mail,
    /// Read the first bytes that are kept of the stream from this offset on: [`Follow::kept`].
    Kept(OutputStream, u64),
    /// Keep it, where output is kept, and tell the readers; wait until the one reader took what is kept
    /// nowhere. No answer.
    Tell(OperationEvent),
    /// Tell the inbox that this was taken, and grant what it says. No answer.
    Taken(OutputStream, u64),
    /// There is nothing more to do.
    Over,
}

/// See the module.
#[derive(Debug)]
pub struct Follow {
    id: OperationId,
    /// The operation that a caller asked for, where it is known here.
    asked: Option<Arc<Operation>>,
    /// The newest that is known here.
    intent: StoredIntent,
    /// Of the link that was there last.
    linked: Incarnation,
    /// The link that was there when the intent was stored. As long as it lives, a caller that cancels tells
    /// the runner itself, and no other process can have settled the operation.
    fresh: Option<Generation>,
    /// Of stdout and stderr.
    progress: [OutputProgress; 2],
    told_accepted: bool,
    /// It is known to have begun, for an earlier reader.
    has_begun: bool,
    told_unreachable: bool,
    /// The epoch of the last frame that asked for the operation.
    sent_epoch: Epoch,
    /// The epoch that was too old, as the runner says, until the intent is read again.
    stale: Option<(Epoch, Refusal)>,
    /// The number of times that the epoch was too old over this link.
    stales: u32,
    /// The reason why the runner did not take it, the last time that it had no room.
    no_room: Option<Refusal>,
    phase: Phase,
    /// To be done before the phase goes on.
    steps: VecDeque<FollowStep>,
    /// The input, controls and commits for the operation.
    passing: PassingControls,
}

#[derive(Debug)]
enum Phase {
    Connecting,
    AskingState,
    Finding,
    Attaching,
    Reading(SentFrame),
    /// The runner refuses it for now.
    Waiting(Duration, Refusal),
    /// The runner does not know it, and no caller will send it any more.
    Fencing,
    /// The kept output is read, to compare it with the checksums in its end.
    Summing(Outcome, (OutputStream, u64)),
    /// The runner has said how it ended.
    Offering(Outcome),
    Settling(Outcome),
    Over,
}

/// The kind of frame that went to the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentFrame {
    /// The request.
    Request,
    /// No request, because the time to start has passed.
    TooLate,
    /// No request, because the time to start is on the clock of another host.
    TooLateHere,
    /// No request.
    Nothing,
}

impl Follow {
    /// Follows an operation whose intent is stored. `asked` is the operation, where it is known. `fresh`: the
    /// intent has just been committed, while the link of this generation was there. `kept` is the length of
    /// stdout and stderr that readers get without this, because it is kept here.
    pub fn new(
        id: OperationId,
        asked: Option<Arc<Operation>>,
        intent: StoredIntent,
        fresh: Option<Generation>,
        kept: [u64; 2],
    ) -> Self {
        let mut follow = Self {
            id,
            linked: intent.incarnation.clone(),
            fresh: None,
            progress: kept.map(OutputProgress::after),
            told_accepted: false,
            has_begun: false,
            told_unreachable: false,
            sent_epoch: Epoch(0),
            stale: None,
            stales: 0,
            no_room: None,
            phase: Phase::Connecting,
            steps: VecDeque::new(),
            passing: PassingControls::new(id, asked.as_ref().map(|asked| &asked.request)),
            asked,
            intent,
        };
        match &follow.intent.outcome {
            // All of it is here; whether the runner can be reached makes no difference.
            Some(outcome) if !follow.output_is_missing(outcome) => {
                follow.phase = Phase::Settling(outcome.clone());
            }
            _ => follow.fresh = fresh,
        }
        follow
    }

    /// The operation that it follows.
    pub fn id(&self) -> OperationId {
        self.id
    }

    /// The runner on which it was placed.
    pub fn runner(&self) -> RunnerId {
        self.intent.place.runner
    }

    /// The trace that it belongs to.
    pub fn trace(&self) -> Option<TraceId> {
        self.intent.trace.map(|of| of.trace)
    }

    /// The sandbox of that runner.
    pub fn sandbox(&self) -> SandboxId {
        self.intent.place.sandbox
    }

    /// The request, where it is known here.
    pub fn request(&self) -> Option<&Request> {
        self.asked.as_ref().map(|asked| &asked.request)
    }

    /// The owner that it belongs to, and the owner's newest epoch.
    pub fn holder(&self) -> (Owner, Epoch) {
        (self.intent.owner, self.epoch())
    }

    /// A caller asks for the operation, whose request was not known here, or under a newer epoch.
    pub fn ask(&mut self, asked: Arc<Operation>) {
        if self.asked.is_none() {
            self.passing.takes(&asked.request);
        }
        self.asked = Some(asked);
    }

    /// The next step. A step without an answer is returned once.
    pub fn step(&mut self) -> FollowStep {
        if let Some(step) = self.steps.pop_front() {
            return step;
        }
        if self.is_attached()
            && let Some(taken) = self.passing.tell()
        {
            return FollowStep::Tell(OperationEvent::InputTaken(taken));
        }
        match &self.phase {
            Phase::Connecting => FollowStep::Connection,
            Phase::AskingState => FollowStep::RunnerState,
            Phase::Finding => FollowStep::Find,
            Phase::Attaching => FollowStep::Attach,
            Phase::Reading(_) => FollowStep::Mail,
            Phase::Waiting(time, why) => FollowStep::Wait(*time, why.clone()),
            Phase::Fencing => FollowStep::Fence,
            Phase::Summing(_, (stream, from)) => FollowStep::Kept(*stream, *from),
            Phase::Offering(outcome) => FollowStep::Offer(outcome.clone()),
            Phase::Settling(outcome) => FollowStep::Settle(outcome.clone()),
            Phase::Over => FollowStep::Over,
        }
    }

    /// Takes the present connection of the runner.
    pub fn connection(&mut self, connection: RunnerConnection<Linked>) {
        self.phase = Phase::Connecting;
        match connection {
            RunnerConnection::Online(link) => {
                (self.linked, self.stales) = (link.incarnation, 0);
                if std::mem::take(&mut self.told_unreachable) {
                    self.steps
                        .push_back(FollowStep::Tell(OperationEvent::Reachable));
                }
                match self.fresh.take() {
                    Some(same) if same == link.generation => self.attempt(),
                    // Read after the link was there, so that an outcome stored before it is not overlooked:
                    // the server may have let the runner forget the operation.
                    _ => self.phase = Phase::Finding,
                }
            }
            RunnerConnection::Revoked => self.lost(lost_to_revocation()),
            RunnerConnection::Linking => {}
            RunnerConnection::Offline { since: None } => self.phase = Phase::AskingState,
            RunnerConnection::Offline { since: Some(since) } => self.away(since),
        }
    }

    /// Takes the state of a runner from the store, because this replica has not heard of the runner.
    pub fn runner_state(&mut self, state: RunnerState, now: Timestamp) {
        self.phase = Phase::Connecting;
        match state {
            RunnerState::Revoked => self.lost(lost_to_revocation()),
            RunnerState::Offline { since } => self.away(since.unwrap_or(now)),
            // The store has not heard yet, or it is from before this server was started.
            RunnerState::Online => self.away(now),
        }
    }

    /// Takes the stored intent; nothing, if it was removed.
    pub fn found(&mut self, intent: Option<StoredIntent>) {
        let Some(intent) = intent else {
            self.phase = Phase::Over;
            return;
        };
        self.intent = intent;
        match self.stale.take() {
            Some((stale, refusal)) if self.epoch() <= stale => self.is_stale(refusal),
            Some(_) if self.stales > EPOCHS => self.phase = Phase::Connecting,
            _ => self.attempt(),
        }
    }

    /// The outcome was stored while the runner is away, and nothing more of the output is waited for.
    pub fn ended_elsewhere(&mut self, outcome: Outcome) {
        if let Phase::Connecting = self.phase {
            self.phase = Phase::Settling(outcome);
        }
    }

    /// The operation has begun for an earlier reader, who has left: [`super::Link::has_let_go_of`].
    pub fn begun_before(&mut self) {
        self.has_begun = true;
    }

    /// True if the request goes with what is sent now.
    pub fn sends_request(&self, now: &BootMoment) -> bool {
        self.asked_now(now).0.is_some()
    }

    /// The operation to send now, and what is left of the time to start.
    fn asked_now(&self, now: &BootMoment) -> (Option<&Operation>, Duration) {
        let intent = &self.intent;
        let has_begun = intent.outcome.is_some() || self.told_accepted || self.has_begun;
        let reads_again = has_begun && self.request().is_some_and(Request::is_download);
        // Now, and not when the intent was read, because frames reach the runner in this order. So neither of
        // two readers starts it after the other has learned that it was too late for that.
        let left = match (&self.asked, &intent.start_by) {
            (Some(asked), _) if reads_again => asked.limits.start_within,
            (_, Some(start_by)) => start_by.left(now),
            (_, None) => Duration::ZERO,
        };
        let may_start = (intent.outcome.is_none() || reads_again)
            && !intent.closed
            && !intent.cancel_requested
            && !left.is_zero()
            && self.linked == intent.incarnation;
        let asked = self.asked.as_deref();
        let asked = asked.filter(|asked| may_start && asked.epoch >= intent.epoch);
        (asked, left)
    }

    /// The frame that asks for the operation, from these offsets on; it is to be sent at once.
    pub fn frame(&mut self, from: [u64; 2], now: &BootMoment) -> v1::Operation {
        let intent = &self.intent;
        let (asked, left) = self.asked_now(now);
        let frame = v1::Operation {
            operation: self.id.to_string(),
            digest: intent.digest.as_bytes().to_vec(),
            sandbox: intent.place.sandbox.to_string(),
            owner: intent.owner.to_string(),
            epoch: self.epoch().0,
            incarnation: Some((&self.linked).into()),
            // 0 says that the request is absent on purpose, and not of a kind that is unknown there.
            start_within_ms: asked.map_or(0, |_| milliseconds(left).max(1)),
            run_for_ms: asked.map_or(0, |asked| milliseconds(asked.limits.run_for)),
            stdout_from: from[0],
            stderr_from: from[1],
            request: asked.map(|asked| wire::request(&asked.request)),
            traceparent: self.traceparent(),
            consent: asked.map(|asked| wire::consent(asked.consent)),
        };
        let start_by = intent.start_by.as_ref();
        let sent = match (asked, left.is_zero()) {
            (Some(_), _) => SentFrame::Request,
            (None, true) if start_by.is_some_and(|by| by.boot != now.boot) => {
                SentFrame::TooLateHere
            }
            (None, true) => SentFrame::TooLate,
            (None, false) => SentFrame::Nothing,
        };
        self.sent_epoch = self.epoch();
        if let Phase::Attaching = self.phase {
            self.phase = Phase::Reading(sent);
        }
        frame
    }

    /// The same for the replica that lends the link. The request also goes where it may not start, because that replica
    /// keeps the output by it: then no time is left to start.
    pub fn frame_for_holder(&mut self, from: [u64; 2], now: &BootMoment) -> v1::Operation {
        let mut frame = self.frame(from, now);
        let asked = self.asked.as_ref();
        if frame.request.is_none()
            && let Some(asked) = asked.filter(|asked| asked.epoch >= self.intent.epoch)
        {
            frame.run_for_ms = milliseconds(asked.limits.run_for);
            frame.request = Some(wire::request(&asked.request));
            frame.consent = Some(wire::consent(asked.consent));
        }
        frame
    }

    /// The operation's own span, for its runner.
    fn traceparent(&self) -> String {
        let own = SpanId::of_operation(self.id);
        let trace = self.intent.trace.map(|of| of.with(own).to_string());
        trace.unwrap_or_default()
    }

    /// The link took the frame.
    pub fn attached(&mut self) {
        if self.is_attached() {
            self.passing.attached();
            self.progress.iter_mut().for_each(OutputProgress::attached);
        }
    }

    /// The operation is to be asked for once more over the present link.
    pub fn ask_again(&mut self) {
        if self.is_attached() {
            self.phase = Phase::Finding;
        }
    }

    /// The link did not take something: the operation goes on.
    pub fn link_lost(&mut self) {
        self.steps.clear();
        self.phase = Phase::Connecting;
    }

    /// The time to wait is over.
    pub fn waited(&mut self) {
        if let Phase::Waiting(..) = self.phase {
            // Read again: a caller may want it stopped by now.
            self.phase = Phase::Finding;
        }
    }

    /// Takes the runner's answer: `true` if it never starts the operation.
    pub fn fenced(&mut self, never_starts: bool) {
        if let Phase::Fencing = self.phase {
            self.phase = match never_starts {
                true if self.intent.closed || self.intent.cancel_requested => {
                    Phase::Settling(Outcome::Refused(never_started()))
                }
                true => {
                    let why = self.no_room.take().unwrap_or_else(expired);
                    Phase::Settling(Outcome::Refused(why))
                }
                // The next link settles what this one does not answer.
                false => Phase::Connecting,
            };
        }
    }

    /// Something came over the link.
    pub fn mail(&mut self, mail: Mail) {
        let Phase::Reading(sent) = self.phase else {
            return;
        };
        match mail {
            Mail::Output {
                stream,
                offset,
                data,
            } => {
                self.progress[stream as usize].output(offset, &data);
                let event = OperationEvent::Output {
                    stream,
                    offset,
                    data,
                };
                self.output(event, stream);
            }
            Mail::Gap { stream, from, to } => {
                self.progress[stream as usize].gap(to);
                self.output(OperationEvent::Gap { stream, from, to }, stream);
            }
            Mail::Ended(outcome) => match &self.intent.outcome {
                // Only the output was missing, and an operation has one end.
                Some(stored) => self.phase = Phase::Settling(stored.clone()),
                None => self.ended(outcome),
            },
            Mail::Refused(refusal) => self.refused(refusal, sent),
            Mail::Detached => self.phase = Phase::Connecting,
            Mail::Superseded => self.phase = Phase::Over,
        }
    }

    /// Takes the reader's answer: `true` if it has stored the end that it was given.
    pub fn offered(&mut self, stored: bool) {
        let Phase::Offering(outcome) = &self.phase else {
            return;
        };
        let outcome = outcome.clone();
        self.phase = Phase::Settling(outcome.clone());
        if stored {
            self.settled(Settlement::Already(outcome));
        }
    }

    /// The outcome is stored, this one or the one before: tells the readers, after all that is known of
    /// the output.
    pub fn settled(&mut self, settled: Settlement) {
        let Phase::Settling(outcome) = std::mem::replace(&mut self.phase, Phase::Over) else {
            return;
        };
        let outcome = match settled {
            Settlement::First => outcome,
            Settlement::Already(stored) => stored,
        };
        self.tell_missing(&outcome);
        self.end(outcome);
    }

    fn epoch(&self) -> Epoch {
        let asked = self.asked.as_ref().map_or(Epoch(0), |asked| asked.epoch);
        self.intent.epoch.max(asked)
    }

    fn attempt(&mut self) {
        if let Some(outcome) = &self.intent.outcome
            && !self.output_is_missing(outcome)
        {
            self.phase = Phase::Settling(outcome.clone());
            return;
        }
        if self.intent.cancel_requested && self.intent.outcome.is_none() {
            // Before the operation itself: what the runner does not know yet must not start.
            self.steps.push_back(FollowStep::Cancel);
        }
        self.phase = Phase::Attaching;
    }

    /// The runner did not take the operation.
    fn refused(&mut self, refusal: Refusal, sent: SentFrame) {
        use RefusalCode::{Conflict, Expired, Fenced, NotFound, StaleEpoch};
        let for_now = refusal.retry_after_ms.map(Duration::from_millis);
        // A download that was to be read again waits for a runner that is full, as one does that begins. And
        // what is refused under an old epoch is there: its output is no gap.
        let waits = sent == SentFrame::Request && for_now.is_some() || refusal.code == StaleEpoch;
        if let Some(outcome) = &self.intent.outcome
            && !waits
        {
            self.phase = Phase::Settling(outcome.clone());
            return;
        }
        self.phase = match (refusal.code, for_now) {
            // These speak of this attempt to read, not of the operation: it may be running.
            (StaleEpoch, _) => {
                // A newer one may have asked since.
                self.stale = Some((self.sent_epoch, refusal));
                self.stales += 1;
                Phase::Finding
            }
            (Conflict, _) => {
                self.end(Outcome::Refused(refusal));
                Phase::Over
            }
            _ if self.linked != self.intent.incarnation => {
                Phase::Settling(Outcome::Refused(forgotten()))
            }
            (NotFound, _) if sent != SentFrame::Request => self.unknown_there(sent),
            (_, Some(after)) if sent == SentFrame::Request && after <= RESEND_AFTER_AT_MOST => {
                self.no_room = Some(refusal.clone());
                Phase::Waiting(after.max(RESEND_AFTER_AT_LEAST), refusal)
            }
            (Expired, _) => {
                let why = self.no_room.take().unwrap_or(refusal);
                Phase::Settling(Outcome::Refused(why))
            }
            _ if sent == SentFrame::Request || refusal.code == Fenced => {
                Phase::Settling(Outcome::Refused(refusal))
            }
            // It speaks of this attempt; the next link makes another.
            _ => Phase::Connecting,
        };
    }

    /// The runner does not know the operation, and was not sent its request.
    fn unknown_there(&mut self, sent: SentFrame) -> Phase {
        let is_given_up = self.intent.closed || self.intent.cancel_requested;
        if is_given_up || sent == SentFrame::TooLateHere {
            return Phase::Fencing;
        }
        if sent == SentFrame::TooLate {
            let why = self.no_room.take().unwrap_or_else(expired);
            return Phase::Settling(Outcome::Refused(why));
        }
        let asked = self.asked.as_ref();
        match asked.is_some_and(|asked| asked.epoch >= self.intent.epoch) {
            // A caller has asked for it since.
            true => Phase::Finding,
            // A caller that may send it asks for it again.
            false => Phase::Over,
        }
    }

    /// There is no newer epoch than the one that the runner found too old.
    fn is_stale(&mut self, refusal: Refusal) {
        self.phase = match (&self.asked, &self.intent.outcome) {
            (Some(_), None) => {
                self.end(Outcome::Refused(refusal));
                Phase::Over
            }
            _ => Phase::Connecting,
        };
    }

    fn lost(&mut self, refusal: Refusal) {
        self.phase = Phase::Settling(Outcome::Refused(refusal));
    }

    fn away(&mut self, since: Timestamp) {
        if !self.told_unreachable {
            self.told_unreachable = true;
            let event = OperationEvent::Unreachable { since };
            self.steps.push_back(FollowStep::Tell(event));
        }
    }

    fn end(&mut self, outcome: Outcome) {
        let ended = OperationEvent::Ended(outcome);
        self.steps.push_back(FollowStep::Tell(ended));
    }
}

/// Whole milliseconds.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

mod output;
mod passing;

#[cfg(test)]
mod tests;
