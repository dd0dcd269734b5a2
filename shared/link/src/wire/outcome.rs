//! How operations end, in both directions. Lists that would not fit into a frame are cut, and say so.

use proto::v1::{self, ended::Outcome as Wire, runner_frame};
use shared_sandbox::{
    Downloaded, Edited, EntryKind, Found, Globbed, GrepMatch, Grepped, Listed, ListedEntry, Moved,
    Outcome, Removed, Request, Written,
};
use shared_types::{Digest, OperationId, Refusal, limits::MAX_FRAME_BYTES};

use super::{
    Malformed,
    alike::{OnWire, alike},
};

/// What a frame's list may take, so that the frame stays below [`MAX_FRAME_BYTES`].
const MAX_LIST_BYTES: usize = MAX_FRAME_BYTES - 64 * 1024;

/// What an element of a list takes on the wire beside its text, at most.
const ELEMENT_OVERHEAD: usize = 32;

/// Makes both directions from one list of kinds; a kind that is missing does not compile.
macro_rules! outcomes {
    ($($kind:ident)*) => {
        /// The end of an operation.
        pub fn ended(operation: OperationId, outcome: Outcome) -> v1::RunnerFrame {
            let outcome = match outcome {
                $(Outcome::$kind(end) => Wire::$kind(OnWire::<Malformed>::to_wire(end)),)*
            };
            super::from_runner(runner_frame::Kind::Ended(v1::Ended {
                operation: operation.to_string(),
                outcome: Some(outcome),
            }))
        }

        /// The outcome of an operation.
        pub(crate) fn outcome(wire: Option<Wire>) -> Result<Outcome, Malformed> {
            match wire {
                $(Some(Wire::$kind(end)) => OnWire::<Malformed>::from_wire(end).map(Outcome::$kind),)*
                None => Err(Malformed::new("an operation's end carries no known outcome")),
            }
        }
    };
}

outcomes! {
    Exited Read Written Edited Listed Globbed Grepped Downloaded Found MadeDirectory Moved Removed
    Failed Refused
}

/// Tells whether an outcome is one that a certain kind of request can have.
pub type Expects = fn(&Outcome) -> bool;

/// How an operation that asks for this can end, beside being refused.
pub fn expected(request: &Request) -> Expects {
    use Outcome::{
        Downloaded, Edited, Exited, Failed, Found, Globbed, Grepped, Listed, MadeDirectory, Moved,
        Read, Refused, Removed, Written,
    };
    match request {
        Request::Exec(_) => |end| matches!(end, Exited(_) | Refused(_)),
        Request::Read(_) => |end| matches!(end, Read(_) | Failed(_) | Refused(_)),
        Request::Download(_) => |end| matches!(end, Downloaded(_) | Failed(_) | Refused(_)),
        Request::Write(_) | Request::Upload(_) => {
            |end| matches!(end, Written(_) | Failed(_) | Refused(_))
        }
        Request::Edit(_) => |end| matches!(end, Edited(_) | Failed(_) | Refused(_)),
        Request::List(_) => |end| matches!(end, Listed(_) | Failed(_) | Refused(_)),
        Request::Glob(_) => |end| matches!(end, Globbed(_) | Failed(_) | Refused(_)),
        Request::Grep(_) => |end| matches!(end, Grepped(_) | Failed(_) | Refused(_)),
        Request::Stat(_) => |end| matches!(end, Found(_) | Failed(_) | Refused(_)),
        Request::MakeDirectory(_) => |end| matches!(end, MadeDirectory(_) | Failed(_) | Refused(_)),
        Request::Move(_) => |end| matches!(end, Moved(_) | Failed(_) | Refused(_)),
        Request::Remove(_) => |end| matches!(end, Removed(_) | Failed(_) | Refused(_)),
    }
}

alike! {
    ReadContent { content, first_line, lines, file_bytes, more }
    GrepMatch { path, line, text }
    MadeDirectory { made }
}

impl OnWire<Malformed> for Written {
    type Wire = v1::Written;

    fn to_wire(self) -> v1::Written {
        v1::Written {
            bytes: self.bytes,
            before: self.before.map_or_else(Vec::new, digest_to_wire),
            after: digest_to_wire(self.after),
        }
    }

    fn from_wire(wire: v1::Written) -> Result<Self, Malformed> {
        Ok(Self {
            bytes: wire.bytes,
            before: match wire.before.as_slice() {
                [] => None,
                before => Some(digest(before)?),
            },
            after: digest(&wire.after)?,
        })
    }
}

impl OnWire<Malformed> for Edited {
    type Wire = v1::Edited;

    fn to_wire(self) -> v1::Edited {
        v1::Edited {
            line: self.line,
            replaced: self.replaced,
            before: digest_to_wire(self.before),
            after: digest_to_wire(self.after),
        }
    }

    fn from_wire(wire: v1::Edited) -> Result<Self, Malformed> {
        Ok(Self {
            line: wire.line,
            replaced: wire.replaced,
            before: digest(&wire.before)?,
            after: digest(&wire.after)?,
        })
    }
}

impl OnWire<Malformed> for Listed {
    type Wire = v1::Listed;

    fn to_wire(self) -> v1::Listed {
        let (entries, cut) = fitting(self.entries, |entry| entry.name.len());
        v1::Listed {
            entries: entries.into_iter().map(ListedEntry::to_wire).collect(),
            more: self.more || cut,
        }
    }

    fn from_wire(wire: v1::Listed) -> Result<Self, Malformed> {
        let entries = wire.entries.into_iter().map(ListedEntry::from_wire);
        Ok(Self {
            entries: entries.collect::<Result<_, _>>()?,
            more: wire.more,
        })
    }
}

impl OnWire<Malformed> for ListedEntry {
    type Wire = v1::ListedEntry;

    fn to_wire(self) -> v1::ListedEntry {
        v1::ListedEntry {
            name: self.name,
            kind: entry_kind_to_wire(self.kind).into(),
            bytes: self.bytes,
        }
    }

    fn from_wire(wire: v1::ListedEntry) -> Result<Self, Malformed> {
        Ok(Self {
            kind: entry_kind(wire.kind())?,
            name: wire.name,
            bytes: wire.bytes,
        })
    }
}

impl OnWire<Malformed> for Found {
    type Wire = v1::Found;

    fn to_wire(self) -> v1::Found {
        v1::Found {
            kind: entry_kind_to_wire(self.kind).into(),
            bytes: self.bytes,
            mode: self.mode,
            modified_us: self.modified_us,
            leads_to: self.leads_to,
        }
    }

    fn from_wire(wire: v1::Found) -> Result<Self, Malformed> {
        Ok(Self {
            kind: entry_kind(wire.kind())?,
            bytes: wire.bytes,
            mode: wire.mode,
            modified_us: wire.modified_us,
            leads_to: wire.leads_to,
        })
    }
}

impl OnWire<Malformed> for Moved {
    type Wire = v1::Moved;

    fn to_wire(self) -> v1::Moved {
        v1::Moved {
            kind: entry_kind_to_wire(self.kind).into(),
            replaced: self.replaced,
        }
    }

    fn from_wire(wire: v1::Moved) -> Result<Self, Malformed> {
        Ok(Self {
            kind: entry_kind(wire.kind())?,
            replaced: wire.replaced,
        })
    }
}

impl OnWire<Malformed> for Removed {
    type Wire = v1::Removed;

    fn to_wire(self) -> v1::Removed {
        v1::Removed {
            kind: entry_kind_to_wire(self.kind).into(),
        }
    }

    fn from_wire(wire: v1::Removed) -> Result<Self, Malformed> {
        Ok(Self {
            kind: entry_kind(wire.kind())?,
        })
    }
}

impl OnWire<Malformed> for Globbed {
    type Wire = v1::Globbed;

    fn to_wire(self) -> v1::Globbed {
        let (paths, cut) = fitting(self.paths, String::len);
        v1::Globbed {
            paths,
            more: self.more || cut,
            unread_rules: self.unread_rules,
        }
    }

    fn from_wire(wire: v1::Globbed) -> Result<Self, Malformed> {
        Ok(Self {
            paths: wire.paths,
            more: wire.more,
            unread_rules: wire.unread_rules,
        })
    }
}

impl OnWire<Malformed> for Grepped {
    type Wire = v1::Grepped;

    fn to_wire(self) -> v1::Grepped {
        let (matches, cut) = fitting(self.matches, |found| found.path.len() + found.text.len());
        let matches = matches.into_iter();
        v1::Grepped {
            matches: matches.map(OnWire::<Malformed>::to_wire).collect(),
            more: self.more || cut,
            unread_rules: self.unread_rules,
        }
    }

    fn from_wire(wire: v1::Grepped) -> Result<Self, Malformed> {
        let matches = wire.matches.into_iter().map(GrepMatch::from_wire);
        Ok(Self {
            matches: matches.collect::<Result<_, Malformed>>()?,
            more: wire.more,
            unread_rules: wire.unread_rules,
        })
    }
}

impl OnWire<Malformed> for Downloaded {
    type Wire = v1::Downloaded;

    fn to_wire(self) -> v1::Downloaded {
        v1::Downloaded {
            bytes: self.bytes,
            digest: digest_to_wire(self.digest),
        }
    }

    fn from_wire(wire: v1::Downloaded) -> Result<Self, Malformed> {
        Ok(Self {
            bytes: wire.bytes,
            digest: digest(&wire.digest)?,
        })
    }
}

impl OnWire<Malformed> for Refusal {
    type Wire = v1::Refusal;

    fn to_wire(self) -> v1::Refusal {
        self.into()
    }

    fn from_wire(wire: v1::Refusal) -> Result<Self, Malformed> {
        Ok(wire.into())
    }
}

fn digest_to_wire(digest: Digest) -> Vec<u8> {
    digest.as_bytes().to_vec()
}

fn digest(bytes: &[u8]) -> Result<Digest, Malformed> {
    Digest::from_slice(bytes).ok_or_else(|| Malformed::new("a digest is not 32 bytes long"))
}

/// Makes both directions from one list; a kind that is missing does not compile.
macro_rules! entry_kinds {
    ($($kind:ident)*) => {
        fn entry_kind_to_wire(kind: EntryKind) -> v1::listed_entry::Kind {
            match kind {
                $(EntryKind::$kind => v1::listed_entry::Kind::$kind,)*
            }
        }

        fn entry_kind(wire: v1::listed_entry::Kind) -> Result<EntryKind, Malformed> {
            match wire {
                $(v1::listed_entry::Kind::$kind => Ok(EntryKind::$kind),)*
                v1::listed_entry::Kind::Unspecified => {
                    Err(Malformed::new("a directory's entry is of no known kind"))
                }
            }
        }
    };
}

entry_kinds! { File Directory Link Other }

/// The first elements that fit into a frame, and whether any were left out.
fn fitting<T>(mut elements: Vec<T>, text_bytes: impl Fn(&T) -> usize) -> (Vec<T>, bool) {
    let mut bytes = 0;
    let too_many = elements.iter().position(|element| {
        bytes += text_bytes(element) + ELEMENT_OVERHEAD;
        bytes > MAX_LIST_BYTES
    });
    elements.truncate(too_many.unwrap_or(elements.len()));
    (elements, too_many.is_some())
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use shared_sandbox::examples;

    use super::*;

    #[test]
    fn every_outcome_reads_back_from_the_wire() {
        for outcome in examples::outcomes() {
            let frame = ended(OperationId::from_u128(1), outcome.clone());
            let bytes = frame.encode_to_vec();
            let frame = v1::RunnerFrame::decode(bytes.as_slice()).expect("a frame");
            let Some(runner_frame::Kind::Ended(told)) = frame.kind else {
                panic!("no end");
            };
            assert_eq!(super::outcome(told.outcome), Ok(outcome));
        }
    }

    #[test]
    fn every_request_can_succeed_and_no_success_is_of_no_request() {
        let requests = examples::requests();
        let succeeds = |request: &Request, outcome: &Outcome| expected(request)(outcome);
        for outcome in examples::ends() {
            let any = requests.iter().any(|request| succeeds(request, &outcome));
            assert!(any, "{outcome:?}");
        }
        for request in &requests {
            let ends = examples::ends()
                .into_iter()
                .filter(|outcome| succeeds(request, outcome));
            let success = |end: &Outcome| !matches!(end, Outcome::Failed(_) | Outcome::Refused(_));
            assert!(ends.into_iter().any(|end| success(&end)), "{request:?}");
        }
    }
}
