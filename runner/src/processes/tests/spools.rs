//! Output on disk: bounded, read by offset, let go once it is durable elsewhere.

use super::scene::*;

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn much_output_is_complete_whoever_reads_when() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene
        .start(&processes, shell("head -c 8388608 /dev/zero; echo end"))
        .await;
    // Nobody takes an event before the command has ended.
    while !scene
        .root()
        .join(process.spool.name())
        .join("exit")
        .exists()
    {
        tokio::task::yield_now().await;
    }
    let record = record(&mut process).await;
    assert_eq!(record.stdout.offset, 8 * MIB + 4);
    let all = read(&mut process.spool, OutputStream::Stdout);
    assert_eq!(whole(all.as_bytes()), record.stdout);
    process.spool.close();
    let end = process
        .spool
        .read(OutputStream::Stdout, 8 * MIB, 16)
        .expect("a spool");
    assert_eq!(end, SpoolRead::Bytes("end\n".into()));
}

#[tokio::test]
async fn the_middle_of_too_much_output_is_a_gap() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut terms = terms();
    terms.spool = SpoolBounds {
        bytes: 2 * MIB,
        when_full: WhenFull::Gap { tail: 1024 * 1024 },
    };
    let script = shell("head -c 8388608 /dev/zero; echo end");
    let mut process = scene.start_with(&processes, script, terms).await;
    let record = record(&mut process).await;
    assert_eq!(record.stdout.offset, 8 * MIB + 4);
    let all = read(&mut process.spool, OutputStream::Stdout);
    assert!(all.contains(']') && all.ends_with("end\n"));
    assert!(all.len() as u64 <= 2 * MIB + 16, "{}", all.len());
    assert!(process.spool.bytes_on_disk().expect("files") <= 3 * MIB);
}

#[tokio::test]
async fn what_is_committed_leaves_the_disk_and_lets_a_waiting_command_go_on() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut terms = terms();
    terms.spool = SpoolBounds {
        bytes: MIB,
        when_full: WhenFull::Wait,
    };
    let script = shell("head -c 8388608 /dev/zero");
    let mut process = scene.start_with(&processes, script, terms).await;
    let mut offset = 0;
    let record = loop {
        match event(&mut process).await {
            ProcessEvent::Output([out, _]) => {
                while offset < out {
                    match process.spool.read(OutputStream::Stdout, offset, 64 * 1024) {
                        Ok(SpoolRead::Bytes(bytes)) => offset += bytes.len() as u64,
                        other => panic!("no gap is possible here: {other:?}"),
                    }
                }
                process.control.commit(OutputStream::Stdout, offset);
            }
            ProcessEvent::Ended(end) => break exited(&outcome(end)).clone(),
            other => panic!("nothing was passed on: {other:?}"),
        }
    };
    assert_eq!(record.stdout.offset, 8 * MIB);
    assert!(process.spool.bytes_on_disk().expect("files") <= 3 * MIB);
    let found = process
        .spool
        .read(OutputStream::Stdout, 0, 16)
        .expect("a spool");
    assert!(matches!(found, SpoolRead::Gap { .. }), "{found:?}");
}

#[tokio::test]
async fn a_disk_says_that_it_is_short_before_it_is_full_on_a_small_disk() {
    let scene = Scene::small("8m");
    let processes = scene.open().await;
    assert!(!processes.disk_is_short());
    scene.fill();
    assert!(processes.disk_is_short());
}

#[tokio::test]
async fn output_that_finds_no_room_on_a_small_disk_has_its_own_end() {
    let scene = Scene::small("768k");
    let processes = scene.open().await;
    let script = shell("head -c 8388608 /dev/zero; sleep 1000");
    let mut process = scene.start(&processes, script).await;
    let record = record(&mut process).await;
    assert_eq!(record.cause, ExitCause::DiskFull);
    scene.fill();
    // Those that wait had their room before.
    let reason = loop {
        match processes.take().await {
            Ok(waiting) => drop(waiting),
            Err(reason) => break reason,
        }
    };
    assert_eq!(reason, NotStarted::DiskFull);
}
