use std::fs;

use rustix::fd::AsRawFd;

use super::*;
use crate::testing::{Scene, argv, shell};

fn not_started(scene: &Scene, exec: &Exec) -> NotStarted {
    match scene.host.plan(exec) {
        Err(Unplanned::NotStarted(reason)) => reason,
        other => panic!("expected that it cannot start, not {other:?}"),
    }
}

fn texts(strings: &[CString]) -> Vec<&str> {
    strings
        .iter()
        .map(|string| string.to_str().expect("text"))
        .collect()
}

#[test]
fn a_plan_has_the_words_the_whole_environment_and_the_place() {
    let scene = Scene::new();
    fs::create_dir(scene.path("sub")).expect("a folder");
    let mut exec = argv(&["tool", "x y"]);
    exec.directory = "sub".to_owned();
    exec.environment.insert("ONE".to_owned(), "more".to_owned());
    let plan = scene.host.plan(&exec).expect("a plan");
    assert_eq!(texts(&plan.argv), ["tool", "x y"]);
    let place = scene.path("sub").canonicalize().expect("a real path");
    assert_eq!(
        texts(&plan.environment),
        [
            "ONE=more",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            &format!("PWD={}", place.display()),
        ]
    );
    assert_eq!(whereabouts(&plan), place);
}

#[test]
fn a_script_is_for_bash_and_without_it_for_sh() {
    let scene = Scene::new();
    let mut exec = shell("echo");
    let plan = scene.host.plan(&exec).expect("a plan");
    assert_eq!(texts(&plan.argv), ["bash", "-c", "echo"]);
    let path = scene.path("bin").display().to_string();
    exec.environment.insert("PATH".to_owned(), path);
    let plan = scene.host.plan(&exec).expect("a plan");
    assert_eq!(texts(&plan.argv), ["/bin/sh", "-c", "echo"]);
    fs::create_dir(scene.path("bin")).expect("a folder");
    std::os::unix::fs::symlink("/bin/sh", scene.path("bin/sh")).expect("a link");
    let plan = scene.host.plan(&exec).expect("a plan");
    assert_eq!(texts(&plan.argv), ["sh", "-c", "echo"]);
}

#[test]
fn a_directory_that_cannot_be_entered_is_told_by_its_kind() {
    let scene = Scene::new();
    scene.put("file", "");
    let at = |directory: &str| {
        let mut exec = argv(&["true"]);
        exec.directory = directory.to_owned();
        exec
    };
    let missing = |name: &str| NotStarted::MissingDirectory(name.to_owned());
    assert_eq!(not_started(&scene, &at("none")), missing("none"));
    assert_eq!(not_started(&scene, &at("file")), missing("file"));
    let outside = NotStarted::OutsideWorkspace("..".to_owned());
    assert_eq!(not_started(&scene, &at("..")), outside);
}

#[test]
fn a_workspace_that_was_removed_is_told_also_when_its_folder_was_made_again() {
    let scene = Scene::new();
    let mut below = argv(&["true"]);
    below.directory = "sub".to_owned();
    let root = scene.path("");
    fs::remove_dir(&root).expect("it is empty");
    fs::create_dir(&root).expect("a new one");
    for exec in [argv(&["true"]), below] {
        assert_eq!(not_started(&scene, &exec), NotStarted::WorkspaceGone);
    }
}

#[test]
fn in_the_root_a_plan_is_there_at_once_and_the_same() {
    let scene = Scene::new();
    fs::create_dir(scene.path("sub")).expect("a folder");
    let mut exec = argv(&["tool", "x y"]);
    let told = |plan: CommandPlan| {
        let place = whereabouts(&plan);
        (plan.argv, plan.environment, place)
    };
    for directory in ["", ".", "./", scene.host.root().to_str().expect("text")] {
        exec.directory = directory.to_owned();
        let at_once = scene.host.plan_at_once(&exec).expect("a plan");
        let slowly = scene.host.plan(&exec).expect("a plan");
        assert_eq!(told(at_once), told(slowly), "{directory:?}");
    }
    for directory in ["sub", "sub/..", "..", "none", "/"] {
        exec.directory = directory.to_owned();
        assert!(scene.host.plan_at_once(&exec).is_none(), "{directory:?}");
    }
}

#[test]
fn a_script_is_planned_at_once_when_its_shell_is_known() {
    let scene = Scene::new();
    let mut exec = shell("echo");
    assert!(scene.host.plan_at_once(&exec).is_none(), "not asked yet");
    scene.host.plan(&exec).expect("a plan");
    let plan = scene.host.plan_at_once(&exec).expect("a plan");
    assert_eq!(texts(&plan.argv), ["bash", "-c", "echo"]);
    let elsewhere = "/elsewhere".to_owned();
    exec.environment.insert("PATH".to_owned(), elsewhere);
    assert!(scene.host.plan_at_once(&exec).is_none(), "another PATH");
}

#[test]
fn in_a_removed_workspace_nothing_is_planned_at_once() {
    let scene = Scene::new();
    let exec = argv(&["true"]);
    assert!(scene.host.plan_at_once(&exec).is_some());
    fs::remove_dir(scene.path("")).expect("it is empty");
    assert!(scene.host.plan_at_once(&exec).is_none());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scene = Scene::new();
    let mut dangerous = shell("true");
    let name = "LD_PRELOAD".to_owned();
    dangerous.environment.insert(name, "x.so".to_owned());
    let long = "x".repeat(MAX_COMMAND_BYTES + 1);
    for exec in [
        argv(&[]),
        argv(&[""]),
        shell("a\0"),
        shell(&long),
        dangerous,
    ] {
        match scene.host.plan(&exec) {
            Err(Unplanned::Refused(refusal)) => assert_eq!(refusal.code, RefusalCode::Invalid),
            other => panic!("expected a refusal, not {other:?}"),
        }
    }
}

fn whereabouts(plan: &CommandPlan) -> PathBuf {
    let Whereabouts::Handle(directory) = &plan.directory else {
        panic!("no handle");
    };
    fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).expect("a directory")
}
