//! The operations under way: their input and their events, until each has ended.

use std::{pin::Pin, time::Duration};

use futures_util::Stream;
use runner_host::{HostEvent, StopRequest};
use shared_link::feed::Feed;
use shared_sandbox::{ExitCause, FileFailure, Input, Outcome, OutputStream};
use shared_telemetry::{OTHER, runner::OPERATIONS_ENDED};
use shared_types::{
    JournalId, OperationId, Refusal, RefusalCode,
    limits::{INPUT_CHUNK_BYTES, INPUT_WINDOW_BYTES},
};
use tokio::sync::mpsc;

use super::{OperationsService, recovery::lost, spans::Begun};
use crate::{
    journal::JournalError,
    processes::{Control, PassingControls, ProcessEnd, ProcessEvent},
};

/// The events of one operation; ends after the last one.
pub(super) type Happenings = Pin<Box<dyn Stream<Item = Happened> + Send>>;

/// Something happened to an operation.
pub(super) enum Happened {
    /// To one on files.
    Host(HostEvent),
    /// To a command.
    Process(ProcessEvent),
    /// The sender of events is gone.
    Silence,
}

/// The control of an operation under way.
pub(super) enum OperationControl {
    /// A command that is about to start, and the reason not to start it, where there is one.
    Starting(Option<ExitCause>, PassingControls),
    /// A command that runs.
    Running(Control),
    /// An operation on files.
    Files(StopRequest),
    /// A file that is taken piece by piece.
    Upload(Box<OpenUpload>),
}

/// An upload, and what of its input its task has no room for yet.
pub(super) struct OpenUpload {
    stop: StopRequest,
    feed: Feed,
    pieces: mpsc::Sender<Input>,
}

impl OpenUpload {
    /// All of it is yet to come; `pieces` goes to its task.
    pub(super) fn begin(stop: StopRequest, pieces: mpsc::Sender<Input>) -> Self {
        let mut feed = Feed::new(INPUT_WINDOW_BYTES as usize);
        feed.taken(0);
        Self { stop, feed, pieces }
    }

    fn pass_on(&mut self) {
        while let Ok(room) = self.pieces.try_reserve()
            && let Some(piece) = self.feed.next(INPUT_CHUNK_BYTES)
        {
            room.send(piece);
        }
    }
}

impl OperationControl {
    pub(super) fn cancel(&mut self) {
        match self {
            Self::Starting(stopped, _) => {
                stopped.get_or_insert(ExitCause::Cancelled);
            }
            Self::Running(control) => control.cancel(),
            Self::Files(stop) => stop.cancel(),
            Self::Upload(upload) => upload.stop.cancel(),
        }
    }

    pub(super) fn orphan(&mut self) {
        match self {
            Self::Starting(stopped, _) => {
                stopped.get_or_insert(ExitCause::Orphaned);
            }
            Self::Running(control) => control.orphan(),
            Self::Files(stop) => stop.orphan(),
            Self::Upload(upload) => upload.stop.orphan(),
        }
    }

    pub(super) fn renew(&mut self, orphan_for: Duration) {
        if let Self::Running(control) = self {
            control.renew(orphan_for);
        }
    }

    /// Passes a piece of input on.
    pub(super) fn input(&mut self, input: &Input) {
        match self {
            Self::Starting(_, passing) => passing.input(input),
            Self::Running(control) => control.input(input),
            Self::Upload(upload) => {
                if let Err(refusal) = upload.feed.offer(input) {
                    tracing::error!(%refusal, "input came that cannot be passed on");
                }
                upload.pass_on();
            }
            Self::Files(_) => {}
        }
    }

    /// So much of an upload is taken, so that there is room for more.
    fn taken(&mut self, up_to: u64) {
        if let Self::Upload(upload) = self {
            upload.feed.taken(up_to);
            upload.pass_on();
        }
    }

    /// Has something done to a process.
    pub(super) fn control(&mut self, id: u64, control: shared_sandbox::Control) {
        match self {
            Self::Starting(_, passing) => passing.control(id, control),
            Self::Running(running) => running.control(id, control),
            Self::Files(_) | Self::Upload(_) => {}
        }
    }

    pub(super) fn commit(&mut self, stream: OutputStream, up_to: u64) {
        if let Self::Running(control) = self {
            control.commit(stream, up_to);
        }
    }
}

impl OperationsService {
    pub(super) fn happened(
        &mut self,
        id: OperationId,
        happened: Happened,
    ) -> Result<(), JournalError> {
        match happened {
            Happened::Host(HostEvent::Changing(announced)) => {
                let sandbox = self.table.sandbox_of(id);
                match self.journaled.change(id, sandbox, announced.change.clone()) {
                    Ok(()) => announced.go_ahead(),
                    Err(error) => announced.refuse(no_room(&error)),
                }
                Ok(())
            }
            Happened::Host(HostEvent::Opened(file)) => {
                self.table.output(id, [file.bytes(), 0]);
                self.files.downloads.add(id, file);
                Ok(())
            }
            Happened::Host(HostEvent::InputTaken(up_to)) => {
                self.under_way
                    .work
                    .entry(id)
                    .and_modify(|work| work.taken(up_to));
                self.table.input_taken(id, up_to);
                Ok(())
            }
            Happened::Process(ProcessEvent::Output(written)) => {
                self.table.output(id, written);
                Ok(())
            }
            Happened::Process(ProcessEvent::InputTaken(up_to)) => {
                self.table.input_taken(id, up_to);
                Ok(())
            }
            Happened::Process(ProcessEvent::Done(control, result)) => {
                self.table.controlled(id, control, result);
                Ok(())
            }
            Happened::Host(HostEvent::Ended(outcome, held)) => {
                let written_down = self.end(id, outcome);
                drop(held);
                written_down
            }
            Happened::Process(ProcessEvent::Ended(ProcessEnd::Outcome(outcome))) => {
                self.end(id, outcome)
            }
            Happened::Process(ProcessEvent::Ended(ProcessEnd::Fenced)) => {
                let message = "its supervisor was gone before the command started; it did not run";
                self.end(
                    id,
                    Outcome::Refused(Refusal::new(RefusalCode::Fenced, message)),
                )
            }
            Happened::Silence if self.under_way.work.contains_key(&id) => {
                let message = "the runner lost sight of the operation";
                self.end(
                    id,
                    Outcome::Refused(Refusal::new(RefusalCode::Lost, message)),
                )
            }
            Happened::Silence => Ok(()),
        }
    }

    /// An operation is over: it is written down, and may be reported.
    pub(super) fn end(
        &mut self,
        id: OperationId,
        mut outcome: Outcome,
    ) -> Result<(), JournalError> {
        self.guard.hide(&mut outcome);
        let outcome = self.keepable(id, outcome);
        let begun = self.count_end(id, &outcome);
        self.under_way.work.remove(&id);
        if found_no_room(&outcome) {
            self.found_no_room();
        }
        let kept = self.files.kept_of(id, &outcome);
        if self.table.remembers(id) {
            self.table.ended(id, outcome, kept);
            self.forget_changes();
        } else {
            self.drop_files(id);
        }
        self.journaled.write(&mut self.table, false)?;
        self.trace_end(id, begun);
        Ok(())
    }

    /// The end that is written down: this one, or that it cannot be kept. What one operation comes to must not
    /// end the daemon for all the others.
    fn keepable(&mut self, id: OperationId, outcome: Outcome) -> Outcome {
        let Some(record) = self.table.end_record(id, &outcome) else {
            return outcome;
        };
        match self.journaled.has_room_for_end(&mut self.table, record) {
            Err(
                error @ (JournalError::TooLong { .. }
                | JournalError::TooLarge
                | JournalError::DiskFull(_)),
            ) => {
                tracing::error!(operation.id = %id, %error, "failed to keep the end of an operation");
                lost(&format!("its end cannot be written down: {error}"))
            }
            // Any other error shows when it is written.
            Ok(()) | Err(_) => outcome,
        }
    }

    /// Counts an end, and returns its beginning. Only commands outlive the daemon that has begun them.
    pub(super) fn count_end(&mut self, id: OperationId, outcome: &Outcome) -> Option<Begun> {
        let begun = self.under_way.begun.remove(&id);
        let kind = begun.map(|begun| begun.kind);
        let kind = kind.or_else(|| match self.under_way.work.get(&id) {
            Some(OperationControl::Running(_)) => Some("exec"),
            _ => None,
        });
        OPERATIONS_ENDED.add(&[kind.unwrap_or(OTHER), outcome.cause()], 1);
        begun
    }

    pub(super) fn forget_changes(&mut self) {
        let table = &self.table;
        self.journaled
            .known
            .changes
            .forget_ended(|id| table.is_open(id));
    }

    /// Closes what was read by operations that are gone.
    pub(super) fn close_dropped(&mut self) {
        for id in self.table.take_dropped() {
            self.files.downloads.remove(id);
        }
    }

    /// Stops a read, and closes what it reads. Its further events are ignored: the same operation may begin
    /// again at once.
    pub(super) fn let_go(&mut self, id: OperationId, why: Refusal) {
        if self.under_way.work.contains_key(&id) {
            self.count_end(id, &Outcome::Refused(why));
        }
        if let Some(mut work) = self.under_way.work.remove(&id) {
            work.cancel();
        }
        self.under_way.happenings.remove(&id);
        self.drop_files(id);
    }

    /// Removes what is on disk of an operation.
    pub(super) fn drop_files(&mut self, id: OperationId) {
        self.under_way.begun.remove(&id);
        self.journaled.known.forget(id);
        self.files.downloads.remove(id);
        if let Some(spool) = self.files.take(id) {
            spool.forget();
        }
    }

    /// Forgets everything: what is remembered is not what happened.
    pub(super) fn begin_journal(&mut self, journal: JournalId) -> Result<(), JournalError> {
        self.journaled
            .journal
            .begin_anew(journal, self.clock.as_ref(), std::iter::empty())?;
        for id in self.table.begin_journal(journal) {
            self.journaled.known.forget(id);
            match self.under_way.work.get_mut(&id) {
                // Its files go once it has ended.
                Some(work) => work.orphan(),
                None => self.drop_files(id),
            }
        }
        self.journaled.write_boot(&mut self.table)
    }
}

/// The refusal of an operation that cannot be written down.
pub(super) fn no_room(error: &JournalError) -> Refusal {
    tracing::error!(%error, "failed to write down an operation; it is not begun");
    let message =
        format!("the runner cannot write down what it is to do, so it did not begin: {error}");
    let code = match error {
        JournalError::DiskFull(_) => RefusalCode::SpoolFull,
        _ => RefusalCode::ResourceExhausted,
    };
    Refusal::new(code, message)
}

fn found_no_room(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Exited(record) => record.cause == ExitCause::DiskFull,
        Outcome::Failed(failure) => *failure == FileFailure::DiskFull,
        _ => false,
    }
}
