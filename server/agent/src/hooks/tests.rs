use shared_types::{
    Digest,
    event::{HookHandler, Layer, Provenance},
};

use super::*;

fn hook(matcher: &str, trusted: bool) -> Hook {
    Hook {
        on: HookEvent::PreToolUse,
        matcher: matcher.to_owned(),
        handler: HookHandler::Command {
            command: "x".to_owned(),
        },
        timeout_ms: 5000,
        fails_closed: false,
        in_file: Some(0),
        from: Provenance {
            layer: Layer::Project,
            at: ".claude/settings.json".to_owned(),
            digest: Digest::of(b""),
            trusted,
        },
    }
}

fn end(decision: Option<HookDecision>, reason: &str) -> HookEnd {
    HookEnd {
        on: HookEvent::PreToolUse,
        step: 1,
        ordinal: 0,
        number: 0,
        action: String::new(),
        from: hook("", true).from,
        failed: None,
        decision,
        reason: reason.to_owned(),
        context: String::new(),
        input: None,
        output: None,
        message: String::new(),
        duration_ms: 0,
    }
}

#[test]
fn a_matcher_fits_a_whole_name_of_ours_or_of_claude_code() {
    let runs = |matcher: &str, tool: &str| {
        at(
            &[hook(matcher, true)],
            HookEvent::PreToolUse,
            &names_of(tool),
        )
        .count()
            == 1
    };
    assert!(runs("Bash", "Shell") && runs("Shell", "Shell") && runs("", "Shell"));
    assert!(runs("Edit|Write", "Write") && runs("mcp__.*", "mcp__files__read"));
    assert!(!runs("Bas", "Shell") && !runs("Bash", "Read"));
}

#[test]
fn a_hook_that_people_do_not_trust_does_not_run() {
    assert_eq!(
        at(&[hook("", false)], HookEvent::PreToolUse, &["Shell"]).count(),
        0
    );
}

#[test]
fn deny_counts_more_than_defer_and_defer_than_ask_and_ask_than_allow() {
    use HookDecision::{Allow, Ask, Defer, Deny};
    let all = [Allow, Ask, Defer, Deny];
    for (weight, one) in all.into_iter().enumerate() {
        for (other_weight, other) in all.into_iter().enumerate() {
            let verdict =
                HookVerdict::of(&[end(Some(one), ""), end(None, ""), end(Some(other), "")]);
            assert_eq!(verdict.decision, Some(all[weight.max(other_weight)]));
        }
    }
}

#[test]
fn the_exit_code_and_the_json_of_claude_code_are_understood() {
    let exit = |code, stdout, stderr| {
        of_exit(
            HookEvent::PreToolUse,
            Exit {
                code,
                stdout,
                stderr,
            },
        )
    };
    assert_eq!(exit(Some(0), "done", "").unwrap(), Said::default());
    let blocked = exit(Some(2), "", "not on main\n").unwrap();
    assert_eq!(
        (blocked.decision, blocked.reason.as_str()),
        (Some(HookDecision::Deny), "not on main")
    );
    assert_eq!(exit(Some(1), "", "boom").unwrap_err(), "exit code 1 boom");
    assert!(exit(None, "", "").is_err());
    let asked = exit(
        Some(0),
        r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
            "permissionDecisionReason": "look first", "updatedInput": {"command": "ls"}}}"#,
        "",
    )
    .unwrap();
    assert_eq!(
        (asked.decision, asked.reason.as_str()),
        (Some(HookDecision::Ask), "look first")
    );
    assert_eq!(asked.input.unwrap()["command"], "ls");
    let denied = of_text(
        HookEvent::PermissionRequest,
        r#"{"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no"}}}"#,
    )
    .unwrap();
    assert_eq!(
        (denied.decision, denied.reason.as_str()),
        (Some(HookDecision::Deny), "no")
    );
    let stopped = of_text(
        HookEvent::AgentStop,
        r#"{"decision": "block", "reason": "tests fail"}"#,
    )
    .unwrap();
    assert_eq!(stopped.decision, Some(HookDecision::Deny));
    assert!(of_text(HookEvent::PreToolUse, r#"{"decision": "perhaps"}"#).is_err());
    assert!(of_text(HookEvent::PreToolUse, "{").is_err());
    assert_eq!(
        of_text(HookEvent::UserPromptSubmit, "today is Monday")
            .unwrap()
            .context,
        "today is Monday"
    );
}

#[test]
fn arguments_go_out_and_come_back_under_both_names() {
    let out = outward(
        "Edit",
        r#"{"path": "a.rs", "old": "x", "new": "y"}"#,
        "/work",
    );
    assert_eq!(
        (out["file_path"].as_str(), out["old_string"].as_str()),
        (Some("/work/a.rs"), Some("x"))
    );
    assert_eq!(out["path"], "a.rs");
    let Value::Object(mut written) = out else {
        panic!()
    };
    written.remove("path");
    written.insert("new_string".to_owned(), "z".into());
    let back = inward("Edit", written, "/work");
    assert_eq!(
        (back["path"].as_str(), back["new"].as_str()),
        (Some("a.rs"), Some("z"))
    );
    assert!(back.get("file_path").is_none());
}

#[test]
fn each_hook_of_each_call_has_an_operation_of_its_own() {
    let mut seen = std::collections::BTreeSet::new();
    for on in [
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PostCompact,
    ] {
        for (ordinal, number) in [(0, 0), (0, 1), (1, 0), (63, 199)] {
            let point = HookPoint {
                on,
                step: 1,
                ordinal,
            };
            assert!(seen.insert(point.operation_ordinal(number)));
        }
    }
}

#[test]
fn parts_of_an_event_stand_in_the_arguments_of_a_tool() {
    let event = json!({ "tool_input": { "path": "a.rs", "lines": [3, 4] }, "tool_name": "Edit" });
    let input = json!({
        "file": "${tool_input.path}",
        "lines": "${tool_input.lines}",
        "why": "${tool_name} from ${tool_input.lines.0}, ${none}${",
        "deep": [{ "x": "${tool_input.lines.1}" }],
        "other": 1,
    });
    let Value::Object(input) = input else {
        panic!("{input}");
    };
    let expected = json!({
        "file": "a.rs",
        "lines": [3, 4],
        "why": "Edit from 3, ${",
        "deep": [{ "x": 4 }],
        "other": 1,
    });
    assert_eq!(Value::Object(filled(&input, &event)), expected);
}
