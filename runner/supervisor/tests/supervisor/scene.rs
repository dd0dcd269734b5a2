//! A folder of operations, and short ways to run something in it.

use std::{
    ffi::CString,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use runner_supervisor::{
    CommandRequest, CommandTerms, ExitRecord, Fault, KillChoice, OperationEnd, PoolOptions,
    SpoolBounds, SpoolPiece, SpoolStream, Streams, SupervisedOperation, SupervisorEvent,
    SupervisorPool, Sync, WhenFull, WorkingDirectory,
};
use shared_types::OperationId;
use tempfile::TempDir;

/// What nothing here takes, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(30);

const MIB: u64 = 1024 * 1024;

/// A folder with operations and a folder to run in.
pub(crate) struct Scene {
    place: PathBuf,
    /// Removed with this; absent where the place is somebody else's.
    _folder: Option<TempDir>,
}

/// An operation that has ended, with all that it wrote.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) record: ExitRecord,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::within(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn within(folder: TempDir) -> Self {
        for name in ["operations", "work"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Self {
            place: folder.path().to_owned(),
            _folder: Some(folder),
        }
    }

    /// The one that is there already.
    pub(crate) fn at(place: &Path) -> Self {
        Self {
            place: place.to_owned(),
            _folder: None,
        }
    }

    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.place.join("operations")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.place.join("work")
    }

    pub(crate) fn pool(&self) -> SupervisorPool {
        self.pool_with(1, KillChoice::Strongest, None)
    }

    pub(crate) fn pool_with(
        &self,
        waiting: usize,
        kill: KillChoice,
        fault: Option<Fault>,
    ) -> SupervisorPool {
        SupervisorPool::new(PoolOptions {
            program: program(),
            root: self.root(),
            prefix: prefix(),
            waiting,
            kill,
            fault,
            realm: runner_supervisor::Realm::Host,
        })
        .expect("a pool")
    }

    pub(crate) fn request(&self, argv: &[&str]) -> CommandRequest {
        request(&self.work(), argv)
    }

    pub(crate) fn shell(&self, script: &str) -> CommandRequest {
        self.request(&["sh", "-c", script])
    }

    pub(crate) fn start(&self, request: &CommandRequest) -> SupervisedOperation {
        start(&self.pool_with(0, KillChoice::Strongest, None), request)
    }

    pub(crate) fn run(&self, request: &CommandRequest) -> Finished {
        finish(&mut self.start(request))
    }
}

/// Another one for each pool.
fn prefix() -> String {
    static POOLS: AtomicU32 = AtomicU32::new(0);
    let pool = POOLS.fetch_add(1, Ordering::Relaxed);
    format!("{}-{pool}", std::process::id())
}

pub(crate) fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_gantry-supervisor").into()
}

pub(crate) fn request(work: &Path, argv: &[&str]) -> CommandRequest {
    let string = |text: &str| CString::new(text).expect("no NUL");
    CommandRequest {
        operation: OperationId::from_u128(7),
        argv: argv.iter().map(|word| string(word)).collect(),
        environment: vec![string("PATH=/usr/local/bin:/usr/bin:/bin")],
        terms: CommandTerms {
            place: WorkingDirectory::Path(work.to_owned()),
            user: None,
            streams: Streams::Separate,
            stdin: false,
            run_for: None,
            idle_for: None,
            orphan_for: None,
            kill_grace: LONG,
            spool: SpoolBounds {
                bytes: 64 * MIB,
                when_full: WhenFull::Gap { tail: 1024 * 1024 },
            },
            sync: Sync::Nothing,
            claim: None,
        },
    }
}

pub(crate) fn start(pool: &SupervisorPool, request: &CommandRequest) -> SupervisedOperation {
    let waiting = pool.take().expect("a supervisor");
    waiting
        .start(request, None)
        .unwrap_or_else(|(_, error)| panic!("{error}"))
}

/// The next event; it must come.
pub(crate) fn event(operation: &mut SupervisedOperation) -> SupervisorEvent {
    let event = operation.event(LONG).expect("an event");
    event.expect("an event in time")
}

/// Waits until it is so; it must come to be.
pub(crate) fn until_so(so: impl Fn() -> bool) {
    let pause = Duration::from_millis(2);
    for _ in 0..LONG.as_millis() / pause.as_millis() {
        if so() {
            return;
        }
        std::thread::sleep(pause);
    }
    panic!("it does not come to be");
}

/// Waits until the event is what was hoped for.
pub(crate) fn until(
    operation: &mut SupervisedOperation,
    hoped: impl Fn(&SupervisorEvent) -> bool,
) -> SupervisorEvent {
    loop {
        let event = event(operation);
        if hoped(&event) {
            return event;
        }
        assert!(!matches!(event, SupervisorEvent::Ended(_)), "{event:?}");
    }
}

/// Waits until the first stream holds this text.
pub(crate) fn until_output(operation: &mut SupervisedOperation, text: &str) -> String {
    loop {
        let out = String::from_utf8_lossy(&read(operation, SpoolStream::Out)).into_owned();
        if out.contains(text) {
            return out;
        }
        match operation.event(LONG).expect("an event") {
            Some(SupervisorEvent::Ended(ended)) => panic!("{out} {ended:?}"),
            Some(_) => {}
            None => panic!("no {text:?} in {out:?}"),
        }
    }
}

pub(crate) fn record(operation: &mut SupervisedOperation) -> ExitRecord {
    loop {
        match event(operation) {
            SupervisorEvent::Ended(OperationEnd::Exited(record)) => return record,
            SupervisorEvent::Ended(OperationEnd::Fenced) => panic!("it was fenced"),
            _ => {}
        }
    }
}

pub(crate) fn finish(operation: &mut SupervisedOperation) -> Finished {
    let record = record(operation);
    Finished {
        record,
        out: read(operation, SpoolStream::Out),
        err: read(operation, SpoolStream::Err),
    }
}

/// All that is kept of a stream.
pub(crate) fn read(operation: &mut SupervisedOperation, stream: SpoolStream) -> Vec<u8> {
    let (mut all, mut bytes, mut offset) = (Vec::new(), vec![0; 256 * 1024], 0);
    loop {
        match operation.read(stream, offset, &mut bytes).expect("a spool") {
            SpoolPiece::Bytes(length) => {
                all.extend_from_slice(&bytes[..length]);
                offset += length as u64;
            }
            SpoolPiece::Gap { until } | SpoolPiece::Evicted { until } => offset = until,
            SpoolPiece::Nothing => return all,
        }
    }
}

impl Finished {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("text")
    }
}
