//! One command that writes 1 GiB, which its reader confirms as it arrives: every byte comes, and
//! the command waits where the reader is behind. The peers' readers throw away what they read.

use tests::door::Door;

use crate::{
    hands::Hands,
    local,
    resident::{memory, peak_from_here},
    ssh::Ssh,
    table::{Figure, Goal, MIB, Stopwatch, Unit},
};

const ROUNDS: usize = 3;
const BYTES: u64 = 1 << 30;
const WRITES: &[&str] = &["/usr/bin/head", "-c", "1073741824", "/dev/zero"];

/// Against ssh (where there is one) and a local pipe, and what memory it takes.
pub(crate) async fn figures(door: &Door, ssh: Option<&Ssh>, watch: &Stopwatch) -> Vec<Figure> {
    let here = tempfile::tempdir().expect("a temporary folder");
    let pipe = || speed(watch.time_here(|| local::drain(WRITES, here.path())));
    let figure = |peer: &str, goal| {
        let what = format!("1 GiB of stdout, every byte, {peer}");
        Figure::new(what, Unit::BytesPerSecond, goal)
    };
    let mut by_ssh = figure(
        "TLS link (peer: ssh, kept master connection)",
        Goal::RatioAtLeast(1.2),
    );
    let mut by_pipe = figure("TLS link (peer: a local pipe)", Goal::RatioAtLeast(0.3));
    let mut plain = figure("plain link (peer: a local pipe)", Goal::None);

    let processes = [
        ("runner", door.runner.pid()),
        ("router and the reader", std::process::id()),
    ];
    for (_, pid) in processes {
        peak_from_here(pid);
    }
    for _ in 0..ROUNDS {
        let ours = through(door, watch).await;
        by_pipe.round(ours, pipe());
        if let Some(ssh) = ssh {
            by_ssh.round(ours, speed(watch.time_here(|| ssh.drain(WRITES))));
        }
    }
    let peaks = processes.map(|(what, pid)| {
        let what = format!("memory of the {what} at most meanwhile");
        let goal = Goal::AtMost(32.0 * MIB);
        Figure::alone(what, Unit::Memory, goal, memory(pid, "VmHWM"))
    });

    let unencrypted = Door::open(false).await;
    for _ in 0..ROUNDS {
        plain.round(through(&unencrypted, watch).await, pipe());
    }
    let by_ssh = ssh.map(|_| by_ssh);
    by_ssh
        .into_iter()
        .chain([by_pipe])
        .chain(peaks)
        .chain([plain])
        .collect()
}

/// Bytes per second through a link.
async fn through(door: &Door, watch: &Stopwatch) -> f64 {
    let hands = Hands::of(door);
    let (took, (id, read)) = watch.time(hands.drain(WRITES)).await;
    hands.forget(id).await;
    speed((took, read))
}

fn speed((took, bytes): (f64, u64)) -> f64 {
    assert_eq!(bytes, BYTES, "nothing was lost");
    bytes as f64 / took
}
