use shared_sandbox::{
    Downloaded, Edited, EntryKind, FileFailure, Globbed, GrepMatch, Grepped, Listed, ListedEntry,
    Skipped, Written,
};
use shared_types::{Digest, DigestAlgorithm, FileDigest};

use super::*;

fn request(name: &str, arguments: &str) -> Result<Request, BadArguments> {
    let tools = ToolSet::standard();
    let tool = tools.get(name)?;
    let arguments = Arguments::check(arguments, tool.parameters())?;
    match tool.prepare(&arguments)? {
        Ask::Operation(prepared) => Ok(prepared.request),
        ask => panic!("{ask:?} asks for nothing of the sandbox"),
    }
}

fn told(name: &str, arguments: &str, outcome: Outcome) -> Rendered {
    let tools = ToolSet::standard();
    let ended = Ended {
        request: &request(name, arguments).expect("the arguments are good"),
        outcome: &outcome,
        file: &WholeFile::default(),
        output: &CommandOutput::new(1024),
        run_for: Duration::from_secs(1),
    };
    render(&**tools.get(name).expect("it is a tool"), &ended, 2048)
}

#[test]
fn the_standard_tools_are_shown_in_the_order_of_their_names() {
    let specs = ToolSet::standard().specs();
    let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "Edit",
            "Glob",
            "Grep",
            "List",
            "Read",
            "Shell",
            "Write",
            "chat_history",
            "context_edit",
            "recall",
            "task_kill",
            "task_read",
            "task_status",
            "todo_list",
            "todo_write"
        ]
    );
}

#[test]
fn a_tool_is_pure_exactly_where_its_requests_only_read() {
    for (name, arguments) in [
        ("Shell", r#"{"command":"ls"}"#),
        ("Read", r#"{"path":"a"}"#),
        ("Write", r#"{"path":"a","content":""}"#),
        ("Edit", r#"{"path":"a","old":"x","new":"y"}"#),
        ("Glob", r#"{"pattern":"*"}"#),
        ("Grep", r#"{"pattern":"x"}"#),
        ("List", ""),
    ] {
        let pure = ToolSet::standard().get(name).expect("known").effect() == Effect::Pure;
        let reads = request(name, arguments).expect("good").only_reads();
        assert_eq!(pure, reads, "{name}");
    }
}

#[test]
fn an_unknown_tool_is_answered_with_the_known_ones() {
    let error = request("bash", "{}").expect_err("there is no such tool");
    assert_eq!(
        error.to_string(),
        "there is no tool \"bash\"; the tools are Edit, Glob, Grep, List, Read, Shell, Write, \
         chat_history, context_edit, recall, task_kill, task_read, task_status, todo_list, todo_write"
    );
}

#[test]
fn a_command_of_a_megabyte_and_a_file_beyond_the_limit_are_refused_with_advice() {
    let long = "x".repeat(1024 * 1024 + 1);
    let command = request("Shell", &format!(r#"{{"command":"{long}"}}"#));
    let text = command.expect_err("it is too long").to_string();
    assert!(
        text.contains("at most 131071 fit: write a script"),
        "{text}"
    );
    let file = request("Write", &format!(r#"{{"path":"a","content":"{long}"}}"#));
    let text = file.expect_err("it is too long").to_string();
    assert!(text.contains("at most 1048576 fit"), "{text}");
}

#[test]
fn an_edit_that_changes_nothing_is_refused() {
    let edit = request("Edit", r#"{"path":"a","old":"x","new":"x"}"#);
    assert!(
        edit.expect_err("nothing changes")
            .to_string()
            .contains("the same")
    );
}

#[test]
fn a_failure_of_a_file_operation_is_told_in_its_own_words() {
    let path = "../x".to_owned();
    let failure = Outcome::Failed(FileFailure::OutsideWorkspace { path });
    let told = told("Read", r#"{"path":"../x"}"#, failure);
    assert_eq!(told.outcome, CallOutcome::Failed);
    assert!(
        told.text
            .starts_with("failed: \"../x\" leads out of the workspace")
    );
}

#[test]
fn an_end_that_does_not_fit_the_request_is_a_failure() {
    let more = false;
    let entries = Vec::new();
    let told = told(
        "Read",
        r#"{"path":"a"}"#,
        Outcome::Listed(Listed { entries, more }),
    );
    assert_eq!(told.outcome, CallOutcome::Failed);
}

#[test]
fn writes_and_edits_say_what_they_changed() {
    let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
    let write = |before: Option<Digest>| {
        let written = Written {
            bytes: 3,
            before: before.map(Into::into),
            after: new.into(),
        };
        told(
            "Write",
            r#"{"path":"a","content":"new"}"#,
            Outcome::Written(written),
        )
        .text
    };
    assert_eq!(write(None), "made a with 3 bytes");
    assert_eq!(write(Some(old)), "replaced a, which now has 3 bytes");
    assert_eq!(
        write(Some(new)),
        "a has these 3 bytes already; nothing changed"
    );
    let edit = |replaced| {
        let edited = Edited {
            line: 4,
            replaced,
            before: old,
            after: new,
        };
        told(
            "Edit",
            r#"{"path":"a","old":"x","new":"y"}"#,
            Outcome::Edited(edited),
        )
        .text
    };
    assert_eq!(edit(1), "edited a at line 4");
    assert_eq!(edit(3), "replaced 3 occurrences in a, the first at line 4");
}

#[test]
fn searches_and_lists_show_lines_and_say_when_there_are_more() {
    let paths = vec!["b.rs".to_owned(), "a.rs".to_owned()];
    let found = Outcome::Globbed(Globbed {
        paths,
        more: true,
        unread_rules: 0,
    });
    let text = told("Glob", r#"{"pattern":"*.rs"}"#, found).text;
    assert_eq!(
        text,
        "b.rs\na.rs\n[there are more; narrow the pattern or the path]"
    );
    let matches = vec![GrepMatch {
        path: "a".to_owned(),
        line: 2,
        text: "fn x".to_owned(),
    }];
    let found = Outcome::Grepped(Grepped {
        matches,
        more: false,
        unread_rules: 0,
        skipped: vec![Skipped {
            path: "b.png".to_owned(),
            failure: FileFailure::Binary {
                path: "b.png".to_owned(),
            },
        }],
        more_skipped: 2,
    });
    assert_eq!(
        told("Grep", r#"{"pattern":"x"}"#, found).text,
        "[not searched, or not to the end: \"b.png\" is a binary file; and 2 more files]\na:2:fn x\n"
    );
    let entry = |name: &str, kind| ListedEntry {
        name: name.to_owned(),
        kind,
        bytes: 7,
        mode: 0,
        leads_to: None,
        is_replaced: false,
        is_unreadable: false,
    };
    let entries = vec![
        entry("d", EntryKind::Directory),
        entry("f", EntryKind::File),
        entry("l", EntryKind::Link),
    ];
    let listed = Outcome::Listed(Listed {
        entries,
        more: false,
    });
    assert_eq!(told("List", "{}", listed).text, "d/\nf  7 bytes\nl@\n");
}

#[test]
fn a_search_that_did_not_read_some_rules_says_so_first() {
    let found = Globbed {
        paths: vec!["a.log".to_owned()],
        more: false,
        unread_rules: 2,
    };
    let text = told("Glob", r#"{"pattern":"*"}"#, Outcome::Globbed(found)).text;
    let said =
        "[2 .gitignore files are too large and were not read: what they name was searched as well]";
    assert_eq!(text, format!("{said}\na.log\n"));
}

#[test]
fn finding_nothing_is_said() {
    let none = Globbed {
        paths: Vec::new(),
        more: false,
        unread_rules: 0,
    };
    let told = told("Glob", r#"{"pattern":"*"}"#, Outcome::Globbed(none));
    assert_eq!(
        told,
        Rendered::completed("[no file has such a name]".to_owned())
    );
}

#[test]
fn a_file_that_is_named_as_an_image_is_shown_as_one_if_it_came_whole_and_is_one() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    let read = |came: &[u8], bytes: u64, digest: FileDigest| {
        let tools = ToolSet::standard();
        let mut file = WholeFile::of_at_most(1024);
        file.push(0, came);
        let ended = Ended {
            request: &request("Read", r#"{"path":"a.PNG"}"#).expect("the arguments are good"),
            outcome: &Outcome::Downloaded(Downloaded { bytes, digest }),
            file: &file,
            output: &CommandOutput::new(1024),
            run_for: Duration::from_secs(1),
        };
        render(&**tools.get("Read").expect("it is a tool"), &ended, 2048)
    };
    let of = |bytes: &[u8]| DigestAlgorithm::Blake3.of(bytes);
    let seen = read(png, 12, of(png));
    assert_eq!(
        (seen.outcome, seen.text.as_str()),
        (CallOutcome::Completed, "")
    );
    let (format, bytes) = seen.image.expect("it is an image");
    assert_eq!((format, &bytes[..]), (ImageFormat::Png, &png[..]));
    for (came, bytes, digest, why) in [
        (&png[..], 13, of(png), "was changed"),
        (&png[..], 12, of(b"other"), "was changed"),
        (&b"<svg/>"[..], 6, of(b"<svg/>"), "none of PNG"),
    ] {
        let failed = read(came, bytes, digest);
        assert_eq!(failed.outcome, CallOutcome::Failed);
        assert!(
            failed.text.contains(why) && failed.image.is_none(),
            "{failed:?}"
        );
    }
    assert!(matches!(
        request("Read", r#"{"path":"a.rs"}"#),
        Ok(Request::Read(_))
    ));
}
