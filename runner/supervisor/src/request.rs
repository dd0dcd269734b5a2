//! The request to a supervisor; it serves one at a time.

use std::{ffi::CString, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use shared_types::OperationId;

/// Longest claim, in bytes: with it a start record fits the room that is made for it in advance.
pub const MAX_CLAIM_BYTES: usize = 1024;

/// Most words and most variables of one request.
const MAX_STRINGS: usize = 64 * 1024;

/// Everything that a supervisor needs before the command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRequest {
    /// The operation that the directory becomes.
    pub operation: OperationId,
    /// The program and its words; at least one. A program without a slash is looked up in PATH of
    /// the environment below.
    pub argv: Vec<CString>,
    /// The complete environment, each `NAME=value`.
    pub environment: Vec<CString>,
    /// Everything else.
    pub terms: CommandTerms,
}

/// The part of a request that is not a list of strings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTerms {
    /// The directory where the command runs.
    pub place: WorkingDirectory,
    /// The user whose rights it has; else its supervisor's. Only a supervisor that is root can give
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<CommandUser>,
    /// The way of its output.
    pub streams: Streams,
    /// True if its input comes from the daemon; else it is empty. A terminal always has input.
    #[serde(default)]
    pub stdin: bool,
    /// The longest time that it may run (monotonic clock: a suspended host does not count).
    #[serde(default, with = "millis")]
    pub run_for: Option<Duration>,
    /// The longest time that it may be silent (monotonic clock); time in which it waits for room
    /// for its output does not count.
    #[serde(default, with = "millis")]
    pub idle_for: Option<Duration>,
    /// The longest time without a renewal (boot-time clock: a suspended host counts), where that is
    /// longer than it may run anyway.
    #[serde(default, with = "millis")]
    pub orphan_for: Option<Duration>,
    /// Between the polite signal and the kill.
    #[serde(with = "millis_always")]
    pub kill_grace: Duration,
    /// The part of its output that is kept.
    pub spool: SpoolBounds,
    /// The records that survive the host's death.
    #[serde(default)]
    pub sync: Sync,
    /// The daemon's own words about the operation, for a daemon without its own memory of it. They
    /// go into the start record; absent from a request of an earlier program.
    #[serde(default)]
    pub claim: Option<String>,
}

/// The time that a command goes on if it is renewed for `orphan_for` and not again. It is never
/// less than the command may run anyway (`run_left`), and a moment more in which that limit ends
/// it.
pub fn unrenewed_for(orphan_for: Duration, run_left: Option<Duration>) -> Duration {
    let own = run_left.map(|left| left.saturating_add(Duration::from_secs(1)));
    own.map_or(orphan_for, |own| orphan_for.max(own))
}

/// The user whose rights a command has: this user's and this group's alone, without any privilege,
/// and without a way to gain one (an empty bounding set, `no_new_privs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandUser {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// The directory where a command runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkingDirectory {
    /// In the directory whose descriptor comes with the request.
    Inherited,
    /// In this directory.
    Path(PathBuf),
}

/// The way of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// Two pipes; the order between them is approximate.
    Separate,
    /// One pipe for both, in exact order.
    Merged,
    /// A terminal: one stream, in and out.
    Pty {
        /// Its height in characters.
        rows: u16,
        /// Its width in characters.
        columns: u16,
    },
}

/// The part of each stream that is kept on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolBounds {
    /// Bytes of a stream that are on disk and not committed yet. A stream that waits may exceed it
    /// by one pipe (1 MiB) at its end, so that nothing is lost. A stream with a tail may exceed it
    /// by twice that, while there is no room for the tail.
    pub bytes: u64,
    /// The rule for a full spool.
    pub when_full: WhenFull,
}

/// The rule for a stream whose spool is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// The head is kept, the middle becomes a recorded gap, and this many bytes of the tail are
    /// kept, out of the same bound. The command is never slowed.
    Gap {
        /// Bytes of the tail; in a file of its own until there is room or the command has ended.
        tail: u32,
    },
    /// The command waits until the daemon has committed something.
    Wait,
}

/// The files that are written through to the disk before the supervisor goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// Nothing: the records survive every process, but not the host.
    #[default]
    Nothing,
    /// The start record, before the command starts.
    Start,
    /// The start record, and output and exit record before the end is reported.
    All,
}

/// The reason why a request makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// There is no program.
    #[error("the command is empty; name a program")]
    Empty,
    /// There are too many words or variables.
    #[error("the command has more than {MAX_STRINGS} words or variables; write them to a file")]
    TooMany,
    /// The bytes do not hold what their head announces.
    #[error("the request's strings do not fit its head")]
    Garbled,
    /// The tail does not fit into the bound.
    #[error("a spool of {bytes} bytes cannot keep a tail of {tail}; make the spool larger")]
    TailTooLong {
        /// The bound.
        bytes: u64,
        /// The tail.
        tail: u32,
    },
    /// It would not fit into the start record.
    #[error("the claim has {0} bytes, and a start record takes {MAX_CLAIM_BYTES}; make it shorter")]
    ClaimTooLong(usize),
    /// Waiting for ever is not possible.
    #[error("a spool without room would make the command wait for ever; give it some bytes")]
    NoRoom,
}

impl CommandRequest {
    /// Checks that the request can be carried out at all.
    ///
    /// # Errors
    /// Names the mistake in it.
    pub fn check(&self) -> Result<(), RequestError> {
        if self.argv.first().is_none_or(|program| program.is_empty()) {
            return Err(RequestError::Empty);
        }
        if self.argv.len() > MAX_STRINGS || self.environment.len() > MAX_STRINGS {
            return Err(RequestError::TooMany);
        }
        if let Some(claim) = &self.terms.claim
            && claim.len() > MAX_CLAIM_BYTES
        {
            return Err(RequestError::ClaimTooLong(claim.len()));
        }
        let SpoolBounds { bytes, when_full } = self.terms.spool;
        match when_full {
            WhenFull::Gap { tail } if u64::from(tail) > bytes => {
                Err(RequestError::TailTooLong { bytes, tail })
            }
            WhenFull::Wait if bytes == 0 => Err(RequestError::NoRoom),
            WhenFull::Gap { .. } | WhenFull::Wait => Ok(()),
        }
    }

    /// Words and variables as bytes: each ends with a NUL, which none of them can hold.
    pub(crate) fn strings(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for string in self.argv.iter().chain(&self.environment) {
            bytes.extend_from_slice(string.as_bytes_with_nul());
        }
        bytes
    }

    /// Puts a request together from what came over the wire.
    ///
    /// # Errors
    /// When the parts do not fit, or the request cannot be carried out.
    pub fn from_parts(
        operation: OperationId,
        words: usize,
        variables: usize,
        terms: CommandTerms,
        strings: &[u8],
    ) -> Result<Self, RequestError> {
        if words > MAX_STRINGS || variables > MAX_STRINGS {
            return Err(RequestError::TooMany);
        }
        let mut all = strings
            .split_inclusive(|byte| *byte == 0)
            .map(|string| CString::from_vec_with_nul(string.to_vec()));
        let mut take = |count: usize| -> Result<Vec<CString>, RequestError> {
            let taken: Vec<_> = all
                .by_ref()
                .take(count)
                .collect::<Result<_, _>>()
                .map_err(|_| RequestError::Garbled)?;
            if taken.len() == count {
                Ok(taken)
            } else {
                Err(RequestError::Garbled)
            }
        };
        let (argv, environment) = (take(words)?, take(variables)?);
        if all.next().is_some() {
            return Err(RequestError::Garbled);
        }
        let request = Self {
            operation,
            argv,
            environment,
            terms,
        };
        request.check()?;
        Ok(request)
    }
}

pub(crate) mod millis {
    //! An optional duration as milliseconds.
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::millis_always::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

pub(crate) mod millis_always {
    //! A duration as milliseconds.
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        Ok(Duration::from_millis(u64::deserialize(deserializer)?))
    }
}
