//! Input with offsets, and terminals.

use std::time::Duration;

use runner_supervisor::{ReportedEnd, SpoolStream, Streams, SupervisorEvent};

use crate::scene::{LONG, Scene, finish, read, until, until_output};

#[test]
fn input_arrives_once_however_often_it_is_sent() {
    let scene = Scene::new();
    let mut request = scene.request(&["cat"]);
    request.terms.stdin = true;
    let mut operation = scene.start(&request);
    operation.input(0, b"hello ", false).expect("heard");
    operation.input(0, b"hello ", false).expect("heard");
    operation.input(3, b"lo world", false).expect("heard");
    operation.input(99, b"too far", false).expect("heard");
    until(&mut operation, |event| {
        matches!(event, SupervisorEvent::Refused(_))
    });
    operation.input(11, b"", true).expect("heard");
    // It may have ended by now, and then hears nothing more.
    let _ = operation.input(0, b"hello ", false);
    let ended = finish(&mut operation);
    assert_eq!(ended.text(), "hello world");
    assert_eq!(ended.record.end, ReportedEnd::Code(0));
}

/// After so much silence input is sent once more.
const A_WHILE: Duration = Duration::from_millis(100);

#[test]
fn input_that_finds_no_room_is_asked_for_again() {
    let scene = Scene::new();
    let mut request = scene.shell("read first; cat");
    request.terms.stdin = true;
    request.terms.idle_for = Some(LONG);
    let mut operation = scene.start(&request);
    let data: Vec<u8> = (0..3_000_000_u32).map(|i| b'a' + (i % 23) as u8).collect();
    let whole = [b"go\n".as_slice(), &data].concat();
    let mut offset = 0;
    // More than one window is under way at a time, so some of it is always refused.
    while offset < whole.len() {
        let until = whole.len().min(offset + 600_000);
        operation
            .input(offset as u64, &whole[offset..until], until == whole.len())
            .expect("heard");
        // That there is room again is said with an offset that is known already.
        while let Some(event) = operation.event(A_WHILE).expect("an event") {
            match event {
                SupervisorEvent::InputTaken(taken) if taken > offset as u64 => {
                    offset = usize::try_from(taken).expect("64 bits");
                    if offset >= until {
                        break;
                    }
                }
                SupervisorEvent::Ended(ended) => panic!("{ended:?}"),
                SupervisorEvent::Refused(_) => break,
                _ => {}
            }
        }
        offset = usize::try_from(operation.input_taken()).expect("64 bits");
    }
    let ended = finish(&mut operation);
    assert!(ended.out == data, "{} bytes", ended.out.len());
}

#[test]
fn a_command_without_input_reads_its_end_at_once() {
    let scene = Scene::new();
    let ended = scene.run(&scene.request(&["cat"]));
    assert_eq!(ended.record.end, ReportedEnd::Code(0));
    assert_eq!(ended.record.out.offset, 0);
}

#[test]
fn a_terminal_has_its_size_its_changes_and_its_end() {
    let scene = Scene::new();
    let mut request = scene.shell(
        "trap 'stty size; echo winch' WINCH; test -t 0 && test -t 1 && test -t 2 && tty; \
         stty size; echo ready; until read line; do :; done; echo got $line; read more || exit 7",
    );
    request.terms.streams = Streams::Pty {
        rows: 40,
        columns: 120,
    };
    let mut operation = scene.start(&request);
    let text = until_output(&mut operation, "ready");
    assert!(text.contains("/dev/pts/"), "{text}");
    assert!(text.contains("40 120"), "{text}");
    operation.resize(1, 50, 200).expect("heard");
    until(&mut operation, |event| *event == SupervisorEvent::Done(1));
    operation.input(0, b"word\n", false).expect("heard");
    let text = until_output(&mut operation, "winch");
    assert!(text.contains("50 200"), "{text}");
    // A repeat is answered and changes nothing.
    operation.resize(1, 1, 1).expect("heard");
    until(&mut operation, |event| *event == SupervisorEvent::Done(1));
    until_output(&mut operation, "got word");
    operation.input(5, b"", true).expect("heard");
    let ended = finish(&mut operation);
    assert_eq!(ended.record.end, ReportedEnd::Code(7));
    assert!(ended.record.tree_gone, "{:?}", ended.record);
    assert!(!ended.text().contains("1 1\r"), "{}", ended.text());
    assert_eq!(ended.record.err.offset, 0);
    assert_eq!(
        ended.record.out.checksum,
        Some(crc32fast::hash(&read(&mut operation, SpoolStream::Out)))
    );
}

#[test]
fn the_input_of_a_terminal_ends_also_within_a_line() {
    for (input, output) in [("", ""), ("line\n", "line\r\n"), ("within", "within")] {
        let scene = Scene::new();
        let script = "stty -echo; echo ready; cat; echo over; sleep 600";
        let mut request = scene.shell(script);
        request.terms.streams = Streams::Pty {
            rows: 40,
            columns: 120,
        };
        let mut operation = scene.start(&request);
        until_output(&mut operation, "ready");
        let end = input.len() as u64;
        operation.input(0, input.as_bytes(), false).expect("heard");
        operation.input(end, b"", true).expect("heard");
        until_output(&mut operation, &format!("{output}over"));
        operation.cancel().expect("heard");
        finish(&mut operation);
    }
}

#[test]
fn a_signal_reaches_the_command_once() {
    let scene = Scene::new();
    let mut request = scene.shell("trap 'echo usr1' USR1; echo ready; read end; read end");
    request.terms.stdin = true;
    let mut operation = scene.start(&request);
    until_output(&mut operation, "ready");
    for id in [1, 1] {
        operation.signal(id, 10).expect("heard");
        until(&mut operation, |event| *event == SupervisorEvent::Done(1));
    }
    until_output(&mut operation, "usr1");
    operation.input(0, b"\n\n", true).expect("heard");
    assert_eq!(finish(&mut operation).text(), "ready\nusr1\n");
}

#[test]
fn a_signal_that_was_overtaken_is_not_said_to_have_been_sent() {
    let scene = Scene::new();
    let mut request = scene.shell("trap 'echo usr1' USR1; echo ready; read end; read end");
    request.terms.stdin = true;
    let mut operation = scene.start(&request);
    until_output(&mut operation, "ready");
    operation.signal(9, 10).expect("heard");
    until(&mut operation, |event| *event == SupervisorEvent::Done(9));
    until_output(&mut operation, "usr1");
    // Another reader asks again for what never came.
    operation.signal(5, 10).expect("heard");
    until(&mut operation, |event| {
        assert_ne!(*event, SupervisorEvent::Done(5));
        matches!(event, SupervisorEvent::Overtaken(5, _))
    });
    operation.input(0, b"\n\n", true).expect("heard");
    assert_eq!(finish(&mut operation).text(), "ready\nusr1\n");
}
