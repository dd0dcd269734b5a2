//! A file of 1 GiB each way over TLS, against `scp` over a kept connection of the same machine.
//!
//! Ours is checked and `scp`'s is not: the runner and this side each compute its digest while it
//! passes, BLAKE3 or SHA-256. An upload is on the disk when its end is told, which `scp` does not promise either, so
//! there is a line in which its file is synced as well. The digest of what goes up is known before,
//! as of all that a server keeps; the file that is read is in the kernel's memory for both.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use shared_sandbox::{
    Controls, Download, DownloadCheck, Input, OperationEvent, Outcome, Request, Upload,
};
use shared_types::{DigestAlgorithm, FileDigest, FileHasher};
use tempfile::TempDir;
use tests::door::Door;

use crate::{
    hands::Hands,
    resident::{memory, peak_from_here},
    ssh::Ssh,
    table::{Figure, Goal, MIB, Stopwatch, Unit},
};

const ROUNDS: usize = 3;
const BYTES: u64 = 1 << 30;
/// What a sender reads at a time.
const PIECE_BYTES: u64 = 256 * 1024;
const NAME: &str = "file";
const ALGORITHMS: [DigestAlgorithm; 2] = [DigestAlgorithm::Blake3, DigestAlgorithm::Sha256];

/// Both ways, and the memory that the runner takes for them.
pub(crate) async fn figures(door: &Door, ssh: &Ssh, watch: &Stopwatch) -> Vec<Figure> {
    let local = Local::new();
    let there = door.runner.workspace();
    peak_from_here(door.runner.pid());
    let mut figures = Vec::new();
    for algorithm in ALGORITHMS {
        let digest = algorithm.name();
        let figure = |what: String, goal| Figure::new(what, Unit::BytesPerSecond, goal);
        let mut up = figure(
            format!("1 GiB file to the runner, {digest}, TLS link (peer: scp)"),
            goal(algorithm),
        );
        let mut synced = figure(
            "the same (peer: scp, and its file synced)".to_owned(),
            Goal::None,
        );
        let mut down = figure(
            format!("1 GiB file from the runner, {digest}, TLS link (peer: scp)"),
            goal(algorithm),
        );
        for _ in 0..ROUNDS {
            local.make_room(&there.join(NAME));
            let ours = watch.time(upload(door, &local, algorithm)).await.0;
            gone(&there.join(NAME));
            let copied = there.join("copied");
            local.make_room(&copied);
            let scp = watch.time_here(|| ssh.upload(&local.source, &copied)).0;
            let sync = watch.time_here(|| sync(&copied)).0;
            gone(&copied);
            up.round(speed(ours), speed(scp));
            synced.round(speed(ours), speed(scp + sync));
        }
        upload(door, &local, algorithm).await;
        for _ in 0..ROUNDS {
            local.make_room(&local.target);
            let ours = watch.time(download(door, &local, algorithm)).await.0;
            gone(&local.target);
            local.make_room(&local.target);
            let from = there.join(NAME);
            let scp = watch.time_here(|| ssh.download(&from, &local.target)).0;
            gone(&local.target);
            down.round(speed(ours), speed(scp));
        }
        gone(&there.join(NAME));
        figures.extend([up, synced, down]);
    }
    let peak = Figure::alone(
        "memory of the runner at most meanwhile",
        Unit::Memory,
        Goal::AtMost(64.0 * MIB),
        memory(door.runner.pid(), "VmHWM"),
    );
    figures.push(peak);
    figures
}

/// Only the fastest is to be as fast as `scp`.
fn goal(algorithm: DigestAlgorithm) -> Goal {
    match algorithm {
        DigestAlgorithm::Blake3 => Goal::RatioAtLeast(1.0),
        DigestAlgorithm::Sha256 => Goal::None,
    }
}

async fn upload(door: &Door, local: &Local, algorithm: DigestAlgorithm) {
    let hands = Hands::of(door);
    let request = Request::Upload(Upload {
        path: NAME.to_owned(),
        bytes: BYTES,
        digest: local.digest(algorithm),
        mode: None,
        modified_us: None,
    });
    let (id, mut running) = hands.start(request).await;
    let controls = Arc::clone(&running.controls);
    let end = hands.follow(id, &mut running, |_| {});
    match tokio::join!(end, feed(&*controls, &local.source)).0 {
        Outcome::Written(written) => assert_eq!(written.after, local.digest(algorithm)),
        other => panic!("expected a written file, got {other:?}"),
    }
    hands.forget(id).await;
}

/// Gives a whole file to an operation.
async fn feed(controls: &dyn Controls, source: &Path) {
    let file = File::open(source).expect("it is there");
    let mut at = 0;
    while at < BYTES {
        let length = PIECE_BYTES.min(BYTES - at);
        let mut data = Vec::with_capacity(length as usize);
        let read = rustix::io::pread(&file, spare_capacity(&mut data), at);
        assert_eq!(read, Ok(length as usize), "it can be read");
        let input = Input {
            offset: at,
            data: Bytes::from(data),
            end: at + length == BYTES,
        };
        at = controls.input(input).await.expect("it takes input");
    }
}

async fn download(door: &Door, local: &Local, algorithm: DigestAlgorithm) {
    let hands = Hands::of(door);
    let path = NAME.to_owned();
    let (id, mut running) = hands
        .start(Request::Download(Download {
            path,
            algorithm,
            max_bytes: 0,
        }))
        .await;
    let mut target = File::create(&local.target).expect("it can be created");
    let mut check = DownloadCheck::new(algorithm);
    let each = |event| {
        check.event(&event);
        if let OperationEvent::Output { data, .. } = event {
            target.write_all(&data).expect("there is room");
        }
    };
    match hands.follow(id, &mut running, each).await {
        Outcome::Downloaded(downloaded) => {
            check.end(NAME, &downloaded).expect("the same bytes");
            assert_eq!(downloaded.digest, local.digest(algorithm));
        }
        other => panic!("expected a file's end, got {other:?}"),
    }
    hands.forget(id).await;
}

/// This side's files, in a folder of their own.
pub(crate) struct Local {
    pub(crate) source: PathBuf,
    digests: [FileDigest; 2],
    pub(crate) target: PathBuf,
    _folder: TempDir,
}

impl Local {
    /// Writes the file to copy: 1 GiB that nothing makes smaller.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        let mut file = File::create(&source).expect("it can be created");
        let mut hashers = ALGORITHMS.map(FileHasher::new);
        let piece = noise();
        for _ in 0..BYTES / PIECE_BYTES {
            hashers.iter_mut().for_each(|hasher| hasher.update(&piece));
            file.write_all(&piece).expect("there is room");
        }
        // So that its writing is no part of what follows.
        file.sync_all().expect("it can be synced");
        Self {
            source,
            digests: hashers.map(FileHasher::finish),
            target,
            _folder: folder,
        }
    }
}

impl Local {
    /// Writes the file where it is to come, and removes it. Memory that a virtual machine never used, or gave
    /// back, takes seconds for a gigabyte, which would be charged to whoever copies first.
    pub(crate) fn make_room(&self, place: &Path) {
        std::fs::copy(&self.source, place).expect("there is room");
        gone(place);
    }

    fn digest(&self, algorithm: DigestAlgorithm) -> FileDigest {
        let mut digests = self.digests.into_iter();
        let ours = digests.find(|digest| digest.algorithm == algorithm);
        ours.expect("there is one of each algorithm")
    }
}

/// A piece that nothing could make smaller.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let bytes = std::iter::repeat_with(next);
    bytes.take(PIECE_BYTES as usize).collect()
}

/// Waits until the disk has all of it.
pub(crate) fn sync(file: &Path) {
    let file = File::open(file).expect("it is there");
    file.sync_all().expect("it can be synced");
}

/// Checks that all of a file came, and removes it, so that the next is as new.
pub(crate) fn gone(file: &Path) {
    let length = std::fs::metadata(file).expect("it is there").len();
    assert_eq!(length, BYTES, "it is whole");
    std::fs::remove_file(file).expect("it can be removed");
}

/// Bytes each second of a copy that took so many seconds.
pub(crate) fn speed(took: f64) -> f64 {
    BYTES as f64 / took
}
