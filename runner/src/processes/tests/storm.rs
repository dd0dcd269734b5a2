//! Supervisors, children behind their gates and the process that forks them all, stopped, continued
//! and killed at random while commands come and go. The oracles: each command ends, none has its
//! effect twice, none has it that was fenced, and once all is quiet nothing is left.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use rustix::process::{Pid, Signal};
use shared_fuzz::Dice;
use tokio::time::timeout;

use super::scene::*;

/// Commands of one storm.
const COMMANDS: u128 = 200;

/// How many of them are under way at a time.
const AT_ONCE: usize = 16;

/// Strikes among those that one look has found.
const STRIKES: u32 = 4;

/// After which time a command that has not ended is cancelled: its supervisor may be stopped.
const PATIENCE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_storm_of_signals_every_command_ends_and_nothing_is_left() {
    let scene = Scene::new();
    let seed = seed();
    let options = ProcessOptions {
        waiting: 4,
        ..scene.options()
    };
    let (processes, _) = scene.open_with(options).await.expect("commands can be run");
    let storm = Storm::begin(scene.root(), Dice::new(seed));
    let fares: Vec<_> = stream::iter(1..=COMMANDS)
        .map(|number| run(&scene, &processes, number))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let seen = storm.end();
    let effects = fs::read_to_string(scene.workspace().join("effects")).unwrap_or_default();
    let mut counts = HashMap::<_, u32>::new();
    for line in effects.lines() {
        *counts.entry(line).or_default() += 1;
    }
    for (number, fared) in &fares {
        let effects = counts.get(number.to_string().as_str()).copied();
        match fared {
            Fared::Ran => assert_eq!(effects, Some(1), "{number} with seed {seed}"),
            Fared::Lost => assert!(effects.is_none_or(|count| count == 1), "{number}, {seed}"),
            Fared::NeverRan => assert_eq!(effects, None, "{number} with seed {seed}"),
        }
    }
    let count = |fared| fares.iter().filter(|(_, other)| *other == fared).count();
    println!(
        "seed {seed}: {} ran, {} were lost, {} never ran",
        count(Fared::Ran),
        count(Fared::Lost),
        count(Fared::NeverRan)
    );
    drop(processes);
    let (processes, left) = scene.open_again().await;
    for (name, left) in left {
        match left {
            LeftOperation::Fenced(spool) | LeftOperation::Ended { files: spool, .. } => {
                spool.forget()
            }
            // It was about to be removed.
            LeftOperation::Unreadable(_) if !scene.root().join(&name).exists() => {}
            other => panic!("{name} is left as {other:?}"),
        }
    }
    drop(processes);
    until_quiet(&scene, &seen).await;
}

/// The one that is asked for, or always the same.
#[expect(clippy::disallowed_methods, reason = "this is the test's `main`")]
fn seed() -> u64 {
    let asked = std::env::var("GANTRY_STORM_SEED").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(4)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fared {
    /// It told its own end.
    Ran,
    /// Nobody knows how it ended.
    Lost,
    NeverRan,
}

async fn run(scene: &Scene, processes: &Processes, number: u128) -> (u128, Fared) {
    let Ok(waiting) = processes.take().await else {
        return (number, Fared::NeverRan);
    };
    let script = shell(&format!(
        "echo {number} >> effects; sleep 0.0{}",
        number % 10
    ));
    let plan = scene.host.plan(&script).expect("a plan");
    let terms = ProcessTerms {
        kill_grace: SOON,
        ..terms()
    };
    let mut process = processes.start(waiting, id(number), plan, terms, PassingControls::new());
    let end = match timeout(PATIENCE, end(&mut process)).await {
        Ok(end) => end,
        Err(_) => {
            process.control.cancel();
            end(&mut process).await
        }
    };
    process.spool.forget();
    let fared = match end {
        ProcessEnd::Fenced => Fared::NeverRan,
        ProcessEnd::Outcome(Outcome::Exited(record)) => match record.status {
            ExitStatus::Code(0) => Fared::Ran,
            ExitStatus::NotStarted(_) => Fared::NeverRan,
            ExitStatus::Code(_) | ExitStatus::Signal(_) | ExitStatus::Unknown => Fared::Lost,
        },
        ProcessEnd::Outcome(other) => panic!("{number} ended as {other:?}"),
    };
    (number, fared)
}

/// Signals to whoever serves this daemon, until it is ended.
struct Storm {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
    seen: Arc<Mutex<HashMap<i32, ProcessIdentity>>>,
}

impl Storm {
    fn begin(root: PathBuf, mut dice: Dice) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::default();
        let thread = std::thread::spawn({
            let (over, seen) = (Arc::clone(&over), Arc::clone(&seen));
            move || {
                while !over.load(Ordering::Relaxed) {
                    strike(&root, &mut dice, &seen);
                    std::thread::sleep(Duration::from_millis(dice.below(5)));
                }
            }
        });
        Self { over, thread, seen }
    }

    /// Who was seen.
    fn end(self) -> Vec<ProcessIdentity> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        let mut seen = self.seen.lock().expect("no panic");
        seen.drain().map(|(_, identity)| identity).collect()
    }
}

/// Some of them are stopped, continued or killed.
fn strike(root: &Path, dice: &mut Dice, seen: &Mutex<HashMap<i32, ProcessIdentity>>) {
    for entry in fs::read_dir(root).expect("a folder").flatten() {
        let identity = Directory::open(&entry.path()).map(|one| one.identity());
        if let Ok(Ok(Some(identity))) = identity {
            let mut seen = seen.lock().expect("no panic");
            seen.insert(identity.supervisor.pid, identity);
        }
    }
    let (forks, serve): (Vec<_>, Vec<_>) = below(root)
        .into_iter()
        .partition(|(_, place)| place == root);
    // The one that forks is one among many, and a stop of it costs ten seconds.
    let strikes = if dice.one_in(100) { forks } else { serve };
    if strikes.is_empty() {
        return;
    }
    for _ in 0..STRIKES {
        let (pid, _) = dice.pick(&strikes);
        let signal = *dice.pick(&[Signal::STOP, Signal::STOP, Signal::CONT, Signal::KILL]);
        // It may be gone by now.
        let _ = rustix::process::kill_process(Pid::from_raw(*pid).expect("a pid"), signal);
        std::thread::sleep(Duration::from_micros(dice.below(2000)));
    }
}

/// Processes that are in this folder or below it, with their places.
fn below(folder: &Path) -> Vec<(i32, PathBuf)> {
    let all = fs::read_dir("/proc").expect("a list").flatten();
    let below = all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let place = fs::read_link(entry.path().join("cwd")).ok()?;
        place.starts_with(folder).then_some((pid, place))
    });
    below.collect()
}

/// Waits until no process, no directory and no cgroup is left.
async fn until_quiet(scene: &Scene, seen: &[ProcessIdentity]) {
    let left = || {
        let mut left = below(&scene.root());
        left.extend(below(&scene.workspace()));
        left.retain(|(pid, _)| runs(*pid));
        let cgroups = seen.iter().filter_map(|identity| identity.cgroup.clone());
        let cgroups: Vec<_> = cgroups.filter(|cgroup| cgroup.exists()).collect();
        (left, cgroups)
    };
    let quiet = async {
        while left() != Default::default() {
            tokio::time::sleep(SOON).await;
        }
    };
    let in_time = timeout(LONG, quiet).await;
    assert!(in_time.is_ok(), "still there: {:?}", left());
}
