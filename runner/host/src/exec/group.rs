//! A process group and its end.
//!
//! The leader is collected last: as long as it is not, its pid, which is the group's id, cannot
//! be given to anybody else, so no signal hits a stranger. One SIGKILL to the group is enough:
//! the kernel signals all members under the lock that a fork needs, and a process with a fatal
//! signal pending cannot fork.

use std::{os::unix::process::ExitStatusExt, time::Duration};

use rustix::{
    fd::OwnedFd,
    io::Errno,
    process::{Pid, Signal},
};
use shared_sandbox::ExitStatus;
use tokio::{
    io::{Interest, unix::AsyncFd},
    process::Child,
    time::{sleep, timeout},
};

/// How long a killed leader may take to die (it may sit in an uninterruptible wait).
const LEADER_DIES_WITHIN: Duration = Duration::from_secs(30);

/// How long the rest of a killed group may take to be gone, before that is doubted.
const GROUP_GONE_WITHIN: Duration = Duration::from_secs(5);

/// How often a group is looked at, at first; then ever more rarely.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// How often a group is looked at, in the end.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(200);

/// A running process group. Dropping it kills it, so that nothing outlives a daemon that stops.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    pid: Pid,
    /// A pidfd: readable once the leader has ended, collected or not.
    exit: AsyncFd<OwnedFd>,
    collected: bool,
}

impl Group {
    /// Takes the leader of a new group. Needs the runtime's context.
    ///
    /// # Errors
    /// When it cannot be observed; then it has been killed.
    pub(crate) fn of(child: Child) -> std::io::Result<Self> {
        let pid = child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .expect("a process that was not waited for has a pid");
        let exit = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK)
            .map_err(std::io::Error::from)
            .and_then(observe);
        match exit {
            Ok(exit) => Ok(Self {
                child,
                pid,
                exit,
                collected: false,
            }),
            Err(error) => {
                signal(pid, Signal::KILL);
                Err(error)
            }
        }
    }

    /// Waits until the leader has ended, without collecting it.
    pub(crate) async fn leader_exited(&self) {
        // Only a runtime that shuts down makes this fail, and then nobody waits any more.
        if self.exit.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Asks all members politely to end, and waits until they have or `grace` is over.
    pub(crate) async fn ask_to_end(&self, grace: Duration) {
        signal(self.pid, Signal::TERM);
        // A stopped process acts on its signals only once it goes on.
        signal(self.pid, Signal::CONT);
        let ended = async {
            self.leader_exited().await;
            until_no_members(self.pid).await;
        };
        // Running out of time is what the kill is for.
        let _ = timeout(grace, ended).await;
    }

    /// Kills what is left, collects the leader, and says what it reported and whether the whole
    /// group is gone. `None` if the leader does not die.
    pub(crate) async fn end(&mut self) -> Option<(ExitStatus, bool)> {
        signal(self.pid, Signal::KILL);
        timeout(LEADER_DIES_WITHIN, self.leader_exited())
            .await
            .ok()?;
        let status = self.child.wait().await;
        self.collected = true;
        let gone = timeout(GROUP_GONE_WITHIN, until_no_members(self.pid)).await;
        Some((reported(status.ok()?)?, gone.is_ok()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.collected {
            signal(self.pid, Signal::KILL);
        }
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for those who close a registered descriptor; an owned one stays open"
)]
fn observe(pidfd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}

fn reported(status: std::process::ExitStatus) -> Option<ExitStatus> {
    status
        .code()
        .map(ExitStatus::Code)
        .or_else(|| status.signal().map(ExitStatus::Signal))
}

/// Signals all members, and the leader even where it has moved to another group.
fn signal(pid: Pid, signal: Signal) {
    // A failure means that nobody is left to be signalled, or nobody who may be.
    let _ = rustix::process::kill_process_group(pid, signal);
    let _ = rustix::process::kill_process(pid, signal);
}

/// Waits until nobody in the group runs. Zombies do not count: they are their parents' to collect.
async fn until_no_members(group: Pid) {
    let mut pause = LOOK_AFTER;
    loop {
        if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
            return;
        }
        let look = tokio::task::spawn_blocking(move || has_running_member(group));
        if matches!(look.await, Ok(Ok(false))) {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LOOK_AT_LEAST_EVERY);
    }
}

/// Looks through `/proc`, because only there running members and zombies can be told apart.
fn has_running_member(group: Pid) -> std::io::Result<bool> {
    let group = group.as_raw_nonzero().get();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let is_process = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_process {
            continue;
        }
        // A process that ends while it is looked at is no member any more.
        if let Ok(stat) = std::fs::read(entry.path().join("stat"))
            && runs_in(&stat, group)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether this `/proc/PID/stat` (proc(5): `pid (name) state ppid pgrp …`) is of a running
/// process of the group. The name may hold anything, so the fields are counted from its end.
fn runs_in(stat: &[u8], group: i32) -> bool {
    let Some(name_end) = stat.iter().rposition(|byte| *byte == b')') else {
        return false;
    };
    let mut fields = stat[name_end + 1..]
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let state = fields.next();
    let member = fields
        .nth(1)
        .and_then(|field| std::str::from_utf8(field).ok())
        .and_then(|field| field.parse().ok())
        == Some(group);
    member && !matches!(state, Some(b"Z" | b"X" | b"x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_state_and_group_whatever_its_name_holds() {
        assert!(runs_in(b"7 (a) b) R 1 42 42 0", 42));
        assert!(runs_in(b"7 (x) T 1 42 42 0", 42));
        assert!(!runs_in(b"7 (x) Z 1 42 42 0", 42));
        assert!(!runs_in(b"7 (x) R 42 7 42 0", 42));
        assert!(!runs_in(b"7 R 1 42", 42));
    }
}
