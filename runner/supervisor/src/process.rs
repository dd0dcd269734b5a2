//! Processes, named so that a reused pid is not mistaken for them.

use std::{
    fs,
    io::{self, Read},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

use crate::Cause;

/// A process of this host, this boot and this moment. Pids are reused, but the three together are
/// not: the kernel counts starts in ticks of 10 ms, and a pid comes round far later than that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The pid.
    pub pid: i32,
    /// When it started, in clock ticks since the host's start.
    pub start_ticks: u64,
    /// The id of the host's start.
    pub boot_id: String,
}

impl ProcessId {
    /// The process that has this pid now.
    ///
    /// # Errors
    /// When there is none, or `/proc` is not there.
    pub fn of(pid: Pid, boot_id: &str) -> io::Result<Self> {
        let stat = ProcessStat::of(pid.as_raw_nonzero().get())?;
        Ok(Self::from_stat(&stat, boot_id))
    }

    /// The process that has these figures.
    pub(crate) fn from_stat(stat: &ProcessStat, boot_id: &str) -> Self {
        Self {
            pid: stat.pid,
            start_ticks: stat.start_ticks,
            boot_id: boot_id.to_owned(),
        }
    }

    /// True if it still runs. A process that has ended and was not collected yet does not.
    pub fn is_alive(&self, boot_id: &str) -> bool {
        self.boot_id == boot_id
            && ProcessStat::of(self.pid)
                .is_ok_and(|stat| stat.start_ticks == self.start_ticks && stat.runs())
    }

    /// True if it is stopped: it does nothing until another process lets it go on (`SIGSTOP`,
    /// a debugger).
    pub(crate) fn is_stopped(&self, boot_id: &str) -> bool {
        self.boot_id == boot_id
            && ProcessStat::of(self.pid)
                .is_ok_and(|stat| stat.start_ticks == self.start_ticks && stat.is_stopped())
    }

    /// Kills it; nothing happens where it has ended before.
    ///
    /// # Errors
    /// When the host refuses.
    pub(crate) fn kill(&self, boot_id: &str) -> io::Result<()> {
        let Some(pid) = self.as_pid() else {
            return Ok(());
        };
        // Opened before it is looked at, so that the descriptor cannot come to mean another
        // process.
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(()),
            opened => opened?,
        };
        match self.is_alive(boot_id) {
            true => match pidfd_send_signal(process, Signal::KILL) {
                Err(Errno::SRCH) => Ok(()),
                sent => Ok(sent?),
            },
            false => Ok(()),
        }
    }

    /// True if another process has got the pid since.
    pub(crate) fn is_reused(&self) -> bool {
        ProcessStat::of(self.pid).is_ok_and(|stat| stat.start_ticks != self.start_ticks)
    }

    /// The pid as system calls take it.
    pub fn as_pid(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
}

/// The host's own pid namespace (`PROC_PID_INIT_INO` in the kernel's `proc_ns.h`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The id of the host's start. In another pid namespace than the host's own it also names the life
/// of that namespace: the start of its first process is behind a dot.
///
/// # Errors
/// When `/proc` is not there.
pub fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let boot = text.trim().to_owned();
    if !is_in_container() {
        return Ok(boot);
    }
    let first = ProcessStat::of(1)?;
    Ok(format!("{boot}.{}", first.start_ticks))
}

/// True if this process is in another pid namespace than the host's own.
pub fn is_in_container() -> bool {
    let namespace = fs::read_link("/proc/self/ns/pid");
    namespace.is_ok_and(|namespace| namespace.as_os_str() != FIRST_PID_NAMESPACE)
}

/// The processes that can be seen.
pub(crate) fn all_pids() -> io::Result<Vec<i32>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        all.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(all)
}

/// More than `/proc/PID/stat` has: the kernel writes it whole at the first read.
const STAT_BYTES: usize = 2048;

/// The figures of `/proc/PID/stat` about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) pid: i32,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) start_ticks: u64,
}

impl ProcessStat {
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        let mut text = [0; STAT_BYTES];
        let length = fs::File::open(format!("/proc/{pid}/stat"))?.read(&mut text)?;
        Self::parse(pid, &text[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// All processes that can be seen. It is not a snapshot: it can miss a process that is born in
    /// that time.
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let pids = all_pids()?.into_iter();
        Ok(pids.filter_map(|pid| Self::of(pid).ok()).collect())
    }

    /// Zombies and the dead do not run.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// On a signal, or for a debugger.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// In a wait that no signal but a kill ends.
    pub(crate) fn waits_for_the_host(&self) -> bool {
        self.state == b'D'
    }

    /// proc(5): `pid (name) state ppid pgrp session … starttime` (field 22). The name may hold
    /// anything, so the fields are counted from its end.
    fn parse(pid: i32, text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = std::str::from_utf8(&text[name_end + 1..])
            .ok()?
            .split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let start_ticks = fields.nth(15)?.parse().ok()?;
        Some(Self {
            pid,
            state,
            parent,
            session,
            start_ticks,
        })
    }
}

/// The reason why processes of another life of this pid namespace have ended: its container was stopped, or
/// the whole host.
pub(crate) fn cause_of_death(its_boot: &str, cause: Cause) -> Cause {
    let host = |boot: &str| boot.split('.').next().map(str::to_owned);
    match boot_id() {
        Ok(now) if host(&now) == host(its_boot) => cause,
        _ => Cause::HostReboot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_hides_no_field() {
        let text = b"42 (a) S 9 (b) Z 7 40 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 5";
        let stat = ProcessStat::parse(42, text).expect("a stat line");
        assert_eq!((stat.state, stat.parent, stat.session), (b'Z', 7, 41));
        assert_eq!(stat.start_ticks, 98765);
        assert!(!stat.runs());
    }

    #[test]
    fn this_process_is_alive_and_was_not_in_another_boot() {
        let boot = boot_id().expect("a boot id");
        let own = ProcessId::of(rustix::process::getpid(), &boot).expect("a process");
        assert!(own.is_alive(&boot));
        assert!(!own.is_alive("another"));
        let reused = ProcessId {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        assert!(!reused.is_alive(&boot));
    }
}
