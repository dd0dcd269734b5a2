//! What is read of a change, and what is judged of it.

use shared_sandbox::{Edited, Written};
use shared_types::Digest;

use super::*;

fn digest(text: &str) -> FileDigest {
    Digest::of(text.as_bytes()).into()
}

fn content(text: &str) -> There {
    There::Content(digest(text))
}

/// A change of so many files.
fn change(files: usize) -> Change {
    let effect = |file| Effect {
        path: format!("file-{file}"),
        before: content("old"),
        after: content("new"),
    };
    Change {
        effects: (0..files).map(effect).collect(),
        unfinished: None,
        done: Outcome::Written(Written {
            bytes: 3,
            before: Some(digest("old")),
            after: digest("new"),
        }),
    }
}

#[test]
fn a_change_that_an_earlier_runner_wrote_down_is_read() {
    let (old, new) = (digest("old"), digest("new"));
    // Without the algorithm.
    let (old_hex, new_hex) = (old.value, new.value);
    let written = format!(
        r#"{{"path":"a/b","unfinished":".gantry-1-2","done":{{"written":{{"bytes":3,"before":null,"after":"{new_hex}"}}}}}}"#
    );
    let edited = format!(
        r#"{{"path":"a/b","unfinished":".gantry-1-2","done":{{"edited":{{"line":1,"replaced":1,"before":"{old_hex}","after":"{new_hex}"}}}}}}"#
    );
    let written_done = Outcome::Written(Written {
        bytes: 3,
        before: None,
        after: new,
    });
    let edited_done = Outcome::Edited(Edited {
        line: 1,
        replaced: 1,
        before: old.value,
        after: new.value,
    });
    let cases = [
        (written, There::Nothing, written_done),
        (edited, content("old"), edited_done),
    ];
    for (line, before, done) in cases {
        let read: Change = serde_json::from_str(&line).expect("a change");
        let effect = Effect {
            path: "a/b".to_owned(),
            before,
            after: content("new"),
        };
        let expected = Change {
            effects: vec![effect],
            unfinished: Some(".gantry-1-2".to_owned()),
            done,
        };
        assert_eq!(read, expected);
        let line = serde_json::to_string(&read).expect("JSON");
        assert_eq!(serde_json::from_str::<Change>(&line).expect("JSON"), read);
    }
}

#[test]
fn a_change_without_effects_is_no_change() {
    for line in [
        r#"{"effects":[],"done":{"refused":{"code":"lost","message":""}}}"#,
        r#"{"path":"a","done":{"refused":{"code":"lost","message":""}}}"#,
    ] {
        assert!(serde_json::from_str::<Change>(line).is_err());
    }
}

#[test]
fn a_change_is_made_where_each_effect_is_and_not_made_where_none_is() {
    let founds = [
        Some(content("old")),
        Some(content("new")),
        Some(There::Nothing),
        None,
    ];
    for first in &founds {
        for second in &founds {
            let change = change(2);
            let expected = match (first, second) {
                _ if first == second && *first == founds[0] => SettledChange::NotApplied,
                _ if first == second && *first == founds[1] => {
                    SettledChange::Applied(change.done.clone())
                }
                _ => SettledChange::Unclear,
            };
            let found = [first.clone(), second.clone()];
            assert_eq!(change.judged(&found, false), expected, "{found:?}");
        }
    }
}

#[test]
fn an_effect_that_changes_nothing_says_nothing_of_the_others() {
    let mut change = change(2);
    change.effects[1].after = change.effects[1].before.clone();
    let same = Some(content("old"));
    let made = change.judged(&[Some(content("new")), same.clone()], false);
    assert_eq!(made, SettledChange::Applied(change.done.clone()));
    assert_eq!(
        change.judged(&[Some(content("old")), same], false),
        SettledChange::NotApplied
    );
}

#[test]
fn what_was_not_renamed_was_not_made_unless_something_of_it_was() {
    let change = change(2);
    assert_eq!(
        change.judged(&[None, Some(content("old"))], true),
        SettledChange::NotApplied
    );
    assert_eq!(
        change.judged(&[None, Some(content("new"))], true),
        SettledChange::Unclear
    );
}
