//! Commands through router, link and runner, against the same commands spawned here.

use std::{path::Path, time::Duration};

use shared_types::OperationId;
use tests::door::Door;

use crate::{
    hands::Hands,
    local,
    ssh::Ssh,
    table::{Figure, Goal, Stopwatch, Unit, median},
};

const ROUNDS: usize = 15;
/// Samples of each side in one round.
const SAMPLES: usize = 40;
/// The same where the peer is ssh, which takes its time.
const ROUNDS_WITH_SSH: usize = 5;
const SAMPLES_WITH_SSH: usize = 10;
const AT_ONCE: usize = 64;
/// Commands of each side in one round of many at once.
const MANY: usize = 512;

/// Between two commands of an agent there is at least a model's answer.
pub(crate) const APART: Duration = Duration::from_millis(20);
pub(crate) const TRUE: &[&str] = &["/usr/bin/true"];

/// Output that is small enough to be kept whole.
const KEPT: &[&str] = &["/usr/bin/head", "-c", "1000000", "/dev/zero"];
const LARGE: &[&str] = &["/usr/bin/head", "-c", "200000000", "/dev/zero"];

/// The p50 of one command at a time, here and there in turns, each after this rest: none is more
/// than the runner's waiting supervisors keep up with, some is what an agent leaves.
pub(crate) async fn round_trip(
    name: &str,
    door: &Door,
    words: &'static [&str],
    rest: Duration,
    watch: &Stopwatch,
) -> Figure {
    let here = tempfile::tempdir().expect("a temporary folder");
    let hands = Hands::of(door);
    let mut figure = Figure::new(name, Unit::Seconds, Goal::RatioAtMost(1.5));
    for _ in 0..ROUNDS {
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            let (took, id) = timed(&hands, words, watch).await;
            ours.push(took);
            hands.forget(id).await;
            tokio::time::sleep(rest).await;
            peer.push(watch.time_here(|| local::run(words, here.path())).0);
            tokio::time::sleep(rest).await;
        }
        figure.round(median(&ours), median(&peer));
    }
    figure
}

/// Seconds that a command takes, given by a task as the engine does it: the main thread is woken
/// over a detour.
pub(crate) async fn timed(
    hands: &Hands,
    words: &'static [&str],
    watch: &Stopwatch,
) -> (f64, OperationId) {
    let (hands, watch) = (hands.clone(), watch.clone());
    let run = async move {
        let (took, (id, _)) = watch.time(hands.run(words)).await;
        (took, id)
    };
    tokio::spawn(run).await.expect("it runs")
}

/// The p50 of one command at a time, against ssh over a kept connection and over fresh ones.
pub(crate) async fn against_ssh(door: &Door, ssh: &Ssh, watch: &Stopwatch) -> Vec<Figure> {
    let hands = Hands::of(door);
    let figure = |kept: &str, goal| {
        let what = format!("exec `true`, TLS link (peer: ssh, {kept})");
        Figure::new(what, Unit::Seconds, Goal::RatioAtMost(goal))
    };
    let kept = figure("kept master connection; goal 5 times faster", 0.2);
    let fresh = figure("fresh connection; goal 50 times faster", 0.02);
    let mut figures = Vec::new();
    for (mut figure, kept) in [(kept, true), (fresh, false)] {
        for _ in 0..ROUNDS_WITH_SSH {
            let (mut ours, mut peer) = (Vec::new(), Vec::new());
            for _ in 0..SAMPLES_WITH_SSH {
                let (took, id) = timed(&hands, TRUE, watch).await;
                ours.push(took);
                hands.forget(id).await;
                peer.push(watch.time_here(|| ssh.run(kept, TRUE)).0);
            }
            figure.round(median(&ours), median(&peer));
        }
        figures.push(figure);
    }
    figures
}

/// Commands per second with 64 in flight.
pub(crate) async fn many_at_once(door: &Door, words: &'static [&str], watch: &Stopwatch) -> Figure {
    let here = tempfile::tempdir().expect("a temporary folder");
    let what = format!("{AT_ONCE} execs at a time, plain link");
    let mut figure = Figure::new(what, Unit::PerSecond, Goal::RatioAtLeast(0.8));
    for _ in 0..ROUNDS {
        let ours = watch.time(at_once(door, words, AT_ONCE, MANY)).await.0;
        let peer = watch
            .time_here(|| spawned_at_once(words, here.path(), AT_ONCE, MANY))
            .0;
        figure.round(MANY as f64 / ours, MANY as f64 / peer);
    }
    figure
}

/// Output that arrives whole, of several commands at a time.
pub(crate) async fn kept_output(door: &Door, watch: &Stopwatch) -> Figure {
    const COMMANDS: usize = 100;
    const LANES: usize = 4;
    let here = tempfile::tempdir().expect("a temporary folder");
    let what = "100 × 1 MB of stdout, every byte delivered, 4 at a time";
    let mut figure = Figure::new(what, Unit::BytesPerSecond, Goal::RatioAtLeast(0.3));
    let bytes = (COMMANDS * 1_000_000) as f64;
    for _ in 0..5 {
        let (took, delivered) = watch.time(at_once(door, KEPT, LANES, COMMANDS)).await;
        assert_eq!(delivered as f64, bytes, "nothing was lost");
        let peer = watch
            .time_here(|| spawned_at_once(KEPT, here.path(), LANES, COMMANDS))
            .0;
        figure.round(bytes / took, bytes / peer);
    }
    figure
}

/// One command that writes 200 MB: it is never held up, so the middle is a recorded gap.
pub(crate) async fn large_output(door: &Door, watch: &Stopwatch) -> Figure {
    let here = tempfile::tempdir().expect("a temporary folder");
    let hands = Hands::of(door);
    let (mut rounds, mut arrived) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (ours, (id, delivered)) = watch.time(hands.run(LARGE)).await;
        hands.forget(id).await;
        let (peer, bytes) = watch.time_here(|| local::drain(LARGE, here.path()));
        arrived.push(delivered as f64 / 1e6);
        rounds.push((bytes as f64 / ours, bytes as f64 / peer));
    }
    let what = format!(
        "200 MB of stdout of one exec ({:.0} MB delivered, the rest a recorded gap)",
        median(&arrived)
    );
    let mut figure = Figure::new(what, Unit::BytesPerSecond, Goal::RatioAtLeast(0.3));
    rounds
        .into_iter()
        .for_each(|(ours, peer)| figure.round(ours, peer));
    figure
}

/// Runs `count` commands, `lanes` of them at a time; returns the bytes that arrived.
async fn at_once(door: &Door, words: &'static [&str], lanes: usize, count: usize) -> u64 {
    let lane = || {
        let hands = Hands::of(door);
        async move {
            let mut bytes = 0;
            for _ in 0..count / lanes {
                let (id, delivered) = hands.run(words).await;
                hands.forget(id).await;
                bytes += delivered;
            }
            bytes
        }
    };
    let running: Vec<_> = (0..lanes).map(|_| tokio::spawn(lane())).collect();
    let mut bytes = 0;
    for lane in running {
        bytes += lane.await.expect("a lane does not panic");
    }
    bytes
}

fn spawned_at_once(words: &'static [&str], here: &Path, lanes: usize, count: usize) {
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                for _ in 0..count / lanes {
                    local::run(words, here);
                }
            });
        }
    });
}
