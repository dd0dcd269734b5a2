//! A journal that is damaged while a command runs: the next daemon takes the command up, and nothing
//! runs or is written a second time.

use tokio::runtime::Runtime;

use super::*;

/// Operation 2 runs all the while; 1 was written before it began, and 3 after.
const COMMAND: u128 = 2;
const SCRIPT: &str = "echo ran >> effects; echo up; until test -e go; do sleep 0.01; done";

/// A daemon that is killed with all that it does.
struct Daemon {
    runtime: Runtime,
    bench: Bench,
    opened: OpenedLink,
}

impl Daemon {
    fn start(folder: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (bench, opened) = runtime.block_on(async {
            let mut bench = Bench::in_folder(folder, &incarnation().boot, None).await;
            let opened = bench.relink().await;
            (bench, opened)
        });
        Self {
            runtime,
            bench,
            opened,
        }
    }

    fn kill(mut self) {
        // First, so that the table does not take the end of what listens for the command's.
        self.bench.service.abort();
        let _ = self.runtime.block_on(&mut self.bench.service);
        self.runtime.shutdown_timeout(SOON);
    }

    /// Whether the inventory has it, and as what.
    fn lists(&self, number: u128) -> Option<bool> {
        let id = OperationId::from_u128(number).to_string();
        let mut listed = self.opened.inventory.iter();
        Some(!listed.find(|entry| entry.operation == id)?.ended)
    }

    /// Whether the server sends what it does not find in the inventory again.
    fn is_believed(&self, before: &OpenedLink) -> bool {
        self.opened.incarnation == before.incarnation
            && self.opened.journal_sequence >= before.journal_sequence
    }
}

/// A home with a command that runs, and writes before and after its start; and what its journal
/// holds.
fn home() -> (tempfile::TempDir, Vec<u8>, OpenedLink) {
    let temporary = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(temporary.path());
    let Daemon { runtime, bench, .. } = &mut daemon;
    let opened = runtime.block_on(async {
        bench.ask(1, write("one", b"1"), 0).await;
        bench.read_all().await;
        let mut command = incoming(COMMAND, shell(SCRIPT));
        command.run_for = Duration::from_secs(3600);
        bench.order(command).await;
        bench.output_of(3).await;
        bench.ask(3, write("three", b"3"), 0).await;
        bench.read_all().await;
        bench.relink().await
    });
    daemon.kill();
    let journal = std::fs::read(journal(temporary.path())).expect("a journal");
    (temporary, journal, opened)
}

fn journal(folder: &Path) -> PathBuf {
    folder.join("journal/journal")
}

/// What a daemon makes of each of these journals, one after the other; at last the command ends.
fn survives(journals: impl Fn(&[u8]) -> Vec<Vec<u8>>) {
    let (temporary, whole, before) = home();
    let folder = temporary.path();
    for (number, damaged) in journals(&whole).into_iter().enumerate() {
        let _ = std::fs::remove_dir_all(folder.join("journal"));
        std::fs::create_dir(folder.join("journal")).expect("a folder");
        std::fs::write(journal(folder), &damaged).expect("a journal");
        let daemon = Daemon::start(folder);
        let said = String::from_utf8_lossy(&damaged).into_owned();
        let runs = daemon.lists(COMMAND);
        if daemon.is_believed(&before) || daemon.opened.incarnation != before.incarnation {
            assert_eq!(runs, Some(true), "the command goes on: {number}: {said}");
        }
        for written in [1, 3] {
            // As if the daemon had died between these lines.
            let begun = damaged.ends_with(b"\n") && last_is_accepted(&damaged, written);
            assert!(
                begun || daemon.lists(written).is_some() || !daemon.is_believed(&before),
                "{written} is written again: {number}: {said}"
            );
        }
        daemon.kill();
    }
    let mut last = Daemon::start(folder);
    std::fs::write(folder.join("workspace/go"), "").expect("a file");
    let Daemon { runtime, bench, .. } = &mut last;
    let (text, outcome) = runtime.block_on(async {
        let mut attach = incoming(COMMAND, shell(SCRIPT));
        attach.request = None;
        attach.incarnation = Some(bench.incarnation.clone());
        bench.order(attach).await;
        bench.read_all().await
    });
    assert_eq!((text.as_str(), code(&outcome)), ("up\n", Some(0)));
    let effects = std::fs::read_to_string(folder.join("workspace/effects"));
    assert_eq!(effects.expect("the effect"), "ran\n");
    last.kill();
}

/// Whether a journal ends with the line that accepts this operation.
fn last_is_accepted(journal: &[u8], number: u128) -> bool {
    let text = String::from_utf8_lossy(journal);
    let last = text.lines().last().unwrap_or_default();
    last.contains("accepted") && last.contains(&OperationId::from_u128(number).to_string())
}

/// Places in a journal: both sides of each line's end, and every so many bytes between them.
fn places(journal: &[u8], step: usize) -> impl Iterator<Item = usize> {
    let is_end = |at: usize| journal.get(at) == Some(&b'\n');
    // Without a header nothing says whose journal it is.
    let header = journal.iter().position(|byte| *byte == b'\n');
    let behind = header.expect("a header") + 1;
    let at_an_end = move |at: usize| (at.saturating_sub(1)..=at + 1).any(is_end);
    (behind..journal.len()).filter(move |at| at % step == 0 || at_an_end(*at))
}

fn cut(whole: &[u8], step: usize) -> Vec<Vec<u8>> {
    let cuts = places(whole, step).map(|length| whole[..length].to_owned());
    cuts.collect()
}

fn changed(whole: &[u8], step: usize) -> Vec<Vec<u8>> {
    let changed = places(whole, step).map(|at| {
        let mut changed = whole.to_owned();
        changed[at] ^= 1 << (at % 8);
        changed
    });
    changed.collect()
}

/// Bytes between two places that are tried where not all of them are.
const STEP: usize = 61;

#[test]
fn a_command_goes_on_whose_journal_is_cut() {
    survives(|whole| cut(whole, STEP));
}

#[test]
fn a_command_goes_on_in_whose_journal_a_byte_has_changed() {
    survives(|whole| changed(whole, STEP));
}

#[test]
#[ignore = "takes minutes"]
fn a_command_goes_on_whose_journal_is_cut_at_any_byte() {
    survives(|whole| cut(whole, 1));
}

#[test]
#[ignore = "takes minutes"]
fn a_command_goes_on_in_whose_journal_any_byte_has_changed() {
    survives(|whole| changed(whole, 1));
}

#[test]
fn a_command_whose_start_record_is_damaged_as_well_never_runs_again() {
    let (temporary, whole, before) = home();
    let folder = temporary.path();
    let accepted = String::from_utf8_lossy(&whole).into_owned();
    let accepted = accepted.lines().take_while(|line| !line.contains("placed"));
    let kept: usize = accepted.map(|line| line.len() + 1).sum();
    std::fs::write(journal(folder), &whole[..kept]).expect("a journal");
    // Those that waited for a command may be fenced by now.
    let commands = std::fs::read_dir(folder.join("commands")).expect("the commands");
    let mut fates = commands.map(|entry| entry.expect("a command").path().join("fate"));
    let started = |fate: &PathBuf| {
        std::fs::read_to_string(fate).is_ok_and(|record| record.contains("started"))
    };
    let fate = fates.find(started).expect("a fate");
    let mut record = std::fs::read(&fate).expect("a fate");
    record[40] ^= 1;
    std::fs::write(fate, record).expect("a fate");
    let mut daemon = Daemon::start(folder);
    // So the server holds it for lost: it was sent to another incarnation, and does not run here.
    assert_ne!(daemon.opened.incarnation, before.incarnation);
    assert_ne!(daemon.lists(COMMAND), Some(true));
    let Daemon { runtime, bench, .. } = &mut daemon;
    let told = runtime.block_on(async {
        bench.order(incoming(COMMAND, shell(SCRIPT))).await;
        bench.read_all().await.1
    });
    assert!(matches!(told, v1::ended::Outcome::Refused(_)), "{told:?}");
    daemon.kill();
    std::fs::write(folder.join("workspace/go"), "").expect("a file");
    let commands = || std::fs::read_dir(folder.join("commands")).expect("the commands");
    let ended = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().join("exit").exists())
    };
    // It would go on without its folder.
    while !commands().any(ended) {
        std::thread::yield_now();
    }
    let effects = std::fs::read_to_string(folder.join("workspace/effects"));
    assert_eq!(effects.expect("the effect"), "ran\n");
}
