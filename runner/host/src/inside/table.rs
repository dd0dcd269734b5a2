//! Who waits at the daemon's end for what the program says, and what is passed on to them.
//!
//! Nothing here waits: what does not fit what was asked, or was said before, is dropped.

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

/// What may be said of one request and not be read yet: a change, an open file, and the end.
const REPORTS: usize = 3;

/// Who waits for what the program says.
#[derive(Default)]
pub(super) struct Table {
    last: u64,
    closed: bool,
    waiting: HashMap<u64, Waiting>,
}

/// How it is told.
pub(super) enum Waiting {
    Request(Reporting),
    Settle(oneshot::Sender<Verdict>),
}

/// The way of what is said to one request.
pub(super) struct Reporting {
    reports: mpsc::Sender<Report>,
    progress: watch::Sender<Progress>,
    may_change: bool,
    may_open: bool,
    expects: Expects,
}

/// Where what is said of one request arrives.
pub(super) struct Reported {
    pub(super) reports: mpsc::Receiver<Report>,
    pub(super) progress: watch::Receiver<Progress>,
}

/// What is said of one request.
pub(super) enum Report {
    Changing(Change),
    Opened(Option<OwnedFd>, u64),
    Ended(Outcome),
    /// What was said does not fit what was asked.
    Unfit,
}

/// How far an upload is; as the program says it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Progress {
    /// Bytes that are taken.
    pub(super) taken: u64,
    /// Pieces for which there is room beyond those that may wait.
    pub(super) rooms: u64,
}

impl Table {
    /// The id of who waits from now on, unless too much is under way (`is_full`: more than may wait to
    /// be written); where the program is gone, what is waited for ends at once.
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

    /// Nothing that is said of it from now on is heard.
    pub(super) fn forget(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    /// The program is gone: nothing that waits will be said.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
    }

    /// Passes on what was said; what nobody asked for is dropped.
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
                // There is room for all that is passed on, unless nobody reads it.
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

    /// What is passed on: each thing once, and only to a request that it can be said of.
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

/// The table, whatever became of another task.
pub(super) fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
