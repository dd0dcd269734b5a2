//! The rules of a project's file: when they count.

use server_records::{RuleBy, TrustedFile};
use shared_consent::ProjectRules;
use shared_sandbox::{
    Command, ExitCause, ExitStatus, Outcome, ProjectFile, Request, Surveyed,
    scripted::{Script, ScriptedSandbox},
};
use shared_types::{
    Digest, Event, Mode, Refusal, RefusalCode, ReplicaId, RuleId, RunnerId, SandboxId, UserId,
    event::{Choice, Parts, Terms, TurnOutcome},
};

use crate::testing::{EPOCH, Reply, START, TURN, World, ends, exit};

const RULES: &str = r#"
allow = ["Shell(cargo test *)"]
deny = ["Shell(git push *)"]
"#;

const FILE: &str = ".gantry/permissions.toml";

/// A look that finds this file.
fn finds(file: Option<(&str, &str)>) -> Script {
    ends(Outcome::Surveyed(Surveyed {
        system: String::new(),
        folder: String::new(),
        branch: None,
        instructions: Vec::new(),
        unread: Vec::new(),
        project: file.map(|(path, text)| {
            Box::new(ProjectFile {
                path: path.to_owned(),
                text: text.to_owned(),
            })
        }),
        extensions: Vec::new(),
    }))
}

/// The trust in the rules above.
fn trusted() -> TrustedFile {
    let place = ScriptedSandbox::place();
    TrustedFile {
        id: RuleId::from_u128(1),
        runner: place.runner,
        runner_name: place.runner_name,
        sandbox: place.sandbox,
        workspace: "workspace".to_owned(),
        folder: String::new(),
        digest: Digest::of(RULES.as_bytes()),
        rules: ProjectRules::read(RULES, "").expect("rules"),
        changed: false,
        at: START,
    }
}

/// The commands of a turn in this mode that run, and the words on the push, after this look.
async fn ran(mode: Mode, look: Script, trust: Option<TrustedFile>) -> (Vec<String>, String) {
    let world = carried_out(mode, look, trust).await;
    let started = world.sandbox.scripted.started().into_iter();
    let scripts = started.filter_map(|operation| match operation.request {
        Request::Exec(exec) => match exec.command {
            Command::Shell(script) => Some(script),
            Command::Argv(_) => None,
        },
        _ => None,
    });
    let scripts = scripts.collect();
    let push = world.ended_calls().pop().expect("the last call ended");
    let Event::CallEnded { parts, .. } = push else {
        panic!("{push:?}");
    };
    (scripts, parts.words().into_owned())
}

async fn carried_out(mode: Mode, look: Script, trust: Option<TrustedFile>) -> World {
    let call = |command| Reply::calls("", [("Shell", command)]);
    let calls = [
        call(r#"{"command":"cargo test --workspace"}"#),
        call(r#"{"command":"git push"}"#),
        Reply::says("done"),
    ];
    let exec = || ends(exit(0, ExitStatus::Code(0), ExitCause::Exited));
    let world = World::new(calls, [look, exec(), exec()]);
    world.log.clear();
    world.log.append(Event::InputAccepted {
        turn: TURN,
        by: UserId::from_u128(9),
        client_id: None,
        parts: Parts::text("do it"),
        compacts: None,
        terms: Terms {
            mode: Some(mode),
            unattended: true,
            ..Terms::default()
        },
    });
    world.log.append(Event::TurnClaimed {
        turn: TURN,
        epoch: EPOCH,
        replica: ReplicaId::from_u128(1),
        choice: Some(Choice::User {
            runner: ScriptedSandbox::place().runner,
            name: "scripted".to_owned(),
            workspace: None,
        }),
        settings: None,
    });
    world.log.trust(trust);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    world
}

const TEST: &str = "cargo test --workspace";
const PUSH: &str = "git push";
const DENIED: &str = "the rule Shell(git push *) denies it";
const ASKED: &str = "it needs a person's consent";

#[tokio::test(start_paused = true)]
async fn all_rules_of_a_trusted_file_count_and_of_a_changed_one_those_that_ask_and_deny() {
    let changed = format!("{RULES}ask = [\"Shell(ls)\"]");
    let refused = Script::Refuse(Refusal::new(RefusalCode::Unavailable, "no runner"));
    let too_old = Outcome::Refused(Refusal::new(RefusalCode::Unsupported, "what?"));
    for (look, runs) in [
        (finds(Some((FILE, RULES))), vec![TEST]),
        (finds(Some((FILE, &changed))), vec![]),
        (finds(None), vec![]),
        (refused, vec![]),
        (ends(too_old), vec![]),
    ] {
        let shown = format!("{look:?}");
        let (commands, push) = ran(Mode::Ask, look, Some(trusted())).await;
        assert_eq!(commands, runs, "{shown}");
        assert!(push.contains(DENIED), "{shown}: {push}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_trusted_in_this_place_counts_for_nothing() {
    let elsewhere = TrustedFile {
        sandbox: SandboxId::derive(RunnerId::from_u128(1), "other"),
        ..trusted()
    };
    let another_folder = TrustedFile {
        folder: "app".to_owned(),
        ..trusted()
    };
    let another_runner = TrustedFile {
        runner: RunnerId::from_u128(2),
        ..trusted()
    };
    for trust in [
        None,
        Some(elsewhere),
        Some(another_folder),
        Some(another_runner),
    ] {
        let look = finds(Some((FILE, RULES)));
        let (commands, push) = ran(Mode::Ask, look, trust.clone()).await;
        assert!(commands.is_empty(), "{trust:?}: {commands:?}");
        assert!(push.contains(ASKED), "{trust:?}: {push}");
    }
    let (commands, _) = ran(Mode::Full, finds(Some((FILE, RULES))), None).await;
    assert_eq!(commands, [TEST, PUSH]);
}

#[tokio::test(start_paused = true)]
async fn a_trusted_file_does_not_lift_plan_mode_and_binds_full_mode() {
    let (commands, _) = ran(Mode::Plan, finds(Some((FILE, RULES))), Some(trusted())).await;
    assert!(commands.is_empty(), "{commands:?}");
    let (commands, push) = ran(Mode::Full, finds(Some((FILE, RULES))), Some(trusted())).await;
    assert_eq!(commands, [TEST]);
    assert!(push.contains(DENIED), "{push}");
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_calls_the_file_of_another_folder_is_not_recorded() {
    for path in [
        "app/.gantry/permissions.toml",
        "x.gantry/permissions.toml",
        "permissions.toml",
    ] {
        let world = carried_out(Mode::Ask, finds(Some((path, RULES))), None).await;
        let found = recorded(&world);
        assert_eq!(found, None, "{path}");
    }
    let long = "#".repeat(16 * 1024 + 1);
    let world = carried_out(Mode::Ask, finds(Some((FILE, &long))), None).await;
    assert_eq!(recorded(&world), None);
    let world = carried_out(Mode::Ask, finds(Some((FILE, RULES))), Some(trusted())).await;
    let found = recorded(&world).expect("it is the file");
    assert_eq!(found.text.as_deref(), Some(RULES));
    assert_eq!((found.digest, found.trusted), (trusted().digest, true));
}

/// The file of the look that was recorded.
fn recorded(world: &World) -> Option<shared_types::event::ProjectFile> {
    world
        .log
        .events()
        .into_iter()
        .find_map(|event| match event {
            Event::PlaceSurveyed { project, .. } => Some(project.map(|file| *file)),
            _ => None,
        })?
}

#[test]
fn the_rules_of_a_file_name_it_and_its_runner() {
    let rules: Vec<_> = trusted().counting(true).collect();
    assert_eq!(
        rules[0].by,
        RuleBy::Project {
            path: FILE.to_owned(),
            runner: "scripted".to_owned(),
        }
    );
    assert_eq!(
        rules[0].by.words(),
        "the project file .gantry/permissions.toml on scripted"
    );
}
