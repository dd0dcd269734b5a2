//! The start of operations that the server asks for.

use std::{future::Future, pin::Pin, time::Duration};

use futures_util::{Stream, StreamExt as _};
use runner_host::{CommandPlan, HostEvent, Uploading};
use runner_supervisor::{SpoolBounds, Sync, WhenFull};
use shared_sandbox::{
    Exec, ExitCause, ExitRecord, ExitStatus, NotStarted, Outcome, Request, Retention, StreamEnd,
};
use shared_telemetry::runner::OPERATION_START_DURATION;
use shared_types::{
    OperationId, Refusal, RefusalCode, SandboxId,
    limits::{KILL_GRACE, RETAINED_TAIL_BYTES, SPOOL_BYTES_PER_STREAM},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{
    OperationsService,
    claim::Claim,
    work::{Happened, OpenUpload, OperationControl, no_room},
};
use crate::{
    journal::JournalError,
    processes::{PassingControls, Process, ProcessTerms, Processes, WaitingSupervisor},
    sandboxes::ServedSandbox,
};

/// A command and the supervisor that is to run it, once both are there.
pub(super) type Starting = Pin<Box<dyn Future<Output = (OperationId, Taken)> + Send>>;

/// The times that an operation is given.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartTimes {
    /// When it was taken up, on the boot-time clock.
    pub(super) taken_up: Duration,
    /// When it must have started, on the boot-time clock: time in which the host is suspended
    /// counts.
    pub(super) start_by: Duration,
    /// The longest time that it may run.
    pub(super) run_for: Duration,
}

/// The result of preparing a command.
pub(super) struct Taken {
    /// The parts for the start; else its end.
    ready: Result<Ready, Outcome>,
    times: StartTimes,
    /// Its place is in the journal, and on the disk.
    placed: bool,
}

/// The parts that a command needs to start.
struct Ready {
    plan: CommandPlan,
    waiting: WaitingSupervisor,
    processes: Processes,
}

impl Ready {
    /// The place that is to be written down.
    fn place(&self) -> &str {
        self.waiting.name()
    }
}

impl OperationsService {
    /// Something was accepted that may start: it is written down, and begun.
    pub(super) fn begin(
        &mut self,
        id: OperationId,
        sandbox: SandboxId,
        request: Request,
        times: StartTimes,
    ) -> Result<(), JournalError> {
        // The table admits only what is for a sandbox that is served.
        let Some(sandbox) = self.sandboxes.get(sandbox).cloned() else {
            self.journaled.write(&mut self.table, false)?;
            return self.end(id, Outcome::Refused(not_served()));
        };
        let ready = self.ready(&sandbox, &request);
        let written = match &ready {
            Some(ready) => self
                .journaled
                .write_placed(&mut self.table, id, ready.place()),
            None => self.journaled.write(&mut self.table, !request.only_reads()),
        };
        match written {
            Ok(()) => self.start(id, &sandbox, request, times, ready),
            Err(error) => return self.not_begun(id, &error),
        }
        Ok(())
    }

    /// An operation that the journal has no room for does not begin.
    fn not_begun(&mut self, id: OperationId, error: &JournalError) -> Result<(), JournalError> {
        self.found_no_room();
        let refused = Outcome::Refused(no_room(error));
        self.count_end(id, &refused);
        self.table.not_begun(id, refused);
        self.journaled.write(&mut self.table, false)
    }

    /// The parts to start this, if it is a command and needs no wait.
    fn ready(&self, sandbox: &ServedSandbox, request: &Request) -> Option<Ready> {
        let Request::Exec(exec) = request else {
            return None;
        };
        let (plan, processes) = self.sandboxes.plan_at_once(sandbox, exec)?;
        Some(Ready {
            plan,
            waiting: processes.ready()?,
            processes,
        })
    }

    /// Starts what was accepted; the place of a command that is ready is in the journal as well.
    fn start(
        &mut self,
        id: OperationId,
        sandbox: &ServedSandbox,
        request: Request,
        times: StartTimes,
        ready: Option<Ready>,
    ) {
        match request {
            Request::Exec(exec) => match ready {
                Some(ready) => self.placed(id, ready, times, PassingControls::new()),
                None => self.prepare(id, sandbox, exec, times),
            },
            Request::Upload(upload) => {
                let uploading = sandbox.upload(upload, times.run_for);
                self.perform_upload(id, uploading);
            }
            Request::Unpack(unpack) => {
                let uploading = sandbox.unpack(unpack, times.run_for);
                self.perform_upload(id, uploading);
            }
            Request::Download(download) => {
                let performing = sandbox.download(download, times.run_for);
                self.perform(
                    id,
                    OperationControl::Files(performing.stop),
                    performing.events,
                );
            }
            Request::Pack(pack) => {
                let performing = sandbox.pack(pack, times.run_for);
                self.perform(
                    id,
                    OperationControl::Files(performing.stop),
                    performing.events,
                );
            }
            request => {
                let performing = sandbox.perform(request, times.run_for);
                self.perform(
                    id,
                    OperationControl::Files(performing.stop),
                    performing.events,
                );
            }
        }
    }

    fn perform_upload(&mut self, id: OperationId, uploading: Uploading) {
        let Uploading { performing, pieces } = uploading;
        let upload = OpenUpload::begin(performing.stop, pieces);
        self.perform(
            id,
            OperationControl::Upload(Box::new(upload)),
            performing.events,
        );
    }

    fn perform(
        &mut self,
        id: OperationId,
        work: OperationControl,
        events: mpsc::Receiver<HostEvent>,
    ) {
        self.under_way.work.insert(id, work);
        self.watch(id, ReceiverStream::new(events).map(Happened::Host));
    }

    fn prepare(&mut self, id: OperationId, sandbox: &ServedSandbox, exec: Exec, times: StartTimes) {
        let planning = self.sandboxes.plan(sandbox.clone(), exec);
        self.under_way
            .work
            .insert(id, OperationControl::Starting(None, PassingControls::new()));
        self.under_way.starting.push(Box::pin(async move {
            let ready = match planning.await {
                Ok((plan, processes)) => match processes.take().await {
                    Ok(waiting) => Ok(Ready {
                        plan,
                        waiting,
                        processes,
                    }),
                    Err(reason) => Err(not_started(reason, ExitCause::Exited)),
                },
                Err(unplanned) => Err(unplanned.into()),
            };
            let taken = Taken {
                ready,
                times,
                placed: false,
            };
            (id, taken)
        }));
    }

    /// Everything is there to start a command: its place is written down, then it starts.
    pub(super) fn taken(&mut self, id: OperationId, taken: Taken) -> Result<(), JournalError> {
        let Taken {
            ready,
            times,
            placed,
        } = taken;
        let (stopped, passing) = match self.under_way.work.remove(&id) {
            Some(OperationControl::Starting(stopped, passing)) => (stopped, passing),
            // Forgotten since, together with everything else.
            _ => return Ok(()),
        };
        let ready = match (stopped, ready) {
            (Some(cause), _) => return self.end(id, not_started(stopped_before(), cause)),
            // A host that was suspended since then wakes too late as well.
            (None, _) if self.clock.boot_time() > times.start_by => {
                return self.end(id, Outcome::Refused(too_late()));
            }
            (None, Err(end)) => return self.end(id, end),
            (None, Ok(ready)) => ready,
        };
        if placed {
            self.hand_over(id, ready, times, passing);
        } else if let Err(error) = self.journaled.place(id, ready.place()) {
            return self.end(id, Outcome::Refused(no_room(&error)));
        } else {
            self.placed(id, ready, times, passing);
        }
        Ok(())
    }

    /// The place of a command is in the journal.
    fn placed(
        &mut self,
        id: OperationId,
        ready: Ready,
        times: StartTimes,
        passing: PassingControls,
    ) {
        if !self.sync_before_start {
            return self.hand_over(id, ready, times, passing);
        }
        let taken = Taken {
            ready: Ok(ready),
            times,
            placed: true,
        };
        self.start_when_synced(id, taken, passing);
    }

    fn hand_over(
        &mut self,
        id: OperationId,
        ready: Ready,
        times: StartTimes,
        passing: PassingControls,
    ) {
        let Ready {
            mut plan,
            waiting,
            processes,
        } = ready;
        self.trace_process(id, &mut plan);
        let terms = self.terms(id, times.run_for, plan.retention);
        let process = processes.start(waiting, id, plan, terms, passing);
        let took = self.clock.boot_time().saturating_sub(times.taken_up);
        OPERATION_START_DURATION.record(&[], took.as_secs_f64());
        self.attend(id, process);
    }

    /// Starts a command once everything that is written down of it is on the disk.
    fn start_when_synced(&mut self, id: OperationId, taken: Taken, passing: PassingControls) {
        let synced = self.journaled.journal.sync();
        self.under_way
            .work
            .insert(id, OperationControl::Starting(None, passing));
        self.under_way.starting.push(Box::pin(async move {
            let taken = match synced.wait().await {
                Ok(()) => taken,
                Err(error) => Taken {
                    ready: Err(Outcome::Refused(no_room(&error))),
                    ..taken
                },
            };
            (id, taken)
        }));
    }

    fn terms(&self, id: OperationId, run_for: Duration, retention: Retention) -> ProcessTerms {
        ProcessTerms {
            claim: self.claim(id),
            run_for,
            orphan_for: self.disconnect_for,
            kill_grace: KILL_GRACE,
            spool: SpoolBounds {
                bytes: SPOOL_BYTES_PER_STREAM,
                when_full: match retention {
                    Retention::Bounded => WhenFull::Gap {
                        tail: RETAINED_TAIL_BYTES as u32,
                    },
                    // Until a reader has committed some of it.
                    Retention::All | Retention::None => WhenFull::Wait,
                },
            },
            sync: match self.sync_before_start {
                true => Sync::Start,
                false => Sync::Nothing,
            },
        }
    }

    fn claim(&self, id: OperationId) -> Option<String> {
        let journal = self.table.incarnation().journal;
        let accepted = self.table.accepted(id)?;
        Claim::new(self.table.sandbox_of(id)?, journal, accepted).text()
    }

    /// Takes care of a command that runs.
    pub(super) fn attend(&mut self, id: OperationId, process: Process) {
        self.files.add(id, process.spool);
        self.under_way
            .work
            .insert(id, OperationControl::Running(process.control));
        let events = ReceiverStream::new(process.events).map(Happened::Process);
        self.watch(id, events);
    }

    fn watch(&mut self, id: OperationId, events: impl Stream<Item = Happened> + Send + 'static) {
        let silence = futures_util::stream::once(async { Happened::Silence });
        self.under_way
            .happenings
            .insert(id, Box::pin(events.chain(silence)));
    }
}

fn not_served() -> Refusal {
    let message = "the runner does not serve this workspace any more";
    Refusal::new(RefusalCode::NotFound, message)
}

fn too_late() -> Refusal {
    Refusal::new(
        RefusalCode::Expired,
        "the time in which the operation had to start passed while the runner got ready",
    )
}

fn stopped_before() -> NotStarted {
    NotStarted::Host("it was stopped before it started".to_owned())
}

/// A command that never ran.
fn not_started(reason: NotStarted, cause: ExitCause) -> Outcome {
    Outcome::Exited(ExitRecord {
        status: ExitStatus::NotStarted(reason),
        cause,
        stdout: StreamEnd::default(),
        stderr: StreamEnd::default(),
        wall_ms: 0,
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: true,
    })
}
