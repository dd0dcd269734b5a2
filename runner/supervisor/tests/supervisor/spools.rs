//! Output on disk: whole, bounded, held back, evicted.

use std::{os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use runner_supervisor::{
    Cause, GapLog, ReportedEnd, SpoolBounds, SpoolPiece, SpoolStream, Streams, SupervisorEvent,
    WhenFull,
};

use crate::scene::{Scene, finish, read, record, until, until_so};

const MIB: usize = 1024 * 1024;

/// What `generator` writes, as a command that writes it.
fn numbers(scene: &Scene, bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let data: Vec<u8> = (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    std::fs::write(file(scene), &data).expect("a file");
    data
}

fn file(scene: &Scene) -> PathBuf {
    scene.work().join("numbers")
}

#[test]
fn sixty_four_mebibytes_arrive_with_their_checksum() {
    let scene = Scene::new();
    let data = numbers(&scene, 64 * MIB);
    let mut request = scene.shell("cat numbers; cat numbers >&2");
    request.terms.spool.bytes = 65 * MIB as u64;
    let ended = scene.run(&request);
    assert_eq!(ended.record.end, ReportedEnd::Code(0));
    for (bytes, end) in [
        (&ended.out, ended.record.out),
        (&ended.err, ended.record.err),
    ] {
        assert!(*bytes == data, "{} bytes", bytes.len());
        assert_eq!(end.offset, data.len() as u64);
        assert_eq!(end.checksum, Some(crc32fast::hash(&data)));
    }
}

#[test]
fn more_than_fits_leaves_its_head_a_recorded_gap_and_its_tail() {
    let scene = Scene::new();
    let data = numbers(&scene, 10 * MIB);
    let mut request = scene.request(&["cat", "numbers"]);
    request.terms.spool = SpoolBounds {
        bytes: 3 * MIB as u64,
        when_full: WhenFull::Gap { tail: MIB as u32 },
    };
    let mut operation = scene.start(&request);
    let ended = finish(&mut operation);
    assert_eq!(ended.record.out.offset, data.len() as u64);
    assert_eq!(ended.record.out.checksum, Some(crc32fast::hash(&data)));
    let log = GapLog::open(operation.directory()).expect("a log");
    let gaps = log.gaps(SpoolStream::Out).expect("readable");
    let [gap] = gaps.as_slice() else {
        panic!("{gaps:?}");
    };
    assert_eq!((gap.offset, gap.length), (2 * MIB as u64, 7 * MIB as u64));
    assert!(ended.out[..2 * MIB] == data[..2 * MIB], "the head");
    assert!(ended.out[2 * MIB..] == data[9 * MIB..], "the tail");
    assert!(log.gaps(SpoolStream::Err).expect("readable").is_empty());
}

#[test]
fn the_tail_outlives_a_supervisor_that_is_killed() {
    let scene = Scene::new();
    let data = numbers(&scene, 10 * MIB);
    let mut request = scene.shell("cat numbers; touch written; sleep 1000");
    request.terms.spool = SpoolBounds {
        bytes: 3 * MIB as u64,
        when_full: WhenFull::Gap { tail: MIB as u32 },
    };
    let mut operation = scene.start(&request);
    let identity = operation.identity().expect("known").clone();
    let tail = operation.directory().path().join("out.tail");
    until_so(|| scene.work().join("written").exists());
    // Nothing tells that it has read the pipe empty.
    let counts = |to: usize| {
        let text = std::fs::read(&tail).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(512)]).into_owned();
        text.contains(&format!("\"to\":{to}}}"))
    };
    until_so(|| counts(data.len()));
    let pid = identity.supervisor.as_pid().expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is there");
    let ended = finish(&mut operation);
    assert_eq!(ended.record.cause, Cause::SupervisorLost);
    assert_eq!(ended.record.out.offset, data.len() as u64);
    assert_eq!(ended.record.out.checksum, None);
    assert!(ended.out[..2 * MIB] == data[..2 * MIB], "the head");
    assert!(ended.out[2 * MIB..] == data[9 * MIB..], "the tail");
    let log = GapLog::open(operation.directory()).expect("a log");
    let gaps = log.gaps(SpoolStream::Out).expect("readable");
    let [gap] = gaps.as_slice() else {
        panic!("{gaps:?}");
    };
    assert_eq!((gap.offset, gap.length), (2 * MIB as u64, 7 * MIB as u64));
}

#[test]
fn a_command_whose_output_fits_has_no_file_for_a_tail_and_none_is_left_of_one_that_had() {
    let scene = Scene::new();
    numbers(&scene, 10 * MIB);
    let mut request = scene.shell("cat numbers");
    for (bytes, sizes) in [(11, 10), (3, 3)] {
        request.terms.spool = SpoolBounds {
            bytes: bytes * MIB as u64,
            when_full: WhenFull::Gap { tail: MIB as u32 },
        };
        let mut operation = scene.start(&request);
        let ended = finish(&mut operation);
        assert_eq!(ended.out.len(), sizes * MIB);
        assert!(!operation.directory().path().join("out.tail").exists());
    }
}

#[test]
fn output_that_is_committed_makes_room_before_there_is_a_gap() {
    let scene = Scene::new();
    let data = numbers(&scene, 6 * MIB);
    let mut request = scene.shell(
        "for i in 0 1 2; do dd if=numbers bs=1M skip=$((2*i)) count=2 status=none; read go; done",
    );
    request.terms.stdin = true;
    request.terms.spool = SpoolBounds {
        bytes: 3 * MIB as u64,
        when_full: WhenFull::Gap { tail: MIB as u32 },
    };
    let mut operation = scene.start(&request);
    for part in 1..=3_u64 {
        let whole = part * 2 * MIB as u64;
        until(
            &mut operation,
            |event| matches!(event, SupervisorEvent::Output { out, .. } if *out == whole),
        );
        operation
            .commit(SpoolStream::Out, whole)
            .expect("it is heard");
        operation
            .input(part - 1, b"\n", false)
            .expect("it is heard");
    }
    let record = record(&mut operation);
    assert_eq!(record.out.checksum, Some(crc32fast::hash(&data)));
    let log = GapLog::open(operation.directory()).expect("a log");
    assert!(log.gaps(SpoolStream::Out).expect("readable").is_empty());
}

#[test]
fn a_stream_that_waits_holds_the_command_back_and_loses_nothing() {
    let scene = Scene::new();
    let data = numbers(&scene, 12 * MIB);
    let mut request = scene.shell("cat numbers; touch written");
    request.terms.spool = SpoolBounds {
        bytes: MIB as u64,
        when_full: WhenFull::Wait,
    };
    let mut operation = scene.start(&request);
    let (mut offset, mut bytes, mut all) = (0, vec![0; MIB], Vec::new());
    let mut most_on_disk = 0;
    let spool = operation.directory().path().join("out");
    let record = loop {
        match operation
            .read(SpoolStream::Out, offset, &mut bytes)
            .expect("a spool")
        {
            SpoolPiece::Bytes(length) => {
                // The pipe holds one more, so the command cannot be through.
                assert!(all.len() > 9 * MIB || !scene.work().join("written").exists());
                all.extend_from_slice(&bytes[..length]);
                offset += length as u64;
                // Fails once the command has ended, and then nothing waits for it any more.
                let _ = operation.commit(SpoolStream::Out, offset);
            }
            SpoolPiece::Nothing => {
                let disk = std::fs::metadata(&spool).expect("a file").blocks() * 512;
                most_on_disk = most_on_disk.max(disk);
                if let SupervisorEvent::Ended(_) = crate::scene::event(&mut operation) {
                    let rest = operation.read(SpoolStream::Out, offset, &mut bytes);
                    if rest.expect("a spool") == SpoolPiece::Nothing {
                        break record(&mut operation);
                    }
                }
            }
            other => panic!("unexpected {other:?}"),
        }
    };
    assert!(all == data, "{} bytes", all.len());
    assert_eq!(record.out.checksum, Some(crc32fast::hash(&data)));
    assert!(scene.work().join("written").exists());
    // One bound, one piece that is not given back yet, one pipe at the end.
    assert!(most_on_disk <= 4 * MIB as u64, "{most_on_disk}");
    // Now it is gone from the disk, and that is said.
    let evicted = operation
        .read(SpoolStream::Out, 0, &mut bytes)
        .expect("a spool");
    assert!(matches!(evicted, SpoolPiece::Evicted { .. }), "{evicted:?}");
}

#[test]
fn what_waits_for_room_after_the_first_process_is_not_cut_off() {
    let scene = Scene::new();
    let data = numbers(&scene, 3 * MIB);
    let mut request = scene.shell("cat numbers & exit 0");
    request.terms.spool = SpoolBounds {
        bytes: MIB as u64,
        when_full: WhenFull::Wait,
    };
    let mut operation = scene.start(&request);
    let full = |event: &SupervisorEvent| matches!(event, SupervisorEvent::Output { out, .. } if *out == MIB as u64);
    until(&mut operation, full);
    // Longer than output may go on that waits for nothing.
    let told = operation.event(Duration::from_millis(2500)).expect("heard");
    assert!(!matches!(told, Some(SupervisorEvent::Ended(_))), "{told:?}");
    let (mut offset, mut bytes, mut all) = (0, vec![0; MIB], Vec::new());
    let mut ended = false;
    loop {
        match operation
            .read(SpoolStream::Out, offset, &mut bytes)
            .expect("a spool")
        {
            SpoolPiece::Bytes(length) => {
                all.extend_from_slice(&bytes[..length]);
                offset += length as u64;
                // Fails once the command has ended, and then nothing waits for it any more.
                let _ = operation.commit(SpoolStream::Out, offset);
            }
            SpoolPiece::Nothing if ended => break,
            SpoolPiece::Nothing => {
                let event = crate::scene::event(&mut operation);
                ended = matches!(event, SupervisorEvent::Ended(_));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(all == data, "{} bytes", all.len());
}

#[test]
fn as_root_a_full_disk_ends_the_command_and_is_said_in_its_record() {
    let disk = SmallDisk::mount("700k");
    let scene = Scene::within(tempfile::tempdir_in(disk.path()).expect("a folder"));
    let mut request = scene.shell("echo begin; yes; echo not reached");
    request.terms.streams = Streams::Merged;
    let mut operation = scene.start(&request);
    let record = record(&mut operation);
    assert_eq!(record.cause, Cause::DiskFull);
    assert!(record.tree_gone);
    let kept = read(&mut operation, SpoolStream::Out);
    assert!(kept.starts_with(b"begin\ny\ny\n"));
    assert!((kept.len() as u64) < record.out.offset);
    let log = GapLog::open(operation.directory()).expect("a log");
    let gaps = log.gaps(SpoolStream::Out).expect("readable");
    let [gap] = gaps.as_slice() else {
        panic!("{gaps:?}");
    };
    assert_eq!(gap.offset, kept.len() as u64);
    assert_eq!(gap.offset + gap.length, record.out.offset);
    assert_eq!(
        operation.directory().exit().expect("a record"),
        Some(record),
        "the record found room on the full disk"
    );
}

#[test]
fn as_root_a_disk_without_room_makes_no_supervisor_wait() {
    let disk = SmallDisk::mount("48k");
    let scene = Scene::within(tempfile::tempdir_in(disk.path()).expect("a folder"));
    std::fs::write(scene.work().join("full"), vec![0; 100_000]).expect_err("a full disk");
    let pool = scene.pool_with(0, runner_supervisor::KillChoice::Strongest, None);
    let error = pool.take().expect_err("no room");
    assert!(error.to_string().contains("No space left"), "{error}");
}

/// A file system with a size, for those who may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "small"])
            .arg(folder.path())
            .status();
        assert!(
            mounted.is_ok_and(|status| status.success()),
            "only root can mount a small disk; `make test` leaves this out for others"
        );
        Self(folder)
    }

    fn path(&self) -> &std::path::Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(self.0.path())
            .status();
        assert!(unmounted.is_ok());
    }
}
