//! Changes of files: announced before they are made, so that a death in between can be settled.
//!
//! A [`Change`] is complete before any part of it is on the disk. The runner writes it down and
//! answers; without an answer nothing is changed. It names its [`Effect`]s, path by path: the state
//! before and the state afterwards. After a death the state at each of these paths tells what was
//! done, see [`crate::Host::settle`].
//!
//! Two changes that share a path are never open at the same time (`host/turns`). The same holds
//! where one changes a directory above the other's path. So no other change of this runner hides
//! the result of one.

mod stored;

use serde::{Deserialize, Serialize};
use shared_sandbox::{EntryKind, Outcome};
use shared_types::{DigestAlgorithm, FileDigest, Refusal};
use tokio::sync::oneshot;

use self::stored::Stored;

/// The beginning of the name of every unfinished file.
const UNFINISHED_PREFIX: &str = ".gantry-";

/// A change, before it is made. At most a few kilobytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Change {
    /// Its effects, path by path; at least one.
    pub effects: Vec<Effect>,
    /// The name of a file or directory that is there only while the change is made; in the
    /// directory of the first effect's path. It is new content until that is renamed into place, or
    /// a directory of new content. Where a directory is removed, it is that directory until all in
    /// it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// The outcome of the request that made it.
    pub done: Outcome,
}

/// The effect of a change on one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The path beneath the workspace root: the same for each name by which it can be asked for.
    pub path: String,
    /// The state before.
    pub before: There,
    /// The state afterwards.
    pub after: There,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum There {
    /// Nothing.
    Nothing,
    /// A file whose content has this digest.
    Content(FileDigest),
    /// A directory.
    Directory,
    /// A symbolic link that leads to this path.
    Link(String),
    /// This very file, directory or link, with any content.
    This(ChangeIdentity),
}

/// The identity of a file, directory or link for its life; a move keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeIdentity {
    /// Its kind.
    pub kind: EntryKind,
    /// Its number in the file system.
    pub inode: u64,
    /// When it was made, in nanoseconds since 1970, where the file system says that: a number is given
    /// again.
    pub born_ns: Option<i64>,
}

/// Of what a file holds before and after a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digests {
    /// Absent where there is no file.
    pub(crate) before: Option<FileDigest>,
    pub(crate) after: FileDigest,
}

/// The result of a change whose maker died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettledChange {
    /// It was made, and this is its outcome.
    Applied(Outcome),
    /// It was not made, and never will be.
    NotApplied,
    /// A path holds neither what was there before nor what was to be there, or cannot be read, or
    /// only a part of the change was made.
    Unclear,
}

/// A change that waits for its announcement to be answered. Dropping it refuses the change.
#[derive(Debug)]
pub struct Announced {
    /// The change that waits.
    pub change: Change,
    answer: oneshot::Sender<Result<(), Refusal>>,
}

impl Announced {
    /// The change, and the end of the channel where its answer arrives.
    pub(crate) fn new(change: Change) -> (Self, oneshot::Receiver<Result<(), Refusal>>) {
        let (answer, answered) = oneshot::channel();
        (Self { change, answer }, answered)
    }

    /// It is written down and may be made.
    pub fn go_ahead(self) {
        // A request that was stopped before waits no more, and changes nothing.
        let _ = self.answer.send(Ok(()));
    }

    /// It cannot be written down, so it is not made; the request ends with this.
    pub fn refuse(self, refusal: Refusal) {
        let _ = self.answer.send(Err(refusal));
    }
}

impl Change {
    /// Gives the file at `path` another content, by way of a file of that name beside it.
    pub(crate) fn of_content(
        path: String,
        unfinished: String,
        digests: Digests,
        done: Outcome,
    ) -> Self {
        let effect = Effect {
            path,
            before: There::content(digests.before),
            after: There::Content(digests.after),
        };
        Self {
            effects: vec![effect],
            unfinished: Some(unfinished),
            done,
        }
    }

    /// The result of the change, by what is found at the path of each effect: `None` where that
    /// cannot be found out. `not_made`: the file with the unfinished name was there, so that it was
    /// not renamed.
    pub(crate) fn judged(&self, found: &[Option<There>], not_made: bool) -> SettledChange {
        let (mut made, mut left, mut unclear) = (0, 0, 0);
        for (effect, found) in self.effects.iter().zip(found) {
            match found {
                // An effect that changes nothing at its path tells nothing about the others.
                Some(found) if effect.before == effect.after && effect.after.fits(found) => {}
                Some(found) if effect.after.fits(found) => made += 1,
                Some(found) if effect.before.fits(found) => left += 1,
                _ => unclear += 1,
            }
        }
        match (made, left, unclear) {
            (_, 0, 0) => SettledChange::Applied(self.done.clone()),
            (0, _, 0) => SettledChange::NotApplied,
            (0, _, _) if not_made => SettledChange::NotApplied,
            _ => SettledChange::Unclear,
        }
    }
}

impl Change {
    /// True if it removes what is at its first path.
    pub(crate) fn removes(&self) -> bool {
        let first = self.effects.first();
        first.is_some_and(|effect| effect.after == There::Nothing)
    }
}

impl Effect {
    /// The algorithm of the digests, where the effect gives a file other content.
    pub(crate) fn algorithm(&self) -> Option<DigestAlgorithm> {
        [&self.after, &self.before]
            .into_iter()
            .find_map(|there| match there {
                There::Content(digest) => Some(digest.algorithm),
                There::Nothing | There::Directory | There::Link(_) | There::This(_) => None,
            })
    }

    /// True if it makes a symbolic link.
    pub(crate) fn is_of_link(&self) -> bool {
        matches!(self.after, There::Link(_))
    }
}

impl There {
    /// A file with this content; without one, nothing.
    pub(crate) fn content(digest: Option<FileDigest>) -> Self {
        digest.map_or(Self::Nothing, Self::Content)
    }

    /// True if it is what was found.
    fn fits(&self, found: &Self) -> bool {
        match (self, found) {
            (Self::Directory, Self::This(found)) => found.kind == EntryKind::Directory,
            (expected, found) => expected == found,
        }
    }
}

/// A name that no other change has: `maker` tells processes apart, and one process makes one
/// change at a time.
pub(crate) fn unfinished_name(maker: u32, now: shared_types::Timestamp) -> String {
    format!("{UNFINISHED_PREFIX}{maker}-{:x}", now.as_micros())
}

/// True if only a change gives such a name, and the name leads to no other directory.
pub(crate) fn is_unfinished_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let rest = name.strip_prefix(UNFINISHED_PREFIX);
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(plain))
}

#[cfg(test)]
mod tests;
