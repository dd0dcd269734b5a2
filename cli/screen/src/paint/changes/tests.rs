use serde_json::json;

use super::changes;
use crate::{
    paint::shown::plain,
    transcript::{
        Transcript,
        tests::script::{Script, transcript},
    },
};

#[test]
fn all_changes_stand_below_their_file() {
    let mut script = Script::default();
    script
        .user("go")
        .call(
            "Edit",
            json!({"path": "a.rs", "old": "one", "new": "two"}),
            "edited a.rs at line 41",
        )
        .call(
            "Write",
            json!({"path": "b.txt", "content": "hello\n"}),
            "made b.txt with 6 bytes",
        )
        .call(
            "Edit",
            json!({"path": "./a.rs", "old": "x", "new": "y", "replace_all": true}),
            "replaced 2",
        );
    let transcript = transcript(&script.fed());
    insta::assert_snapshot!(plain(&changes(transcript.changes(), 60)), @r"
    ● a.rs · 2 changes
      41 - one
      41 + two
      every occurrence:
      1 - x
      1 + y

    ● b.txt · 1 change
      new file:
      1 hello
    ");
}

#[test]
fn a_session_without_changes_says_so() {
    let rows = changes(Transcript::new().changes(), 60);
    assert_eq!(plain(&rows), "no file was changed by an edit or a write");
}
