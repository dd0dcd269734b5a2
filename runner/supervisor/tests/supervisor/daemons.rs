//! Daemons come and go; the command does not notice.

use std::{io::Write, os::unix::net::UnixStream};

use runner_supervisor::{
    Cause, Fate, FrameError, FromSupervisor, KillChoice, OperationEnd, Outbox, ProcessId,
    Recovered, ReportedEnd, SpoolStream, SupervisedOperation, SupervisorEvent, ToSupervisor,
    VERSION, WireInbox, recover,
};

use rustix::process::Pid;

use crate::scene::{LONG, Scene, event, finish, read, record, start, until_output};

/// The one operation below the scene, attached anew.
fn attach(scene: &Scene) -> SupervisedOperation {
    let mut all = recover(&scene.root()).expect("a list");
    match all.pop().expect("an operation").1.expect("settled") {
        Recovered::Running(operation) => *operation,
        other => panic!("it does not run: {other:?}"),
    }
}

#[test]
fn a_command_goes_on_without_a_daemon_and_is_found_by_the_next() {
    let scene = Scene::new();
    let mut request = scene.shell("echo one; read word; echo $word; exit 5");
    request.terms.stdin = true;
    let mut first = scene.start(&request);
    until_output(&mut first, "one");
    first.input(0, b"tw", false).expect("heard");
    crate::scene::until(&mut first, |event| *event == SupervisorEvent::InputTaken(2));
    drop(first);
    let mut second = attach(&scene);
    // The new daemon learns how far the input is; what it repeats is harmless.
    second.input(0, b"two", false).expect("heard");
    crate::scene::until(&mut second, |event| {
        *event == SupervisorEvent::InputTaken(3)
    });
    drop(second);
    let mut third = attach(&scene);
    third.input(3, b"\n", true).expect("heard");
    let ended = finish(&mut third);
    assert_eq!(ended.record.end, ReportedEnd::Code(5));
    assert_eq!(ended.text(), "one\ntwo\n");
}

#[test]
fn a_later_daemon_takes_the_place_of_an_earlier_one() {
    let scene = Scene::new();
    let mut request = scene.shell("echo one; read word; exit 5");
    request.terms.stdin = true;
    let mut first = scene.start(&request);
    until_output(&mut first, "one");
    let mut second = attach(&scene);
    second.input(0, b"", true).expect("heard");
    assert_eq!(record(&mut second).end, ReportedEnd::Code(5));
    assert_eq!(read(&mut first, SpoolStream::Out), b"one\n");
}

/// Kills a process of ours, and waits until it is gone.
fn kill(process: &ProcessId) {
    let pid = process.as_pid().expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    while process.is_alive(&process.boot_id) {
        std::thread::yield_now();
    }
}

/// Who made this one.
fn parent(process: &ProcessId) -> ProcessId {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).expect("alive");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let parent = after_name.split_whitespace().nth(1).expect("a field");
    let parent = Pid::from_raw(parent.parse().expect("a number")).expect("a pid");
    ProcessId::of(parent, &process.boot_id).expect("alive")
}

#[test]
fn without_the_process_that_forked_them_commands_go_on_and_others_can_begin() {
    let scene = Scene::new();
    let pool = scene.pool_with(1, KillChoice::Strongest, None);
    let mut request = scene.shell("echo one; read word; exit 5");
    request.terms.stdin = true;
    let mut running = start(&pool, &request);
    until_output(&mut running, "one");
    let supervisor = running.identity().expect("known").supervisor.clone();
    kill(&parent(&supervisor));
    for _ in 0..3 {
        let mut next = start(&pool, &scene.shell("exit 6"));
        assert_eq!(record(&mut next).end, ReportedEnd::Code(6));
    }
    running.input(0, b"", true).expect("heard");
    assert_eq!(record(&mut running).end, ReportedEnd::Code(5));
}

#[test]
fn where_the_process_that_forks_them_is_stopped_another_one_takes_its_place() {
    let scene = Scene::new();
    let pool = scene.pool_with(0, KillChoice::Strongest, None);
    let mut first = start(&pool, &scene.shell("exit 5"));
    let stopped = parent(&first.identity().expect("known").supervisor);
    assert_eq!(record(&mut first).end, ReportedEnd::Code(5));
    let pid = stopped.as_pid().expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
    let mut second = start(&pool, &scene.shell("exit 6"));
    assert_eq!(record(&mut second).end, ReportedEnd::Code(6));
    assert!(!stopped.is_alive(&stopped.boot_id));
}

#[test]
fn a_supervisor_that_loses_its_child_while_it_waits_is_not_used() {
    let scene = Scene::new();
    let pool = scene.pool_with(1, KillChoice::Strongest, None);
    let waiting = pool.take_ready(LONG).expect("a supervisor");
    let supervisor = waiting.identity().supervisor.clone();
    let children = format!("/proc/{0}/task/{0}/children", supervisor.pid);
    let child = std::fs::read_to_string(children).expect("a list");
    let child = Pid::from_raw(child.trim().parse().expect("one child")).expect("a pid");
    kill(&ProcessId::of(child, &supervisor.boot_id).expect("alive"));
    while supervisor.is_alive(&supervisor.boot_id) {
        std::thread::yield_now();
    }
    let fate = waiting.directory().fate().expect("readable");
    assert!(matches!(fate, Some(Fate::Fenced { .. })), "{fate:?}");
}

#[test]
fn a_supervisor_whose_daemon_asks_for_nothing_fences_itself() {
    let scene = Scene::new();
    let pool = scene.pool_with(3, KillChoice::Strongest, None);
    let taken = pool.take().expect("a supervisor");
    let supervisor = taken.identity().supervisor.clone();
    drop(taken);
    drop(pool);
    while supervisor.is_alive(&supervisor.boot_id) {
        std::thread::yield_now();
    }
    for (path, recovered) in recover(&scene.root()).expect("a list") {
        let recovered = recovered.expect("settled");
        assert!(matches!(recovered, Recovered::Fenced(_)), "{path:?}");
    }
}

#[test]
fn a_fenced_operation_never_runs_although_its_supervisor_is_asked() {
    let scene = Scene::new();
    let pool = scene.pool();
    let waiting = pool.take().expect("a supervisor");
    let fate = waiting.directory().fence("a test says so").expect("a fate");
    assert!(matches!(fate, Fate::Fenced { .. }));
    let request = scene.shell("touch effect");
    let started = waiting.start(&request, None);
    let mut operation = started.unwrap_or_else(|(_, error)| panic!("{error}"));
    assert_eq!(
        event(&mut operation),
        SupervisorEvent::Ended(OperationEnd::Fenced)
    );
    assert!(!scene.work().join("effect").exists());
    assert_eq!(operation.directory().exit().expect("readable"), None);
}

#[test]
fn a_started_operation_cannot_be_fenced_any_more() {
    let scene = Scene::new();
    let mut operation = scene.start(&scene.shell("echo ready; sleep 1000"));
    until_output(&mut operation, "ready");
    let fate = operation.directory().fence("too late").expect("a fate");
    assert!(matches!(fate, Fate::Started(_)), "{fate:?}");
    operation.cancel().expect("heard");
    assert_eq!(record(&mut operation).cause, Cause::Cancelled);
}

/// Speaks to a supervisor byte by byte.
struct Stranger {
    socket: UnixStream,
    inbox: WireInbox,
}

impl Stranger {
    fn new(operation: &SupervisedOperation) -> Self {
        let path = operation.directory().path().join("sock");
        Self {
            socket: UnixStream::connect(path).expect("a supervisor"),
            inbox: WireInbox::default(),
        }
    }

    fn say(&mut self, what: &ToSupervisor) {
        let mut outbox = Outbox::default();
        outbox.push(what, &[]).expect("it fits");
        outbox.flush(&self.socket, None).expect("sent");
    }

    /// Everything that it is told until it is cut off.
    fn told(&mut self) -> Vec<FromSupervisor> {
        let mut told = Vec::new();
        loop {
            match self.inbox.take() {
                Ok(Some(frame)) => told.push(frame.head),
                Ok(None) => {
                    self.inbox.fill(&self.socket);
                }
                Err(FrameError::Gone) => return told,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn strangers_are_refused_with_a_reason_and_the_command_goes_on() {
    let scene = Scene::new();
    let mut request = scene.shell("echo one; read word; exit 5");
    request.terms.stdin = true;
    let mut operation = scene.start(&request);
    until_output(&mut operation, "one");

    let mut far = Stranger::new(&operation);
    far.say(&ToSupervisor::Hello {
        version: VERSION + 2,
    });
    let told = far.told();
    let [
        FromSupervisor::Hello { .. },
        before @ ..,
        FromSupervisor::Refused { reason },
    ] = &told[..]
    else {
        panic!("{told:?}");
    };
    assert!(reason.contains("version"), "{reason}");
    // How much of the command it hears before that depends on who is faster.
    assert!(
        matches!(
            before,
            [] | [FromSupervisor::Started(_)]
                | [FromSupervisor::Output { .. }]
                | [FromSupervisor::Started(_), FromSupervisor::Output { .. }]
        ),
        "{told:?}"
    );

    let mut rude = Stranger::new(&operation);
    rude.say(&ToSupervisor::Cancel);
    let told = rude.told();
    assert!(
        matches!(told.last(), Some(FromSupervisor::Refused { reason }) if reason.contains("hello")),
        "{told:?}"
    );

    let mut noise = Stranger::new(&operation);
    noise.socket.write_all(&[0xff; 64]).expect("sent");
    noise.told();

    let mut early = Stranger::new(&operation);
    early.say(&ToSupervisor::Hello {
        version: VERSION + 1,
    });
    early.socket.write_all(&[1, 2, 3]).expect("sent");
    drop(early);

    let mut operation = attach(&scene);
    operation.input(0, b"", true).expect("heard");
    let record = record(&mut operation);
    assert_eq!(
        (record.end, record.cause),
        (ReportedEnd::Code(5), Cause::Exited)
    );
}

#[test]
fn an_unknown_request_is_refused_and_the_connection_goes_on() {
    let scene = Scene::new();
    let pool = scene.pool();
    let mut request = scene.shell("read word; exit 5");
    request.terms.stdin = true;
    let operation = start(&pool, &request);
    let mut newer = Stranger::new(&operation);
    newer.say(&ToSupervisor::Hello {
        version: VERSION + 1,
    });
    newer.say(&ToSupervisor::Unknown);
    newer.say(&ToSupervisor::Input {
        offset: 0,
        end: true,
    });
    let told = newer.told();
    assert!(
        told.iter()
            .any(|told| matches!(told, FromSupervisor::Refused { .. }))
    );
    assert!(
        matches!(told.last(), Some(FromSupervisor::Exited(record)) if record.end == ReportedEnd::Code(5)),
        "{told:?}"
    );
}
