use super::*;

fn one(message: &str) -> PracticeStep {
    let mut commands = parse(message).expect("it is a command");
    assert_eq!(commands.len(), 1, "{commands:?}");
    commands.remove(0)
}

#[test]
fn an_edit_reads_its_file_first() {
    let commands = parse("edit a.txt: old words => new words").expect("it is a command");
    let asked: Vec<_> = commands
        .iter()
        .map(|command| (command.tool(), command.arguments()))
        .collect();
    let edit = json!({ "path": "a.txt", "old": "old words", "new": "new words" });
    assert_eq!(
        asked,
        [("Read", json!({ "path": "a.txt" })), ("Edit", edit)]
    );
}

fn tools(message: &str) -> Vec<String> {
    let commands = parse(message).expect("all of it are commands");
    commands
        .iter()
        .map(|command| command.tool().to_owned())
        .collect()
}

#[test]
fn each_command_becomes_its_tool_with_its_arguments() {
    for (message, tool, arguments) in [
        ("run ls -la", "Shell", json!({ "command": "ls -la" })),
        (
            "Please run `echo hi`",
            "Shell",
            json!({ "command": "echo hi" }),
        ),
        (
            "run echo \"a\" 'b'",
            "Shell",
            json!({ "command": "echo \"a\" 'b'" }),
        ),
        (
            "run in the background: make -j2",
            "Shell",
            json!({ "command": "make -j2", "background": true }),
        ),
        (
            "run in the background",
            "Shell",
            json!({ "command": "in the background" }),
        ),
        ("tasks", "task_status", json!({})),
        (
            "call mcp__files__echo {\"message\": \"then in\"}",
            "mcp__files__echo",
            json!({ "message": "then in" }),
        ),
        ("call mcp__files__list", "mcp__files__list", json!({})),
        (
            "wait for task 2",
            "task_read",
            json!({ "task": 2, "wait_ms": 600_000 }),
        ),
        ("stop task 2", "task_kill", json!({ "task": 2 })),
        ("read \"my file\"", "Read", json!({ "path": "my file" })),
        (
            "write a/b.txt: x: y",
            "Write",
            json!({ "path": "a/b.txt", "content": "x: y" }),
        ),
        ("search TODO", "Grep", json!({ "pattern": "TODO" })),
        (
            "search for `in here` in src",
            "Grep",
            json!({ "pattern": "in here", "path": "src" }),
        ),
        ("search x in this folder", "Grep", json!({ "pattern": "x" })),
        ("find **/*.rs", "Glob", json!({ "pattern": "**/*.rs" })),
        ("list", "List", json!({})),
        ("list the files here", "List", json!({})),
        ("list src/bin", "List", json!({ "path": "src/bin" })),
        ("what is in this folder?", "List", json!({})),
        (
            "agent: run make",
            "SubAgent",
            json!({ "description": "run make", "prompt": "run make", "background": false }),
        ),
        (
            "agent in the background: run make",
            "SubAgent",
            json!({ "description": "run make", "prompt": "run make", "background": true }),
        ),
        ("Which files are here", "List", json!({})),
    ] {
        let command = one(message);
        assert_eq!(
            (command.tool(), command.arguments()),
            (tool, arguments),
            "{message}"
        );
    }
}

#[test]
fn lines_and_thens_become_successive_steps() {
    assert_eq!(
        tools("write a.txt: hi, then read a.txt then run cat a.txt\n\nlist"),
        ["Write", "Read", "Shell", "List"]
    );
}

#[test]
fn a_then_that_no_command_follows_stays_in_the_command() {
    assert_eq!(
        one("write a.txt: first this then that"),
        PracticeStep::Write {
            path: "a.txt".to_owned(),
            content: "first this then that".to_owned()
        }
    );
    assert_eq!(
        one("run if true; then read x; fi"),
        PracticeStep::Run {
            command: "if true; then read x; fi".to_owned(),
            background: false,
        }
    );
}

#[test]
fn a_write_with_nothing_behind_the_colon_takes_all_lines_that_follow() {
    assert_eq!(
        one("write run.sh:\n#!/bin/sh\n\nrun me: then read that"),
        PracticeStep::Write {
            path: "run.sh".to_owned(),
            content: "#!/bin/sh\n\nrun me: then read that\n".to_owned()
        }
    );
}

#[test]
fn a_message_with_one_part_that_is_no_command_is_refused_whole() {
    for (message, part) in [
        ("", ""),
        ("hello", "hello"),
        ("run", "run"),
        ("run ls\nthank you", "thank you"),
        ("write a.txt", "write a.txt"),
        ("edit a.txt: x", "edit a.txt: x"),
        ("edit : a => b", "edit : a => b"),
    ] {
        assert_eq!(parse(message), Err(part.to_owned()), "{message}");
    }
}
