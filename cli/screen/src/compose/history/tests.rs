use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history");
    (folder, path)
}

fn all(history: &History) -> Vec<&str> {
    history.entries.iter().map(String::as_str).collect()
}

#[test]
fn messages_are_found_by_the_next_run_in_a_private_file() {
    let (_folder, path) = folder();
    let mut history = History::at(path.clone());
    for text in [
        "one",
        "two\nlines \u{202e}",
        "two\nlines \u{202e}",
        " secret",
        "\n",
    ] {
        history.add(text);
    }
    history.add(&"x".repeat(MAX_ENTRY_BYTES + 1));
    assert_eq!(
        all(&History::at(path.clone())),
        ["one", "two\nlines \u{202e}"]
    );
    assert_eq!(
        fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn two_terminals_share_the_file() {
    let (_folder, path) = folder();
    let mut first = History::at(path.clone());
    let mut second = History::at(path.clone());
    first.add("from the first");
    second.add("from the second");
    first.add("again");
    second.refresh();
    assert_eq!(all(&second), ["from the first", "from the second", "again"]);
    first.refresh();
    assert_eq!(all(&first), all(&second));
}

#[test]
fn a_broken_line_is_skipped_and_does_not_swallow_the_next() {
    let (_folder, path) = folder();
    fs::write(&path, "{\"text\":\"good\"}\nbroken\n\u{0}\n{\"text\":\"cut").unwrap();
    let mut history = History::at(path.clone());
    assert_eq!(all(&history), ["good"]);
    history.add("next");
    assert_eq!(all(&History::at(path)), ["good", "next"]);
}

#[test]
fn a_long_file_is_compacted_to_the_newest_messages() {
    let (folder, path) = folder();
    let line = |index: usize| format!("{{\"text\":\"message {index}\"}}\n");
    fs::write(&path, (0..2 * MAX_ENTRIES).map(line).collect::<String>()).unwrap();
    let mut history = History::at(path.clone());
    assert_eq!(history.len(), MAX_ENTRIES);
    history.add("newest");
    assert_eq!(
        fs::read_to_string(&path).unwrap().lines().count(),
        MAX_ENTRIES
    );
    assert_eq!(History::at(path.clone()).entries.back().unwrap(), "newest");
    for index in 0..70 {
        history.add(&index.to_string().repeat(32 * 1024 - 8));
    }
    assert!(fs::metadata(&path).unwrap().len() <= 2 * MAX_HISTORY_BYTES as u64);
    assert!(history.bytes <= MAX_HISTORY_BYTES);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_cannot_be_written_leaves_messages_in_memory() {
    let (folder, path) = folder();
    let missing = folder.path().join("later").join("history");
    let mut history = History::at(missing.clone());
    history.add("kept");
    assert_eq!(all(&history), ["kept"]);
    fs::create_dir(missing.parent().unwrap()).unwrap();
    history.add("both");
    assert_eq!(all(&History::at(missing)), ["kept", "both"]);
    let mut full = History::at(PathBuf::from("/dev/full"));
    full.add("kept");
    assert_eq!(all(&full), ["kept"]);
    drop(path);
}

#[test]
fn a_lock_that_another_terminal_holds_is_not_waited_for() {
    let (_folder, path) = folder();
    let mut history = History::at(path.clone());
    history.add("one");
    let other = fs::File::open(&path).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    history.add("two");
    assert_eq!(all(&History::at(path.clone())), ["one"]);
    drop(other);
    drop(history);
    assert_eq!(all(&History::at(path)), ["one", "two"]);
}

#[test]
fn many_terminals_at_once_lose_no_message() {
    let (_folder, path) = folder();
    let write = &|name: usize| {
        let mut history = History::at(path.clone());
        for index in 0..50 {
            history.add(&format!("{name} {index}"));
        }
        history
    };
    let histories: Vec<History> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|name| scope.spawn(move || write(name)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    // Messages that found the file locked are written at the end.
    drop(histories);
    assert_eq!(History::at(path.clone()).len(), 200);
}
