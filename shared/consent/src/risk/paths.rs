//! Paths: where a word points, and the paths whose change reaches beyond the work in a folder.

use std::sync::LazyLock;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::command::word::{HoleSource, Word};

static PROTECTED: LazyLock<GlobSet> = LazyLock::new(|| {
    let mut set = GlobSetBuilder::new();
    let lines = include_str!("paths.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
        set.add(Glob::new(line).expect("each line of the table is a pattern"));
    }
    set.build()
        .expect("the patterns of the table fit in one set")
});

/// Places of credentials: ordinary work reads no path with one of these.
const SECRETS: [&str; 16] = [
    "/.ssh/",
    "/.aws/",
    "/.gnupg/",
    "/.kube/config",
    "/.docker/config.json",
    "/.netrc",
    "/.git-credentials",
    "/.config/gh/",
    "/.config/gcloud/",
    "/.azure/",
    "/etc/shadow",
    "/.pgpass",
    "/.npmrc",
    "/.pypirc",
    "/.cargo/credentials",
    "id_rsa",
];

/// Folders for files that nothing else depends on.
const SCRATCH: [&str; 3] = ["/tmp/", "/var/tmp/", "$TMPDIR/"];

/// The files that swallow or show what is written to them.
const NOWHERE: [&str; 5] = [
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/fd/2",
];

/// True if a write to this path reaches beyond the work in a folder.
pub(crate) fn is_protected(path: &str) -> bool {
    let path = path.to_lowercase();
    let path = tidy(&path);
    PROTECTED.is_match(
        path.trim_start_matches(['/', '~'])
            .trim_start_matches("$home/"),
    )
}

/// True if the file is only an exit for text.
pub(crate) fn is_nowhere(word: &Word) -> bool {
    word.literal().is_some_and(|text| NOWHERE.contains(&text))
}

/// True if a word may name a file outside of the folder, or the folder itself. The scratch folders are not outside.
pub(crate) fn leaves(word: &Word) -> bool {
    let text = word.shown();
    let steps_up = text.split('/').any(|part| part == "..");
    let scratch = SCRATCH.iter().any(|folder| text.starts_with(folder));
    let home = word.holes().next().is_some_and(|hole| {
        matches!(&hole.of, HoleSource::Variable(name) if name == "HOME")
            && text.starts_with("$HOME")
    });
    steps_up || home || (text.starts_with(['/', '~']) && !scratch)
}

/// True if a target of `rm -r` is not plainly a path inside the folder.
pub(crate) fn is_unbounded(word: &Word) -> bool {
    let Some(text) = word.literal() else {
        return true;
    };
    let tidy = tidy(text);
    text.starts_with(['/', '~'])
        || tidy.is_empty()
        || tidy.split('/').any(|part| part == ".." || part == ".git")
}

/// True if a word names a place of credentials.
pub(crate) fn is_secret(word: &Word) -> bool {
    let text = format!("/{}/", word.shown());
    let environ = text.contains("/proc/") && text.contains("/environ");
    environ || SECRETS.iter().any(|secret| text.contains(secret))
}

/// True if a word names a file with settings that are often secret.
pub(crate) fn is_private(word: &Word) -> bool {
    let text = word.shown();
    let text = text.trim_start_matches('@');
    let name = text.rsplit(['/', '=', '@']).next().unwrap_or(text);
    is_secret(word) || (name.starts_with(".env") && !name.ends_with(".example"))
}

/// A folder in one form; an absolute one stays absolute.
pub(crate) fn tidy_folder(path: &str) -> String {
    match path.starts_with('/') {
        true => format!("/{}", tidy(path)),
        false => tidy(path),
    }
}

/// A path without `.` parts and doubled slashes; `..` stays.
pub(crate) fn tidy(path: &str) -> String {
    let parts: Vec<_> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    parts.join("/")
}
