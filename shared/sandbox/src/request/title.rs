//! The title of a request: one short line for people, as lists of operations show it.

use shared_types::clean::clean_line;

use super::{Command, Request};

/// The most bytes of a title.
const MAX_TITLE_BYTES: usize = 200;

/// The most bytes of a request that are looked at for its title; what lies behind is left out.
const MAX_SEEN_BYTES: usize = 16 * 1024;

/// Stands where a title was cut.
const CUT: char = '…';

impl Request {
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
        };
        let line = clean_line(upto(&text, MAX_SEEN_BYTES), MAX_TITLE_BYTES);
        match line.len() > MAX_TITLE_BYTES {
            true => format!("{}{CUT}", upto(&line, MAX_TITLE_BYTES - CUT.len_utf8())),
            false => line.trim_end().to_owned(),
        }
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
    use crate::{Exec, Glob, List, Upload};

    fn argv(words: &[&str]) -> Request {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Request::Exec(Exec::new(Command::Argv(words)))
    }

    #[test]
    fn a_title_says_what_is_done_to_what() {
        let upload = Request::Upload(Upload {
            path: "a/b".to_owned(),
            bytes: 0,
            digest: shared_types::Digest::of(b""),
        });
        let list = Request::List(List {
            path: String::new(),
            max_entries: 1,
        });
        let glob = Request::Glob(Glob {
            path: "my folder".to_owned(),
            pattern: "*.rs".to_owned(),
            max_paths: 1,
        });
        let script = Request::Exec(Exec::new(Command::Shell("cd a\nmake".to_owned())));
        let titles = [
            (argv(&["ls", "-l", "a b", ""]), "ls -l 'a b' ''"),
            (script, "cd a⏎make"),
            (upload, "upload a/b"),
            (list, "list ."),
            (glob, "glob *.rs in 'my folder'"),
        ];
        for (request, title) in titles {
            assert_eq!(request.title(), title);
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
