//! Trees as `/proc` shows them, where nothing better holds one: so only the last resort.
//!
//! A look at `/proc` is not a snapshot. So each process that is found is stopped first, because a
//! stopped process makes no other. Once a look finds only stopped ones, and no process was born or
//! gone during the look, all of them are killed. A look that finds no process proves nothing,
//! because a host may hide processes (`hidepid`), and may make up its figures about the youngest
//! one.

use std::{
    collections::{HashMap, HashSet},
    io,
    time::Duration,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};

use crate::process::{ProcessStat, all_pids};

/// The longest time of stopping before the processes that were found are killed; then it looks
/// again.
const STOPS_WITHIN: Duration = Duration::from_millis(100);

/// The number of looks where processes of others were born or gone during a look.
const LOOKS: u32 = 4;

/// The running descendants of `root`. One that forks while this looks can be missed.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn descendants(root: Pid) -> io::Result<Vec<Pid>> {
    let look = TreeLook::at(root, |_| {})?;
    Ok(look.running)
}

/// The running processes of a session.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn members_of_session(session: i32) -> io::Result<Vec<Pid>> {
    Ok(ProcessStat::all()?
        .iter()
        .filter(|stat| stat.runs() && stat.session == session)
        .filter_map(|stat| Pid::from_raw(stat.pid))
        .collect())
}

/// Stops the descendants of `root`, then kills them; repeat it until none is found.
pub(crate) fn kill_descendants(root: Pid) {
    let began = clock_gettime(ClockId::Monotonic);
    loop {
        let look = TreeLook::at(root, |pid| send(pid, Signal::STOP));
        let now = clock_gettime(ClockId::Monotonic);
        let late = Duration::try_from(now - began).is_ok_and(|tried| tried > STOPS_WITHIN);
        match look {
            Ok(look) if late || (look.stopped && look.whole) => {
                return look
                    .running
                    .into_iter()
                    .for_each(|pid| send(pid, Signal::KILL));
            }
            Ok(_) => {}
            // Without `/proc` no process is found.
            Err(_) => return,
        }
    }
}

/// True if no running process is found that comes from `root`.
pub(crate) fn has_no_descendants(root: Pid) -> bool {
    for _ in 0..LOOKS {
        match TreeLook::at(root, |_| {}) {
            Ok(look) if look.running.is_empty() && !look.whole => {}
            Ok(look) => return look.running.is_empty(),
            Err(_) => return false,
        }
    }
    true
}

/// The result of one look at all processes.
#[derive(Debug)]
struct TreeLook {
    /// The descendants that run.
    running: Vec<Pid>,
    /// True if all of them are stopped, so that none acts before another process lets it go on.
    stopped: bool,
    /// True if no process at all was born or gone during the look.
    whole: bool,
}

impl TreeLook {
    /// Looks for the descendants of `root`, the youngest first, and does this at once to each that
    /// is not stopped.
    fn at(root: Pid, act: impl Fn(Pid)) -> io::Result<Self> {
        let youngest = youngest()?;
        let mut pids = all_pids()?;
        pids.sort_unstable_by(|one, other| other.cmp(one));
        let mut family = Family::of(root);
        let mut look = Self {
            running: Vec::new(),
            stopped: true,
            whole: true,
        };
        for pid in pids {
            let Some(stat) = family.stat(pid) else {
                look.whole = false;
                continue;
            };
            let Some(pid) = Pid::from_raw(pid).filter(|pid| *pid != root && stat.runs()) else {
                continue;
            };
            if !family.has(stat) {
                continue;
            }
            look.running.push(pid);
            if !stat.is_stopped() {
                act(pid);
                // In such a wait it cannot fork either, and stops when it is over.
                look.stopped &= stat.waits_for_the_host();
            }
        }
        look.whole &= youngest == self::youngest()?;
        Ok(look)
    }
}

/// The processes that one look has read, and those of them that are descendants.
struct Family {
    stats: HashMap<i32, Option<ProcessStat>>,
    members: HashSet<i32>,
}

impl Family {
    fn of(root: Pid) -> Self {
        Self {
            stats: HashMap::new(),
            members: HashSet::from([root.as_raw_nonzero().get()]),
        }
    }

    /// The figures of this process; `None` where it is gone.
    fn stat(&mut self, pid: i32) -> Option<ProcessStat> {
        *self
            .stats
            .entry(pid)
            .or_insert_with(|| ProcessStat::of(pid).ok())
    }

    /// True if this one comes from the root.
    fn has(&mut self, stat: ProcessStat) -> bool {
        let (mut line, mut next) = (vec![stat.pid], stat.parent);
        let found = loop {
            if self.members.contains(&next) {
                break true;
            }
            // Reused numbers could make a circle.
            if line.contains(&next) {
                break false;
            }
            line.push(next);
            match self.stat(next) {
                Some(parent) => next = parent.parent,
                None => break false,
            }
        };
        if found {
            self.members.extend(line);
        }
        found
    }
}

/// The number that a process of this host got last (proc(5), `loadavg`).
fn youngest() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    let last = text.split_ascii_whitespace().last();
    Ok(last.unwrap_or_default().to_owned())
}

fn send(pid: Pid, signal: Signal) {
    // One that is gone needs no signal.
    let _ = kill_process(pid, signal);
}
