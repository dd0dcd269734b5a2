//! The directory that a caller works in. The caller's paths are relative to it, while a sandbox
//! knows only paths relative to its root.

use crate::{FileFailure, Outcome, Request};

impl Request {
    /// The request of a caller who works in this directory, with paths relative to the sandbox's
    /// root. Absolute paths stay, and so does everything where the directory is empty: the root.
    #[must_use]
    pub fn of_directory(mut self, directory: &str) -> Self {
        if !directory.is_empty() {
            for path in self.paths() {
                *path = joined(directory, path);
            }
        }
        self
    }

    fn paths(&mut self) -> Vec<&mut String> {
        match self {
            Self::Exec(exec) => vec![&mut exec.directory],
            Self::Read(read) => vec![&mut read.path],
            Self::Write(write) => vec![&mut write.path],
            Self::Edit(edit) => vec![&mut edit.path],
            Self::List(list) => vec![&mut list.path],
            Self::Glob(glob) => vec![&mut glob.path],
            Self::Grep(grep) => vec![&mut grep.path],
            Self::Download(download) => vec![&mut download.path],
            Self::Upload(upload) => vec![&mut upload.path],
            Self::Stat(stat) => vec![&mut stat.path],
            Self::MakeDirectory(make) => vec![&mut make.path],
            Self::Move(moving) => vec![&mut moving.from, &mut moving.to],
            Self::Remove(remove) => vec![&mut remove.path],
            Self::Pack(pack) => vec![&mut pack.path],
            Self::Unpack(unpack) => vec![&mut unpack.path],
            Self::Survey(survey) => vec![&mut survey.path],
        }
    }
}

impl Outcome {
    /// The outcome for a caller who works in this directory, with paths relative to it.
    #[must_use]
    pub fn seen_from(mut self, directory: &str) -> Self {
        if !directory.is_empty() {
            for path in self.paths() {
                *path = relative(directory, path);
            }
        }
        self
    }

    /// The paths that are relative to the sandbox's root.
    fn paths(&mut self) -> Vec<&mut String> {
        match self {
            Self::Globbed(globbed) => globbed.paths.iter_mut().collect(),
            Self::Grepped(grepped) => {
                let matches = grepped.matches.iter_mut().map(|found| &mut found.path);
                let skipped = grepped.skipped.iter_mut().flat_map(|skipped| {
                    std::iter::once(&mut skipped.path).chain(skipped.failure.path())
                });
                matches.chain(skipped).collect()
            }
            Self::Failed(failure) => failure.path().into_iter().collect(),
            Self::Exited(_)
            | Self::Read(_)
            | Self::Written(_)
            | Self::Edited(_)
            | Self::Listed(_)
            | Self::Downloaded(_)
            | Self::Found(_)
            | Self::MadeDirectory(_)
            | Self::Moved(_)
            | Self::Removed(_)
            | Self::Packed(_)
            | Self::Unpacked(_)
            // Instructions stand above the directory, too, and are named from the root.
            | Self::Surveyed(_)
            | Self::Refused(_) => Vec::new(),
        }
    }
}

impl FileFailure {
    fn path(&mut self) -> Option<&mut String> {
        match self {
            Self::NotFound { path }
            | Self::OutsideWorkspace { path }
            | Self::NotAFile { path }
            | Self::NotADirectory { path }
            | Self::Denied { path }
            | Self::Binary { path }
            | Self::TooLarge { path, .. }
            | Self::NoMatch { path, .. }
            | Self::ManyMatches { path, .. }
            | Self::Changed { path, .. }
            | Self::OtherDigest { path }
            | Self::OtherSize { path, .. }
            | Self::Exists { path }
            | Self::NotEmpty { path }
            | Self::PartlyRemoved { path, .. } => Some(path),
            Self::Pattern { .. }
            | Self::DiskFull
            | Self::WorkspaceGone
            | Self::TooSlow { .. }
            | Self::Io { .. } => None,
        }
    }
}

/// The path of a caller who works in this directory, relative to the sandbox's root and in one form for each file:
/// `a`, not `./a` or `b/../a`. Links are not looked at. An absolute path stays one.
pub fn path_from_root(directory: &str, path: &str) -> String {
    let joined = match directory {
        "" => path.to_owned(),
        directory => joined(directory, path),
    };
    let mut parts = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if joined.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

fn joined(directory: &str, path: &str) -> String {
    match path {
        "" | "." => directory.to_owned(),
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        path => format!("{directory}/{path}"),
    }
}

/// A path relative to the root, told relative to a directory.
fn relative(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        parts.map(str::to_owned).collect()
    };
    let (from, to) = (parts(directory), parts(path));
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[same..].iter().map(|_| "..");
    let down = to[same..].iter().map(String::as_str);
    let relative: Vec<_> = up.chain(down).collect();
    match relative.is_empty() {
        true => ".".to_owned(),
        false => relative.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Exec, Globbed, Stat};

    fn stat(path: &str) -> Request {
        Request::Stat(Stat {
            path: path.to_owned(),
            follow: false,
        })
    }

    #[test]
    fn a_path_is_asked_for_where_the_caller_works() {
        for (asked, is) in [
            ("", "src/app"),
            (".", "src/app"),
            ("main.rs", "src/app/main.rs"),
            ("../lib.rs", "src/app/../lib.rs"),
            ("/etc/passwd", "/etc/passwd"),
        ] {
            assert_eq!(stat(asked).of_directory("src/app"), stat(is), "{asked}");
            assert_eq!(stat(asked).of_directory(""), stat(asked));
        }
        let exec = |directory: &str| {
            Request::Exec(Exec {
                directory: directory.to_owned(),
                ..Exec::new(Command::Shell("ls".to_owned()))
            })
        };
        assert_eq!(exec("").of_directory("src"), exec("src"));
    }

    #[test]
    fn a_file_has_one_path_from_the_root_however_it_is_asked_for() {
        for (directory, path, from_root) in [
            ("", "a", "a"),
            ("", "./a", "a"),
            ("", "b/../a", "a"),
            ("", "b//c/./../../a/", "a"),
            ("src/app", "a", "src/app/a"),
            ("src/app", "../a", "src/a"),
            ("src/./app", "../../../a", "../a"),
            ("src", "/tmp/./a", "/tmp/a"),
            ("src", "", "src"),
        ] {
            assert_eq!(
                path_from_root(directory, path),
                from_root,
                "{directory:?} {path:?}"
            );
        }
    }

    #[test]
    fn every_path_that_is_told_can_be_asked_for_again() {
        let globbed = |paths: &[&str]| {
            Outcome::Globbed(Globbed {
                paths: paths.iter().map(|path| (*path).to_owned()).collect(),
                more: false,
                unread_rules: 0,
            })
        };
        let told = globbed(&["src/app/a", "src/b", "c", "src/app", "src/apple"]);
        assert_eq!(
            told.seen_from("src/app"),
            globbed(&["a", "../b", "../../c", ".", "../apple"])
        );
        let failed = |path: &str| {
            Outcome::Failed(FileFailure::NotFound {
                path: path.to_owned(),
            })
        };
        assert_eq!(failed("src/app/x").seen_from("src/app"), failed("x"));
        assert_eq!(failed("/x").seen_from("src/app"), failed("/x"));
    }
}
