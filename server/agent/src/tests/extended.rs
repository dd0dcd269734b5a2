//! Extensions in whole turns: skills that are loaded, and hooks that decide.

use bytes::Bytes;
use server_records::{ExtensionKind, RegisteredExtension};
use shared_sandbox::{
    ExitCause, ExitStatus, Instructions, OperationEvent, Outcome, OutputStream, Request, Surveyed,
    Unpacked,
    scripted::{Script, ScriptedSandbox},
};
use shared_types::{
    Event, Mode, ReplicaId, UserId,
    event::{CallOutcome, Choice, HookDecision, HookEnd, Parts, Terms, TurnOutcome},
};

use super::consent::set_terms;
use crate::testing::{EPOCH, Reply, TURN, World, content, ends, exit, registered};

const SKILL: &str = "---\nname: pdf\ndescription: Fill PDF forms.\n---\nUse $ARGUMENTS well.";

const LS: (&str, &str) = ("Shell", r#"{"command":"ls"}"#);

/// A look that finds these files.
pub(super) fn finds(files: &[(&str, &str)]) -> Script {
    let files = files.iter().map(|(path, text)| Instructions {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
        bytes: text.len() as u64,
        cut: false,
    });
    ends(Outcome::Surveyed(Surveyed {
        system: String::new(),
        folder: "/home/me/work".to_owned(),
        branch: None,
        instructions: Vec::new(),
        unread: Vec::new(),
        project: None,
        extensions: files.collect(),
    }))
}

/// A command that says this and exits with this code.
pub(super) fn says(stdout: &str, stderr: &str, code: i32) -> Script {
    let output = |stream, text: &str| OperationEvent::Output {
        stream,
        offset: 0,
        data: Bytes::copy_from_slice(text.as_bytes()),
    };
    Script::Events(vec![
        output(OutputStream::Stdout, stdout),
        output(OutputStream::Stderr, stderr),
        OperationEvent::Ended(exit(
            stdout.len(),
            ExitStatus::Code(code),
            ExitCause::Exited,
        )),
    ])
}

fn ran() -> Script {
    ends(exit(0, ExitStatus::Code(0), ExitCause::Exited))
}

/// A turn on a runner, in this mode.
pub(super) fn world(mode: Mode, replies: Vec<Reply>, scripts: Vec<Script>) -> World {
    let world = World::new(replies, scripts);
    let terms = Terms {
        mode: Some(mode),
        ..Terms::default()
    };
    set_terms(&world, terms);
    let place = ScriptedSandbox::place();
    world.log.append(Event::TurnClaimed {
        turn: TURN,
        epoch: EPOCH,
        replica: ReplicaId::from_u128(1),
        choice: Some(Choice::User {
            runner: place.runner,
            name: place.runner_name,
            workspace: None,
        }),
        settings: None,
    });
    world
}

/// The hooks of a user: this command at this event.
fn hook(world: &World, event: &str, handler: &str) {
    let text = format!(r#"{{"hooks": {{"{event}": [{{"hooks": [{handler}]}}]}}}}"#);
    world
        .log
        .register(registered(ExtensionKind::Hooks, "mine", &text));
}

const COMMAND: &str = r#"{"type": "command", "command": "./hook"}"#;

fn hook_ends(world: &World) -> Vec<HookEnd> {
    let ends = world
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::HookEnded { end, .. } => Some(*end),
            _ => None,
        });
    ends.collect()
}

#[tokio::test]
async fn a_skill_of_the_project_is_told_in_a_line_and_loaded_when_it_is_used() {
    let call = ("Skill", r#"{"name":"pdf"}"#);
    let world = world(
        Mode::Plan,
        vec![Reply::calls("", [call]), Reply::says("done")],
        vec![
            finds(&[(".claude/skills/pdf/SKILL.md", SKILL)]),
            ends(content(SKILL)),
        ],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let first = format!("{:?}", world.model.requests()[0]);
    assert!(first.contains("- pdf: Fill PDF forms."), "{first}");
    assert!(!first.contains("Use $ARGUMENTS"));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Completed);
    assert!(
        text.contains("[the skill pdf: follow these instructions]\nUse $ARGUMENTS well."),
        "{text}"
    );
    assert!(
        text.contains("begin in the folder .claude/skills/pdf]"),
        "{text}"
    );
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_registered_skill_is_loaded_and_its_files_go_to_the_runner() {
    let call = ("Skill", r#"{"name":"pdf","arguments":"form 7"}"#);
    let unpacked = Outcome::Unpacked(Unpacked {
        entries: 1,
        skipped: Vec::new(),
    });
    let world = world(
        Mode::Full,
        vec![Reply::calls("", [call]), Reply::says("done")],
        vec![finds(&[]), ends(unpacked)],
    );
    world.log.register(RegisteredExtension {
        packed_bytes: 15,
        ..registered(ExtensionKind::Skill, "pdf", SKILL)
    });
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (_, text) = world.only_call();
    assert!(text.contains("Use form 7 well."), "{text}");
    let operation = world
        .sandbox
        .scripted
        .started()
        .pop()
        .expect("it is unpacked");
    let Request::Unpack(unpack) = &operation.request else {
        panic!("{operation:?}")
    };
    assert!(
        text.contains(&format!("begin in the folder {}]", unpack.path)),
        "{text}"
    );
    assert_eq!(
        world.sandbox.scripted.input_of(operation.id),
        b"a packed folder"
    );
}

#[tokio::test]
async fn a_hook_of_an_untrusted_file_never_runs() {
    let hooks =
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "evil"}]}]}}"#;
    let world = world(
        Mode::Full,
        vec![Reply::calls("", [LS]), Reply::says("done")],
        vec![finds(&[(".claude/settings.json", hooks)]), ran()],
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert!(hook_ends(&world).is_empty());
    assert_eq!(world.sandbox.scripted.started().len(), 2);
}

#[tokio::test]
async fn a_hook_that_exits_with_2_denies_the_call() {
    let world = world(
        Mode::Full,
        vec![Reply::calls("", [LS]), Reply::says("done")],
        vec![finds(&[]), says("", "not here", 2)],
    );
    hook(&world, "PreToolUse", COMMAND);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let (outcome, text) = world.only_call();
    assert_eq!(outcome, CallOutcome::Refused);
    assert_eq!(text, "not run: a hook does not allow it: not here");
    let hook = &world.sandbox.scripted.started()[1];
    let input = world.sandbox.scripted.input_of(hook.id);
    let input: serde_json::Value = serde_json::from_slice(&input).expect("JSON");
    assert_eq!(
        (&input["tool_name"], &input["tool_input"]["command"]),
        (&"Bash".into(), &"ls".into())
    );
    assert_eq!(hook_ends(&world)[0].decision, Some(HookDecision::Deny));
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_hook_that_asks_has_people_asked_also_where_the_mode_does_not() {
    let asks = r#"{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "look"}}"#;
    let world = world(
        Mode::Full,
        vec![Reply::calls("", [LS]), Reply::says("done")],
        vec![finds(&[]), says(asks, "", 0), ran()],
    );
    hook(&world, "PreToolUse", COMMAND);
    let carried = world.spawn_carrying().await.expect("it does not panic");
    assert!(
        matches!(carried, Ok(crate::Carried::Waits(_))),
        "{carried:?}"
    );
    let asked = world
        .log
        .events()
        .into_iter()
        .find_map(|event| match event {
            Event::ApprovalAsked {
                question: shared_types::event::Question::Call(call),
                ..
            } => Some(call.why),
            _ => None,
        });
    assert_eq!(asked.as_deref(), Some("a hook asks for your consent: look"));
}

#[tokio::test]
async fn a_hook_puts_other_arguments_in_place_and_adds_to_the_result() {
    let changes = r#"{"hookSpecificOutput": {"updatedInput": {"command": "ls -l"}}}"#;
    let world = world(
        Mode::Full,
        vec![Reply::calls("", [LS]), Reply::says("done")],
        vec![finds(&[]), says(changes, "", 0), ran()],
    );
    hook(&world, "PreToolUse", COMMAND);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let operation = world.sandbox.scripted.started().pop().expect("it runs");
    assert!(format!("{:?}", operation.request).contains("ls -l"));
}

#[tokio::test]
async fn a_hook_at_the_end_keeps_the_turn_going() {
    let world = world(
        Mode::Full,
        vec![Reply::says("done"), Reply::says("really done")],
        vec![
            finds(&[]),
            says(r#"{"decision": "block", "reason": "run the tests"}"#, "", 0),
            ran(),
        ],
    );
    hook(&world, "Stop", COMMAND);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let second = format!("{:?}", world.model.requests()[1]);
    assert!(
        second.contains("[a hook wants you to go on: run the tests]"),
        "{second}"
    );
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_message_that_a_hook_does_not_let_through_reaches_no_model() {
    let world = world(Mode::Full, vec![], vec![finds(&[])]);
    hook(
        &world,
        "UserPromptSubmit",
        r#"{"type": "http", "url": "https://example.org/"}"#,
    );
    assert_eq!(world.run().await, Ok(TurnOutcome::Failed));
    assert_eq!(
        world.end().1,
        "a hook does not let this message through: the web says no"
    );
    assert!(world.model.requests().is_empty());
}

#[tokio::test]
async fn a_look_whose_end_was_stored_without_its_texts_is_made_again() {
    let (path, file) = (
        ".gantry/hooks.json",
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./hook"}]}]}}"#,
    );
    let world = world(
        Mode::Full,
        vec![Reply::calls("", [LS]), Reply::says("done")],
        vec![
            Script::Hang(vec![]),
            finds(&[(path, file)]),
            says("", "not here", 2),
        ],
    );
    world.log.trust_extension(server_records::TrustedExtension {
        sandbox: ScriptedSandbox::place().sandbox,
        path: path.to_owned(),
        digest: shared_types::Digest::of(file.as_bytes()),
        at: crate::testing::START,
    });
    let look = world.dies_after_starting(1).await;
    world
        .sandbox
        .scripted
        .goes_on_as(look, finds(&[(path, "")]));
    world.sandbox.scripted.has_stored(look);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(world.only_call().0, CallOutcome::Refused);
}

#[tokio::test]
async fn a_hook_that_an_earlier_worker_sent_is_not_sent_again_and_counts_as_failed() {
    for (on_failure, expected) in [
        ("go_on", TurnOutcome::Completed),
        ("block", TurnOutcome::Failed),
    ] {
        let world = world(Mode::Full, vec![Reply::says("done")], vec![finds(&[])]);
        let handler = format!(
            r#"{{"type": "http", "url": "https://example.org/Hangs", "onFailure": "{on_failure}"}}"#
        );
        hook(&world, "UserPromptSubmit", &handler);
        let earlier = world.spawn();
        world.web.was_asked().await;
        earlier.abort();
        assert!(earlier.await.is_err(), "it has ended");
        assert_eq!(world.run().await, Ok(expected));
        assert_eq!(world.web.all(), ["https://example.org/Hangs"]);
        let [end] = &hook_ends(&world)[..] else {
            panic!("one end")
        };
        let failed = end.failed.as_deref().expect("it has failed");
        assert!(failed.contains("it was not sent again"), "{failed}");
    }
}

#[tokio::test]
async fn a_hook_that_fails_three_times_in_a_row_runs_no_more_and_one_of_permissions_fails_closed() {
    let calls = || Reply::calls("", [LS]);
    let fails = || says("", "boom", 1);
    let world = world(
        Mode::Full,
        vec![calls(), calls(), calls(), calls(), Reply::says("done")],
        vec![
            finds(&[]),
            fails(),
            ran(),
            fails(),
            ran(),
            fails(),
            ran(),
            ran(),
        ],
    );
    hook(&world, "PreToolUse", COMMAND);
    // The same call and result four times is a circle elsewhere.
    let mut world = world;
    world.limits.same_steps = 9;
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let failed: Vec<_> = hook_ends(&world)
        .into_iter()
        .map(|end| end.failed)
        .collect();
    assert_eq!(failed, vec![Some("exit code 1 boom".to_owned()); 3]);
    assert_eq!(world.sandbox.scripted.started().len(), 8);
}

#[tokio::test]
async fn a_hook_that_has_ended_does_not_run_again_in_the_worker_that_takes_over() {
    let world = world(
        Mode::Full,
        vec![Reply::calls("", [LS]), Reply::says("done")],
        vec![finds(&[]), says("", "", 0), Script::Events(vec![]), ran()],
    );
    hook(&world, "PreToolUse", COMMAND);
    let command = world.dies_after_starting(3).await;
    world.was_placed(command);
    world.sandbox.scripted.goes_on_as(command, ran());
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    assert_eq!(hook_ends(&world).len(), 1);
}

#[tokio::test]
async fn arguments_that_a_hook_puts_before_people_are_judged_anew_and_shown() {
    let changes = |command: &str| {
        let decision =
            format!(r#"{{"behavior": "allow", "updatedInput": {{"command": "{command}"}}}}"#);
        format!(r#"{{"hookSpecificOutput": {{"decision": {decision}}}}}"#)
    };
    for (command, expected) in [
        ("ls -l", Some("ls -l")),
        // A rule of a person is above every hook.
        ("git push", None),
    ] {
        let world = world(
            Mode::Ask,
            vec![
                Reply::calls("", [("Shell", r#"{"command":"make"}"#)]),
                Reply::says("done"),
            ],
            vec![finds(&[]), says(&changes(command), "", 0), ran()],
        );
        world.log.set_rules([server_records::SetRule {
            rule: "Shell(git push *)".parse().expect("a rule"),
            decision: shared_consent::Decision::Deny,
            by: server_records::RuleBy::Operator,
        }]);
        hook(&world, "PermissionRequest", COMMAND);
        assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
        let started = world.sandbox.scripted.started();
        let ran = (started.len() > 2).then(|| started[2].request.title());
        assert_eq!(ran.as_deref(), expected, "{command}");
        world.assert_log_gives_requests();
    }
}

const DICE: &str = r#"{"name": "dice", "command": ["./dice"], "commands": [{"name": "roll", "description": "Throws."}]}"#;

/// A turn whose message this is, in a place with a plugin that people trust. Its program says this.
fn slash(message: &str, program: Vec<Script>) -> World {
    let path = ".gantry/plugins/dice/plugin.json";
    let scripts = [finds(&[(path, DICE)])].into_iter().chain(program);
    let world = world(Mode::Ask, vec![Reply::says("done")], scripts.collect());
    let events: [Event; 2] = world
        .log
        .events()
        .try_into()
        .expect("a message and a claim");
    let [Event::InputAccepted { terms, .. }, claimed] = events else {
        panic!("another beginning");
    };
    world.log.clear();
    world.log.append(Event::InputAccepted {
        turn: TURN,
        by: UserId::from_u128(9),
        client_id: None,
        parts: Parts::text(message.to_owned()),
        compacts: None,
        terms,
    });
    world.log.append(claimed);
    world.log.trust_extension(server_records::TrustedExtension {
        sandbox: ScriptedSandbox::place().sandbox,
        path: path.to_owned(),
        digest: shared_types::Digest::of(DICE.as_bytes()),
        at: crate::testing::START,
    });
    world
}

#[tokio::test]
async fn a_command_of_a_plugin_runs_once_on_the_runner_and_its_output_goes_with_the_message() {
    let world = slash("/dice:roll 6", vec![says("you threw 4", "", 0)]);
    assert_eq!(world.run().await, Ok(TurnOutcome::Completed));
    let [_, program] = &world.sandbox.scripted.started()[..] else {
        panic!("the look and the program")
    };
    let input = world.sandbox.scripted.input_of(program.id);
    let input: serde_json::Value = serde_json::from_slice(&input).expect("JSON");
    assert_eq!(
        (&input["command"], &input["arguments"]),
        (&"roll".into(), &"6".into())
    );
    let sent = format!("{:?}", world.model.requests()[0]);
    assert!(
        sent.contains("you threw 4") && sent.contains("/dice:roll 6"),
        "{sent}"
    );
    assert_eq!(
        hook_ends(&world)[0].words().as_deref(),
        Some("/dice:roll: you threw 4")
    );
    world.assert_log_gives_requests();
}

#[tokio::test]
async fn a_command_may_answer_the_person_alone_and_one_that_fails_asks_no_model() {
    let shown = r#"{"continue": false, "systemMessage": "4"}"#;
    for (message, program, outcome, requests) in [
        ("/dice:roll", says(shown, "", 0), TurnOutcome::Completed, 0),
        ("/dice:roll", says("", "no dice", 1), TurnOutcome::Failed, 0),
        // What no plugin has is a message like any other.
        ("/dice:cheat", ran(), TurnOutcome::Completed, 1),
    ] {
        let world = slash(message, vec![program]);
        assert_eq!(world.run().await, Ok(outcome), "{message}");
        assert_eq!(world.model.requests().len(), requests, "{message}");
    }
}
