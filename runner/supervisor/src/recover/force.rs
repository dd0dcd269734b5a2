//! The end of a command whose supervisor does not bring it about, because it is stopped or hangs.
//!
//! Only the supervisor can say how the command itself ended, so this comes last. A supervisor whose
//! tree is gone, and that can still report the end, is given the time for it.

use std::io;

use rustix::process::Signal;

use super::{
    Recovered, ended, lost,
    remains::{GONE_WITHIN, empty, kill_tree, put_down, wait_until},
    settle,
};
use crate::{
    Cause, Directory, Fate, KillMethod, Leaf, ProcessIdentity, RecordError, process::boot_id,
};

/// Asks a command to end (`SIGTERM`) where its supervisor is stopped and so does not; else nothing
/// happens.
///
/// # Errors
/// When the records cannot be read, or the host refuses.
pub fn ask_to_end(directory: &Directory) -> Result<(), RecordError> {
    let Some(Fate::Started(start)) = directory.fate()? else {
        return Ok(());
    };
    let identity = &start.identity;
    let boot = boot_id()?;
    if identity.supervisor.is_stopped(&boot)
        && let Some(leaf) = tree(identity, &boot)?
    {
        leaf.signal(Signal::TERM);
        // A stopped process acts on its signals only once it goes on.
        leaf.signal(Signal::CONT);
    }
    Ok(())
}

/// Ends a command whose supervisor was asked to end it and had the time for it. Kills its tree,
/// then its supervisor, and records this cause with an unknown end. An end that the supervisor
/// reports in that time holds. Can take a minute.
///
/// # Errors
/// When the records cannot be read, or the host does not let the supervisor go; it can be tried
/// again.
pub fn end_by_force(directory: Directory, cause: Cause) -> Result<Recovered, RecordError> {
    let boot = boot_id()?;
    let start = match directory.fate() {
        Ok(Some(Fate::Started(start))) if start.identity.supervisor.boot_id == boot => start,
        _ => return settle(directory),
    };
    let identity = &start.identity;
    if let Ok(Some(leaf)) = tree(identity, &boot) {
        empty(&leaf);
    }
    let supervisor = &identity.supervisor;
    wait_until(GONE_WITHIN, || {
        !matches!(directory.exit(), Ok(None))
            || !supervisor.is_alive(&boot)
            || supervisor.is_stopped(&boot)
    });
    if directory.exit()?.is_none() {
        put_down(supervisor, &boot)?;
    }
    if let Some(record) = directory.exit()? {
        return Ok(ended(directory, record));
    }
    let tree_gone = kill_tree(identity, start.child.as_ref(), &boot);
    lost(directory, Some(&start), identity.kill, cause, tree_gone)
}

/// The tree of a supervisor that is there. Without a cgroup the tree is what comes from the
/// supervisor; once the supervisor is gone, the tree cannot be found any more.
fn tree(identity: &ProcessIdentity, boot: &str) -> io::Result<Option<Leaf>> {
    let supervisor = &identity.supervisor;
    match (identity.kill, supervisor.as_pid()) {
        (KillMethod::Sweep, Some(pid)) if supervisor.is_alive(boot) => Ok(Some(Leaf::below(pid))),
        (kill, _) => Leaf::reopen(kill, identity.cgroup.as_deref()),
    }
}
