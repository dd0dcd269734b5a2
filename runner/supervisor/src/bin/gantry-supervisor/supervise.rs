//! The time while the command runs: one loop that waits for everything.

mod ending;
mod listening;
mod over;

use std::time::Duration;

use runner_supervisor::{
    Cause, CommandRequest, FaultPoint, FromSupervisor, ReportedEnd, SpoolStream, StartRecord,
    ToSupervisor, WireFrame, unrenewed_for,
};
use rustix::{fd::OwnedFd, io::Errno, process::Signal};

use crate::{
    carried::{Carried, NotDone},
    client::ControlClient,
    clock,
    faults::Faults,
    gate::StartedChild,
    input::CommandInput,
    layout::Ends,
    prepare::Prepared,
    stream::Pump,
    sys::{self, Collected},
    terminal, victims, waiting,
};
use ending::{FIRST_MOMENT, Phase};
pub(crate) use over::EndedSupervision;

/// The command's first process.
#[derive(Debug)]
pub(crate) struct Child {
    process: StartedChild,
    opened: Duration,
    /// The record for the daemon, until it is sent.
    start: Option<StartRecord>,
    ended: Option<(Collected, Duration)>,
    /// Kills for want of memory on this host before it can have been one.
    memory_kills: Option<u64>,
}

impl Child {
    pub(crate) fn new(process: StartedChild, opened: Duration, start: StartRecord) -> Self {
        Self {
            process,
            opened,
            start: Some(start),
            ended: None,
            memory_kills: None,
        }
    }

    /// True if it was killed for want of memory, or reports a child that was: the host tells only
    /// how many were killed.
    fn ran_out_of_memory(&self) -> bool {
        self.ended
            .is_some_and(|(collected, _)| victims::can_be_victim(collected.status))
            && victims::kills()
                .zip(self.memory_kills)
                .is_some_and(|(now, before)| now > before)
    }

    /// Its own report, once it is collected.
    fn end(&self, program: &[u8]) -> ReportedEnd {
        let Some((collected, _)) = self.ended else {
            return ReportedEnd::Unknown;
        };
        if let Some(reason) = self.process.not_executed(collected.status, program) {
            return ReportedEnd::NotStarted(reason);
        }
        match collected.status {
            Ok(code) => ReportedEnd::Code(code),
            Err(signal) => ReportedEnd::Signal(signal),
        }
    }
}

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Supervision {
    prepared: Prepared,
    request: CommandRequest,
    client: Option<ControlClient>,
    faults: Faults,
    child: Child,
    pumps: Vec<Pump>,
    input: CommandInput,
    terminal: Option<OwnedFd>,
    began: Duration,
    phase: Phase,
    /// The reason to end it, once there is one; the first one counts.
    cause: Option<Cause>,
    /// The length of each stream that the daemon knows it can read.
    told: [u64; 2],
    /// True if the daemon holds input back until there is room.
    input_owed: bool,
    carried: Carried,
}

impl Supervision {
    pub(crate) fn new(
        prepared: Prepared,
        request: &CommandRequest,
        client: Option<ControlClient>,
        faults: Faults,
        child: Child,
        ends: Ends,
        began: Duration,
    ) -> Self {
        Self {
            prepared,
            request: request.clone(),
            client,
            faults,
            child,
            pumps: ends.pumps,
            input: ends.input,
            terminal: ends.terminal,
            began,
            phase: Phase::Running,
            cause: None,
            told: [0; 2],
            input_owed: false,
            carried: Carried::default(),
        }
    }

    /// Serves the command until it is over and written down.
    pub(crate) fn run(mut self) -> EndedSupervision {
        // Frames that came together with the request are here already, and wake nothing.
        self.heed();
        while !self.advance() {
            let ready = self.listen();
            let now = clock::monotonic();
            if ready.signals {
                if sys::asked_to_end(&self.prepared.signals) {
                    self.want_end(Cause::Orphaned);
                }
                self.reap();
            }
            if !self.has_just_begun(now) {
                self.attend_start();
            }
            if ready.orphan && self.prepared.orphan.is_over() {
                self.want_end(Cause::Orphaned);
            }
            if ready.output {
                self.pump(now);
            }
            if ready.input {
                self.input.pump();
            }
            if ready.listener
                && let Some(client) = ControlClient::accept(&self.prepared.listener)
            {
                self.attach(client);
            }
            if ready.desk
                && let Some(desk) = self.open_desk()
            {
                desk.attend();
            }
            if ready.client {
                self.hear();
            }
            self.tell(now);
        }
        self.finish()
    }

    /// A daemon that connects later takes the place of an earlier one.
    fn attach(&mut self, mut client: ControlClient) {
        let identity = &self.prepared.identity;
        client.say(&waiting::hello(
            identity,
            self.input.taken(),
            self.carried.last_id(),
        ));
        self.told = [0; 2];
        self.client = Some(client);
    }

    /// True if the command has its first moment, in which this process would only keep it from the
    /// processor. For a command that is over by then only the end is reported.
    fn has_just_begun(&self, now: Duration) -> bool {
        self.child.start.is_some() && now < self.child.opened.saturating_add(FIRST_MOMENT)
    }

    /// Does the work that can wait until the command has had its first moment.
    fn attend_start(&mut self) {
        let Some(start) = self.child.start.take() else {
            return;
        };
        // One that is over already had no time to use up the host's memory.
        if self.child.ended.is_none() {
            self.child.memory_kills = victims::kills();
        }
        if let Some(client) = &mut self.client {
            client.say(&FromSupervisor::Started(start));
        }
        self.faults.at(FaultPoint::StartTold, self.client.as_ref());
    }

    /// Reads what the daemon says.
    fn hear(&mut self) {
        if let Some(client) = &mut self.client {
            client.flush();
            client.fill();
        }
        self.heed();
    }

    /// Does what the daemon has said.
    fn heed(&mut self) {
        let Some(mut client) = self.client.take() else {
            return;
        };
        while let Some(frame) = client.next() {
            if let Err(reason) = self.obey(&mut client, frame) {
                client.say(&FromSupervisor::Refused { reason });
            }
        }
        self.client = Some(client).filter(|client| !client.is_gone());
    }

    fn obey(
        &mut self,
        client: &mut ControlClient,
        frame: WireFrame<ToSupervisor>,
    ) -> Result<(), String> {
        match frame.head {
            ToSupervisor::Input { offset, end } => {
                let accepted = self.input.accept(offset, &frame.bytes, end);
                let offered = offset.saturating_add(frame.bytes.len() as u64);
                self.input_owed = accepted.is_ok() && self.input.taken() < offered;
                client.say(&FromSupervisor::InputTaken {
                    offset: self.input.taken(),
                });
                accepted
            }
            ToSupervisor::Commit { stream, offset } => {
                if let Some(pump) = self.pumps.get_mut(stream.index()) {
                    let Prepared { buffer, gaps, .. } = &mut self.prepared;
                    pump.commit(offset, buffer, gaps, clock::monotonic());
                }
                Ok(())
            }
            ToSupervisor::Cancel => {
                self.want_end(Cause::Cancelled);
                Ok(())
            }
            ToSupervisor::Renew { orphan_for } => {
                let set = self.prepared.orphan.set(self.orphan_after(orphan_for));
                set.map_err(|error| error.to_string())
            }
            ToSupervisor::Resize { id, rows, columns } => self.once(client, id, |this| {
                let terminal = this.terminal.as_ref().ok_or("it has no terminal")?;
                terminal::resize(terminal, rows, columns).map_err(|error| error.to_string())
            }),
            ToSupervisor::Signal { id, signal } => {
                self.once(client, id, |this| this.signal_group(signal))
            }
            ToSupervisor::Start { .. } => Err("the one request was taken already".to_owned()),
            ToSupervisor::Again => Err("the command has not ended yet".to_owned()),
            ToSupervisor::Hello { .. } | ToSupervisor::Unknown => {
                Err("this supervisor does not know that kind of frame".to_owned())
            }
        }
    }

    /// When a renewal for this long is over: with zero at once, else not before the command's own
    /// time is.
    fn orphan_after(&self, orphan_for: Duration) -> Duration {
        if orphan_for.is_zero() {
            return orphan_for;
        }
        let ran = clock::monotonic().saturating_sub(self.child.opened);
        let run_for = self.request.terms.run_for;
        unrenewed_for(
            orphan_for,
            run_for.map(|run_for| run_for.saturating_sub(ran)),
        )
    }

    /// Carries something out unless it was before.
    fn once(
        &mut self,
        client: &mut ControlClient,
        id: u64,
        act: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let answer = match self.carried.answer(id) {
            Some(answer) => answer,
            None => {
                let answer = act(self).map_err(NotDone::from);
                self.carried.keep(id, answer.clone());
                answer
            }
        };
        client.say(&match answer {
            Ok(()) => FromSupervisor::Done { id },
            Err(NotDone { reason, overtaken }) => FromSupervisor::NotDone {
                id,
                reason,
                overtaken,
            },
        });
        Ok(())
    }

    fn signal_group(&self, signal: i32) -> Result<(), String> {
        let signal = Signal::from_named_raw(signal).ok_or("there is no such signal")?;
        // Once it is collected, its number can belong to another process.
        if self.child.ended.is_some() {
            return Err("its first process has ended".to_owned());
        }
        let sent = match rustix::process::kill_process_group(self.child.process.pid, signal) {
            // It was made a moment ago and has no group yet.
            Err(Errno::SRCH) => rustix::process::kill_process(self.child.process.pid, signal),
            sent => sent,
        };
        sent.map_err(|error| error.to_string())
    }

    fn pump(&mut self, now: Duration) {
        let before: u64 = self.pumps.iter().map(Pump::readable).sum();
        for pump in &mut self.pumps {
            pump.pump(&mut self.prepared.buffer, now);
        }
        if before == 0 && self.pumps.iter().any(|pump| pump.readable() > 0) {
            self.faults
                .at(FaultPoint::OutputWritten, self.client.as_ref());
        }
        if self.pumps.iter().any(Pump::is_disk_full) {
            self.want_end(Cause::DiskFull);
        }
    }

    /// Sends the news to the daemon, unless the frames before are still on their way.
    fn tell(&mut self, now: Duration) {
        let just_begun = self.has_just_begun(now);
        let Some(client) = &mut self.client else {
            return;
        };
        if self.input_owed && self.input.has_room() {
            self.input_owed = false;
            client.say(&FromSupervisor::InputTaken {
                offset: self.input.taken(),
            });
        }
        let mut readable = [0; 2];
        for (stream, pump) in SpoolStream::ALL.into_iter().zip(&self.pumps) {
            readable[stream.index()] = pump.readable();
        }
        if readable != self.told && !just_begun && !client.is_behind() {
            self.told = readable;
            let [out, err] = readable;
            client.say(&FromSupervisor::Output { out, err });
        }
        if client.is_gone() {
            self.client = None;
        }
    }

    /// Collects every child that has ended: the command's first process for its record, others
    /// because no other process can.
    fn reap(&mut self) {
        while let Some(pid) = sys::ended_child() {
            let ours = pid == self.child.process.pid && self.child.ended.is_none();
            if ours {
                self.faults.at(FaultPoint::ChildEnded, self.client.as_ref());
            }
            let Ok(collected) = sys::collect(pid) else {
                return;
            };
            if ours {
                self.child.ended = Some((collected, clock::monotonic()));
            }
        }
    }
}
