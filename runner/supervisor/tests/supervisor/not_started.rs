//! Commands that cannot run, each with its own reason.

use std::{ffi::CString, fs, os::unix::fs::PermissionsExt};

use runner_supervisor::{
    Cause, CommandRequest, Fate, NotStarted, OperationError, ReportedEnd, RequestError,
    SupervisorEvent, WhenFull, WorkingDirectory, descendants,
};
use rustix::process::{Signal, kill_process};

use crate::scene::{LONG, Scene, finish, record, until};

fn reason(scene: &Scene, request: &CommandRequest) -> NotStarted {
    let mut operation = scene.start(request);
    let record = record(&mut operation);
    assert_eq!(record.cause, Cause::Exited);
    assert!(record.tree_gone);
    let fate = operation.directory().fate().expect("a record");
    assert!(matches!(fate, Some(Fate::Started(_))), "{fate:?}");
    match record.end {
        ReportedEnd::NotStarted(reason) => reason,
        other => panic!("it ended with {other:?}"),
    }
}

#[test]
fn a_missing_program_is_named() {
    let scene = Scene::new();
    for program in ["no-such-program", "./no-such-program", "/no/such/program"] {
        assert_eq!(
            reason(&scene, &scene.request(&[program])),
            NotStarted::MissingProgram(program.to_owned())
        );
    }
    let mut request = scene.request(&["true"]);
    request.environment.clear();
    assert!(matches!(
        reason(&scene, &request),
        NotStarted::MissingProgram(_)
    ));
}

#[test]
fn a_missing_directory_is_named() {
    let scene = Scene::new();
    let mut request = scene.request(&["true"]);
    request.terms.place = WorkingDirectory::Path("/no/such/directory".into());
    assert_eq!(
        reason(&scene, &request),
        NotStarted::MissingDirectory("/no/such/directory".to_owned())
    );
}

#[test]
fn a_program_that_may_not_run_or_is_none_is_named() {
    let scene = Scene::new();
    let put = |name: &str, text: &str, mode| {
        let file = scene.work().join(name);
        fs::write(&file, text).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    put("plain", "#!/bin/sh\n", 0o644);
    put("lost", "#!/no/such/interpreter\n", 0o755);
    put("noise", "noise", 0o755);
    let reason = |name: &str| reason(&scene, &scene.request(&[name]));
    assert_eq!(reason("./plain"), NotStarted::Denied("./plain".to_owned()));
    assert_eq!(
        reason("./lost"),
        NotStarted::MissingInterpreter("./lost".to_owned())
    );
    assert_eq!(
        reason("./noise"),
        NotStarted::NotAProgram("./noise".to_owned())
    );
}

#[test]
fn words_that_are_too_large_together_are_told_as_such() {
    let scene = Scene::new();
    let mut request = scene.request(&["true"]);
    let word = CString::new(vec![b'x'; 100_000]).expect("no NUL");
    request.argv.extend(vec![word; 30]);
    assert_eq!(reason(&scene, &request), NotStarted::TooLarge);
}

#[test]
fn a_request_that_makes_no_sense_is_not_even_sent() {
    let scene = Scene::new();
    let refused = |request: &CommandRequest| {
        let pool = scene.pool_with(0, runner_supervisor::KillChoice::Strongest, None);
        let waiting = pool.take().expect("a supervisor");
        match waiting.start(request, None) {
            Err((_, OperationError::Request(error))) => error,
            other => panic!("expected a refusal, not {other:?}"),
        }
    };
    let mut request = scene.request(&["true"]);
    request.terms.spool.bytes = 5;
    assert!(matches!(
        refused(&request),
        RequestError::TailTooLong { .. }
    ));
    request.terms.spool.bytes = 0;
    request.terms.spool.when_full = WhenFull::Wait;
    assert_eq!(refused(&request), RequestError::NoRoom);
    request.argv.clear();
    assert_eq!(refused(&request), RequestError::Empty);
}

#[test]
fn a_command_runs_in_the_directory_that_is_handed_over() {
    let scene = Scene::new();
    fs::create_dir(scene.work().join("before")).expect("a folder");
    let directory = fs::File::open(scene.work().join("before")).expect("a folder");
    fs::rename(scene.work().join("before"), scene.work().join("after")).expect("renamed");
    let mut request = scene.request(&["pwd"]);
    request.terms.place = WorkingDirectory::Inherited;
    let pool = scene.pool();
    let waiting = pool.take().expect("a supervisor");
    let started = waiting.start(&request, Some(directory.into()));
    let mut operation = started.unwrap_or_else(|(_, error)| panic!("{error}"));
    let ended = finish(&mut operation);
    assert!(ended.text().ends_with("/work/after\n"), "{ended:?}");
}

#[test]
fn a_process_that_is_killed_before_it_begins_has_not_started() {
    let scene = Scene::new();
    let pool = scene.pool();
    let waiting = pool.take_ready(LONG).expect("a supervisor");
    let supervisor = waiting.identity().supervisor.as_pid().expect("a pid");
    let children = descendants(supervisor).expect("a list");
    let [child] = children[..] else {
        panic!("one child waits behind the gate, not {children:?}");
    };
    kill_process(child, Signal::STOP).expect("it is there");
    let mut operation = waiting
        .start(&scene.shell("echo run > effect"), None)
        .unwrap_or_else(|(_, error)| panic!("{error}"));
    until(&mut operation, |event| {
        matches!(event, SupervisorEvent::Started(_))
    });
    kill_process(child, Signal::KILL).expect("it is there");
    let record = record(&mut operation);
    assert!(
        matches!(record.end, ReportedEnd::NotStarted(NotStarted::Host(_))),
        "{record:?}"
    );
    assert!(!scene.work().join("effect").exists());
}
