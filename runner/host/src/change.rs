//! Changes of files: announced before they are made, so that a death in between can be settled.
//!
//! A [`Change`] is complete before anything of it is on the disk. Whoever performs the request
//! writes it down and answers; without an answer nothing is changed. Then the new content is put
//! under a name of the change's own, and renamed. What a death leaves is told by the digest that
//! the file has then, see [`crate::Host::settle`].

use serde::{Deserialize, Serialize};
use shared_sandbox::{Edited, Outcome, Written};
use shared_types::{Digest, Refusal};
use tokio::sync::oneshot;

/// What the name of every unfinished file begins with.
const UNFINISHED_PREFIX: &str = ".gantry-";

/// A change of one file, before it is made. At most a few kilobytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The file, as it was asked for.
    pub path: String,
    /// What the new content is called until it is renamed, in the file's directory.
    pub unfinished: String,
    /// What is said of the change once it is made.
    pub done: Done,
}

/// What is said of a change once it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// The whole file was written.
    Written(Written),
    /// Text in it was replaced.
    Edited(Edited),
}

/// What became of a change whose maker died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It was made, and this is its outcome.
    Applied(Outcome),
    /// It was not made, and never will be.
    NotApplied,
    /// The file holds neither its old content nor its new one, or cannot be read.
    Unclear,
}

/// A change that waits for its announcement to be answered. Dropping it refuses the change.
#[derive(Debug)]
pub struct Announced {
    /// What is to be changed.
    pub change: Change,
    answer: oneshot::Sender<Result<(), Refusal>>,
}

impl Announced {
    /// The change, and where its answer arrives.
    pub(crate) fn new(change: Change) -> (Self, oneshot::Receiver<Result<(), Refusal>>) {
        let (answer, answered) = oneshot::channel();
        (Self { change, answer }, answered)
    }

    /// It is written down and may be made.
    pub fn go_ahead(self) {
        // Whoever was stopped meanwhile waits no more, and changes nothing.
        let _ = self.answer.send(Ok(()));
    }

    /// It cannot be written down, so it is not made; the request ends with this.
    pub fn refuse(self, refusal: Refusal) {
        let _ = self.answer.send(Err(refusal));
    }
}

impl Change {
    /// The digest of what the file holds before; absent where there is no file.
    pub fn before(&self) -> Option<Digest> {
        match &self.done {
            Done::Written(written) => written.before,
            Done::Edited(edited) => Some(edited.before),
        }
    }

    /// The digest of what it holds afterwards.
    pub fn after(&self) -> Digest {
        match &self.done {
            Done::Written(written) => written.after,
            Done::Edited(edited) => edited.after,
        }
    }

    /// What the next change of the same file says of this one by what it found; nothing, where that
    /// was neither the old content nor the new one.
    pub fn as_found_by(&self, next: &Self) -> Option<Settled> {
        let found = next.before();
        if found == Some(self.after()) {
            Some(Settled::Applied(self.outcome()))
        } else if found == self.before() {
            Some(Settled::NotApplied)
        } else {
            None
        }
    }

    /// The outcome of a request that made it.
    pub fn outcome(&self) -> Outcome {
        match &self.done {
            Done::Written(written) => Outcome::Written(written.clone()),
            Done::Edited(edited) => Outcome::Edited(edited.clone()),
        }
    }
}

/// A name that no other change has: `maker` tells processes apart, and one process makes one
/// change at a time.
pub(crate) fn unfinished_name(maker: u32, now: shared_types::Timestamp) -> String {
    format!("{UNFINISHED_PREFIX}{maker}-{:x}", now.as_micros())
}

/// Whether only a change gives such a name, and it leads to no other directory.
pub(crate) fn is_unfinished_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let rest = name.strip_prefix(UNFINISHED_PREFIX);
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(plain))
}
