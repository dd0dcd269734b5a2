//! A daemon killed before and after every record that its journal gets, and in the middle of making
//! it shorter: the next one goes on as if nothing had been.

mod twice;

use std::{
    process::Command,
    str::FromStr,
    sync::atomic::{AtomicUsize, Ordering},
};

use proto::v1::runner_frame;
use shared_link::runner::Record;
use shared_sandbox::{Edit, Input, Unpack, Upload};
use shared_types::{Digest, OsEntropy};

use super::*;
use crate::{
    journal::{COMPACT_FROM, Journal},
    testing::{SUPERVISOR, supervisor},
};

/// How the stand-in learns where it works, what alone it asks for, and where it dies.
const PLACE: &str = "STAND_IN_PLACE";
const ONLY: &str = "STAND_IN_ONLY";
const FAULT: &str = "STAND_IN_FAULT";

/// Makes the kinds of records from one list: a record that is not in it does not compile.
macro_rules! kinds {
    ($($kind:ident: $record:pat,)*) => {
        /// What a record of the journal says, without what it says it of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Kind {
            $($kind,)*
        }

        impl Kind {
            const ALL: &[Self] = &[$(Self::$kind,)*];

            fn of(entry: &JournalEntry) -> Self {
                match entry {
                    $($record => Self::$kind,)*
                }
            }
        }
    };
}

kinds! {
    Boot: JournalEntry::Boot(_),
    Placed: JournalEntry::Placed { .. },
    Changing: JournalEntry::Changing { .. },
    Accepted: JournalEntry::Table(Record::Accepted(_)),
    Epoch: JournalEntry::Table(Record::Epoch { .. }),
    Ended: JournalEntry::Table(Record::Ended { .. }),
    Released: JournalEntry::Table(Record::Released(_)),
    Receipt: JournalEntry::Table(Record::Receipt(_) | Record::Receipts(_)),
    // The first that a shorter journal gets, of all that it takes over.
    Sequence: JournalEntry::Table(Record::Sequence(_)),
}

/// Where a daemon dies: at the nth record of a kind, before or after the journal has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    kind: Kind,
    /// From 0.
    nth: usize,
    after: bool,
}

impl Fault {
    /// The journal is about to get these records, or has got them.
    pub(crate) fn reached(fault: Option<Self>, entries: &[JournalEntry], after: bool) {
        /// Records of the fault's kind that came so far.
        static CAME: AtomicUsize = AtomicUsize::new(0);
        let Some(fault) = fault.filter(|fault| fault.after == after) else {
            return;
        };
        let kinds = entries.iter().map(Kind::of);
        let come = kinds.filter(|kind| *kind == fault.kind).count();
        let before = CAME.fetch_add(come, Ordering::Relaxed);
        if (before..before + come).contains(&fault.nth) {
            let ourselves = rustix::process::getpid();
            let _ = rustix::process::kill_process(ourselves, rustix::process::Signal::KILL);
        }
    }
}

impl Fault {
    /// The journal is made shorter and this is about to be taken over, or all of it is. Only one kind
    /// of record is written nowhere else.
    pub(crate) fn shortened(fault: Option<Self>, entry: &JournalEntry, after: bool) {
        if Kind::of(entry) == Kind::Sequence {
            Self::reached(fault, std::slice::from_ref(entry), after);
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let moment = if self.after { "after" } else { "before" };
        write!(f, "{moment} {:?} {}", self.kind, self.nth)
    }
}

impl FromStr for Fault {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let words: Vec<_> = text.split(' ').collect();
        let [moment, kind, nth] = words[..] else {
            return Err(());
        };
        let known = |known: &Kind| format!("{known:?}") == kind;
        let kind = *Kind::ALL.iter().find(|kind| known(kind)).ok_or(())?;
        Ok(Self {
            kind,
            nth: nth.parse().map_err(|_| ())?,
            after: moment == "after",
        })
    }
}

/// What files hold that are sent.
const CONTENT: &[u8] = b"all of it";

const AT_ONCE: &str = "echo ran >> effects-at-once; echo once; exit 4";
const SCRIPT: &str = "echo ran >> effects; seq 1 2000; exit 3";

/// A daemon in a process of its own, so that it can be killed, and a server that asks it for one
/// of everything and expects that it happens.
#[tokio::test]
#[ignore = "a process that other tests start"]
#[expect(clippy::disallowed_methods, reason = "this is its `main`")]
async fn stand_in() {
    let place: PathBuf = std::env::var_os(PLACE).expect("a place").into();
    let fault = std::env::var(FAULT).ok();
    let fault = fault.map(|text| text.parse().expect("a fault"));
    let mut bench = Bench::in_folder(&place, &incarnation().boot, fault).await;
    match std::env::var(ONLY) {
        Ok(number) => bench.expect(number.parse().expect("a number")).await,
        Err(_) => {
            for number in [9, 1, 4, 2, 3, 5, 7, 11, 12, 13, 14] {
                bench.expect(number).await;
            }
        }
    }
}

impl Bench {
    /// Asks for one of the operations, and sees it done.
    async fn expect(&mut self, number: u128) {
        match number {
            // The shell of the first is not known yet; the second begins where it is admitted.
            1 => self.run_command(1, SCRIPT, &numbers(), 3).await,
            4 => self.run_command(4, AT_ONCE, "once\n", 4).await,
            2 => self.change(2, write("written", b"content")).await,
            3 => self.change(3, edit()).await,
            5 => {
                let outcome = self.send(5, upload(), CONTENT.into()).await;
                let written = matches!(outcome, v1::ended::Outcome::Written(_));
                assert!(written, "{outcome:?}");
            }
            7 => self.cancel(7).await,
            11 => self.change(11, make_directory()).await,
            12 => self.change(12, rename()).await,
            13 => self.change(13, remove()).await,
            14 => {
                let archive = archive();
                let outcome = self.send(14, unpack(&archive), archive.into()).await;
                let v1::ended::Outcome::Unpacked(unpacked) = outcome else {
                    panic!("{outcome:?}");
                };
                assert_eq!((unpacked.entries, unpacked.skipped.len()), (3, 0));
            }
            _ => {
                let list = Request::List(shared_sandbox::List {
                    path: String::new(),
                    max_entries: 9,
                    tree: false,
                    after: String::new(),
                });
                self.ask_under(Epoch(2), number, list).await;
                self.read_all().await;
            }
        }
    }

    async fn run_command(&mut self, number: u128, script: &str, output: &str, exit: i32) {
        self.ask_under(Epoch(2), number, shell(script)).await;
        let (text, outcome) = self.read_all().await;
        assert_eq!(
            (text.as_str(), code(&outcome)),
            (output, Some(exit)),
            "{outcome:?}"
        );
    }

    async fn change(&mut self, number: u128, request: Request) {
        self.ask_under(Epoch(2), number, request).await;
        let outcome = self.read_all().await.1;
        let changed = matches!(
            outcome,
            v1::ended::Outcome::Written(_)
                | v1::ended::Outcome::Edited(_)
                | v1::ended::Outcome::MadeDirectory(v1::MadeDirectory { made: true })
                | v1::ended::Outcome::Moved(_)
                | v1::ended::Outcome::Removed(_)
        );
        assert!(changed, "{outcome:?}");
    }

    async fn cancel(&mut self, number: u128) {
        let cancel = Order::Cancel {
            operation: OperationId::from_u128(number),
            owner: OWNER,
            epoch: Epoch(2),
            incarnation: Some(incarnation()),
        };
        let ordered = self.operations.order(self.link, cancel).await;
        ordered.expect("a table");
        let runner_frame::Kind::CancelAnswer(answer) = self.next().await else {
            panic!("no answer");
        };
        assert_eq!(answer.answer(), v1::cancel_answer::Answer::NeverStarted);
    }

    /// Asks for what takes a file, and sends it, where it has not been.
    async fn send(
        &mut self,
        number: u128,
        request: Request,
        content: bytes::Bytes,
    ) -> v1::ended::Outcome {
        self.ask_under(Epoch(2), number, request).await;
        let piece = Order::Input {
            operation: OperationId::from_u128(number),
            piece: Input {
                offset: 0,
                data: content,
                end: true,
            },
        };
        let ordered = self.operations.order(self.link, piece).await;
        ordered.expect("a table");
        self.read_all().await.1
    }

    async fn ask_under(&self, epoch: Epoch, number: u128, request: Request) {
        let mut incoming = incoming(number, request);
        incoming.epoch = epoch;
        self.order(incoming).await;
    }
}

/// What the first command writes.
fn numbers() -> String {
    (1..=2000).map(|line| format!("{line}\n")).collect()
}

fn upload() -> Request {
    Request::Upload(Upload {
        path: "uploaded".to_owned(),
        bytes: CONTENT.len() as u64,
        digest: Digest::of(CONTENT).into(),
        mode: None,
        modified_us: None,
    })
}

fn unpack(archive: &[u8]) -> Request {
    Request::Unpack(Unpack {
        path: String::new(),
        bytes: archive.len() as u64,
        digest: Digest::of(archive).into(),
    })
}

/// A folder, a file in it, and a link to that.
fn archive() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(0);
    header.set_entry_type(tar::EntryType::Directory);
    let added = archive.append_data(&mut header, "unpacked", &[][..]);
    added.expect("there is room");
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(CONTENT.len() as u64);
    let added = archive.append_data(&mut header, "unpacked/file", CONTENT);
    added.expect("there is room");
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    let added = archive.append_link(&mut header, "unpacked/link", "file");
    added.expect("there is room");
    archive.into_inner().expect("it is in memory")
}

/// Replaces the only `x` of a file.
fn edit() -> Request {
    Request::Edit(Edit {
        path: "edited".to_owned(),
        old: "x".to_owned(),
        new: "y and z".to_owned(),
        every: false,
        expected: None,
    })
}

fn make_directory() -> Request {
    Request::MakeDirectory(shared_sandbox::MakeDirectory {
        path: "made/in/here".to_owned(),
    })
}

/// It fails where it is done a second time.
fn rename() -> Request {
    Request::Move(shared_sandbox::Move {
        from: "to-move".to_owned(),
        to: "moved".to_owned(),
        replace: false,
    })
}

fn remove() -> Request {
    Request::Remove(shared_sandbox::Remove {
        path: "tree".to_owned(),
        tree: true,
    })
}

/// Runs the stand-in; returns whether it died where it was to.
fn run(place: &Path, fault: Option<Fault>) -> bool {
    run_only(None, place, fault)
}

/// Runs the stand-in, with one operation only where it has a number.
fn run_only(number: Option<u128>, place: &Path, fault: Option<Fault>) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let name = "operations::tests::faults::stand_in";
    command
        .args(["--exact", name, "--ignored", "--quiet"])
        .env(PLACE, place)
        .env(SUPERVISOR, supervisor());
    if let Some(number) = number {
        command.env(ONLY, number.to_string());
    }
    if let Some(fault) = fault {
        command.env(FAULT, fault.to_string());
    }
    let output = command.output().expect("a process");
    let killed = output.status.signal() == Some(9);
    assert!(
        killed || output.status.success(),
        "with {fault:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    killed
}

#[test]
fn a_daemon_killed_at_any_record_of_its_journal_is_gone_on_for_by_the_next_one() {
    let (_, written) = written_by_the_stand_in();
    for &kind in Kind::ALL {
        let times = match kind {
            // Only after a death is something released.
            Kind::Released => 1,
            // See the test of its own.
            Kind::Sequence => continue,
            _ => written.iter().filter(|one| **one == kind).count(),
        };
        assert!(times > 0, "the stand-in brings about no {kind:?}");
        for (nth, after) in (0..times).flat_map(|nth| [(nth, false), (nth, true)]) {
            die_and_go_on(place(), Fault { kind, nth, after });
        }
    }
}

#[test]
fn a_daemon_killed_while_it_makes_its_journal_shorter_is_gone_on_for_by_the_next_one() {
    /// At so many points of all that the stand-in asks for.
    const POINTS: u64 = 5;
    let all = size_of_journal(written_by_the_stand_in().0.path());
    for point in 0..POINTS {
        for after in [false, true] {
            let place = place();
            fill_journal(place.path(), COMPACT_FROM - all * point / POINTS);
            let (kind, nth) = (Kind::Sequence, 0);
            die_and_go_on(place, Fault { kind, nth, after });
        }
    }
}

/// A journal of this size, with nothing in it that anybody will ask for.
fn fill_journal(place: &Path, bytes: u64) {
    /// What its line has beside it.
    const EMPTY: &str = "01234567 {\"boot\":\"\"}\n";
    let opened = Journal::open(&place.join("journal"), &SystemClock::new(), &OsEntropy);
    let mut journal = opened.expect("a journal").journal;
    let filler = bytes - size_of_journal(place) - EMPTY.len() as u64;
    let boot = JournalEntry::Boot("-".repeat(filler as usize));
    journal.append(&[boot]).expect("room");
    assert_eq!(size_of_journal(place), bytes);
}

fn size_of_journal(place: &Path) -> u64 {
    let file = std::fs::metadata(place.join("journal/journal"));
    file.expect("a journal").len()
}

/// Where the stand-in has worked and nobody died, and the kinds of all records of its journal.
fn written_by_the_stand_in() -> (tempfile::TempDir, Vec<Kind>) {
    written_with_only(None)
}

/// The same, with one operation only where it has a number.
fn written_with_only(number: Option<u128>) -> (tempfile::TempDir, Vec<Kind>) {
    let place = place();
    let died = run_only(number, place.path(), None);
    assert!(!died, "a death without a fault");
    let folder = place.path().join("journal");
    let opened = Journal::open(&folder, &SystemClock::new(), &OsEntropy);
    let entries: Vec<JournalEntry> = opened.expect("a journal").records;
    let kinds = entries.iter().map(Kind::of).collect();
    (place, kinds)
}

/// Where a stand-in works.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a place");
    let workspace = place.path().join("workspace");
    std::fs::create_dir(&workspace).expect("a workspace");
    std::fs::write(workspace.join("edited"), "x").expect("a file");
    std::fs::write(workspace.join("to-move"), "all of it").expect("a file");
    std::fs::create_dir_all(workspace.join("tree/inner")).expect("a tree");
    place
}

fn die_and_go_on(place: tempfile::TempDir, fault: Fault) {
    let workspace = place.path().join("workspace");
    if fault.kind == Kind::Released {
        // Only what was accepted and never began is released.
        let accepted = Fault {
            kind: Kind::Accepted,
            nth: 0,
            after: true,
        };
        assert!(run(place.path(), Some(accepted)), "no death {accepted}");
    }
    assert!(run(place.path(), Some(fault)), "no death {fault}");
    // Twice: what the second one is told must be what the first one was told.
    assert!(!run(place.path(), None), "a death without a fault");
    assert!(!run(place.path(), None), "a death without a fault");
    let read = |name| std::fs::read_to_string(workspace.join(name)).expect("a file");
    assert_eq!(read("effects"), "ran\n", "{fault}");
    assert_eq!(read("effects-at-once"), "ran\n", "{fault}");
    assert_eq!(read("written"), "content", "{fault}");
    assert_eq!(read("uploaded"), "all of it", "{fault}");
    assert_eq!(read("edited"), "y and z", "{fault}");
    assert_eq!(read("moved"), "all of it", "{fault}");
    assert_eq!(read("unpacked/link"), "all of it", "{fault}");
    let is_there = |name| workspace.join(name).exists();
    let there = ["made/in/here", "to-move", "tree"].map(is_there);
    assert_eq!(there, [true, false, false], "{fault}");
}
