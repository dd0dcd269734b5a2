//! Whole directories of operations, put together from whole, changed and impossible parts.
//!
//! The processes that they name are made up, or strangers that got a pid later: those are to live.
//! No mangled record names a process or cgroup that is really somebody's, because the checksum
//! keeps such a record from being believed, and a test that is wrong would kill at random.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use runner_supervisor::{
    Directory, ExitRecord, Fate, KillMethod, ProcessId, ProcessIdentity, RecordError, Recovered,
    SpoolStream, StartRecord, Tail, boot_id, recover,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use shared_fuzz::{Dice, each_seed, mutate};
use shared_types::OperationId;

use super::{
    folder,
    frames::exit_record,
    records::{file_of, gaps},
};

/// Seeds of a run without any wish.
const SEEDS: u64 = 300;

/// A pid that no host gives (the kernel's bound is 2^22).
const NOBODY: i32 = 1 << 30;

#[test]
fn a_mangled_directory_is_settled_once_and_kills_no_stranger() {
    let mut stranger = Stranger::start();
    each_seed(SEEDS, |seed| {
        let mut dice = Dice::new(seed);
        let folder = folder();
        let root = folder.path().join("operations");
        let operation = root.join("one");
        fs::create_dir_all(&operation).expect("a folder");
        let bait = bait(folder.path());
        fill(&operation, &stranger, &bait, &mut dice);
        let before = Known::of(&operation);
        let first = settled(&root);
        before.hold_against(&first);
        let second = settled(&root);
        assert_eq!(first.is_some(), second.is_some());
        assert_eq!(first, second, "what is over stays as it was");
        let killed = fs::read(bait.join("cgroup.kill")).expect("bait") != b"0";
        assert!(!killed, "somebody else's cgroup was killed");
    });
    assert!(stranger.lives(), "somebody else's process was killed");
}

/// What recovery says of the only operation; `None` where it cannot tell.
fn settled(root: &Path) -> Option<Settled> {
    let mut all = recover(root).expect("a readable root");
    assert_eq!(all.len(), 1);
    match all.remove(0).1 {
        Ok(Recovered::Fenced(_)) => Some(Settled::Fenced),
        Ok(Recovered::Ended(_, record)) => Some(Settled::Ended(record)),
        Ok(Recovered::Running(operation)) => panic!("nobody runs: {operation:?}"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

#[derive(Debug, PartialEq)]
enum Settled {
    Fenced,
    Ended(ExitRecord),
}

/// What the files say before anybody settles them.
struct Known {
    has_fate: bool,
    fate: Result<Option<Fate>, RecordError>,
    exit: Option<ExitRecord>,
}

impl Known {
    fn of(operation: &Path) -> Self {
        let directory = Directory::open(operation).expect("a directory");
        Self {
            has_fate: operation.join("fate").symlink_metadata().is_ok(),
            fate: directory.fate(),
            exit: directory.exit().ok().flatten(),
        }
    }

    fn hold_against(&self, settled: &Option<Settled>) {
        if *settled == Some(Settled::Fenced) && self.has_fate {
            let fenced = matches!(self.fate, Ok(Some(Fate::Fenced { .. })));
            assert!(fenced, "{:?} is called fenced", self.fate);
        }
        if let Some(exit) = &self.exit {
            assert_eq!(*settled, Some(Settled::Ended(exit.clone())));
        }
    }
}

/// A process that has nothing to do with any operation, and leads a session.
struct Stranger {
    process: Child,
    boot: String,
}

impl Stranger {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let lead = || {
            rustix::process::setsid()?;
            Ok(())
        };
        #[expect(unsafe_code, reason = "between fork and exec it only calls setsid(2)")]
        // SAFETY: setsid(2) is async-signal-safe, and nothing is allocated.
        unsafe {
            command.pre_exec(lead)
        };
        Self {
            process: command.spawn().expect("a process"),
            boot: boot_id().expect("a boot id"),
        }
    }

    fn lives(&mut self) -> bool {
        self.process.try_wait().expect("a child").is_none()
    }

    /// A process that this one is not, whatever its pid.
    fn taken_for(&self, dice: &mut Dice) -> ProcessId {
        let pid = i32::try_from(self.process.id()).expect("a pid");
        ProcessId {
            pid: *dice.pick(&[pid, pid, NOBODY, 0, -1, i32::MIN]),
            start_ticks: dice.below(2),
            boot_id: dice
                .pick(&[self.boot.as_str(), self.boot.as_str(), "another boot", ""])
                .to_string(),
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.process.kill().expect("it lives");
        self.process.wait().expect("it ends");
    }
}

/// A folder that looks like a cgroup and is none of ours.
fn bait(folder: &Path) -> PathBuf {
    let bait = folder.join("bait");
    fs::create_dir(&bait).expect("a folder");
    for (name, text) in [("cgroup.kill", "0"), ("cgroup.events", "populated 1\n")] {
        fs::write(bait.join(name), text).expect("a file");
    }
    bait
}

fn fill(operation: &Path, stranger: &Stranger, bait: &Path, dice: &mut Dice) {
    let identity = ProcessIdentity {
        supervisor: stranger.taken_for(dice),
        kill: *dice.pick(&KillMethod::ALL),
        cgroup: match dice.below(3) {
            0 => None,
            1 => Some(bait.to_owned()),
            _ => Some("/sys/fs/cgroup/gantry/there-is-none".into()),
        },
    };
    let fate = if dice.one_in(4) {
        Fate::Fenced {
            reason: "nobody wants it".to_owned(),
        }
    } else {
        Fate::Started(StartRecord {
            operation: OperationId::from_u128(7),
            identity: identity.clone(),
            child: dice.one_in(2).then(|| stranger.taken_for(dice)),
            times: None,
            claim: None,
        })
    };
    let files = [
        ("ready", file_of("ready", &identity)),
        ("fate", file_of("fate", &fate)),
        ("exit", file_of("exit", &exit_record())),
        ("gaps", gaps()),
        ("out", vec![b'x'; dice.up_to(5000)]),
        ("err", Vec::new()),
        (Tail::file_name(SpoolStream::Out), tail(operation)),
        ("sock", Vec::new()),
    ];
    let whole: Vec<&[u8]> = files.iter().map(|(_, bytes)| bytes.as_slice()).collect();
    for (name, bytes) in &files {
        put(&operation.join(name), bytes, &whole, dice);
    }
    if dice.one_in(2) {
        // Most operations have no end yet.
        let _ = fs::remove_file(operation.join("exit"));
    }
}

/// The tail of a stream that went on for a while.
fn tail(operation: &Path) -> Vec<u8> {
    let path = operation.join(Tail::file_name(SpoolStream::Out));
    let mut tail = Tail::create(&path, 1000, 5000).expect("a tail");
    for _ in 0..5 {
        tail.push(&[b'y'; 700]).expect("kept");
    }
    let bytes = fs::read(&path).expect("a tail");
    fs::remove_file(&path).expect("removed");
    bytes
}

/// The file as it should be, or not.
fn put(path: &Path, bytes: &[u8], others: &[&[u8]], dice: &mut Dice) {
    let mut changed = bytes.to_vec();
    match dice.below(12) {
        0 => return,
        1 => changed.clear(),
        2 => return fs::create_dir(path).expect("a folder"),
        3 => {
            return mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
        }
        4 => changed = dice.pick::<&[u8]>(others).to_vec(),
        5 | 6 => {
            let other = *dice.pick::<&[u8]>(others);
            mutate(&mut changed, other, dice);
        }
        _ => {}
    }
    fs::write(path, changed).expect("a file");
}
