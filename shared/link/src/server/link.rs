//! One link as the server sees it, from its welcome on: verdicts on the inventory, who reads
//! what, signs of life both ways.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use proto::v1::{self, runner_frame, server_frame};
use shared_sandbox::{CancelAnswer, OutputStream};
use shared_types::{Epoch, Generation, Incarnation, OperationId, Owner, Refusal, SandboxId};

use super::{
    hello::HelloFacts,
    subscriptions::{Post, Reader, Subscriptions},
};
use crate::{
    pulse::{Beat, Pulse},
    wire::{self, AnswerPart, Figures, Malformed, ModelsReport, SandboxReport},
};

/// Reports of different sandboxes that wait to be taken, at most: more than a pool may have.
pub const MAX_REPORTS: usize = 20_000;

/// The times of a link.
#[derive(Debug, Clone, Copy)]
pub struct LinkTimes {
    /// The time between the heartbeats of each end, 20 % more or less.
    pub heartbeat_every: Duration,
    /// After this long without a frame the runner opens a new link.
    pub silence: Duration,
    /// After this long without a frame the server ends the link.
    pub lease: Duration,
}

/// A command from another task of the server to a link.
#[derive(Debug)]
pub enum LinkCommand<P> {
    /// Send the operation; its output goes to this reader, in place of an earlier one.
    Attach {
        /// The operation.
        id: OperationId,
        /// The frame that asks for it.
        frame: Box<v1::Operation>,
        /// The reader of its output.
        reader: Reader<P>,
    },
    /// A reader has more room; nothing, if another one has taken its place.
    Grant {
        /// The operation.
        id: OperationId,
        /// The reader's key.
        reader: u64,
        /// The stream.
        stream: OutputStream,
        /// The first byte that there is no room for.
        up_to: u64,
    },
    /// Pass something on to it; nothing, if another reader has taken its place.
    Pass {
        /// The operation.
        id: OperationId,
        /// The reader's key.
        reader: u64,
        /// The frame to send ([`super::Follow::passed_on`]).
        frame: Box<server_frame::Kind>,
    },
    /// Stop it, or never start it.
    Cancel {
        /// The operation.
        id: OperationId,
        /// The owner that it belongs to.
        owner: Owner,
        /// The owner's epoch.
        epoch: Epoch,
    },
    /// The runner may drop it, unless it has a reader.
    Forget {
        /// The operation.
        id: OperationId,
    },
    /// The reader of a read has left: the runner lets go of it. Does nothing if another reader has taken
    /// the place.
    LetGo {
        /// The operation.
        id: OperationId,
        /// The reader's key.
        reader: u64,
    },
    /// Something is to become of a sandbox of the runner's pool.
    Sandbox(Box<server_frame::Kind>),
    /// Something about an ask of the runner's model server ([`wire::model_ask`]).
    Model(Box<server_frame::Kind>),
}

/// The runner's answer to a cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelAnswered {
    /// The operation.
    pub id: OperationId,
    /// The answer, or the reason why there is none.
    pub answer: Result<CancelAnswer, Refusal>,
}

/// The reason why a link is over, as far as the protocol tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkOver {
    /// The runner said goodbye, for this reason; its next daemon will link again.
    Goodbye(String),
    /// The runner left for good, for this reason: it has nothing left to do or to tell.
    Left(String),
    /// No frame came for as long as the lease.
    Silent,
    /// The runner broke the protocol.
    Violation(String),
}

/// The decision about an operation that a runner remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReconcileVerdict {
    /// A reader waits for it, or will.
    Keep {
        /// The length of its stdout and stderr that is durable here, so that the runner need not keep it.
        /// 0 for output that is left to its reader: only that reader says how much is durable.
        committed: [u64; 2],
    },
    /// It is to be stopped; its end is collected.
    Cancel {
        /// The owner that it belongs to.
        owner: Owner,
        /// The owner's epoch.
        epoch: Epoch,
    },
    /// Its outcome and output are stored, or no reader will ever want them: the runner drops it.
    Forget,
    /// No reader waits for it: its output and its end are collected.
    Collect,
}

/// See the module.
#[derive(Debug)]
pub struct Link<P> {
    incarnation: Incarnation,
    /// The highest journal sequence that the runner has shown.
    accepted: u64,
    subscriptions: Subscriptions<P>,
    /// Frames for the runner.
    outgoing: VecDeque<server_frame::Kind>,
    pulse: Pulse,
    /// The last report of each of the pool's sandboxes, until it is taken.
    reports: HashMap<SandboxId, SandboxReport>,
    /// The runner's figures, until they are taken.
    figures: Option<Figures>,
    /// The last report of the runner's models, until it is taken.
    models: Option<ModelsReport>,
    /// The piece of a model's answer that the last frame brought, until it is taken.
    answered: Option<(u64, AnswerPart)>,
}

impl<P: Post> Link<P> {
    /// A link that was claimed under this generation; the welcome is the first frame.
    pub fn new(
        facts: &HelloFacts,
        generation: Generation,
        times: LinkTimes,
        now: Duration,
    ) -> Self {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let welcome = server_frame::Kind::Welcome(v1::Welcome {
            generation: generation.0,
            protocol_version: facts.protocol_version,
            heartbeat_every_ms: milliseconds(times.heartbeat_every),
            silence_ms: milliseconds(times.silence),
        });
        Self {
            incarnation: facts.incarnation.clone(),
            accepted: facts.journal_sequence,
            subscriptions: Subscriptions::new(),
            outgoing: VecDeque::from([welcome]),
            pulse: Pulse::new(now, times.heartbeat_every, times.lease),
            reports: HashMap::new(),
            figures: None,
            models: None,
            answered: None,
        }
    }

    /// A link that another replica holds and lends to this one. That one has welcomed the runner and hears of its
    /// signs of life.
    pub fn borrowed(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            accepted: 0,
            subscriptions: Subscriptions::new(),
            outgoing: VecDeque::new(),
            pulse: Pulse::new(Duration::ZERO, Duration::MAX, Duration::MAX),
            reports: HashMap::new(),
            figures: None,
            models: None,
            answered: None,
        }
    }

    /// Queues the answers to the runner's inventory, ahead of all other frames. Returns the operations to
    /// collect, in the inventory's order; their collectors report what is durable.
    pub fn judge(&mut self, verdicts: Vec<(OperationId, ReconcileVerdict)>) -> Vec<OperationId> {
        let (mut collected, mut commits) = (Vec::new(), Vec::new());
        for (id, verdict) in verdicts {
            match verdict {
                ReconcileVerdict::Keep { committed } => commits.extend(said_of(id, committed)),
                ReconcileVerdict::Forget => self.outgoing.push_back(wire::forget(id)),
                ReconcileVerdict::Collect => collected.push(id),
                ReconcileVerdict::Cancel { owner, epoch } => {
                    let cancel = wire::cancel(id, owner, epoch, &self.incarnation);
                    self.outgoing.push_back(cancel);
                    collected.push(id);
                }
            }
        }
        // The cancels go first, so that no operation that must stop waits for the commits.
        self.outgoing.extend(commits);
        collected
    }

    /// A frame came; that the runner has sealed it was looked at before.
    ///
    /// # Errors
    /// The link is over.
    pub fn frame(
        &mut self,
        frame: v1::RunnerFrame,
        now: Duration,
    ) -> Result<Option<CancelAnswered>, LinkOver> {
        use runner_frame::Kind;
        self.pulse.heard(now);
        let handled = match frame.kind {
            // Nothing that this build knows: a newer runner may say more.
            None => Ok(()),
            Some(Kind::Heartbeat(beat)) => {
                self.figures = wire::read_figures(beat).or(self.figures);
                Ok(())
            }
            Some(Kind::SandboxReport(report)) => {
                wire::read_report(&report).map(|report| self.reported(report))
            }
            Some(Kind::ModelsReport(report)) => {
                self.models = Some(wire::read_models_report(report));
                Ok(())
            }
            Some(Kind::ModelAnswer(answer)) => {
                wire::read_model_answer(answer).map(|answer| self.answered = answer)
            }
            Some(Kind::Proof(_) | Kind::Hello(_)) => {
                Err(Malformed::new("a second first message came"))
            }
            Some(Kind::Sealed(_)) => Err(Malformed::new("a frame came within another")),
            Some(Kind::Goodbye(goodbye)) if goodbye.for_good => {
                return Err(LinkOver::Left(wire::words(&goodbye.reason)));
            }
            Some(Kind::Goodbye(goodbye)) => {
                return Err(LinkOver::Goodbye(wire::words(&goodbye.reason)));
            }
            Some(Kind::Accepted(accepted)) => {
                wire::number("the journal's sequence", accepted.journal_sequence).and_then(
                    |sequence| {
                        self.accepted = self.accepted.max(sequence);
                        self.subscriptions.accepted(&accepted)
                    },
                )
            }
            Some(Kind::Output(output)) => self.subscriptions.output(output),
            Some(Kind::Gap(gap)) => self.subscriptions.gap(&gap),
            Some(Kind::Ended(ended)) => self.subscriptions.ended(ended),
            Some(Kind::InputTaken(taken)) => self.subscriptions.input_taken(taken),
            Some(Kind::Done(done)) => self.subscriptions.done(done),
            Some(Kind::CancelAnswer(frame)) => {
                return cancel_answered(frame)
                    .map(Some)
                    .map_err(|malformed| LinkOver::Violation(malformed.to_string()));
            }
        };
        handled
            .map(|()| None)
            .map_err(|malformed| LinkOver::Violation(malformed.to_string()))
    }

    fn reported(&mut self, report: SandboxReport) {
        if self.reports.len() < MAX_REPORTS || self.reports.contains_key(&report.sandbox) {
            self.reports.insert(report.sandbox, report);
        }
    }

    /// The reports of the pool's sandboxes since the last call.
    pub fn take_reports(&mut self) -> Vec<SandboxReport> {
        std::mem::take(&mut self.reports).into_values().collect()
    }

    /// The replica that lends the link has no reader for this operation any more: another one has taken its place.
    pub fn superseded(&mut self, id: OperationId) {
        self.subscriptions.superseded(id);
    }

    /// The runner's figures, where they came since the last call.
    pub fn take_figures(&mut self) -> Option<Figures> {
        self.figures.take()
    }

    /// The last report of the runner's models, where one came since the last call.
    pub fn take_models(&mut self) -> Option<ModelsReport> {
        self.models.take()
    }

    /// The piece of a model's answer that the last frame brought, with the number of its ask.
    pub fn take_answered(&mut self) -> Option<(u64, AnswerPart)> {
        self.answered.take()
    }

    /// The number of operations that the runner has accepted since its journal began, by its own report.
    /// A runner that reports less in a later first message has gone back ([`HelloFacts::went_back`]).
    pub fn accepted_sequence(&self) -> u64 {
        self.accepted
    }

    /// True if the runner had begun this operation, and let go of it because its reader had left. Only
    /// the latest such operations are known.
    pub fn has_let_go_of(&self, id: OperationId) -> bool {
        self.subscriptions.has_left(id)
    }

    /// Carries out a command.
    pub fn command(&mut self, command: LinkCommand<P>) {
        let kind = match command {
            LinkCommand::Attach { id, frame, reader } => {
                if !self.subscriptions.attach(id, reader) {
                    return;
                }
                server_frame::Kind::Operation(frame)
            }
            // The room is the earlier reader's: the present one counts from its own place.
            LinkCommand::Grant { id, reader, .. } | LinkCommand::Pass { id, reader, .. }
                if !self.subscriptions.is_read_by(id, reader) =>
            {
                return;
            }
            LinkCommand::Pass { frame, .. } => *frame,
            LinkCommand::Grant {
                id, stream, up_to, ..
            } => server_frame::Kind::Credit(v1::Credit {
                operation: id.to_string(),
                stream: wire::stream_to_wire(stream),
                up_to,
            }),
            LinkCommand::Cancel { id, owner, epoch } => {
                wire::cancel(id, owner, epoch, &self.incarnation)
            }
            // A reader would wait for its end in vain; the next inventory names it again.
            LinkCommand::Forget { id } if self.subscriptions.is_read(id) => return,
            LinkCommand::Forget { id } => wire::forget(id),
            LinkCommand::LetGo { id, reader } => {
                if !self.subscriptions.leave(id, reader) {
                    return;
                }
                wire::let_go(id)
            }
            LinkCommand::Sandbox(frame) | LinkCommand::Model(frame) => *frame,
        };
        self.outgoing.push_back(kind);
    }

    /// When [`Link::tick`] is to be called, at the latest.
    pub fn wake_at(&self) -> Duration {
        self.pulse.wake_at()
    }

    /// Time has passed: may queue a sign of life, which `random` spreads.
    ///
    /// # Errors
    /// The runner was silent for too long.
    pub fn tick(&mut self, now: Duration, random: u8) -> Result<(), LinkOver> {
        match self.pulse.tick(now, random) {
            Beat::Silent => return Err(LinkOver::Silent),
            // Where frames wait already, they are the sign of life.
            Beat::Due if self.outgoing.is_empty() => {
                let beat = server_frame::Kind::Heartbeat(v1::Heartbeat::default());
                self.outgoing.push_back(beat);
            }
            Beat::Due | Beat::Nothing => {}
        }
        Ok(())
    }

    /// True if [`Link::next_frame`] has something; commands must wait until it has not.
    pub fn has_frames(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// The next frame for the runner.
    pub fn next_frame(&mut self) -> Option<v1::ServerFrame> {
        self.outgoing.pop_front().map(wire::from_server)
    }
}

/// The frames that tell the runner how much is committed of an operation that it keeps.
fn said_of(id: OperationId, committed: [u64; 2]) -> impl Iterator<Item = server_frame::Kind> {
    let streams = [OutputStream::Stdout, OutputStream::Stderr].into_iter();
    let committed = streams.zip(committed).filter(|(_, up_to)| *up_to > 0);
    committed.map(move |(stream, up_to)| wire::commit(id, stream, up_to))
}

fn cancel_answered(frame: v1::CancelAnswer) -> Result<CancelAnswered, Malformed> {
    let id = wire::operation_id(&frame.operation)?;
    let answer = wire::cancel_answer(frame)?;
    Ok(CancelAnswered { id, answer })
}

#[cfg(test)]
mod tests;
