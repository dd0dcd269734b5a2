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
    wire::Frame,
    words::{Said, Verdict, with_read},
};
use crate::Change;

/// The most frames of one request that may be unread: a change, an open file, and the end.
const REPORTS: usize = 3;

/// The requests that wait for frames of the program.
#[derive(Default)]
pub(super) struct Table {
    last: u64,
    closed: bool,
    waiting: HashMap<u64, Waiting>,
}

/// The receiver of such a frame.
pub(super) enum Waiting {
    Request(Reporting),
    Settle(oneshot::Sender<Verdict>),
}

/// The sending ends of one request's reports.
pub(super) struct Reporting {
    reports: mpsc::Sender<Report>,
    progress: watch::Sender<Progress>,
    may_change: bool,
    may_open: bool,
    expects: Expects,
}

/// The receiving ends of one request's reports.
pub(super) struct Reported {
    pub(super) reports: mpsc::Receiver<Report>,
    pub(super) progress: watch::Receiver<Progress>,
}

/// A report about one request.
pub(super) enum Report {
    Changing(Change),
    Opened(Option<OwnedFd>, u64),
    Ended(Outcome),
    /// A frame that does not fit its request.
    Unfit,
}

/// The progress of an upload, as the program reports it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Progress {
    /// Bytes that are taken.
    pub(super) taken: u64,
    /// Pieces for which there is room beyond those that may wait.
    pub(super) rooms: u64,
}

impl Table {
    /// The id of a request that waits from now on. `None` if too much is under way, or `is_full`:
    /// the frames that wait to be written are too many. Where the program is gone, the request ends
    /// at once.
    pub(super) fn enter(&mut self, waiting: Waiting, is_full: bool) -> Option<u64> {
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
        Frame { head, bytes }: Frame<Said>,
        descriptor: Option<OwnedFd>,
    ) {
        let (id, report) = match head {
            Said::Hello(_) => return,
            Said::InputTaken { id, up_to } => {
                return self.progressed(id, |progress| {
                    progress.taken = progress.taken.max(up_to);
                });
            }
            Said::Room { id } => {
                return self.progressed(id, |progress| {
                    progress.rooms = progress.rooms.saturating_add(1);
                });
            }
            Said::Settled { id, verdict } => {
                if matches!(self.waiting.get(&id), Some(Waiting::Settle(_)))
                    && let Some(Waiting::Settle(told)) = self.waiting.remove(&id)
                {
                    // Its caller may have given up.
                    let _ = told.send(verdict);
                }
                return;
            }
            Said::Changing { id, change } => (id, Report::Changing(change)),
            Said::Opened { id, bytes } => (id, Report::Opened(descriptor, bytes)),
            Said::Ended { id, outcome } => (id, Report::Ended(with_read(outcome, bytes))),
        };
        let Some(Waiting::Request(reporting)) = self.waiting.get_mut(&id) else {
            return;
        };
        let is_last = match reporting.fitting(report) {
            Some(report) => {
                let is_last = matches!(report, Report::Ended(_) | Report::Unfit);
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

    fn progressed(&mut self, id: u64, moved: impl FnOnce(&mut Progress)) {
        if let Some(Waiting::Request(reporting)) = self.waiting.get(&id) {
            reporting.progress.send_modify(moved);
        }
    }
}

impl Reporting {
    /// The way for a request, and its other end.
    pub(super) fn of(request: &Request) -> (Self, Reported) {
        let (reports, reported) = mpsc::channel(REPORTS);
        let (progress, progressed) = watch::channel(Progress::default());
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
    fn fitting(&mut self, report: Report) -> Option<Report> {
        match report {
            Report::Changing(_) if !std::mem::take(&mut self.may_change) => None,
            Report::Opened(..) if !std::mem::take(&mut self.may_open) => None,
            Report::Changing(change) if !(self.expects)(&change.done) => Some(Report::Unfit),
            Report::Ended(outcome) if !(self.expects)(&outcome) => Some(Report::Unfit),
            report => Some(report),
        }
    }
}

/// The table, even if another task has panicked.
pub(super) fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
