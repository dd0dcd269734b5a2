//! The router as it runs, at one server or at two on one store, between that store, callers and a runner that are
//! played, and everything that can fail around it, in virtual time and decided by one seed.
//!
//! Real: the links, the collectors with their retries, placing, cancelling, reading and storing of ends, in a
//! runtime of their own that a crash drops where it stands; and the protocol of both ends (`shared-link`).
//! Played: the store ([`super::double`]), the engine's calls and other readers ([`readers`]), the door, the
//! network ([`wire`]) also between servers ([`peers`]), and of the runner its journal, its supervisors and its files
//! ([`runner`], [`host`]).
//! What must hold is in [`oracle`].
//!
//! Each seed runs in a process of its own, because tokio draws from a counter of its process. A seed that
//! fails is printed with the command that repeats it. `make soak` runs many more.

mod callers;
mod changing;
mod dice;
mod faults;
mod host;
mod keeping;
mod luck;
mod machine;
mod oracle;
mod passing;
mod peers;
mod plan;
mod readers;
mod runner;
mod server;
mod storm;
mod wire;
mod world;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    process::{Command, Output, exit},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use oracle::Tally;
use shared_types::{RunnerId, SandboxId};
use world::World;

/// The runner of the simulation.
const RUNNER: RunnerId = RunnerId::from_u128(1);

/// Its sandbox.
fn place() -> SandboxId {
    SandboxId::derive(RUNNER, "workspace")
}

/// Seeds of a run without any wish.
const SEEDS: u64 = 250;

/// Says to a process which seed it runs.
const SEED: &str = "GANTRY_SIMULATION_SEED";

/// Before the tally of a process.
const TALLY: &str = "tally:";

#[test]
fn whatever_fails_every_promise_of_the_contract_is_kept() {
    if let Some(seed) = number(SEED) {
        return run(seed);
    }
    let first = number("GANTRY_SIMULATION_FIRST").unwrap_or(0);
    let seeds = number("GANTRY_SIMULATION_SEEDS").unwrap_or(SEEDS);
    let (next, tally) = (AtomicU64::new(first), Mutex::new(Tally::default()));
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while failed.lock().expect("no panic").is_empty()
                    && let seed = next.fetch_add(1, Ordering::Relaxed)
                    && seed < first + seeds
                {
                    let output = in_a_process(seed);
                    match Tally::read(&output) {
                        Some(told) => tally.lock().expect("no panic").add(&told),
                        None => failed.lock().expect("no panic").push((seed, output)),
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().expect("no panic");
    let mut failed = failed.into_inner().expect("no panic");
    failed.sort_by_key(|(seed, _)| *seed);
    if let Some((seed, output)) = failed.first() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        panic!(
            "seed {seed} failed; repeat it with: GANTRY_SIMULATION_FIRST={seed} \
             GANTRY_SIMULATION_SEEDS=1 cargo nextest run -p server-router simulation::whatever"
        );
    }
    eprintln!("{seeds} seeds from {first}: {tally}");
    assert!(
        seeds < SEEDS || tally.is_complete(),
        "something never happened: {tally}"
    );
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [3, 7, 11] {
        let [first, second] = [seed, seed].map(|seed| {
            let output = in_a_process(seed);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let ran = text.split_once(TALLY).map(|(trace, tally)| {
                let tally = tally.lines().next().map(str::to_owned);
                (trace.to_owned(), tally)
            });
            ran.expect("the seed passes")
        });
        assert_eq!(first, second, "seed {seed} has run in two ways");
    }
}

/// Runs one seed in this process, and ends it.
fn run(seed: u64) {
    luck::decide(seed);
    // A thread that has drawn nothing yet.
    let world = thread::spawn(move || {
        let mut world = World::new(seed);
        let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
        if ran.is_err() {
            eprintln!("{}", world.trace().join("\n"));
            exit(1);
        }
        println!(
            "{}\n{TALLY}{}",
            world.trace().join("\n"),
            world.checks.tally.numbers()
        );
    });
    world.join().expect("it does not panic");
}

fn in_a_process(seed: u64) -> Output {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "--nocapture"])
        .arg("tests::simulation::whatever_fails_every_promise_of_the_contract_is_kept")
        .env(SEED, seed.to_string())
        .output();
    output.expect("this program runs")
}

static PANICKED: AtomicBool = AtomicBool::new(false);

/// From now on it is seen when a task panics, which tokio hides.
fn watch_for_panics() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::Relaxed);
        before(panic);
    }));
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no main that could pass it down"
)]
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}
