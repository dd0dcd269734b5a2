//! The properties of a request that follow from its kind. Each match names every kind, so that a
//! new one is not forgotten.

use shared_types::clean::clean_line;

use super::{Command, Exec, Move, Pack, Remove, Request};

/// The most bytes of a title.
const MAX_TITLE_BYTES: usize = 200;

/// The most bytes of a request that are looked at for its title; what lies behind is left out.
const MAX_SEEN_BYTES: usize = 16 * 1024;

/// Stands where a title was cut.
const CUT: char = '…';

/// The nature of a request: a process, a change, or a read.
enum Nature<'a> {
    /// It runs a process.
    Runs(&'a Exec),
    /// It changes files.
    Changes,
    /// It changes a file to what comes as its input.
    Takes,
    /// It changes nothing.
    Reads,
}

impl Request {
    fn nature(&self) -> Nature<'_> {
        match self {
            Self::Exec(exec) => Nature::Runs(exec),
            Self::Write(_)
            | Self::Edit(_)
            | Self::MakeDirectory(_)
            | Self::Move(_)
            | Self::Remove(_) => Nature::Changes,
            Self::Upload(_) | Self::Unpack(_) => Nature::Takes,
            Self::Read(_)
            | Self::List(_)
            | Self::Glob(_)
            | Self::Grep(_)
            | Self::Download(_)
            | Self::Stat(_)
            | Self::Pack(_)
            | Self::Survey(_) => Nature::Reads,
        }
    }

    /// The name of its kind, as the API and the logs say it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Edit(_) => "edit",
            Self::List(_) => "list",
            Self::Glob(_) => "glob",
            Self::Grep(_) => "grep",
            Self::Download(_) => "download",
            Self::Upload(_) => "upload",
            Self::Stat(_) => "stat",
            Self::MakeDirectory(_) => "make_directory",
            Self::Move(_) => "move",
            Self::Remove(_) => "remove",
            Self::Pack(_) => "pack",
            Self::Unpack(_) => "unpack",
            Self::Survey(_) => "survey",
        }
    }

    /// One line for people, such as `ls -l` or `upload a/b`: harmless in a terminal, and at most
    /// 200 bytes. It is not meant to be run again.
    pub fn title(&self) -> String {
        let kind = self.kind();
        let text = match self {
            Self::Exec(exec) => command(&exec.command),
            Self::Read(read) => of(kind, &read.path),
            Self::Write(write) => of(kind, &write.path),
            Self::Edit(edit) => of(kind, &edit.path),
            Self::List(list) => of(kind, &list.path),
            Self::Glob(glob) => search(kind, &glob.pattern, &glob.path),
            Self::Grep(grep) => search(kind, &grep.pattern, &grep.path),
            Self::Download(download) => of(kind, &download.path),
            Self::Upload(upload) => of(kind, &upload.path),
            Self::Stat(stat) => of(kind, &stat.path),
            Self::MakeDirectory(make) => of("make directory", &make.path),
            Self::Move(Move { from, to, .. }) => format!("{} to {}", of(kind, from), place(to)),
            Self::Remove(Remove { path, tree: true }) => of("remove all of", path),
            Self::Remove(Remove { path, tree: false }) => of(kind, path),
            Self::Pack(Pack { path, entries, .. }) => {
                format!("download {} entries of {}", entries.len(), place(path))
            }
            Self::Unpack(unpack) => of("upload entries to", &unpack.path),
            Self::Survey(survey) => of(kind, &survey.path),
        };
        let line = clean_line(upto(&text, MAX_SEEN_BYTES), MAX_TITLE_BYTES);
        match line.len() > MAX_TITLE_BYTES {
            true => format!("{}{CUT}", upto(&line, MAX_TITLE_BYTES - CUT.len_utf8())),
            false => line.trim_end().to_owned(),
        }
    }

    /// True if it changes nothing, so that it may be sent again and needs no memory.
    pub fn only_reads(&self) -> bool {
        match self.nature() {
            Nature::Reads => true,
            Nature::Runs(_) | Nature::Changes | Nature::Takes => false,
        }
    }

    /// True if it takes input; else input for it is refused.
    pub fn takes_input(&self) -> bool {
        match self.nature() {
            Nature::Runs(exec) => exec.input || exec.terminal.is_some(),
            Nature::Takes => true,
            Nature::Changes | Nature::Reads => false,
        }
    }

    /// True if its output is the content of files; the runner keeps no copy of it.
    pub fn is_download(&self) -> bool {
        matches!(self, Self::Download(_) | Self::Pack(_))
    }

    /// True if it runs in a terminal, whose size can change.
    pub fn has_terminal(&self) -> bool {
        matches!(self.nature(), Nature::Runs(exec) if exec.terminal.is_some())
    }

    /// True if it runs a process, which can receive signals.
    pub fn takes_signals(&self) -> bool {
        matches!(self.nature(), Nature::Runs(_))
    }
}

fn command(command: &Command) -> String {
    match command {
        Command::Shell(script) => script.clone(),
        Command::Argv(words) => {
            let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
            words.join(" ")
        }
    }
}

fn of(kind: &str, path: &str) -> String {
    format!("{kind} {}", place(path))
}

fn search(kind: &str, pattern: &str, path: &str) -> String {
    let pattern = quoted(pattern);
    match path {
        "" => format!("{kind} {pattern}"),
        path => format!("{kind} {pattern} in {}", place(path)),
    }
}

/// A path; the workspace root is `.`.
fn place(path: &str) -> String {
    match path {
        "" => ".".to_owned(),
        path => quoted(path),
    }
}

/// A text that reads as one word.
fn quoted(word: &str) -> String {
    match word.is_empty() || word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word.to_owned(),
    }
}

/// The beginning of a text, at most so many bytes.
fn upto(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Glob, List, Upload};

    fn argv(words: &[&str]) -> Request {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Request::Exec(Exec::new(Command::Argv(words)))
    }

    #[test]
    fn a_title_says_what_is_done_to_what() {
        let upload = Request::Upload(Upload {
            path: "a/b".to_owned(),
            bytes: 0,
            digest: shared_types::Digest::of(b"").into(),
            mode: None,
            modified_us: None,
        });
        let list = Request::List(List {
            path: String::new(),
            max_entries: 1,
            tree: false,
            after: String::new(),
        });
        let glob = Request::Glob(Glob {
            path: "my folder".to_owned(),
            pattern: "*.rs".to_owned(),
            max_paths: 1,
        });
        let moved = Request::Move(Move {
            from: "a".to_owned(),
            to: "b/c".to_owned(),
            replace: true,
        });
        let script = Request::Exec(Exec::new(Command::Shell("cd a\nmake".to_owned())));
        let titles = [
            (argv(&["ls", "-l", "a b", ""]), "ls -l 'a b' ''"),
            (script, "cd a⏎make"),
            (upload, "upload a/b"),
            (list, "list ."),
            (glob, "glob *.rs in 'my folder'"),
            (moved, "move a to b/c"),
        ];
        for (request, title) in titles {
            assert_eq!(request.title(), title);
        }
    }

    #[test]
    fn the_name_of_a_kind_is_the_one_that_it_is_stored_under() {
        for request in crate::examples::requests() {
            let stored = serde_json::to_value(&request).expect("JSON");
            let names: Vec<_> = stored.as_object().expect("one kind").keys().collect();
            assert_eq!(names, [request.kind()]);
            assert!(!request.title().is_empty());
        }
    }

    #[test]
    fn a_title_is_short_and_drives_no_terminal() {
        for letter in ["a", "ä", "漢", "🦀", "\u{1b}[2J", "\u{202e}"] {
            let title = argv(&["echo", &letter.repeat(100_000)]).title();
            assert!(title.len() <= MAX_TITLE_BYTES, "{} bytes", title.len());
            assert!(shared_types::clean::is_clean_line(&title), "{title:?}");
            assert!(title.starts_with("echo"), "{title:?}");
        }
        let long = argv(&[&"漢".repeat(1000)]).title();
        assert!(long.ends_with(CUT) && long.len() > 190, "{long:?}");
    }
}
