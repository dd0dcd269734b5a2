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
    subscriptions::{Post, Subscriptions},
};
use crate::{
    pulse::{Beat, Pulse},
    wire::{self, Expects, Figures, Malformed, SandboxReport},
};

/// Reports of different sandboxes that wait to be taken, at most: more than a pool may have.
pub const MAX_REPORTS: usize = 20_000;

/// The times of a link.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// How often each end says that it lives, 20 % more or less.
    pub heartbeat_every: Duration,
    /// After this long without a frame the runner connects anew.
    pub silence: Duration,
    /// After this long without a frame the server ends the link.
    pub lease: Duration,
}

/// What others want of a link.
#[derive(Debug)]
pub enum Command<P> {
    /// Send the operation; what comes back goes to the reader, in place of an earlier one's.
    Attach {
        /// Which operation.
        id: OperationId,
        /// The frame that asks for it.
        frame: Box<v1::Operation>,
        /// Who reads it.
        reader: Reader<P>,
    },
    /// A reader has more room; nothing, if another one has taken its place.
    Grant {
        /// Which operation.
        id: OperationId,
        /// The reader's key.
        reader: u64,
        /// Which of its streams.
        stream: OutputStream,
        /// The first byte that there is no room for.
        up_to: u64,
    },
    /// Pass something on to it; nothing, if another reader has taken its place.
    Pass {
        /// Which operation.
        id: OperationId,
        /// The reader's key.
        reader: u64,
        /// What is sent ([`super::Follow::passed_on`]).
        frame: Box<server_frame::Kind>,
    },
    /// Stop it, or never start it.
    Cancel {
        /// Which operation.
        id: OperationId,
        /// What it belongs to.
        owner: Owner,
        /// The owner's epoch.
        epoch: Epoch,
    },
    /// The runner may drop it, unless somebody reads it.
    Forget {
        /// Which operation.
        id: OperationId,
    },
    /// The reader of what only reads has left: the runner lets go of it; nothing, if another reader has
    /// taken its place.
    LetGo {
        /// Which operation.
        id: OperationId,
        /// The reader's key.
        reader: u64,
    },
    /// Something is to become of a sandbox of the runner's pool.
    Sandbox(Box<server_frame::Kind>),
}

/// Who reads an operation's output.
#[derive(Debug)]
pub struct Reader<P> {
    /// Tells the readers on one link apart.
    pub key: u64,
    /// Where it goes.
    pub post: P,
    /// How an operation of this kind can end.
    pub expects: Expects,
    /// Makes way for another reader that is there already.
    pub yields: bool,
}

/// What became of a cancel, as the runner says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelAnswered {
    /// Of which operation.
    pub id: OperationId,
    /// What it is, or why there is none.
    pub answer: Result<CancelAnswer, Refusal>,
}

/// Why a link is over, as far as the protocol tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// The runner said goodbye, for this reason; its next daemon will link again.
    Goodbye(String),
    /// The runner left for good, for this reason: it has nothing left to do or to tell.
    Left(String),
    /// Nothing was heard for as long as the lease.
    Silent,
    /// The runner broke the protocol.
    Violation(String),
}

/// What is to become of an operation that a runner remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody waits for it, or will.
    Keep {
        /// How much of its stdout and stderr the runner need not keep any more: it is durable here.
        /// 0 of what is left to its reader, who alone says how much that is.
        committed: [u64; 2],
    },
    /// It is to be stopped; its end is collected.
    Cancel {
        /// What it belongs to.
        owner: Owner,
        /// The epoch of that.
        epoch: Epoch,
    },
    /// Its outcome and output are stored, or nobody will ever want them: the runner drops it.
    Forget,
    /// Nobody waits for it: its output and its end are collected.
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
    /// What the runner said of its pool's sandboxes, until it is taken; of each the last.
    reports: HashMap<SandboxId, SandboxReport>,
    /// How the runner is, until it is taken.
    figures: Option<Figures>,
}

impl<P: Post> Link<P> {
    /// A link that was claimed under this generation; the welcome is the first frame.
    pub fn new(facts: &HelloFacts, generation: Generation, times: Times, now: Duration) -> Self {
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
        }
    }

    /// Queues the answers to the runner's inventory, before anything else is said; returns what
    /// is to be collected, in the inventory's order: what is durable of that is told by its collector.
    pub fn judge(&mut self, verdicts: Vec<(OperationId, Verdict)>) -> Vec<OperationId> {
        let (mut collected, mut commits) = (Vec::new(), Vec::new());
        for (id, verdict) in verdicts {
            match verdict {
                Verdict::Keep { committed } => commits.extend(said_of(id, committed)),
                Verdict::Forget => self.outgoing.push_back(wire::forget(id)),
                Verdict::Collect => collected.push(id),
                Verdict::Cancel { owner, epoch } => {
                    let cancel = wire::cancel(id, owner, epoch, &self.incarnation);
                    self.outgoing.push_back(cancel);
                    collected.push(id);
                }
            }
        }
        // What is to be stopped is not to wait for them.
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
    ) -> Result<Option<CancelAnswered>, Over> {
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
            Some(Kind::Proof(_) | Kind::Hello(_)) => {
                Err(Malformed::new("a second first message came"))
            }
            Some(Kind::Sealed(_)) => Err(Malformed::new("a frame came within another")),
            Some(Kind::Goodbye(goodbye)) if goodbye.for_good => {
                return Err(Over::Left(wire::words(&goodbye.reason)));
            }
            Some(Kind::Goodbye(goodbye)) => {
                return Err(Over::Goodbye(wire::words(&goodbye.reason)));
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
                    .map_err(|malformed| Over::Violation(malformed.to_string()));
            }
        };
        handled
            .map(|()| None)
            .map_err(|malformed| Over::Violation(malformed.to_string()))
    }

    fn reported(&mut self, report: SandboxReport) {
        if self.reports.len() < MAX_REPORTS || self.reports.contains_key(&report.sandbox) {
            self.reports.insert(report.sandbox, report);
        }
    }

    /// What the runner has said of its pool's sandboxes since this was asked last.
    pub fn take_reports(&mut self) -> Vec<SandboxReport> {
        std::mem::take(&mut self.reports).into_values().collect()
    }

    /// How the runner says it is, where it has since this was asked last.
    pub fn take_figures(&mut self) -> Option<Figures> {
        self.figures.take()
    }

    /// Operations that the runner has accepted since its journal began, by its own word. Whoever
    /// says less in a later first message has gone back ([`HelloFacts::went_back`]).
    pub fn accepted_sequence(&self) -> u64 {
        self.accepted
    }

    /// Whether the runner has begun this operation, and has let go of it because its reader had left; not
    /// known any more of those that did so long ago.
    pub fn has_let_go_of(&self, id: OperationId) -> bool {
        self.subscriptions.has_left(id)
    }

    /// Does what others want.
    pub fn command(&mut self, command: Command<P>) {
        let kind = match command {
            Command::Attach { id, frame, reader } => {
                if !self.subscriptions.attach(id, reader) {
                    return;
                }
                server_frame::Kind::Operation(frame)
            }
            // The room is the earlier reader's: the present one counts from its own place.
            Command::Grant { id, reader, .. } | Command::Pass { id, reader, .. }
                if !self.subscriptions.is_read_by(id, reader) =>
            {
                return;
            }
            Command::Pass { frame, .. } => *frame,
            Command::Grant {
                id, stream, up_to, ..
            } => server_frame::Kind::Credit(v1::Credit {
                operation: id.to_string(),
                stream: wire::stream_to_wire(stream),
                up_to,
            }),
            Command::Cancel { id, owner, epoch } => {
                wire::cancel(id, owner, epoch, &self.incarnation)
            }
            // Whoever reads it would wait for its end in vain; the next inventory says it again.
            Command::Forget { id } if self.subscriptions.is_read(id) => return,
            Command::Forget { id } => wire::forget(id),
            Command::LetGo { id, reader } => {
                if !self.subscriptions.leave(id, reader) {
                    return;
                }
                wire::let_go(id)
            }
            Command::Sandbox(frame) => *frame,
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
    pub fn tick(&mut self, now: Duration, random: u8) -> Result<(), Over> {
        match self.pulse.tick(now, random) {
            Beat::Silent => return Err(Over::Silent),
            // Where frames wait already, they are the sign of life.
            Beat::Due if self.outgoing.is_empty() => {
                let beat = server_frame::Kind::Heartbeat(v1::Heartbeat::default());
                self.outgoing.push_back(beat);
            }
            Beat::Due | Beat::Nothing => {}
        }
        Ok(())
    }

    /// Whether [`Link::next_frame`] has something; commands are to wait until it has not.
    pub fn has_frames(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// The next frame for the runner.
    pub fn next_frame(&mut self) -> Option<v1::ServerFrame> {
        self.outgoing.pop_front().map(wire::from_server)
    }
}

/// What the runner is told to be committed of an operation that it keeps.
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
