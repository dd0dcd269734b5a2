//! The way of a command to its end: drained, asked, killed, proven gone, written down.

use std::time::Duration;

use runner_supervisor::{Cause, ExitRecord, FaultPoint, KillMethod, Leaf, SpoolEnd, Sync};
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::{EndedSupervision, Supervision};
use crate::{clock, last_words, stream::Pump, sys};

/// The time that a command which says nothing has for itself before its supervisor attends to its start.
pub(super) const FIRST_MOMENT: Duration = Duration::from_millis(5);

/// With the first process gone, output that pauses for this long is taken to be over.
const SILENCE: Duration = Duration::from_millis(250);

/// The longest time that output may go on after the first process's end, however busy it is.
const DRAIN_AT_MOST: Duration = Duration::from_secs(2);

/// The time after SIGTERM at which the terminal of a command hangs up (SIGHUP), if the command ignores SIGTERM as an
/// interactive shell does. A command that takes its time to end is left to it.
const HANG_UP_AFTER: Duration = Duration::from_secs(1);

/// The longest time that killed processes may take to die (one may sit in an uninterruptible wait).
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// The first pause between two looks at them; then the pauses grow.
const LOOK_AFTER: Duration = Duration::from_millis(1);

/// The longest pause between two looks, and the pause while processes are asked to end.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(20);

/// The number of looks in a row that find no process, after which the search for those that are left ends.
const EMPTY_LOOKS: u32 = 8;

/// The phase of a command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// It runs.
    Running,
    /// Its first process is gone; what others still write is taken for a while. The time in which they wait
    /// for room, since when they do so, counts for nothing.
    Draining {
        until: Duration,
        held_since: Option<Duration>,
    },
    /// All were asked to end. Their terminal, if they have one, hangs up at that time.
    Asked {
        hang_up_at: Option<Duration>,
        kill_at: Duration,
    },
    /// All are killed, again and again until none is left.
    Killing {
        until: Duration,
        look_at: Duration,
        pause: Duration,
        empty_looks: u32,
    },
}

impl Supervision {
    /// It is to end, for this reason unless there was one before.
    pub(super) fn want_end(&mut self, cause: Cause) {
        match self.phase {
            Phase::Running if self.child.ended.is_none() => {
                self.cause = Some(cause);
                self.prepared.leaf.signal(Signal::TERM);
                // A stopped process acts on its signals only once it goes on.
                self.prepared.leaf.signal(Signal::CONT);
                let now = clock::monotonic();
                let hang_up_at = now.saturating_add(HANG_UP_AFTER);
                self.phase = Phase::Asked {
                    hang_up_at: self.terminal.is_some().then_some(hang_up_at),
                    kill_at: now.saturating_add(self.request.terms.kill_grace),
                };
            }
            // It has ended by itself: only the wait for the rest is cut short.
            Phase::Running | Phase::Draining { .. } => self.cut_short(cause),
            Phase::Asked { .. } | Phase::Killing { .. } => {}
        }
    }

    /// Goes on as far as is possible now; `true` when it is over.
    pub(super) fn advance(&mut self) -> bool {
        loop {
            let now = clock::monotonic();
            match self.phase {
                Phase::Running if self.child.ended.is_some() => {
                    self.phase = Phase::Draining {
                        until: now.saturating_add(DRAIN_AT_MOST),
                        held_since: None,
                    };
                }
                Phase::Running => match self.overdue(now) {
                    Some(cause) => self.want_end(cause),
                    None => return false,
                },
                Phase::Draining { until, held_since } => {
                    let until = self.drain_on(until, held_since, now);
                    let goes_on = match self.is_held() {
                        true if self.ran_too_long(now) => {
                            self.cut_short(Cause::Timeout);
                            continue;
                        }
                        // No process is left to write more, and what there is has a place.
                        true => !self.is_gone(),
                        false => now < until && now < self.quiet_at(),
                    };
                    if goes_on && !self.output_closed() {
                        return false;
                    }
                    self.kill();
                }
                Phase::Asked {
                    hang_up_at,
                    kill_at,
                } => {
                    let gone = self.child.ended.is_some() && self.prepared.leaf.is_empty();
                    if now >= kill_at || gone {
                        self.kill();
                        continue;
                    }
                    if hang_up_at.is_none_or(|at| now < at) {
                        return false;
                    }
                    if ignores_asking(self.child.process.pid) {
                        self.prepared.leaf.signal(Signal::HUP);
                    }
                    self.phase = Phase::Asked {
                        hang_up_at: None,
                        kill_at,
                    };
                }
                Phase::Killing { .. } => return self.killed(now),
            }
        }
    }

    /// When something is due next.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let start = self.child.start.as_ref();
        let start = start.map(|_| self.child.opened.saturating_add(FIRST_MOMENT));
        self.phase_due().into_iter().chain(start).min()
    }

    fn phase_due(&self) -> Option<Duration> {
        match self.phase {
            Phase::Running => {
                let terms = &self.request.terms;
                let run = self.run_until();
                let idle = terms.idle_for.filter(|_| !self.is_held());
                let idle = idle.map(|time| self.last_output().saturating_add(time));
                run.into_iter().chain(idle).min()
            }
            Phase::Draining { .. } if self.is_held() => self.run_until(),
            Phase::Draining { until, .. } => Some(until.min(self.quiet_at())),
            Phase::Asked { kill_at, .. } if self.child.ended.is_some() => {
                Some(kill_at.min(clock::monotonic().saturating_add(LOOK_AT_LEAST_EVERY)))
            }
            Phase::Asked {
                hang_up_at,
                kill_at,
            } => Some(hang_up_at.map_or(kill_at, |at| at.min(kill_at))),
            Phase::Killing { look_at, .. } => Some(look_at),
        }
    }

    /// Takes what is left, writes the end down and tells it.
    pub(super) fn finish(mut self) -> EndedSupervision {
        let now = clock::monotonic();
        let (buffer, gaps) = (&mut self.prepared.buffer, &mut self.prepared.gaps);
        let mut ends = [SpoolEnd {
            offset: 0,
            checksum: Some(0),
        }; 2];
        for (end, pump) in ends.iter_mut().zip(&mut self.pumps) {
            pump.take_rest(buffer, now);
            *end = pump.finish(buffer, gaps);
        }
        self.faults.at(FaultPoint::TreeGone, self.client.as_ref());
        if self.request.terms.sync == Sync::All {
            for pump in &self.pumps {
                // A disk that fails here fails at the exit record too.
                let _ = pump.sync();
            }
        }
        let record = self.record(ends);
        let written = last_words::ended(
            &self.prepared,
            &record,
            &mut self.client,
            self.request.terms.sync,
            self.faults,
        );
        // A supervisor serves again only where nothing of the tree is left and no command can be root, which
        // may have changed what the supervisor uses.
        let again = written && record.tree_gone && self.prepared.rules.is_none();
        EndedSupervision {
            prepared: self.prepared,
            client: self.client.filter(|_| again),
        }
    }

    fn record(&self, [out, err]: [SpoolEnd; 2]) -> ExitRecord {
        let leaf = &self.prepared.leaf;
        let used = self.child.ended.map(|(collected, _)| collected);
        let ended_at = self.child.ended.map_or_else(clock::monotonic, |(_, at)| at);
        let wall = ended_at.saturating_sub(self.child.opened);
        let cause = if self.pumps.iter().any(Pump::is_disk_full) {
            Cause::DiskFull
        } else if self.cause.is_none() && self.child.ran_out_of_memory() {
            Cause::OutOfMemory
        } else {
            self.cause.unwrap_or(Cause::Exited)
        };
        ExitRecord {
            operation: Some(self.request.operation),
            end: self.child.end(self.request.argv[0].as_bytes()),
            cause,
            out,
            err,
            cpu_us: used.map_or(0, |used| micros(used.cpu)),
            max_rss_bytes: used.map_or(0, |used| used.max_rss_bytes),
            wall_us: micros(wall),
            kill: leaf.method(),
            // A process that still holds the output may be a descendant that went elsewhere.
            tree_gone: self.is_gone() && self.output_closed(),
        }
    }

    /// True if the kernel says that no process of the tree is left. None may be in its cgroup, and none that left it
    /// for another one may still come from the command.
    fn is_gone(&self) -> bool {
        let leaf = &self.prepared.leaf;
        (leaf.method() == KillMethod::Sweep || leaf.is_empty()) && sys::is_childless()
    }

    /// Waits for the rest no longer. Where that waits for room some of it is lost, which the record says.
    fn cut_short(&mut self, cause: Cause) {
        if self.is_held() && !self.is_gone() {
            self.cause.get_or_insert(cause);
        }
        self.kill();
    }

    fn kill(&mut self) {
        let now = clock::monotonic();
        self.phase = Phase::Killing {
            until: now.saturating_add(GONE_WITHIN),
            look_at: now,
            pause: LOOK_AFTER,
            empty_looks: 0,
        };
    }

    /// Looks for processes that are left, and kills them; `true` when none is left, or when none of this helps.
    fn killed(&mut self, now: Duration) -> bool {
        let Phase::Killing {
            until,
            look_at,
            pause,
            empty_looks,
        } = self.phase
        else {
            return false;
        };
        if now < look_at {
            return false;
        }
        self.reap();
        let ended = self.child.ended.is_some();
        if (ended && self.is_gone()) || now >= until {
            return true;
        }
        let leaf = &self.prepared.leaf;
        // A process that has left the cgroup is found as a descendant.
        let elsewhere = Leaf::below(getpid());
        let held = [leaf, &elsewhere]
            .into_iter()
            .find(|place| !place.is_empty());
        // Where none is found although one is there, the host hides processes.
        let nobody = ended && held.is_none();
        let empty_looks = if nobody { empty_looks + 1 } else { 0 };
        if empty_looks >= EMPTY_LOOKS {
            return true;
        }
        if let Some(place) = held {
            place.kill();
        }
        if !ended {
            // Wherever it is; its number is its own until it is collected.
            let _ = kill_process(self.child.process.pid, Signal::KILL);
        }
        self.phase = Phase::Killing {
            until,
            look_at: now.saturating_add(pause),
            pause: (pause * 2).min(LOOK_AT_LEAST_EVERY),
            empty_looks,
        };
        false
    }

    fn overdue(&self, now: Duration) -> Option<Cause> {
        let terms = &self.request.terms;
        let over = |since: Duration, time: Option<Duration>| {
            time.is_some_and(|time| now >= since.saturating_add(time))
        };
        if self.ran_too_long(now) {
            return Some(Cause::Timeout);
        }
        let idle = !self.is_held() && over(self.last_output(), terms.idle_for);
        idle.then_some(Cause::Idle)
    }

    /// When its time to run is over.
    fn run_until(&self) -> Option<Duration> {
        let run_for = self.request.terms.run_for?;
        Some(self.child.opened.saturating_add(run_for))
    }

    fn ran_too_long(&self, now: Duration) -> bool {
        self.run_until().is_some_and(|until| now >= until)
    }

    /// Until when the rest of the output is taken, put off by the time for which it waited for room.
    fn drain_on(
        &mut self,
        until: Duration,
        held_since: Option<Duration>,
        now: Duration,
    ) -> Duration {
        let held = held_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let until = until.saturating_add(held);
        self.phase = Phase::Draining {
            until,
            held_since: self.is_held().then_some(now),
        };
        until
    }

    /// True if the command may be waiting for room for its output.
    fn is_held(&self) -> bool {
        self.pumps.iter().any(Pump::is_held)
    }

    /// When output that goes on being silent is taken to be over.
    fn quiet_at(&self) -> Duration {
        let ended_at = self.child.ended.map_or(Duration::ZERO, |(_, at)| at);
        self.last_output().max(ended_at).saturating_add(SILENCE)
    }

    fn last_output(&self) -> Duration {
        let last = self.pumps.iter().map(Pump::last_output).max();
        last.unwrap_or(self.began).max(self.began)
    }

    fn output_closed(&self) -> bool {
        self.pumps.iter().all(Pump::is_closed)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// True if the process ignores SIGTERM (proc(5), `SigIgn`); not where that cannot be read.
fn ignores_asking(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    ignored.is_some_and(|signals| signals >> (Signal::TERM.as_raw() - 1) & 1 == 1)
}
