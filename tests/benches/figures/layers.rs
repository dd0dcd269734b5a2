//! What each layer adds to running `true`: the supervisor alone, the link, TLS, the synced start.
//!
//! All take turns with the same command spawned here, and rest after each: no one's supervisors are
//! started while another is measured, and each meets a processor that has rested as long.

use std::{ffi::CString, path::Path, time::Duration};

use runner_supervisor::{
    CommandRequest, CommandTerms, KillChoice, PoolOptions, SpoolBounds, Streams, SupervisorEvent,
    SupervisorPool, Sync, WhenFull, WorkingDirectory,
};
use shared_types::OperationId;
use tests::{door::Door, gantry::binary};

use crate::{
    execs::{self, APART, TRUE},
    hands::Hands,
    local,
    table::{Figure, Goal, Stopwatch, Unit, median},
};

const ROUNDS: usize = 10;
/// As a runner has.
const WAITING: usize = 8;
const SAMPLES: usize = 20;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);
const SPOOL_BYTES: u64 = 64 << 20;
const TAIL_BYTES: u32 = 1 << 20;

/// The p50 of one command at a time, by configuration; the peer of each is the local spawn.
pub(crate) async fn figures(watch: &Stopwatch) -> Vec<Figure> {
    let here = tempfile::tempdir().expect("a temporary folder");
    let pool = pool(here.path());
    let links = [
        ("plain link", Door::open(false).await),
        ("TLS link", Door::open(true).await),
        (
            "TLS link, runner with --sync-before-start",
            Door::open_with(true, &["--sync-before-start"]).await,
        ),
    ];
    let names = ["supervisor alone, no link"];
    let mut figures: Vec<_> = names
        .into_iter()
        .chain(links.iter().map(|(name, _)| *name))
        .map(|name| {
            Figure::new(
                format!("exec `true`, p50, {name}"),
                Unit::Seconds,
                Goal::None,
            )
        })
        .collect();
    for _ in 0..ROUNDS {
        let mut ours = vec![Vec::new(); figures.len()];
        let mut peer = Vec::new();
        for _ in 0..SAMPLES {
            peer.push(watch.time_here(|| local::run(TRUE, here.path())).0);
            tokio::time::sleep(APART).await;
            ours[0].push(supervised(&pool, here.path(), watch));
            tokio::time::sleep(APART).await;
            for ((_, door), ours) in links.iter().zip(&mut ours[1..]) {
                let hands = Hands::of(door);
                let (took, id) = execs::timed(&hands, TRUE, watch).await;
                ours.push(took);
                hands.forget(id).await;
                tokio::time::sleep(APART).await;
            }
        }
        for (figure, ours) in figures.iter_mut().zip(&ours) {
            figure.round(median(ours), median(&peer));
        }
    }
    figures
}

/// As a runner has it, with nothing around it.
fn pool(root: &Path) -> SupervisorPool {
    let options = PoolOptions {
        realm: runner_supervisor::Realm::Host,
        program: binary("gantry-supervisor"),
        root: root.to_owned(),
        prefix: "bench".to_owned(),
        waiting: WAITING,
        kill: KillChoice::Strongest,
        fault: None,
    };
    SupervisorPool::new(options).expect("a pool")
}

/// Seconds until a supervisor that waits tells of the end of its command.
fn supervised(pool: &SupervisorPool, directory: &Path, watch: &Stopwatch) -> f64 {
    let waiting = pool.take_ready(PATIENCE).expect("one is ready");
    let record = waiting.directory().path().to_owned();
    let request = request(directory);
    let (took, operation) = watch.time_here(|| {
        let started = waiting.start(&request, None);
        let mut operation = started.map_err(|(_, error)| error).expect("it starts");
        loop {
            match operation.event(PATIENCE).expect("it can be heard") {
                Some(SupervisorEvent::Ended(_)) => break operation,
                Some(_) => {}
                None => panic!("the supervisor is silent"),
            }
        }
    });
    pool.keep(operation.into_spent().expect("it can serve another one"));
    assert!(pool.reclaim(&record));
    took
}

fn request(directory: &Path) -> CommandRequest {
    let words = TRUE.iter().map(|word| CString::new(*word).expect("no NUL"));
    CommandRequest {
        operation: OperationId::from_u128(1),
        argv: words.collect(),
        environment: Vec::new(),
        terms: CommandTerms {
            user: None,
            place: WorkingDirectory::Path(directory.into()),
            streams: Streams::Separate,
            stdin: false,
            run_for: Some(PATIENCE),
            idle_for: None,
            orphan_for: Some(PATIENCE),
            kill_grace: PATIENCE,
            spool: SpoolBounds {
                bytes: SPOOL_BYTES,
                when_full: WhenFull::Gap { tail: TAIL_BYTES },
            },
            sync: Sync::Nothing,
            claim: None,
        },
    }
}
