//! What goes into operations and comes out of them: files of any size, input, terminals, through
//! the real router and the real runner over a network that fails.

use std::{fs::File, io::Read as _, os::unix::fs::FileExt as _, sync::Arc};

use bytes::Bytes;
use shared_sandbox::{
    Command, Control, Download, DownloadCheck, Exec, ExitStatus, Input, OperationEvent, Outcome,
    OutputStream, Request, Retention, Running, Sandbox as _, TerminalSize, Upload, Written,
};
use shared_types::{DigestAlgorithm, FileDigest, FileHasher};
use tests::{
    door::{Door, operation},
    footprint::{peak_from_here, peak_of},
    proxy::Proxy,
    report::report,
};

const MIB: u64 = 1024 * 1024;

/// The most that any hop may take of memory while a file goes through
/// (docs/internals/contracts.md#a26).
const MEMORY_AT_MOST: u64 = 64 * MIB;

/// The size of the large file, in bytes: four times the memory that any hop may take. `make soak` sets
/// `GANTRY_LARGE_MIB` to the 2 GiB of the promise.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn large_bytes() -> u64 {
    match std::env::var("GANTRY_LARGE_MIB") {
        Ok(mib) => mib.parse::<u64>().expect("GANTRY_LARGE_MIB is a number") * MIB,
        Err(_) => 4 * MEMORY_AT_MOST,
    }
}

/// Larger than what any hop may hold.
const FILE_BYTES: u64 = 256 * MIB;

/// No divisor of anything in the protocol.
const PERIOD: usize = 65_521;

/// Content that is made where it is needed.
struct Content {
    bytes: u64,
    pattern: Bytes,
}

impl Content {
    fn of(bytes: u64) -> Self {
        let mut state = 1_u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let once: Vec<_> = std::iter::repeat_with(next).take(PERIOD).collect();
        Self {
            bytes,
            pattern: once.repeat(18).into(),
        }
    }

    /// The piece of input that begins here.
    fn piece(&self, offset: u64) -> Input {
        let length = MIB.min(self.bytes - offset) as usize;
        let place = (offset % PERIOD as u64) as usize;
        Input {
            offset,
            data: self.pattern.slice(place..place + length),
            end: offset + length as u64 == self.bytes,
        }
    }

    fn digest(&self) -> FileDigest {
        let (mut hasher, mut at) = (FileHasher::new(DigestAlgorithm::Blake3), 0);
        while at < self.bytes {
            let piece = self.piece(at);
            hasher.update(&piece.data);
            at += piece.data.len() as u64;
        }
        hasher.finish()
    }
}

async fn started(door: &Door, request: Request) -> Running {
    let started = door.sandbox.start(operation(request)).await;
    started.expect("it is taken")
}

/// Writes the content and reads to the end; `each` sees every event first.
async fn written(
    running: &mut Running,
    content: &Content,
    mut each: impl AsyncFnMut(&OperationEvent),
) -> Outcome {
    let controls = Arc::clone(&running.controls);
    let (mut at, mut taken, mut whole) = (0, 0, false);
    loop {
        tokio::select! {
            event = running.events.recv() => {
                let event = event.expect("an end");
                each(&event).await;
                match event {
                    OperationEvent::Ended(outcome) => return outcome,
                    OperationEvent::InputTaken(up_to) => {
                        if up_to < taken {
                            (at, whole) = (up_to, false);
                        }
                        taken = up_to;
                    }
                    _ => {}
                }
            }
            next = controls.input(content.piece(at)), if !whole => {
                // What is refused has ended, and that is told.
                at = next.unwrap_or(content.bytes);
                whole = at == content.bytes;
            }
        }
    }
}

/// Cuts the link whenever so much more has gone through, as often as that.
fn cut_now_and_then(proxy: &Arc<Proxy>, bytes: u64, times: u64) -> tokio::task::JoinHandle<()> {
    let proxy = Arc::clone(proxy);
    let begun = proxy.passed();
    let before = begun.to_server + begun.to_runner;
    tokio::spawn(async move {
        for time in 1..=times {
            proxy.until_bytes(before + time * bytes).await;
            proxy.cut();
            proxy.until_new_connection().await;
        }
    })
}

fn digest_of(file: &std::path::Path) -> FileDigest {
    let (mut file, mut hasher) = (
        File::open(file).expect("a file"),
        FileHasher::new(DigestAlgorithm::Blake3),
    );
    let mut buffer = vec![0; MIB as usize];
    loop {
        match file.read(&mut buffer).expect("readable") {
            0 => return hasher.finish(),
            length => hasher.update(&buffer[..length]),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_goes_up_and_down_whole_over_lost_links_and_fills_no_memory() {
    let (door, proxy) = Door::behind_a_proxy().await;
    let proxy = Arc::new(proxy);
    let large = large_bytes();
    let content = Content::of(large);
    let digest = content.digest();
    let pids = [std::process::id(), door.runner.pid()];
    pids.into_iter().for_each(peak_from_here);

    let cuts = cut_now_and_then(&proxy, large / 4, 3);
    let upload = Request::Upload(Upload {
        path: "new/large".to_owned(),
        bytes: content.bytes,
        digest,
        mode: None,
        modified_us: None,
    });
    let mut running = started(&door, upload).await;
    let outcome = written(&mut running, &content, async |_| {}).await;
    let written = Written {
        bytes: content.bytes,
        before: None,
        after: digest,
    };
    assert_eq!(outcome, Outcome::Written(written));
    cuts.await.expect("as many cuts");
    let file = door.runner.workspace().join("new/large");
    assert_eq!(digest_of(&file), digest);

    let cuts = cut_now_and_then(&proxy, large / 4, 3);
    let path = || "new/large".to_owned();
    let mut running = started(
        &door,
        Request::Download(Download {
            path: path(),
            algorithm: DigestAlgorithm::Blake3,
            max_bytes: 0,
        }),
    )
    .await;
    let mut check = DownloadCheck::new(DigestAlgorithm::Blake3);
    let downloaded = loop {
        let event = running.events.recv().await.expect("an end");
        check.event(&event);
        match event {
            OperationEvent::Ended(Outcome::Downloaded(downloaded)) => break downloaded,
            OperationEvent::Ended(other) => panic!("{other:?}"),
            _ => {}
        }
    };
    cuts.await.expect("as many cuts");
    assert_eq!((downloaded.bytes, downloaded.digest), (large, digest));
    check.end(&path(), &downloaded).expect("the same bytes");
    let peaks = pids.map(|pid| peak_of(pid) / MIB);
    let [ours, runners] = peaks;
    report(&format!(
        "memory while {} MiB go up and down: {ours} MiB here, {runners} MiB in the runner",
        large / MIB
    ));
    assert!(peaks.iter().all(|peak| peak * MIB < MEMORY_AT_MOST));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_whose_runner_is_killed_starts_over_and_leaves_nothing_else_behind() {
    let (mut door, proxy) = Door::behind_a_proxy().await;
    let content = Content::of(32 * MIB);
    let digest = content.digest();
    let upload = Request::Upload(Upload {
        path: "file".to_owned(),
        bytes: content.bytes,
        digest,
        mode: None,
        modified_us: None,
    });
    let mut running = started(&door, upload).await;
    let (mut killed, mut over) = (false, false);
    let outcome = written(&mut running, &content, async |event| match event {
        OperationEvent::InputTaken(up_to) if *up_to >= 8 * MIB && !killed => {
            killed = true;
            door.runner.kill().await;
            door.runner.start();
        }
        OperationEvent::InputTaken(0) => over = killed,
        _ => {}
    })
    .await;
    assert!(killed && over, "it was killed, and said where to go on");
    let Outcome::Written(written) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((written.before, written.after), (None, digest));
    let workspace = door.runner.workspace();
    assert_eq!(digest_of(&workspace.join("file")), digest);
    let entries = std::fs::read_dir(workspace).expect("a workspace");
    assert_eq!(entries.count(), 1);
    drop(proxy);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_into_cat_comes_out_of_it_over_lost_links() {
    let (door, proxy) = Door::behind_a_proxy().await;
    let content = Content::of(50 * MIB);
    let proxy = Arc::new(proxy);
    let cuts = cut_now_and_then(&proxy, 25 * MIB, 3);
    let cat = Request::Exec(Exec {
        input: true,
        retention: Retention::None,
        ..Exec::new(Command::Argv(vec!["cat".to_owned()]))
    });
    let mut running = started(&door, cat).await;
    let controls = Arc::clone(&running.controls);
    let (mut hasher, mut read) = (FileHasher::new(DigestAlgorithm::Blake3), 0);
    let outcome = written(&mut running, &content, async |event| match event {
        OperationEvent::Output { offset, data, .. } => {
            assert_eq!(*offset, read, "nothing is lost or repeated");
            hasher.update(data);
            read += data.len() as u64;
            controls.commit(OutputStream::Stdout, read).await;
        }
        OperationEvent::Gap { from, to, .. } => panic!("{from}..{to} is missing"),
        _ => {}
    })
    .await;
    cuts.await.expect("as many cuts");
    let Outcome::Exited(record) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((record.status, read), (ExitStatus::Code(0), content.bytes));
    assert_eq!(hasher.finish(), content.digest());
}

/// Types a line and waits for what it makes the terminal show.
async fn typed(running: &mut Running, at: &mut u64, line: &str, shows: &str) {
    let input = Input {
        offset: *at,
        data: Bytes::copy_from_slice(line.as_bytes()),
        end: false,
    };
    *at = running.controls.input(input).await.expect("it is taken");
    let mut shown = String::new();
    while !shown.contains(shows) {
        match running.events.recv().await.expect("it goes on") {
            OperationEvent::Output { data, .. } => shown += &String::from_utf8_lossy(&data),
            OperationEvent::Ended(outcome) => panic!("{outcome:?} after {shown:?}"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_keeps_its_state_over_a_lost_link_and_sees_its_size_change() {
    let (door, proxy) = Door::behind_a_proxy().await;
    let words = ["bash", "--norc", "-i"].map(str::to_owned);
    let shell = Request::Exec(Exec {
        terminal: Some(TerminalSize {
            rows: 24,
            columns: 80,
        }),
        ..Exec::new(Command::Argv(words.to_vec()))
    });
    let mut running = started(&door, shell).await;
    let mut at = 0;
    typed(&mut running, &mut at, "kept=state; stty size\n", "24 80").await;
    proxy.cut();
    let size = TerminalSize {
        rows: 40,
        columns: 120,
    };
    let resized = running.controls.control(Control::Resize(size)).await;
    assert_eq!(resized, Ok(()));
    typed(&mut running, &mut at, "stty size\n", "40 120").await;
    typed(&mut running, &mut at, "echo \"<$kept>\"\n", "<state>").await;
    let exit = Input {
        offset: at,
        data: Bytes::from_static(b"exit 7\n"),
        end: false,
    };
    running.controls.input(exit).await.expect("it is taken");
    let status = loop {
        match running.events.recv().await.expect("an end") {
            OperationEvent::Ended(Outcome::Exited(record)) => break record.status,
            OperationEvent::Ended(other) => panic!("{other:?}"),
            _ => {}
        }
    };
    assert_eq!(status, ExitStatus::Code(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_while_it_is_downloaded_is_not_taken_for_whole() {
    let (door, _proxy) = Door::behind_a_proxy().await;
    let path = door.runner.workspace().join("file");
    let file = File::create(&path).expect("a file");
    file.set_len(FILE_BYTES).expect("a sparse file");
    let request = Request::Download(Download {
        path: "file".to_owned(),
        algorithm: DigestAlgorithm::Blake3,
        max_bytes: 0,
    });
    let mut running = started(&door, request).await;
    let mut check = DownloadCheck::new(DigestAlgorithm::Blake3);
    let mut changed = false;
    let whole = loop {
        let event = running.events.recv().await.expect("an end");
        check.event(&event);
        match event {
            OperationEvent::Ended(Outcome::Downloaded(downloaded)) => {
                break check.end("file", &downloaded).is_ok();
            }
            OperationEvent::Ended(other) => {
                assert!(matches!(other, Outcome::Failed(_)), "{other:?}");
                break false;
            }
            OperationEvent::Output { .. } if !changed => {
                changed = true;
                file.write_all_at(b"changed", FILE_BYTES - 7)
                    .expect("writable");
            }
            _ => {}
        }
    };
    assert!(!whole);
}
