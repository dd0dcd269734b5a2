use shared_sandbox::scripted::ScriptedSandbox;
use shared_types::OperationId;

use super::*;

/// A file whose content goes through some changes.
struct File {
    content: Option<String>,
    touched: TouchedFile,
}

impl File {
    /// A file with this content, of which the log knows nothing.
    fn with(content: Option<&str>) -> Self {
        Self {
            content: content.map(str::to_owned),
            touched: TouchedFile {
                place: ScriptedSandbox::place(),
                path: "a.rs".to_owned(),
                earlier: Vec::new(),
                changes: Vec::new(),
            },
        }
    }

    fn change(&mut self, does: Does, after: String, line: Option<u64>) {
        let ends = Ends {
            before: self.content.as_deref().map(digest),
            after: digest(&after),
            line,
        };
        self.content = Some(after);
        self.touched.changes.push(FileChange {
            operation: OperationId::from_u128(1),
            is_gone: false,
            does,
            ends: Some(ends),
        });
    }

    fn write(&mut self, content: &str) {
        self.change(Does::Write(content.to_owned()), content.to_owned(), None);
    }

    /// Edits the first place of the text, as the runner does where it is the only one.
    fn edit(&mut self, old: &str, new: &str) {
        let content = self.content.clone().expect("there is a file");
        let at = content.find(old).expect("it stands there");
        let line = content[..at].matches('\n').count() as u64 + 1;
        self.change(
            edit(old, new, false),
            put(&content, at, old, new),
            Some(line),
        );
    }

    fn edit_all(&mut self, old: &str, new: &str) {
        let content = self.content.clone().expect("there is a file");
        self.change(edit(old, new, true), content.replace(old, new), Some(1));
    }

    fn read(&mut self, shown: &str) {
        self.touched.earlier.push(Seen {
            does: None,
            read: shown.to_owned(),
            digest: self.content.as_deref().map(digest),
        });
    }

    /// What was done so far happened before the message.
    fn message(&mut self) {
        let changes = self.touched.changes.drain(..);
        self.touched.earlier.extend(changes.map(|change| Seen {
            does: Some(change.does),
            read: String::new(),
            digest: change.ends.map(|ends| ends.after),
        }));
    }

    fn before(&self) -> Result<Before, NotKnown> {
        self.touched
            .before(self.content.as_ref().map(|content| content.as_bytes()))
    }
}

fn edit(old: &str, new: &str, every: bool) -> Does {
    Does::Edit(Edit {
        path: "a.rs".to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
        every,
        expected: None,
    })
}

fn content(text: &str) -> Result<Before, NotKnown> {
    Ok(Before::Content(text.to_owned()))
}

#[test]
fn edits_are_undone_on_the_content_that_there_is() {
    let mut file = File::with(Some("one\ntwo\nthree\n"));
    file.edit("two", "2");
    file.edit("three\n", "");
    file.edit("one", "one\nand a half");
    file.edit("e", "2");
    file.edit_all("half", "HALF");
    assert_eq!(file.before(), content("one\ntwo\nthree\n"));

    let mut file = File::with(Some("a\r\nb\r\nc\r\n"));
    file.change(
        edit("a\nb", "x\ny", false),
        "x\r\ny\r\nc\r\n".to_owned(),
        Some(1),
    );
    assert_eq!(file.before(), content("a\r\nb\r\nc\r\n"));
}

#[test]
fn a_file_that_the_calls_made_was_absent() {
    let mut file = File::with(None);
    file.write("one");
    file.edit("one", "two");
    assert_eq!(file.before(), Ok(Before::Absent));
    file.content = None;
    assert_eq!(file.before(), Ok(Before::AsNow));
}

#[test]
fn a_content_that_was_written_over_comes_from_the_log_or_is_not_known() {
    let mut file = File::with(Some("one\ntwo"));
    file.read("1\tone\n2\ttwo\n");
    file.edit("one", "1");
    file.message();
    file.edit("two", "2");
    file.write("all new");
    assert_eq!(file.before(), content("1\ntwo"));

    let mut file = File::with(Some("secret"));
    file.write("new");
    assert_eq!(file.before(), Err(NotKnown::Content));
    let mut file = File::with(Some("one\ntwo\n"));
    file.read("1\tone\n[the file has 8 bytes; read on with first_line 2]");
    file.write("new");
    assert_eq!(file.before(), Err(NotKnown::Content));
    let mut file = File::with(Some(""));
    file.read("[the file is empty]");
    file.write("new");
    assert_eq!(file.before(), content(""));
}

#[test]
fn a_file_that_something_else_changed_is_left_alone() {
    let mut file = File::with(Some("one two"));
    file.edit("one", "1");
    file.content = Some("1 two, by hand".to_owned());
    assert_eq!(file.before(), Err(NotKnown::ChangedSince));
    file.edit("two", "2");
    assert_eq!(file.before(), Err(NotKnown::ChangedBetween));
    file.content = None;
    assert_eq!(file.before(), Err(NotKnown::ChangedSince));
    file.content = Some("one two".to_owned());
    assert_eq!(file.before(), Ok(Before::AsNow), "it was put back by hand");
}

#[test]
fn places_that_cannot_be_told_apart_are_not_undone() {
    let mut file = File::with(Some("old and new"));
    file.edit_all("old", "new");
    assert_eq!(file.before(), Err(NotKnown::Content));
    let mut file = File::with(Some("a"));
    file.write("b");
    file.touched.changes[0].ends = None;
    assert_eq!(
        file.before(),
        Err(NotKnown::Content),
        "no outcome is stored"
    );
}

#[test]
fn changes_of_turns_that_are_gone_count_unless_they_were_put_back() {
    let gone = |is_put_back: bool| {
        let mut file = File::with(Some("0"));
        file.edit("0", "1");
        file.edit("1", "2");
        file.touched.changes[1].is_gone = true;
        if is_put_back {
            file.content = Some("1".to_owned());
        }
        let now = file.content.clone().expect("there is a file");
        file.edit(&now, "3");
        file
    };
    assert_eq!(gone(true).before(), content("0"));
    assert_eq!(gone(false).before(), content("0"));
}

#[test]
fn a_content_that_is_told_is_never_a_wrong_one() {
    let mut state = 1_u32;
    let mut below = |bound: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % bound
    };
    let mut told = 0;
    for _ in 0..500 {
        let letters = |below: &mut dyn FnMut(u32) -> u32, most: u32| {
            let count = below(most) + 1;
            let letters = (0..count).map(|_| ["a", "b", "\n", "ä"][below(4) as usize]);
            letters.collect::<String>()
        };
        let original = letters(&mut below, 12);
        let mut file = File::with(Some(&original));
        for _ in 0..=below(4) {
            let now = file.content.clone().expect("there is a file");
            let new = match below(3) {
                0 => String::new(),
                _ => letters(&mut below, 3),
            };
            let Some(old) = now.chars().next().map(String::from) else {
                file.write(&new);
                continue;
            };
            match below(3) {
                0 => file.edit_all(&old, &new),
                _ => file.edit(&old, &new),
            }
        }
        match file.before() {
            Ok(Before::Content(content)) => {
                assert_eq!(content, original);
                told += 1;
            }
            Ok(Before::AsNow) => assert_eq!(file.content.as_deref(), Some(&*original)),
            Ok(Before::Absent) => panic!("there was a file"),
            Err(_) => {}
        }
    }
    assert!(told > 200, "most are told: {told}");
}
