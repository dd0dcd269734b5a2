//! The cost that the supervisor adds to running `/bin/true`, as medians of one run.
//!
//! `cargo run --release -p runner-supervisor --example exec_cost -- SUPERVISOR FOLDER [COUNT]`
//! SUPERVISOR is the program `gantry-supervisor`, FOLDER lies on the disk to be measured. Plain
//! spawns, pooled supervisors and supervisors started on the spot take turns, so that all meet the
//! same host. The pool is full again before each of its turns, as between two tool calls.

use std::{
    ffi::CString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use runner_supervisor::{
    CommandRequest, CommandTerms, IdleSupervisor, KillChoice, PoolOptions, SpoolBounds, Streams,
    SupervisorEvent, SupervisorPool, Sync, WhenFull, WorkingDirectory,
};
use shared_types::{Clock, OperationId, SystemClock};

const LONG: Duration = Duration::from_secs(10);
const PROGRAM: &str = "/bin/true";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(program), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("say which gantry-supervisor and which folder".into());
    };
    let count = arguments.next().map_or(Ok(300), |text| text.parse())?;
    let root = PathBuf::from(folder).join("exec-cost");
    std::fs::create_dir_all(&root)?;
    let clock = SystemClock::new();
    let mut rows = Rows::default();
    let pool = pool(&program, &root, 8)?;
    let empty = self::pool(&program, &root, 0)?;
    for _ in 0..count {
        rows.plain.push(plain(&clock)?);
        for sync in [Sync::Nothing, Sync::Start, Sync::All] {
            let waiting = pool.take_ready(LONG)?;
            let before = clock.monotonic();
            let seen = supervised(&clock, &pool, waiting, sync, before, true)?;
            rows.of(sync).push(seen);
        }
        let before = clock.monotonic();
        let waiting = empty.take()?;
        let seen = supervised(&clock, &empty, waiting, Sync::Nothing, before, false)?;
        rows.fresh.push(seen);
    }
    rows.print();
    drop((pool, empty));
    std::thread::sleep(Duration::from_millis(300));
    Ok(std::fs::remove_dir_all(root)?)
}

#[derive(Default)]
struct Rows {
    plain: Vec<Duration>,
    pooled: [Vec<Duration>; 3],
    fresh: Vec<Duration>,
}

impl Rows {
    fn of(&mut self, sync: Sync) -> &mut Vec<Duration> {
        &mut self.pooled[match sync {
            Sync::Nothing => 0,
            Sync::Start => 1,
            Sync::All => 2,
        }]
    }

    fn print(self) {
        let plain = median(self.plain);
        println!(
            "{:<28}{:>11}{:>11}{:>8}",
            "µs, median", "exit seen", "more", "ratio"
        );
        println!("{:<28}{:>11}", "plain spawn and wait", plain.as_micros());
        let [nothing, start, all] = self.pooled;
        for (name, seen) in [
            ("pool, no sync", nothing),
            ("pool, sync of the start", start),
            ("pool, sync of everything", all),
            ("started on the spot", self.fresh),
        ] {
            let seen = median(seen);
            println!(
                "{name:<28}{:>11}{:>11}{:>8.2}",
                seen.as_micros(),
                seen.saturating_sub(plain).as_micros(),
                seen.as_secs_f64() / plain.as_secs_f64()
            );
        }
    }
}

fn pool(program: &str, root: &Path, waiting: usize) -> Result<SupervisorPool, Failure> {
    Ok(SupervisorPool::new(PoolOptions {
        program: program.into(),
        root: root.to_owned(),
        prefix: format!("pool{waiting}"),
        waiting,
        kill: KillChoice::Strongest,
        fault: None,
        realm: runner_supervisor::Realm::Host,
    })?)
}

fn plain(clock: &SystemClock) -> Result<Duration, Failure> {
    let before = clock.monotonic();
    let mut child = Command::new(PROGRAM)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    child.wait()?;
    Ok(clock.monotonic().saturating_sub(before))
}

/// When the exit record was there.
fn supervised(
    clock: &SystemClock,
    pool: &SupervisorPool,
    waiting: IdleSupervisor,
    sync: Sync,
    before: Duration,
    again: bool,
) -> Result<Duration, Failure> {
    let since = || clock.monotonic().saturating_sub(before);
    let directory = waiting.directory().path().to_owned();
    let mut operation = waiting
        .start(&request(sync)?, None)
        .map_err(|(_, error)| error)?;
    while !matches!(operation.event(LONG)?, Some(SupervisorEvent::Ended(_))) {}
    let seen = since();
    // One that was started on the spot serves one command.
    if let Some(spent) = operation.into_spent().filter(|_| again) {
        pool.keep(spent);
    }
    if !pool.reclaim(&directory) {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(seen)
}

fn request(sync: Sync) -> Result<CommandRequest, Failure> {
    Ok(CommandRequest {
        operation: OperationId::from_u128(1),
        argv: vec![CString::new(PROGRAM)?],
        environment: Vec::new(),
        terms: CommandTerms {
            place: WorkingDirectory::Path("/".into()),
            user: None,
            streams: Streams::Separate,
            stdin: false,
            run_for: Some(LONG),
            idle_for: None,
            orphan_for: Some(LONG),
            kill_grace: LONG,
            spool: SpoolBounds {
                bytes: 64 * 1024 * 1024,
                when_full: WhenFull::Gap { tail: 1024 * 1024 },
            },
            sync,
            claim: None,
        },
    })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
