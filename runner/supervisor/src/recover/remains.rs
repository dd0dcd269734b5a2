//! The remains of an operation that is over: its supervisor, its tree, its cgroup, its directory.

use std::{io, thread::sleep, time::Duration};

use rustix::{
    process::{Signal, kill_process},
    time::{ClockId, clock_gettime},
};

use crate::{
    Directory, Leaf, ProcessId, ProcessIdentity, RecordError, members_of_session, process::boot_id,
};

/// The longest time that a supervisor may take to end by itself: it waits a second for a request to
/// serve another command. A supervisor that takes longer is stopped.
pub(crate) const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The longest time until a killed supervisor is gone, or a session without a cgroup.
const DIES_WITHIN: Duration = Duration::from_secs(5);

/// The longest time until a killed tree is gone.
pub(super) const GONE_WITHIN: Duration = Duration::from_secs(30);

/// The time between two looks at any of them.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Removes an operation that has an end, or never ran, with all that its supervisor has left. Can
/// take some seconds.
///
/// # Errors
/// When the directory cannot be removed; it can be tried again.
pub fn remove(directory: Directory) -> io::Result<()> {
    clear(&directory, ENDS_WITHIN);
    directory.remove()
}

/// Ends a supervisor that has nothing left to do but to end, and does not within `patience`.
/// Removes its cgroup with all processes that are left in it. What the host keeps stays for the
/// next daemon.
pub(crate) fn clear(directory: &Directory, patience: Duration) {
    let (Ok(Some(identity)), Ok(boot)) = (directory.identity(), boot_id()) else {
        return;
    };
    let supervisor = &identity.supervisor;
    if supervisor.boot_id != boot {
        // It went with its host; a cgroup of that name would be another one's.
        return;
    }
    if !wait_until(patience, || !supervisor.is_alive(&boot)) {
        if put_down(supervisor, &boot).is_err() {
            return;
        }
        if identity.cgroup.is_none() {
            // The child behind its gate, should that be stopped as well.
            kill_session(supervisor, &boot);
        }
    }
    wait_until(DIES_WITHIN, || {
        let Ok(Some(leaf)) = Leaf::reopen(identity.kill, identity.cgroup.as_deref()) else {
            return true;
        };
        let removed = leaf.remove().is_ok();
        if !removed {
            leaf.kill();
        }
        removed
    });
}

/// Kills a supervisor, and waits until it is gone.
///
/// # Errors
/// When the host does not let it go.
pub(super) fn put_down(supervisor: &ProcessId, boot: &str) -> Result<(), RecordError> {
    supervisor.kill(boot)?;
    match wait_until(DIES_WITHIN, || !supervisor.is_alive(boot)) {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
    }
}

/// Kills what a dead supervisor has left; whether that is proven to be all of it.
pub(super) fn kill_tree(identity: &ProcessIdentity, child: Option<&ProcessId>, boot: &str) -> bool {
    match Leaf::reopen(identity.kill, identity.cgroup.as_deref()) {
        // Removed once the end is written down.
        Ok(Some(leaf)) => empty(&leaf),
        // It was removed, which is possible only once it was empty.
        Ok(None) if identity.cgroup.is_some() => true,
        Ok(None) | Err(_) => {
            // With a terminal the command leads a session, else it is in its supervisor's.
            for leader in child.into_iter().chain([&identity.supervisor]) {
                kill_session(leader, boot);
            }
            false
        }
    }
}

/// Kills every process in a cgroup, until none is left.
pub(super) fn empty(leaf: &Leaf) -> bool {
    wait_until(GONE_WITHIN, || {
        let empty = leaf.is_empty();
        if !empty {
            leaf.kill();
        }
        empty
    })
}

/// Kills a session, as far as it can be seen. Nothing is proven by that. While any process of a
/// session lives the kernel gives its number to no other, so where another process has it, none is
/// left.
fn kill_session(leader: &ProcessId, boot: &str) {
    // Session 0 is all that a pid namespace sees of those from outside.
    if leader.boot_id != boot || leader.pid <= 0 {
        return;
    }
    wait_until(DIES_WITHIN, || {
        if leader.is_reused() {
            return true;
        }
        let members = members_of_session(leader.pid).unwrap_or_default();
        for member in &members {
            // One that is gone needs no signal.
            let _ = kill_process(*member, Signal::KILL);
        }
        members.is_empty()
    });
}

/// Looks until it is so, at least once; whether it came to be.
pub(super) fn wait_until(within: Duration, mut so: impl FnMut() -> bool) -> bool {
    let began = clock_gettime(ClockId::Monotonic);
    loop {
        if so() {
            return true;
        }
        // A look may take long itself.
        let waited = clock_gettime(ClockId::Monotonic) - began;
        if Duration::try_from(waited).is_ok_and(|waited| waited >= within) {
            return false;
        }
        sleep(LOOK_EVERY);
    }
}
