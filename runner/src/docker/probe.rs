//! A probe of the isolation of this host's containers, by a command that is launched like every other.
//!
//! A property counts only where the attempt to break it failed, in a container of each template. One that
//! could not be tried does not hold.

use std::{collections::BTreeSet, fs, path::Path};

use runner_supervisor::{SpoolBounds, Sync, WhenFull};
use shared_sandbox::{Command, Exec, ExitCause, ExitRecord, Outcome, OutputStream};
use shared_types::{
    Isolation, OperationId, SandboxPrivilege,
    isolation::Property,
    limits::{KILL_GRACE, SPOOL_BYTES_PER_STREAM},
};
use tokio::time::{Duration, timeout};

use super::{Container, container::RunningContainer};
use crate::processes::{
    PassingControls, Process, ProcessEnd, ProcessEvent, ProcessTerms, SpoolRead,
};

/// The attempts.
const SCRIPT: &str = include_str!("probe.sh");

/// The last line before it waits to be ended.
const TRIED: &str = "tried\n";

/// The longest time that the probe may take.
const WITHIN: Duration = Duration::from_secs(60);

/// The script's word where a finding breaks every property.
const ALL: &str = "all";

/// The result of an attempt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tried {
    /// The properties that were seen to hold.
    pub(super) holds: BTreeSet<Property>,
    /// The properties that were seen not to hold, in words.
    pub(super) breaks: Vec<String>,
}

impl Tried {
    /// The properties that hold in this attempt and in another one.
    fn in_both(mut self, other: Self) -> Self {
        self.holds.retain(|property| other.holds.contains(property));
        self.breaks.extend(other.breaks);
        self
    }

    pub(super) fn isolation(&self) -> Isolation {
        Isolation::of(self.holds.iter().copied())
    }
}

/// Tries it in this container. `home` is the runner's own; for the time of the attempt it holds a file that
/// no other user may read.
///
/// # Errors
/// The reason why it could not be tried.
pub(super) async fn try_in(container: &Container, home: &Path) -> Result<Tried, String> {
    let canary = home.join("canary");
    fs::write(&canary, "gantry\n").map_err(|error| error.to_string())?;
    let tried = timeout(WITHIN, attempt(container, home, &canary)).await;
    let _ = fs::remove_file(&canary);
    tried.unwrap_or_else(|_| Err("it did not end in time".to_owned()))
}

async fn attempt(container: &Container, home: &Path, canary: &Path) -> Result<Tried, String> {
    let running = container.ready().await;
    let running = running.map_err(|refusal| refusal.message)?;
    let tried = attempt_as(&running, false, home, canary).await?;
    match running.privilege {
        SandboxPrivilege::Strict => Ok(tried),
        // Root might do what an ordinary command cannot.
        SandboxPrivilege::Sudo => {
            let as_root = attempt_as(&running, true, home, canary).await?;
            Ok(tried.in_both(as_root))
        }
    }
}

async fn attempt_as(
    running: &RunningContainer,
    root: bool,
    home: &Path,
    canary: &Path,
) -> Result<Tried, String> {
    let namespace = fs::read_link("/proc/self/ns/pid").map_err(|error| error.to_string())?;
    let told = [
        ("HOME_OF_RUNNER", home),
        ("PID_NAMESPACE", namespace.as_path()),
        ("CANARY", canary),
    ];
    let told = told.map(|(name, value)| (name.to_owned(), value.display().to_string()));
    let exec = match root {
        false => Exec {
            environment: told.into(),
            ..Exec::new(Command::Shell(SCRIPT.to_owned()))
        },
        true => {
            let assigned = told.iter().map(|(name, value)| format!("{name}={value}"));
            let words = ["sudo".to_owned(), "AS_ROOT=1".to_owned()]
                .into_iter()
                .chain(assigned)
                .chain(["sh", "-c", SCRIPT].map(str::to_owned));
            Exec::new(Command::Argv(words.collect()))
        }
    };
    let plan = running.inhabited.plan(&exec);
    let plan = plan.map_err(|why| format!("{:?}", Outcome::from(why)))?;
    let waiting = running.processes.take().await;
    let waiting = waiting.map_err(|reason| reason.to_string())?;
    let terms = ProcessTerms {
        run_for: WITHIN,
        orphan_for: WITHIN,
        kill_grace: KILL_GRACE.min(Duration::from_millis(200)),
        spool: SpoolBounds {
            bytes: SPOOL_BYTES_PER_STREAM,
            when_full: WhenFull::Gap { tail: 4096 },
        },
        sync: Sync::Nothing,
        claim: None,
    };
    let nobody = OperationId::from_u128(0);
    let mut process = running
        .processes
        .start(waiting, nobody, plan, terms, PassingControls::new());
    let mut asked = false;
    let end = loop {
        match process.events.recv().await {
            Some(ProcessEvent::Ended(ProcessEnd::Outcome(Outcome::Exited(record)))) => {
                break record;
            }
            Some(ProcessEvent::Ended(_)) | None => return Err("it did not run".to_owned()),
            Some(_) if !asked && said(&mut process).ends_with(TRIED) => {
                asked = true;
                process.control.cancel();
            }
            Some(_) => {}
        }
    };
    let tried = read(&said(&mut process), &end);
    process.spool.forget();
    Ok(tried)
}

fn said(process: &mut Process) -> String {
    let mut text = Vec::new();
    while let Ok(SpoolRead::Bytes(bytes)) =
        process
            .spool
            .read(OutputStream::Stdout, text.len() as u64, 65536)
    {
        text.extend(bytes);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The result that its words and its end give.
fn read(said: &str, end: &ExitRecord) -> Tried {
    let mut tried = Tried::default();
    for line in said.lines() {
        if let Some(name) = line.strip_prefix("holds ") {
            tried.holds.extend(property(name));
        } else if let Some(words) = line.strip_prefix("breaks ") {
            tried.breaks.push(words.to_owned());
        }
    }
    // Only a script that came to its end has tried everything.
    let killed = end.cause == ExitCause::Cancelled && end.tree_gone;
    if killed && said.ends_with(TRIED) {
        tried.holds.insert(Property::KillTree);
    }
    let all_is_broken = tried.breaks.iter().any(|words| words.starts_with(ALL));
    if all_is_broken || !said.ends_with(TRIED) {
        tried.holds.clear();
    }
    tried
}

fn property(name: &str) -> Option<Property> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}

#[cfg(test)]
mod tests {
    use shared_sandbox::{ExitStatus, StreamEnd};

    use super::*;

    fn ended(cause: ExitCause) -> ExitRecord {
        ExitRecord {
            status: ExitStatus::Signal(9),
            cause,
            stdout: StreamEnd::default(),
            stderr: StreamEnd::default(),
            wall_ms: 0,
            cpu_us: 0,
            max_rss_bytes: 0,
            tree_gone: true,
        }
    }

    #[test]
    fn only_what_was_tried_to_the_end_holds() {
        let cancelled = ended(ExitCause::Cancelled);
        let tried = read("holds network\nbreaks sockets: x\ntried\n", &cancelled);
        let both = BTreeSet::from([Property::Network, Property::KillTree]);
        assert_eq!(tried.holds, both);
        assert_eq!(tried.breaks, ["sockets: x"]);
        let cut_off = read("holds network\n", &cancelled);
        assert_eq!(cut_off.isolation(), Isolation::none());
        let privileged = read("holds network\nbreaks all: it is root\ntried\n", &cancelled);
        assert_eq!(privileged.isolation(), Isolation::none());
        let survived = ExitRecord {
            tree_gone: false,
            ..cancelled
        };
        let tried = read("holds network\ntried\n", &survived);
        assert_eq!(tried.holds, BTreeSet::from([Property::Network]));
    }
}
