//! What a person types, against OpenSSH's programs over a kept connection: the release server with
//! its database, one runner, and the terminal client as a program of its own.
//!
//! The client speaks plain HTTP on loopback, as after `make up`; the runner's frames are sealed.

use std::{path::Path, time::Duration};

use tests::{
    door::Door,
    gantry::{Gantry, Screen, eventually},
};

use crate::{
    execs::{TRUE, timed},
    files::{Local, gone, speed, sync},
    hands::Hands,
    resident::{memory, peak_from_here},
    ssh::Ssh,
    table::{Figure, Goal, MIB, Stopwatch, Unit, median, percentile},
};

const NAME: &str = "bench";
const ROUNDS: usize = 5;
/// Commands of each side in one round.
const SAMPLES: usize = 20;
/// Keys of each side in one round.
const KEYS: usize = 200;
const KEYS_APART: Duration = Duration::from_millis(5);
/// How often the screen is looked at while a key's echo is on its way.
const LOOK_EVERY: Duration = Duration::from_micros(20);
const COPIES: usize = 3;

pub(crate) async fn figures(door: &Door, ssh: &Ssh, watch: &Stopwatch) -> Vec<Figure> {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner(NAME).await;
    let mut figures = execs(&gantry, door, ssh, watch).await;
    figures.extend(echoes(&gantry, ssh, watch).await);
    let there = runner.workspace();
    let pids = [
        ("server", gantry.server_pid(), 32.0),
        ("runner", runner.pid(), 64.0),
    ];
    for (_, pid, _) in pids {
        peak_from_here(pid);
    }
    figures.extend(copies(&gantry, &there, ssh, watch).await);
    for (who, pid, goal) in pids {
        let what = format!("memory of the {who} at most meanwhile");
        let peak = memory(pid, "VmHWM");
        figures.push(Figure::alone(
            what,
            Unit::Memory,
            Goal::AtMost(goal * MIB),
            peak,
        ));
    }
    figures
}

/// `gantry exec`, from the start of its program to its end.
async fn execs(gantry: &Gantry, door: &Door, ssh: &Ssh, watch: &Stopwatch) -> Vec<Figure> {
    let mut whole = Figure::new(
        "`gantry exec -- true`, the program's start included (peer: ssh, kept master connection)",
        Unit::Seconds,
        Goal::None,
    );
    let mut added = Figure::new(
        "the same without a program's start (peer: the exec alone, TLS link)",
        Unit::Seconds,
        Goal::None,
    );
    let hands = Hands::of(door);
    for _ in 0..ROUNDS {
        let (mut ours, mut starts) = (Vec::new(), Vec::new());
        let (mut theirs, mut alone) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(watch.time(ran(gantry, &["exec", "--", TRUE[0]])).await.0);
            starts.push(watch.time(ran(gantry, &["--version"])).await.0);
            theirs.push(watch.time_here(|| ssh.run(true, TRUE)).0);
            let (took, id) = timed(&hands, TRUE, watch).await;
            alone.push(took);
            hands.forget(id).await;
        }
        whole.round(median(&ours), median(&theirs));
        added.round(median(&ours) - median(&starts), median(&alone));
    }
    vec![whole, added]
}

/// From a key to its echo on the screen, by `cat` in a terminal there.
async fn echoes(gantry: &Gantry, ssh: &Ssh, watch: &Stopwatch) -> Vec<Figure> {
    let figure = |what: &str| {
        let what = format!("keystroke to echo in `gantry shell`, {what} (peer: ssh)");
        Figure::new(what, Unit::Seconds, Goal::RatioAtMost(1.0))
    };
    let (mut middle, mut slowest) = (figure("p50"), figure("p99"));
    let ours = gantry.screen(&["shell", "-r", NAME]);
    let theirs = Screen::start(&ssh.shell().into());
    for screen in [&ours, &theirs] {
        screen.type_in("echo re''ady; exec cat\n");
        screen.until_shown("ready").await;
    }
    for _ in 0..ROUNDS {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for _ in 0..KEYS {
            here.push(echo(&ours, watch));
            there.push(echo(&theirs, watch));
        }
        middle.round(median(&here), median(&there));
        slowest.round(percentile(&here, 0.99), percentile(&there, 0.99));
        for screen in [&ours, &theirs] {
            new_line(screen).await;
        }
    }
    vec![middle, slowest]
}

fn echo(screen: &Screen, watch: &Stopwatch) -> f64 {
    std::thread::sleep(KEYS_APART);
    let before = screen.written_bytes();
    let echoed = || {
        screen.type_in("x");
        while screen.written_bytes() == before {
            std::thread::sleep(LOOK_EVERY);
        }
    };
    watch.time_here(echoed).0
}

/// Ends the line, which a terminal bounds, and waits until `cat` has repeated it.
async fn new_line(screen: &Screen) {
    let before = screen.written_bytes();
    screen.type_in("\n");
    let repeated = async || (screen.written_bytes() > before + KEYS).then_some(());
    eventually("cat repeats the line", repeated).await;
}

/// A file of 1 GiB each way, by `gantry cp` and by `scp`.
async fn copies(gantry: &Gantry, there: &Path, ssh: &Ssh, watch: &Stopwatch) -> Vec<Figure> {
    let figure = |what: &str| {
        let what = format!("1 GiB by `gantry cp`, {what} (peer: scp)");
        Figure::new(what, Unit::BytesPerSecond, Goal::RatioAtLeast(1.0))
    };
    let (mut up, mut down) = (figure("to the runner"), figure("from the runner"));
    let local = Local::new();
    let (source, target) = (text(&local.source), text(&local.target));
    let far = format!("{NAME}:file");
    let (file, copied) = (there.join("file"), there.join("copied"));
    for _ in 0..COPIES {
        local.make_room(&file);
        let ours = watch.time(ran(gantry, &["cp", &source, &far])).await.0;
        local.make_room(&copied);
        let scp = watch.time_here(|| ssh.upload(&local.source, &copied)).0;
        up.round(speed(ours), speed(scp));
        // Or the disk would still be at it while ours comes back.
        sync(&copied);
        local.make_room(&local.target);
        let ours = watch.time(ran(gantry, &["cp", &far, &target])).await.0;
        gone(&local.target);
        local.make_room(&local.target);
        let scp = watch.time_here(|| ssh.download(&copied, &local.target)).0;
        down.round(speed(ours), speed(scp));
        for path in [&local.target, &file, &copied] {
            gone(path);
        }
    }
    vec![up, down]
}

fn text(path: &Path) -> String {
    path.to_str().expect("its path is text").to_owned()
}

/// Runs the terminal client to a good end.
async fn ran(gantry: &Gantry, words: &[&str]) {
    let output = gantry.cli(words).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "gantry {words:?}: {said}");
}
