//! The one place where the supervisor waits.

use std::time::Duration;

use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, BorrowedFd},
    io::Errno,
};

use super::{Supervision, ending::Phase};
use crate::{
    clock::{self, timespec},
    root::Desk,
    stream::Pump,
};

/// The sources that have something to do.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ready {
    pub(super) signals: bool,
    pub(super) orphan: bool,
    pub(super) listener: bool,
    pub(super) desk: bool,
    pub(super) client: bool,
    pub(super) input: bool,
    pub(super) output: bool,
}

/// A source of events.
#[derive(Debug, Clone, Copy)]
enum EventSource {
    Signals,
    Orphan,
    Listener,
    Desk,
    Client,
    Input,
    Output,
}

impl Supervision {
    /// Waits until something happens or is due.
    pub(super) fn listen(&self) -> Ready {
        let wanted = self.wanted();
        let mut fds: Vec<_> = wanted
            .iter()
            .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
            .collect();
        let now = clock::monotonic();
        let patience = self
            .next_due()
            .map(|due| timespec(due.saturating_sub(now).max(SHORTEST)));
        let mut ready = Ready::default();
        match poll(&mut fds, patience.as_ref()) {
            Ok(_) => {}
            // Nothing is lost by looking again; an error that lasts is bounded by the deadlines.
            Err(Errno::INTR) => return ready,
            Err(_) => std::thread::sleep(SHORTEST),
        }
        for ((source, ..), fd) in wanted.iter().zip(&fds) {
            if fd.revents().is_empty() {
                continue;
            }
            match source {
                EventSource::Signals => ready.signals = true,
                EventSource::Orphan => ready.orphan = true,
                EventSource::Listener => ready.listener = true,
                EventSource::Desk => ready.desk = true,
                EventSource::Client => ready.client = true,
                EventSource::Input => ready.input = true,
                EventSource::Output => ready.output = true,
            }
        }
        ready
    }

    /// The socket for root's commands, while there may be more of them: a tree that ends grows no
    /// more.
    pub(super) fn open_desk(&self) -> Option<&Desk> {
        let desk = self.prepared.desk.as_ref();
        desk.filter(|_| matches!(self.phase, Phase::Running))
    }

    fn wanted(&self) -> Vec<(EventSource, BorrowedFd<'_>, PollFlags)> {
        let mut wanted = vec![
            (
                EventSource::Signals,
                self.prepared.signals.as_fd(),
                PollFlags::IN,
            ),
            (
                EventSource::Orphan,
                self.prepared.orphan.0.as_fd(),
                PollFlags::IN,
            ),
            (
                EventSource::Listener,
                self.prepared.listener.as_fd(),
                PollFlags::IN,
            ),
        ];
        if let Some(desk) = self.open_desk() {
            wanted.push((EventSource::Desk, desk.listener().as_fd(), PollFlags::IN));
        }
        if let Some(client) = &self.client {
            let mut flags = PollFlags::IN;
            if client.is_behind() {
                flags |= PollFlags::OUT;
            }
            wanted.push((EventSource::Client, client.socket().as_fd(), flags));
        }
        if let Some(input) = self.input.wanted() {
            wanted.push((EventSource::Input, input.as_fd(), PollFlags::OUT));
        }
        for output in self.pumps.iter().filter_map(Pump::wanted) {
            wanted.push((EventSource::Output, output.as_fd(), PollFlags::IN));
        }
        wanted
    }
}

/// A wait is never shorter, so that a deadline that is a rounding away does not spin.
const SHORTEST: Duration = Duration::from_micros(100);
