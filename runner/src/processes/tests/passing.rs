//! Input, terminals and signals: what is passed on to commands, whatever becomes of daemons.

use std::os::unix::process::ExitStatusExt as _;

use bytes::Bytes;
use shared_link::feed::Feed;
use shared_sandbox::{Control, Input, Signal, TerminalSize};
use shared_types::Remedy;
use tokio::runtime::Runtime;

use super::scene::*;

fn with_input(exec: Exec) -> Exec {
    Exec {
        input: true,
        ..exec
    }
}

fn terminal(script: &str) -> Exec {
    Exec {
        terminal: Some(TerminalSize {
            rows: 24,
            columns: 80,
        }),
        ..shell(script)
    }
}

fn piece(offset: u64, data: &[u8], end: bool) -> Input {
    Input {
        offset,
        data: Bytes::copy_from_slice(data),
        end,
    }
}

/// Passes all of it on, with no more than a window that is not taken; returns the end.
async fn feed(process: &mut Process, all: &[u8]) -> ProcessEnd {
    let (mut feed, mut at) = (Feed::new(1024 * 1024), 0);
    feed.taken(0);
    loop {
        let end = (at as usize + 100_000).min(all.len());
        let piece = piece(at, &all[at as usize..end], end == all.len());
        at = feed.offer(&piece).expect("the input goes on");
        while let Some(piece) = feed.next(64 * 1024) {
            process.control.input(&piece);
        }
        if !feed.has_room() || at as usize == all.len() {
            match event(process).await {
                ProcessEvent::InputTaken(up_to) => feed.taken(up_to),
                ProcessEvent::Ended(end) => return end,
                ProcessEvent::Output(_) | ProcessEvent::Done(..) => {}
            }
        }
    }
}

/// Waits until this was done.
async fn done(process: &mut Process, id: u64) {
    while event(process).await != ProcessEvent::Done(id, Ok(())) {}
}

fn bytes(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[tokio::test]
async fn input_arrives_whole_at_a_command_that_reads_slowly() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let script = "sleep 0.1; head -c 300000 >first; sleep 0.1; cat >rest";
    let command = with_input(shell(script));
    let mut process = scene.start(&processes, command).await;
    let all = bytes(3_000_000);
    let end = feed(&mut process, &all).await;
    assert_eq!(exited(&outcome(end)).status, ExitStatus::Code(0));
    let read = |name: &str| std::fs::read(scene.workspace().join(name)).expect("a file");
    assert!([read("first"), read("rest")].concat() == all);
}

#[tokio::test]
async fn a_command_that_reads_nothing_of_its_input_ends_all_the_same() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let command = with_input(shell("exec <&-; sleep 0.1; exit 3"));
    let mut process = scene.start(&processes, command).await;
    let end = feed(&mut process, &bytes(3_000_000)).await;
    assert_eq!(exited(&outcome(end)).status, ExitStatus::Code(3));
}

#[tokio::test]
async fn a_command_without_input_reads_an_empty_one() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene.start(&processes, shell("wc -c")).await;
    record(&mut process).await;
    assert_eq!(read(&mut process.spool, OutputStream::Stdout).trim(), "0");
}

#[test]
fn the_next_daemon_goes_on_with_the_input_where_the_command_has_it() {
    let scene = Scene::new();
    let all = bytes(200_000);
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let processes = scene.open().await;
        let command = with_input(shell("cat >copy"));
        let mut process = scene.start(&processes, command).await;
        process.control.input(&piece(0, &all[..60_000], false));
        while event(&mut process).await != ProcessEvent::InputTaken(60_000) {}
    });
    runtime.shutdown_background();
    Runtime::new().expect("a runtime").block_on(async {
        let (_processes, left) = scene.open_again().await;
        let mut running = left.into_iter().filter_map(|(_, left)| match left {
            LeftOperation::Running(process) => Some(process),
            _ => None,
        });
        let process = &mut running.next().expect("it runs");
        while event(process).await != ProcessEvent::InputTaken(60_000) {}
        for (index, data) in all[60_000..].chunks(50_000).enumerate() {
            let offset = 60_000 + 50_000 * index as u64;
            let end = offset as usize + data.len() == all.len();
            process.control.input(&piece(offset, data, end));
        }
        assert_eq!(record(process).await.status, ExitStatus::Code(0));
    });
    let copy = std::fs::read(scene.workspace().join("copy")).expect("a file");
    assert!(copy == all);
}

#[tokio::test]
async fn a_terminal_has_its_size_and_is_told_of_another() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene.start(&processes, terminal("bash --norc -i")).await;
    process
        .control
        .input(&piece(0, b"stty size; echo $TERM\n", false));
    until(&mut process, "24 80").await;
    until(&mut process, "xterm-256color").await;
    let size = TerminalSize {
        rows: 40,
        columns: 120,
    };
    process.control.control(5, Control::Resize(size));
    done(&mut process, 5).await;
    process
        .control
        .input(&piece(22, b"stty size; exit 7\n", false));
    until(&mut process, "40 120").await;
    assert_eq!(record(&mut process).await.status, ExitStatus::Code(7));
}

#[tokio::test]
async fn what_another_reader_has_overtaken_may_be_asked_for_again() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene.start(&processes, terminal("read line")).await;
    let resize = |rows| Control::Resize(TerminalSize { rows, columns: 80 });
    process.control.control(5, resize(40));
    done(&mut process, 5).await;
    process.control.control(3, resize(50));
    let refusal = loop {
        if let ProcessEvent::Done(3, Err(refusal)) = event(&mut process).await {
            break refusal;
        }
    };
    assert_eq!(refusal.remedy(), Remedy::Retry, "{refusal}");
    process.control.input(&piece(0, b"\n", false));
    assert_eq!(record(&mut process).await.status, ExitStatus::Code(0));
}

#[tokio::test]
async fn a_signal_reaches_the_command_also_when_it_was_sent_before_the_start() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let waiting = processes.take().await.expect("a supervisor");
    let plan = scene.host.plan(&argv(&["sleep", "1000"])).expect("a plan");
    let passing = PassingControls::new();
    passing.control(1, Control::Signal(Signal::User1));
    let mut process = processes.start(waiting, id(7), plan, terms(), passing);
    let status = record(&mut process).await.status;
    let user1 = std::process::ExitStatus::from_raw(10);
    assert_eq!(Some(status), user1.signal().map(ExitStatus::Signal));
}
