//! With the option, what is written down of a command is on the disk before the command begins: seen
//! from outside, by strace(1).

use std::process::Command;

use super::*;
use crate::testing::{SUPERVISOR, supervisor};

/// How the stand-in learns where it works, and whether it syncs.
const PLACE: &str = "STAND_IN_PLACE";
const SYNCS: &str = "STAND_IN_SYNCS";

/// What only the command of the test is called.
const COMMAND: &str = "the-command-begins";

/// A daemon in a process of its own, which is traced and runs one command.
#[tokio::test]
#[ignore = "a process that other tests start"]
#[expect(clippy::disallowed_methods, reason = "this is its `main`")]
async fn stand_in() {
    let place: PathBuf = std::env::var_os(PLACE).expect("a place").into();
    let found = found(&place, &incarnation().boot, Arc::new(SystemClock::new())).await;
    let sync_before_start = std::env::var_os(SYNCS).is_some();
    let found = OperationsParts {
        sync_before_start,
        ..found
    };
    let mut bench = Bench::of(&place, found).await;
    // Of the first one the shell is asked for what it is; both ways to begin are taken.
    for number in [1, 2] {
        let script = shell(&format!("exec sh -c 'exit 3' {COMMAND}-{number}"));
        bench.ask(number, script, 0).await;
        assert_eq!(code(&bench.read_all().await.1), Some(3));
    }
}

/// A call of the daemon, of a supervisor or of a command.
#[derive(Debug)]
struct Call {
    process: String,
    text: String,
    /// Where in the order of all that was seen it began, and where it returned.
    began: usize,
    ended: usize,
}

/// All that the stand-in and whatever it starts have called.
fn traced(syncs: bool) -> Vec<Call> {
    let place = tempfile::tempdir().expect("a place");
    let log = place.path().join("calls");
    let mut traced = Command::new("strace");
    traced
        .args(["--follow-forks", "--decode-fds=path", "--quiet=all"])
        .args(["--string-limit=4096", "--output"])
        .arg(&log)
        .arg("--trace=execve,pwrite64,fdatasync,fsync,linkat")
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "operations::tests::synced::stand_in"])
        .arg("--ignored")
        .env(PLACE, place.path())
        .env(SUPERVISOR, supervisor());
    if syncs {
        traced.env(SYNCS, "yes");
    }
    let output = traced.output().expect("strace");
    let told = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&told)
    );
    read(&std::fs::read_to_string(log).expect("a log"))
}

/// What strace says, one beginning or end of a call in each line.
fn read(log: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for (at, line) in log.lines().enumerate() {
        let (process, text) = line.split_once(' ').expect("a process");
        let text = text.trim_start();
        if text.starts_with("<...") {
            let open = calls.iter_mut().rev().find(|call| call.process == process);
            let call = open.expect("it began");
            call.text += text;
            call.ended = at;
        } else {
            let unfinished = text.ends_with("<unfinished ...>");
            calls.push(Call {
                process: process.to_owned(),
                text: text.to_owned(),
                began: at,
                ended: if unfinished { usize::MAX } else { at },
            });
        }
    }
    calls
}

/// The first call that began after `before` had returned, and says all of this.
fn after<'a>(calls: &'a [Call], before: Option<&Call>, says: &[&str]) -> &'a Call {
    let mut later = calls
        .iter()
        .filter(|call| before.is_none_or(|before| before.ended < call.began));
    let found = later.find(|call| says.iter().all(|word| call.text.contains(word)));
    let found = found.unwrap_or_else(|| panic!("no {says:?} after {before:?}"));
    assert!(!found.text.contains("= -1"), "{found:?}");
    found
}

#[test]
fn a_command_begins_once_its_journal_and_its_fate_are_on_the_disk_as_strace_sees_it() {
    let calls = traced(true);
    for number in [1, 2] {
        let operation = OperationId::from_u128(number).to_string();
        let begins = after(&calls, None, &["execve(", &format!("{COMMAND}-{number}")]);
        let mut last = None;
        for step in [
            &["pwrite64(", "/journal/journal>", "placed", &operation][..],
            &["fdatasync(", "/journal/journal>"],
            &["pwrite64(", "/fate.new>", "started", &operation],
            &["fdatasync(", "/fate.new>"],
            &["linkat(", "\"fate.new\"", "\"fate\""],
            &["fsync(", "/commands/"],
        ] {
            let call = after(&calls, last, step);
            assert!(call.ended < begins.began, "{begins:?} before {call:?}");
            last = Some(call);
        }
    }
}

#[test]
fn a_command_waits_for_no_disk_unless_that_is_wanted_as_strace_sees_it() {
    let calls = traced(false);
    let of_a_fate = |call: &Call| call.text.contains("sync(") && call.text.contains("/commands/");
    let synced = calls.iter().find(|call| of_a_fate(call));
    assert!(synced.is_none(), "{synced:?}");
}
