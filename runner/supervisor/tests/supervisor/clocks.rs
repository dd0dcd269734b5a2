//! Which clock each deadline is counted on: seen from outside, because no test can suspend its host.
//!
//! What is on the boot-time clock shows in `/proc`. What is on the monotonic one is told by the start
//! record, written in a namespace whose boot-time clock is far ahead: whoever read the wrong clock
//! there, or compared the two, is off by as much.

use std::{fs, process::Command, time::Duration};

use runner_supervisor::{Cause, CommandRequest, Directory, Fate, ProcessId, SupervisedOperation};
use rustix::time::{ClockId, clock_gettime};
use shared_types::{Clock, SystemClock};

use crate::scene::{LONG, Scene, finish, until_so};

/// How far the boot-time clock is ahead in the namespace: as if the host had slept so long.
const AHEAD: Duration = Duration::from_secs(1_000_000);

/// As the kernel numbers it in `/proc/PID/fdinfo`.
const CLOCK_BOOTTIME: &str = "7";

/// A timer that a process has: its clock, and what is left until it runs out, if it is set.
#[derive(Debug)]
struct Timer {
    clock: String,
    left: Option<Duration>,
}

fn timers(process: &ProcessId) -> Vec<Timer> {
    let folder = fs::read_dir(format!("/proc/{}/fdinfo", process.pid)).expect("a process");
    let texts = folder.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    texts.filter_map(|text| timer(&text)).collect()
}

/// What `fdinfo` says, where it is of a timer.
fn timer(text: &str) -> Option<Timer> {
    let value = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    let left = value("it_value:")?;
    let (seconds, nanos) = left
        .strip_prefix('(')?
        .strip_suffix(')')?
        .split_once(", ")?;
    let left = Duration::new(seconds.parse().ok()?, nanos.parse().ok()?);
    Some(Timer {
        clock: value("clockid:")?,
        left: Some(left).filter(|left| !left.is_zero()),
    })
}

fn for_ever(scene: &Scene) -> CommandRequest {
    let mut request = scene.shell("sleep 1000");
    request.terms.kill_grace = Duration::from_millis(100);
    request
}

fn end(mut operation: SupervisedOperation) -> Cause {
    operation.cancel().expect("a supervisor");
    finish(&mut operation).record.cause
}

#[test]
fn how_long_a_command_may_be_cut_off_is_counted_while_the_host_is_suspended() {
    let scene = Scene::new();
    let mut request = for_ever(&scene);
    request.terms.orphan_for = Some(LONG);
    request.terms.run_for = Some(2 * LONG);
    request.terms.idle_for = Some(2 * LONG);
    let mut operation = scene.start(&request);
    let supervisor = operation.identity().expect("known").supervisor.clone();
    let left = || {
        let [timer] = &timers(&supervisor)[..] else {
            panic!("one timer: {:?}", timers(&supervisor));
        };
        assert_eq!(timer.clock, CLOCK_BOOTTIME);
        timer.left
    };
    // It may run for so long, and be cut off for so long after that.
    until_so(|| left().is_some_and(|left| 2 * LONG < left && left <= 3 * LONG));
    operation.renew(10 * LONG).expect("a supervisor");
    until_so(|| left().is_some_and(|left| 9 * LONG < left && left <= 13 * LONG));
    assert_eq!(end(operation), Cause::Cancelled);
}

#[test]
fn how_long_a_command_may_run_and_be_silent_is_not_counted_while_the_host_is_suspended() {
    let program = std::env::current_exe().expect("this program");
    let ahead = AHEAD.as_secs().to_string();
    let output = Command::new("unshare")
        .args(["--fork", "--time", "--boottime", &ahead])
        .arg(program)
        .args(["--exact", "clocks::far_ahead", "--ignored", "--nocapture"])
        .output()
        .expect("unshare, of util-linux");
    let told = [&output.stdout[..], &output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

#[test]
#[ignore = "a process that another test starts, in a time namespace of its own"]
fn far_ahead() {
    let clock = SystemClock::new();
    assert!(
        clock.boot_time() > AHEAD + monotonic() - LONG,
        "{:?}",
        clock.boot_time()
    );
    let scene = Scene::new();
    let mut request = for_ever(&scene);
    request.terms.run_for = Some(AHEAD / 2);
    request.terms.idle_for = Some(AHEAD / 2);
    request.terms.orphan_for = Some(AHEAD / 2);
    let before = monotonic();
    let operation = scene.start(&request);
    let directory = Directory::open(operation.directory().path()).expect("a directory");
    let fate = || directory.fate().expect("readable");
    until_so(|| fate().is_some());
    let Some(Fate::Started(start)) = fate() else {
        panic!("it was fenced");
    };
    let times = start.times.expect("its times");
    let began = Duration::from_millis(times.began_ms + 1);
    assert!(before <= began && began <= monotonic() + LONG, "{times:?}");
    // The same for whoever ends it in its supervisor's place.
    let left = times.run_left().expect("a bound");
    assert!(AHEAD / 2 - LONG < left && left <= AHEAD / 2, "{left:?}");
    assert_eq!(end(operation), Cause::Cancelled);

    let short = Duration::from_millis(200);
    let mut request = for_ever(&scene);
    request.terms.run_for = Some(short);
    let record = scene.run(&request).record;
    assert_eq!(record.cause, Cause::Timeout);
    assert!(record.wall_us >= 200_000, "{record:?}");
    request.terms.run_for = None;
    request.terms.idle_for = Some(short);
    let record = scene.run(&request).record;
    assert_eq!(record.cause, Cause::Idle);
    assert!(record.wall_us >= 200_000, "{record:?}");
}

fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).expect("it is not negative")
}
