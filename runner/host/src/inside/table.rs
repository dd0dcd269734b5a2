//! The requests at the daemon's end that wait for frames of the program.
//!
//! Nothing here waits. A frame that does not fit its request, or comes twice, is dropped.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fd::OwnedFd;
use shared_sandbox::{Expects, Outcome, Request, expected};
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    MAX_UNDER_WAY,
    wire::ProgramWireFrame,
    words::{ChangeVerdict, ProgramFrame, with_read},
};
use crate::Change;

/// The most frames of one request that may be unread: a change, an open file, and the end.
const REPORTS: usize = 3;

/// The requests that wait for frames of the program.
#[derive(Default)]
pub(super) struct ReportTable {
    last: u64,
    closed: bool,
    waiting: HashMap<u64, FrameReceiver>,
}

/// The receiver of such a frame.
pub(super) enum FrameReceiver {
    Request(Reporting),
    Settle(oneshot::Sender<ChangeVerdict>),
}

/// The sending ends of one request's reports.
pub(super) struct Reporting {
    reports: mpsc::Sender<ProgramReport>,
    progress: watch::Sender<RequestProgress>,
    may_change: bool,
    may_open: bool,
    expects: Expects,
}

/// The receiving ends of one request's reports.
pub(super) struct Reported {
    pub(super) reports: mpsc::Receiver<ProgramReport>,
    pub(super) progress: watch::Receiver<RequestProgress>,
}

/// A report about one request.
pub(super) enum ProgramReport {
    Changing(Change),
    Opened(Option<OwnedFd>, u64),
    Ended(Outcome),
    /// A frame that does not fit its request.
    Unfit,
}

/// The progress of an upload, as the program reports it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct RequestProgress {
    /// Bytes that are taken.
    pub(super) taken: u64,
    /// Pieces for which there is room beyond those that may wait.
    pub(super) rooms: u64,
}

impl ReportTable {
    /// The id of a request that waits from now on. `None` if too much is under way, or `is_full`:
    /// the frames that wait to be written are too many. Where the program is gone, the request ends
    /// at once.
    pub(super) fn enter(&mut self, waiting: FrameReceiver, is_full: bool) -> Option<u64> {
        if !self.closed && (is_full || self.waiting.len() >= MAX_UNDER_WAY) {
            return None;
        }
        self.last += 1;
        if !self.closed {
            self.waiting.insert(self.last, waiting);
        }
        Some(self.last)
    }

    /// Drops the request: frames about it are ignored from now on.
    pub(super) fn forget(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    /// The program is gone: no frame will come for the requests that wait.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }

    /// Passes on a frame; a frame without a request is dropped.
    pub(super) fn heard(
        &mut self,
        ProgramWireFrame { head, bytes }: ProgramWireFrame<ProgramFrame>,
        descriptor: Option<OwnedFd>,
    ) {
        let (id, report) = match head {
            ProgramFrame::Hello(_) => return,
            ProgramFrame::InputTaken { id, up_to } => {
                return self.progressed(id, |progress| {
                    progress.taken = progress.taken.max(up_to);
                });
            }
            ProgramFrame::Room { id } => {
                return self.progressed(id, |progress| {
                    progress.rooms = progress.rooms.saturating_add(1);
                });
            }
            ProgramFrame::Settled { id, verdict } => {
                if matches!(self.waiting.get(&id), Some(FrameReceiver::Settle(_)))
                    && let Some(FrameReceiver::Settle(told)) = self.waiting.remove(&id)
                {
                    // Its caller may have given up.
                    let _ = told.send(verdict);
                }
                return;
            }
            ProgramFrame::Changing { id, change } => (id, ProgramReport::Changing(change)),
            ProgramFrame::Opened { id, bytes } => (id, ProgramReport::Opened(descriptor, bytes)),
            ProgramFrame::Ended { id, outcome } => {
                (id, ProgramReport::Ended(with_read(outcome, bytes)))
            }
        };
        let Some(FrameReceiver::Request(reporting)) = self.waiting.get_mut(&id) else {
            return;
        };
        let is_last = match reporting.fitting(report) {
            Some(report) => {
                let is_last = matches!(report, ProgramReport::Ended(_) | ProgramReport::Unfit);
                // There is room for all reports, unless the receiver is gone.
                let _ = reporting.reports.try_send(report);
                is_last
            }
            None => false,
        };
        if is_last {
            self.waiting.remove(&id);
        }
    }

    fn progressed(&mut self, id: u64, moved: impl FnOnce(&mut RequestProgress)) {
        if let Some(FrameReceiver::Request(reporting)) = self.waiting.get(&id) {
            reporting.progress.send_modify(moved);
        }
    }
}

impl Reporting {
    /// The way for a request, and its other end.
    pub(super) fn of(request: &Request) -> (Self, Reported) {
        let (reports, reported) = mpsc::channel(REPORTS);
        let (progress, progressed) = watch::channel(RequestProgress::default());
        let reporting = Self {
            reports,
            progress,
            may_change: !request.only_reads(),
            may_open: matches!(request, Request::Download(_) | Request::Pack(_)),
            expects: expected(request),
        };
        let reported = Reported {
            reports: reported,
            progress: progressed,
        };
        (reporting, reported)
    }

    /// The report to pass on: each once, and only where the request can have it.
    fn fitting(&mut self, report: ProgramReport) -> Option<ProgramReport> {
        match report {
            ProgramReport::Changing(_) if !std::mem::take(&mut self.may_change) => None,
            ProgramReport::Opened(..) if !std::mem::take(&mut self.may_open) => None,
            ProgramReport::Changing(change) if !(self.expects)(&change.done) => {
                Some(ProgramReport::Unfit)
            }
            ProgramReport::Ended(outcome) if !(self.expects)(&outcome) => {
                Some(ProgramReport::Unfit)
            }
            report => Some(report),
        }
    }
}

/// The table, even if another task has panicked.
pub(super) fn lock(table: &Mutex<ReportTable>) -> MutexGuard<'_, ReportTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
