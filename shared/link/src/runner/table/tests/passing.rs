use shared_sandbox::{Command, Download, Exec, Signal, Upload};
use shared_types::{Refusal, RefusalCode};

use super::*;

fn cat() -> Request {
    Request::Exec(Exec {
        input: true,
        ..Exec::new(Command::Shell("cat".into()))
    })
}

fn ask(table: &mut OperationTable, number: u128, request: Request) -> Option<Act> {
    let incoming = Box::new(incoming(number, request));
    order(table, Order::Operation(incoming))
}

fn input(table: &mut OperationTable, number: u128, offset: u64, data: &'static str) -> Option<Act> {
    let input = Order::Input {
        operation: id(number),
        piece: Input {
            offset,
            data: data.into(),
            end: false,
        },
    };
    order(table, input)
}

fn interrupt(table: &mut OperationTable, number: u128, id: u64) -> Option<Act> {
    let signal = Order::Control {
        operation: self::id(number),
        id,
        control: Control::Signal(Signal::Interrupt),
    };
    order(table, signal)
}

fn passed(number: u128, offset: u64, data: &'static str) -> Option<Act> {
    let input = Input {
        offset,
        data: data.into(),
        end: false,
    };
    Some(Act::Input(id(number), input))
}

#[test]
fn whoever_attaches_is_told_where_the_input_stands() {
    let mut table = linked();
    ask(&mut table, 1, cat());
    assert_eq!(told(&mut table), ["1 accepted", "1 input 0"]);
    assert_eq!(input(&mut table, 1, 0, "abc"), passed(1, 0, "abc"));
    table.input_taken(id(1), 2);
    assert_eq!(told(&mut table), ["1 input 2"]);
    table.open_link();
    table.input_taken(id(1), 3);
    assert_eq!(told(&mut table), [""; 0], "nobody asked on this link");
    ask(&mut table, 1, cat());
    assert_eq!(told(&mut table), ["1 accepted", "1 input 3"]);
    assert_eq!(input(&mut table, 1, 0, "abc"), None, "a repeat");
}

#[test]
fn what_a_link_has_not_asked_for_takes_nothing_from_it() {
    let mut table = linked();
    ask(&mut table, 1, cat());
    told(&mut table);
    table.open_link();
    assert_eq!(input(&mut table, 1, 0, "abc"), None);
    assert_eq!(interrupt(&mut table, 1, 1), None);
    assert_eq!(input(&mut table, 2, 0, "abc"), None, "unknown");
    assert_eq!(told(&mut table), [""; 0]);
    ask(&mut table, 1, cat());
    assert_eq!(input(&mut table, 1, 0, "abc"), passed(1, 0, "abc"));
    assert!(interrupt(&mut table, 1, 1).is_some());
}

#[test]
fn a_signal_is_sent_once_and_answered_on_the_link_that_asks() {
    let mut table = linked();
    ask(&mut table, 1, shell("sleep 9"));
    let sent = |control| {
        Some(Act::Control {
            operation: id(1),
            id: control,
            control: Control::Signal(Signal::Interrupt),
        })
    };
    assert_eq!(interrupt(&mut table, 1, 3), sent(3));
    told(&mut table);
    table.open_link();
    ask(&mut table, 1, shell("sleep 9"));
    assert_eq!(interrupt(&mut table, 1, 3), None, "it is being sent");
    table.controlled(id(1), 3, Ok(()));
    assert_eq!(told(&mut table), ["1 accepted", "1 3 done"]);
    // Only the supervisor knows what became of it, or that another reader's came first.
    assert_eq!(interrupt(&mut table, 1, 3), sent(3));
    table.controlled(id(1), 3, Ok(()));
    assert_eq!(told(&mut table), ["1 3 done"]);
    assert!(
        interrupt(&mut table, 1, 2).is_some(),
        "an older one as well"
    );
    let overtaken = Refusal::new(RefusalCode::Invalid, "a later one came first");
    table.controlled(id(1), 2, Err(overtaken));
    assert_eq!(told(&mut table), ["1 2 not done Invalid"]);
    table.exit(id(1), ExitCause::Exited);
    assert_eq!(interrupt(&mut table, 1, 4), None);
    assert_eq!(told(&mut table), ["1 4 not done NotFound", "1 ended"]);
}

#[test]
fn after_a_restart_input_goes_on_where_the_supervisor_says() {
    let mut scene = linked();
    ask(&mut scene, 1, cat());
    input(&mut scene, 1, 0, "abcdef");
    assert_eq!(restarted(&mut scene), [id(1)]);
    ask(&mut scene, 1, cat());
    assert_eq!(told(&mut scene), ["1 accepted"], "nobody knows yet");
    scene.input_taken(id(1), 4);
    assert_eq!(told(&mut scene), ["1 input 4"]);
    assert_eq!(input(&mut scene, 1, 0, "abcdef"), passed(1, 4, "ef"));
}

#[test]
fn an_upload_that_a_restart_released_starts_over_from_its_beginning() {
    let mut scene = linked();
    let upload = Request::Upload(Upload {
        path: "file".into(),
        bytes: 6,
        digest: Digest::of(b"abcdef").into(),
        mode: None,
        modified_us: None,
    });
    ask(&mut scene, 1, upload.clone());
    input(&mut scene, 1, 0, "abc");
    scene.input_taken(id(1), 3);
    restarted(&mut scene);
    scene.release(id(1));
    assert!(matches!(
        ask(&mut scene, 1, upload),
        Some(Act::Start { .. })
    ));
    assert_eq!(told(&mut scene), ["1 accepted", "1 input 0"]);
}

#[test]
fn a_read_that_is_gone_is_reported_once_whichever_way_it_went() {
    let download = || {
        Request::Download(Download {
            path: "file".into(),
            algorithm: shared_types::DigestAlgorithm::Sha256,
            max_bytes: 0,
        })
    };
    let done = || Outcome::Failed(FileFailure::DiskFull);
    let mut scene = linked();
    for number in 1..=3 {
        ask(&mut scene, number, download());
    }
    scene.ended(id(1), done(), 0);
    told(&mut scene);
    assert_eq!(scene.take_dropped(), [id(1)], "its end was told");
    scene.ended(id(2), done(), 0);
    scene.open_link();
    assert_eq!(scene.take_dropped(), [id(2)], "its reader went first");
    scene.ended(id(3), done(), 0);
    assert_eq!(scene.take_dropped(), [id(3)], "it went on without one");
    assert_eq!(scene.take_dropped(), []);
}
