//! Changes after a `cd` that leaves the folder: then a plain relative path is not plain any more.
//!
//! An absolute folder may be the workspace itself, so only the system's folders, the home folder and
//! steps above the beginning count.

use shared_types::Risk;

use super::{
    Reason,
    paths::{is_nowhere, tidy},
    programs::writes_its_files,
};
use crate::command::{Script, Segment, word::Word};

/// Folders of the system: no work belongs in them or below them.
const SYSTEM: [&str; 14] = [
    "/etc",
    "/bin",
    "/sbin",
    "/lib",
    "/boot",
    "/dev",
    "/proc",
    "/sys",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/local/bin",
    "/var/log",
    "/var/lib",
];

/// Folders that hold the folders of people: work belongs below them, not in them.
const ABOVE: [&str; 9] = [
    "/",
    "/root",
    "/home",
    "/usr",
    "/usr/local",
    "/var",
    "/opt",
    "~",
    "$HOME",
];

/// The reason of a script that leaves the folder and then changes files.
pub(super) fn of(script: &Script) -> Option<Reason> {
    let mut place = ScriptFolder::default();
    for segment in &script.segments {
        if matches!(segment.program().as_deref(), Some("cd" | "pushd")) {
            place.enter(segment);
        } else if place.outside && changes(segment) {
            return Some(Reason::foreign(
                Risk::High,
                "changes files outside the folder",
            ));
        }
    }
    None
}

/// The folder of a script, as far as its words tell.
#[derive(Default)]
struct ScriptFolder {
    /// Folders below the beginning; negative above it.
    depth: i32,
    outside: bool,
}

impl ScriptFolder {
    fn enter(&mut self, segment: &Segment) {
        let words = segment.arguments().iter().map(Word::shown);
        let target = words
            .rev()
            .find(|word| !word.starts_with('-') || word == "-");
        let Some(target) = target else {
            self.outside = true;
            return;
        };
        let whole = match target.trim_end_matches('/') {
            "" => "/",
            trimmed => trimmed,
        };
        if whole.starts_with(['/', '~', '$']) {
            let below = |folder: &&str| {
                whole
                    .strip_prefix(*folder)
                    .is_some_and(|rest| rest.starts_with('/'))
            };
            let system = SYSTEM
                .iter()
                .any(|folder| whole == *folder || below(folder));
            self.outside = system || ABOVE.contains(&whole) || whole.contains("/..");
            self.depth = 0;
            return;
        }
        for part in tidy(whole).split('/') {
            match part {
                "" | "-" => {}
                ".." => self.depth -= 1,
                _ => self.depth += 1,
            }
            self.outside |= self.depth < 0;
        }
    }
}

/// True if a segment changes files that its words name.
fn changes(segment: &Segment) -> bool {
    let writes = |r: &crate::command::Redirect| r.writes && !is_nowhere(&r.target);
    segment.redirects.iter().any(writes)
        || segment
            .program()
            .is_some_and(|name| writes_its_files(&name))
}
