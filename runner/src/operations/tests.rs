//! The table's task over a real host: real commands in a temporary workspace.

mod consents;
mod damaged;
mod faults;
mod full_disk;
mod full_journal;
mod left;
mod let_go;
mod remembered;
mod suspended;
mod synced;
mod unread;

use std::path::{Path, PathBuf};

use proto::v1::{self, runner_frame::Kind};
use shared_sandbox::Request;
use shared_types::{Epoch, Incarnation, SystemClock, limits::SPOOL_BYTES_PER_STREAM};
use tokio::{task::JoinHandle, time::timeout};

use super::*;
use crate::testing::{OWNER, SOON, found, incarnation, incoming, shell};

pub(super) use faults::Fault;

struct Bench {
    /// With the workspace, the journal and the commands.
    folder: PathBuf,
    /// Removes the folder, where nobody else does.
    temporary: Option<tempfile::TempDir>,
    operations: OperationsHandle,
    incarnation: Incarnation,
    service: JoinHandle<Result<(), JournalError>>,
    link: LinkId,
    frames: mpsc::Receiver<v1::RunnerFrame>,
}

impl Bench {
    async fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a directory");
        let bench = Self::in_folder(temporary.path(), &incarnation().boot, None).await;
        Self {
            temporary: Some(temporary),
            ..bench
        }
    }

    /// A daemon in a home that may have been used before, in this boot of the host.
    async fn in_folder(folder: &Path, boot: &str, fault: Option<Fault>) -> Self {
        let found = found(folder, boot, Arc::new(SystemClock::new())).await;
        Self::of(folder, OperationsParts { fault, ..found }).await
    }

    /// A daemon that finds this in its home.
    async fn of(folder: &Path, found: OperationsParts) -> Self {
        let (operations, service) = OperationsHandle::open(found).await.expect("a table");
        let service = tokio::spawn(service.run());
        let (outgoing, frames) = mpsc::channel(8);
        let opened = operations.open_link(outgoing).await.expect("a link");
        Self {
            folder: folder.to_owned(),
            temporary: None,
            operations,
            incarnation: opened.incarnation,
            service,
            link: opened.link,
            frames,
        }
    }

    /// The daemon dies without a word, and nothing of it writes any more.
    async fn die(&mut self) {
        self.service.abort();
        if !self.service.is_finished() {
            let _ = (&mut self.service).await;
        }
    }

    /// The daemon dies without a word, and another one comes up.
    async fn kill(mut self, boot: &str) -> Self {
        self.die().await;
        Self {
            temporary: self.temporary,
            ..Self::in_folder(&self.folder, boot, None).await
        }
    }

    /// Loses the link and opens another.
    async fn relink(&mut self) -> super::OpenedLink {
        let (outgoing, frames) = mpsc::channel(8);
        self.frames = frames;
        let opened = self.operations.open_link(outgoing).await.expect("a link");
        self.link = opened.link;
        opened
    }

    async fn ask(&self, number: u128, request: Request, from: u64) {
        let mut incoming = incoming(number, request);
        incoming.from[0] = from;
        self.order(incoming).await;
    }

    async fn order(&self, incoming: shared_link::runner::Incoming) {
        let order = Order::Operation(Box::new(incoming));
        let taken = self.operations.order(self.link, order).await;
        taken.expect("a table");
    }

    async fn next(&mut self) -> Kind {
        let frame = timeout(SOON, self.frames.recv()).await;
        frame
            .expect("a frame in time")
            .and_then(|f| f.kind)
            .expect("a kind")
    }

    /// The text of stdout up to the end, and the end.
    async fn read_all(&mut self) -> (String, v1::ended::Outcome) {
        let mut text = String::new();
        loop {
            match self.next().await {
                Kind::Output(output) => text += &String::from_utf8_lossy(&output.data),
                Kind::Ended(ended) => return (text, ended.outcome.expect("an outcome")),
                _ => {}
            }
        }
    }

    /// Waits until stdout has had this many bytes.
    async fn output_of(&mut self, bytes: u64) {
        loop {
            if let Kind::Output(output) = self.next().await
                && output.offset + output.data.len() as u64 >= bytes
            {
                return;
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join("workspace").join(name)
    }
}

/// The death of a host on which one command runs, as far as its processes see it; returns the command's
/// directory. What the daemon finds next says that the host was started anew.
async fn host_of_the_only_command_dies(bench: &mut Bench) -> PathBuf {
    let mut supervised = std::fs::read_dir(bench.folder.join("commands"))
        .expect("the commands")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("fate").exists());
    let directory = supervised.next().expect("its directory");
    let fate = directory.join("fate");
    let record = std::fs::read_to_string(&fate).expect("its fate");
    // Nothing of the daemon is to see the deaths.
    bench.service.abort();
    let _ = (&mut bench.service).await;
    // First, so that whoever sees them takes them for the host's.
    rewrite_boot(&fate, &record);
    die_as_a_host_does(&record);
    directory
}

/// Kills a supervisor and its command, as the death of their host does.
fn die_as_a_host_does(record: &str) {
    let json = record.splitn(4, ' ').nth(3).expect("a record");
    let fate: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let start = &fate["started"];
    for process in [&start["identity"]["supervisor"], &start["child"]] {
        let pid = process["pid"].as_i64().expect("a pid");
        let pid = rustix::process::Pid::from_raw(pid as i32).expect("a pid");
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// The directory of the command that has a fate, and has ended or not.
fn with_records(folder: &Path, ended: bool) -> PathBuf {
    let all = std::fs::read_dir(folder.join("commands")).expect("the commands");
    let mut all = all.filter_map(|entry| Some(entry.ok()?.path()));
    let fits = |path: &PathBuf| path.join("fate").exists() && path.join("exit").exists() == ended;
    all.find(fits).expect("its directory")
}

/// Makes a fate one of an earlier boot of the host.
fn rewrite_boot(fate: &Path, record: &str) {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let json = record.splitn(4, ' ').nth(3).expect("a record");
    let json = json.replace(boot.trim(), "an-earlier-boot");
    let checksum = crc32fast::hash(json.trim_end().as_bytes());
    std::fs::write(fate, format!("1 fate {checksum:08x} {json}")).expect("a fate");
}

fn write(path: &str, content: &[u8]) -> Request {
    Request::Write(shared_sandbox::Write {
        path: path.to_owned(),
        content: content.to_owned(),
    })
}

async fn until(done: impl Fn() -> bool) {
    let wait = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, wait).await.expect("in time");
}

fn code(outcome: &v1::ended::Outcome) -> Option<i32> {
    match outcome {
        v1::ended::Outcome::Exited(v1::ExitRecord {
            status: Some(v1::exit_record::Status::Code(code)),
            ..
        }) => Some(*code),
        _ => None,
    }
}

#[tokio::test]
async fn a_command_runs_once_and_its_whole_output_arrives_over_a_lost_link() {
    let mut bench = Bench::new().await;
    let script =
        "echo ran >> effects; echo first; until test -e go; do sleep 0.01; done; echo second";
    bench.ask(1, shell(script), 0).await;
    bench.output_of(6).await;
    let opened = bench.relink().await;
    assert_eq!(opened.inventory.len(), 1);
    assert!(!opened.inventory[0].ended);
    std::fs::write(bench.path("go"), "").expect("a file");
    bench.ask(1, shell(script), 6).await;
    let (text, outcome) = bench.read_all().await;
    assert_eq!(text, "second\n");
    assert_eq!(code(&outcome), Some(0));
    bench.ask(1, shell(script), 0).await;
    let (text, _) = bench.read_all().await;
    assert_eq!(text, "first\nsecond\n");
    let effects = std::fs::read_to_string(bench.path("effects")).expect("the effect");
    assert_eq!(effects, "ran\n");
}

#[tokio::test]
async fn a_command_without_a_link_goes_on_and_is_never_slowed() {
    let mut bench = Bench::new().await;
    let script = "until test -e go; do sleep 0.01; done; head -c 30000000 /dev/zero; touch done";
    bench.ask(1, shell(script), 0).await;
    assert!(matches!(bench.next().await, Kind::Accepted(_)));
    bench.operations.close_link(bench.link).await;
    std::fs::write(bench.path("go"), "").expect("a file");
    let mut unfinished = bench.operations.unfinished();
    let ended = timeout(SOON, unfinished.wait_for(|left| left.running == 0)).await;
    ended.expect("an end in time").expect("a table");
    assert!(bench.path("done").exists());

    bench.relink().await;
    bench.ask(1, shell(script), 0).await;
    let (mut received, mut missing) = (0, 0);
    let record = loop {
        match bench.next().await {
            Kind::Output(output) => {
                received += output.data.len() as u64;
                let credit = Order::Credit {
                    operation: OperationId::from_u128(1),
                    stream: shared_sandbox::OutputStream::Stdout,
                    up_to: u64::MAX,
                };
                bench
                    .operations
                    .order(bench.link, credit)
                    .await
                    .expect("a table");
            }
            Kind::Gap(gap) => missing += gap.to - gap.from,
            Kind::Ended(v1::Ended {
                outcome: Some(v1::ended::Outcome::Exited(record)),
                ..
            }) => break record,
            _ => {}
        }
    };
    assert_eq!(received, SPOOL_BYTES_PER_STREAM, "the head and the tail");
    assert_eq!(received + missing, 30_000_000);
    assert_eq!(record.stdout.map(|end| end.offset), Some(30_000_000));
}

#[tokio::test]
async fn a_command_outlives_its_daemon_and_is_told_whole_by_the_next_one() {
    let mut bench = Bench::new().await;
    let script =
        "echo ran >> effects; echo first; until test -e go; do sleep 0.01; done; echo second";
    bench.ask(1, shell(script), 0).await;
    bench.output_of(6).await;
    let mut bench = bench.kill(&incarnation().boot).await;
    assert_eq!(bench.operations.unfinished().borrow().running, 1);
    std::fs::write(bench.path("go"), "").expect("a file");
    bench.ask(1, shell(script), 0).await;
    let (text, outcome) = bench.read_all().await;
    assert_eq!(text, "first\nsecond\n");
    assert_eq!(code(&outcome), Some(0));
    let effects = std::fs::read_to_string(bench.path("effects")).expect("the effect");
    assert_eq!(effects, "ran\n");
}

#[tokio::test]
async fn what_ended_while_no_daemon_lived_is_told_by_the_next_one_and_not_run_again() {
    let mut bench = Bench::new().await;
    let script = "echo ran >> effects; until test -e go; do sleep 0.01; done; echo done; exit 7";
    bench.ask(1, shell(script), 0).await;
    bench.ask(2, write("file", b"content"), 0).await;
    assert!(matches!(
        bench.read_all().await.1,
        v1::ended::Outcome::Written(_)
    ));
    bench.service.abort();
    std::fs::write(bench.path("go"), "").expect("a file");
    let mut bench = bench.kill(&incarnation().boot).await;
    std::fs::write(bench.path("file"), "changed since").expect("a file");
    bench.ask(1, shell(script), 0).await;
    let (text, outcome) = bench.read_all().await;
    assert_eq!((text.as_str(), code(&outcome)), ("done\n", Some(7)));
    bench.ask(2, write("file", b"content"), 0).await;
    assert!(matches!(
        bench.read_all().await.1,
        v1::ended::Outcome::Written(_)
    ));
    let read = |name| std::fs::read_to_string(bench.path(name)).expect("a file");
    assert_eq!(read("effects"), "ran\n");
    assert_eq!(read("file"), "changed since");
}

#[tokio::test]
async fn after_another_boot_what_ran_is_lost_and_keeps_the_output_that_there_was() {
    let mut bench = Bench::new().await;
    bench
        .ask(1, shell("echo ran >> effects; echo out; sleep 600"), 0)
        .await;
    bench.output_of(4).await;
    host_of_the_only_command_dies(&mut bench).await;
    let mut bench = bench.kill("another boot").await;
    let mut attach = incoming(1, shell("echo ran >> effects; echo out; sleep 600"));
    attach.request = None;
    attach.incarnation = Some(bench.incarnation.clone());
    bench.order(attach).await;
    let (text, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Exited(record) = outcome else {
        panic!("no exit: {outcome:?}");
    };
    assert_eq!(record.cause(), v1::exit_record::Cause::HostReboot);
    assert_eq!(text, "out\n");
    bench
        .ask(1, shell("echo ran >> effects; echo out; sleep 600"), 0)
        .await;
    let refused = bench.read_all().await.1;
    assert!(
        matches!(refused, v1::ended::Outcome::Refused(_)),
        "{refused:?}"
    );
    let effects = std::fs::read_to_string(bench.path("effects")).expect("the effect");
    assert_eq!(effects, "ran\n");
}

#[tokio::test]
async fn what_another_boot_left_of_the_output_may_be_less_than_the_server_has() {
    let mut bench = Bench::new().await;
    bench.ask(1, shell("echo out; sleep 600"), 0).await;
    bench.output_of(4).await;
    let directory = host_of_the_only_command_dies(&mut bench).await;
    // The page cache died with the host: only the first bytes had reached the disk.
    let spool = std::fs::File::options()
        .write(true)
        .open(directory.join("out"));
    spool
        .and_then(|spool| spool.set_len(2))
        .expect("it is shorter");
    let mut bench = bench.kill("another boot").await;
    let mut attach = incoming(1, shell("echo out; sleep 600"));
    attach.request = None;
    attach.incarnation = Some(bench.incarnation.clone());
    attach.from = [4, 0];
    bench.order(attach).await;
    let (text, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Exited(record) = outcome else {
        panic!("no exit: {outcome:?}");
    };
    assert_eq!(record.cause(), v1::exit_record::Cause::HostReboot);
    assert_eq!(text, "");
}

#[tokio::test]
async fn the_end_of_another_command_is_not_told_as_this_ones() {
    let mut bench = Bench::new().await;
    bench.ask(1, shell("exit 4"), 0).await;
    let told = bench.read_all().await.1;
    assert_eq!(code(&told), Some(4));
    let exit = with_records(&bench.folder, true).join("exit");
    let of_another = std::fs::read_to_string(exit).expect("its end");
    bench.ask(2, shell("echo out; sleep 600"), 0).await;
    bench.output_of(4).await;
    // The host dies: the link to the end is on the disk, what was written over is not.
    let directory = with_records(&bench.folder, false);
    let record = std::fs::read_to_string(directory.join("fate")).expect("its fate");
    bench.service.abort();
    std::fs::write(directory.join("exit"), of_another).expect("an end");
    die_as_a_host_does(&record);
    let mut bench = bench.kill("another boot").await;
    let mut attach = incoming(2, shell("echo out; sleep 600"));
    attach.request = None;
    attach.incarnation = Some(bench.incarnation.clone());
    bench.order(attach).await;
    let (_, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Refused(refusal) = outcome else {
        panic!("an end of another command: {outcome:?}");
    };
    assert!(refusal.message.contains("not known"), "{refusal:?}");
}

#[tokio::test]
async fn a_command_that_cannot_start_leaves_nothing_on_disk() {
    let mut bench = Bench::new().await;
    let Request::Exec(mut exec) = shell("echo never") else {
        panic!("no command");
    };
    exec.directory = "no/such/directory".to_owned();
    for number in 1..=10 {
        bench.ask(number, Request::Exec(exec.clone()), 0).await;
        bench.read_all().await;
    }
    let commands = bench.folder.join("commands");
    let left = || std::fs::read_dir(&commands).expect("the commands").count();
    // One waits, and another one may be about to.
    until(|| left() <= 2).await;
}

#[tokio::test]
async fn what_is_forgotten_leaves_nothing_on_disk() {
    let mut bench = Bench::new().await;
    bench.ask(1, shell("echo out"), 0).await;
    bench.read_all().await;
    let commands = bench.folder.join("commands");
    let used = || {
        let entries = std::fs::read_dir(&commands).expect("the commands");
        let used =
            entries.filter(|entry| entry.as_ref().is_ok_and(|e| e.path().join("fate").exists()));
        used.count()
    };
    assert_eq!(used(), 1);
    let forget = Order::Forget(OperationId::from_u128(1));
    bench
        .operations
        .order(bench.link, forget)
        .await
        .expect("a table");
    until(|| used() == 0).await;
}

#[tokio::test]
async fn a_cancel_stops_the_command_and_is_answered_once_it_is_gone() {
    let mut bench = Bench::new().await;
    bench
        .ask(1, shell("echo up; sleep 600 | cat; touch late"), 0)
        .await;
    bench.output_of(3).await;
    let cancel = Order::Cancel {
        operation: OperationId::from_u128(1),
        owner: OWNER,
        epoch: Epoch(1),
        incarnation: Some(incarnation()),
    };
    bench
        .operations
        .order(bench.link, cancel)
        .await
        .expect("a table");
    let Kind::CancelAnswer(answer) = bench.next().await else {
        panic!("no answer");
    };
    assert_eq!(answer.answer(), v1::cancel_answer::Answer::Cancelled);
    let (_, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Exited(record) = outcome else {
        panic!("no exit: {outcome:?}");
    };
    assert_eq!(record.cause(), v1::exit_record::Cause::Cancelled);
    assert!(!bench.path("late").exists());
}

#[tokio::test]
async fn the_end_of_an_older_link_does_not_end_a_newer_one() {
    let mut bench = Bench::new().await;
    let older = bench.link;
    bench.relink().await;
    bench.operations.close_link(older).await;
    bench.ask(1, shell("echo here"), 0).await;
    assert_eq!(bench.read_all().await.0, "here\n");
    let order = Order::Operation(Box::new(incoming(2, shell("touch from-older"))));
    bench.operations.order(older, order).await.expect("a table");
    bench.ask(3, shell("true"), 0).await;
    bench.read_all().await;
    assert!(!bench.path("from-older").exists());
}

#[tokio::test]
async fn what_still_runs_at_the_end_of_a_drain_is_stopped_as_orphaned() {
    let mut bench = Bench::new().await;
    bench.ask(1, shell("echo up; sleep 600"), 0).await;
    bench.output_of(3).await;
    bench.operations.drain().await;
    bench.operations.orphan().await;
    let (_, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Exited(record) = outcome else {
        panic!("no exit: {outcome:?}");
    };
    assert_eq!(record.cause(), v1::exit_record::Cause::Orphaned);
}
