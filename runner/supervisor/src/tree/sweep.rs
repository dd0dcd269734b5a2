//! Trees as `/proc` shows them: not a snapshot, so only the last resort.

use std::{collections::HashSet, io};

use rustix::process::Pid;

use crate::process::Stat;

/// The running descendants of `root`. One that forks while this looks can be missed.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn descendants(root: Pid) -> io::Result<Vec<Pid>> {
    let all = Stat::all()?;
    let mut family = HashSet::from([root.as_raw_nonzero().get()]);
    loop {
        let before = family.len();
        for stat in &all {
            if family.contains(&stat.parent) {
                family.insert(stat.pid);
            }
        }
        if family.len() == before {
            break;
        }
    }
    Ok(all
        .iter()
        .filter(|stat| stat.runs() && family.contains(&stat.pid))
        .filter_map(|stat| Pid::from_raw(stat.pid))
        .filter(|pid| *pid != root)
        .collect())
}

/// The running processes of a session.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn members_of_session(session: i32) -> io::Result<Vec<Pid>> {
    Ok(Stat::all()?
        .iter()
        .filter(|stat| stat.runs() && stat.session == session)
        .filter_map(|stat| Pid::from_raw(stat.pid))
        .collect())
}
