//! Whether the host ran out of memory.

use std::{fs::File, io::Read};

/// More than `/proc/vmstat` has, in bytes.
const VMSTAT_BYTES: usize = 32 * 1024;

/// A shell's exit code for a child that SIGKILL has ended.
const KILLED_CHILD: i32 = 128 + rustix::process::Signal::KILL.as_raw();

/// Processes that this host has killed for want of memory since its start, in any cgroup; `None`
/// where it does not say.
pub(crate) fn kills() -> Option<u64> {
    let mut text = [0; VMSTAT_BYTES];
    let mut file = File::open("/proc/vmstat").ok()?;
    let mut length = 0;
    loop {
        match file.read(&mut text[length..]).ok()? {
            0 => break,
            more => length += more,
        }
    }
    parse(&text[..length])
}

/// Whether a first process that ended so can have been killed for want of memory, or have told of
/// a child that was.
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
    fn only_a_kill_can_be_for_want_of_memory() {
        assert!(can_be_victim(Err(9)) && can_be_victim(Ok(137)));
        assert!(!can_be_victim(Err(15)) && !can_be_victim(Ok(9)));
    }
}
