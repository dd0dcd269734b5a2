//! Kills for want of memory: how they are found out, and the order of the host's victims, a command
//! before its supervisor.

use std::{
    fs::{self, File},
    io::Read,
};

use runner_supervisor::is_in_container;
use rustix::{
    fs::{FileType, Mode, OFlags},
    process::Pid,
};

/// More than `/proc/vmstat` has, in bytes.
const VMSTAT_BYTES: usize = 32 * 1024;

/// The amount by which the host kills a command sooner than before (`oom_score_adj`, of at most
/// 1000).
const SOONER: i32 = 300;

/// The amount by which it kills a supervisor later.
const LATER: i32 = 500;

/// A shell's exit code for a child that SIGKILL has ended.
const KILLED_CHILD: i32 = 128 + rustix::process::Signal::KILL.as_raw();

/// The file that counts kills for want of memory, since the host's start, in any cgroup.
const OF_THE_HOST: &str = "/proc/vmstat";

/// The same for the cgroup of a container, of version 2 and of version 1.
const OF_A_CONTAINER: [&str; 2] = [
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
];

/// Processes that were killed for want of memory; `None` where the host does not say.
pub(crate) fn kills() -> Option<u64> {
    let own = is_in_container().then_some(OF_A_CONTAINER);
    let mut own = own.iter().flatten();
    own.find_map(|file| counted(file))
        .or_else(|| counted(OF_THE_HOST))
}

fn counted(file: &str) -> Option<u64> {
    let mut text = [0; VMSTAT_BYTES];
    // A container's root can put something else there: it must not be waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(file, flags, Mode::empty()).ok()?;
    let is = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(is.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut file = File::from(file);
    let mut length = 0;
    loop {
        match file.read(&mut text[length..]).ok()? {
            0 => break,
            more => length += more,
        }
    }
    parse(&text[..length])
}

/// Lets the host kill this process later, where it allows that. Returns how soon it was before.
pub(crate) fn protect() -> i32 {
    let before = fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let before = before.trim().parse().unwrap_or(0);
    // Only who may use what others may not (CAP_SYS_RESOURCE) can put itself behind them.
    let _ = fs::write("/proc/self/oom_score_adj", later(before).to_string());
    before
}

/// Lets the host kill a child, and all that come from it, sooner than it would have killed this
/// process before.
pub(crate) fn expose(child: Pid, before: i32) {
    let place = format!("/proc/{}/oom_score_adj", child.as_raw_nonzero());
    // A child that is gone already needs no memory.
    let _ = fs::write(place, sooner(before).to_string());
}

fn later(before: i32) -> i32 {
    // The lowest value of all would exempt it.
    before.saturating_sub(LATER).max(-999).min(before)
}

fn sooner(before: i32) -> i32 {
    before.saturating_add(SOONER).min(1000)
}

/// True if a first process that ended so can have been killed for want of memory, or can have
/// reported a child that was.
pub(crate) fn can_be_victim(status: Result<i32, i32>) -> bool {
    matches!(status, Err(signal) if signal == rustix::process::Signal::KILL.as_raw())
        || status == Ok(KILLED_CHILD)
}

fn parse(text: &[u8]) -> Option<u64> {
    text.split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"oom_kill "))
        .and_then(|number| std::str::from_utf8(number).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_among_others() {
        assert_eq!(parse(b"nr_free_pages 7\noom_kill 42\nx 1\n"), Some(42));
        assert_eq!(parse(b"oom_kill_x 42\n"), None);
    }

    #[test]
    fn a_command_is_killed_before_its_supervisor_whatever_it_was_before() {
        for before in [-1000, -999, 0, 500, 1000] {
            assert!(later(before) <= before && sooner(before) >= before);
            assert!(later(before) < sooner(before));
            assert!(sooner(before) <= 1000);
        }
    }

    #[test]
    fn only_a_kill_can_be_for_want_of_memory() {
        assert!(can_be_victim(Err(9)) && can_be_victim(Ok(137)));
        assert!(!can_be_victim(Err(15)) && !can_be_victim(Ok(9)));
    }
}
