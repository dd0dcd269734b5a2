//! The claim in a command's start record, for a daemon whose journal does not know the command.
//!
//! The supervisor writes it down before the command starts, and does not read it. So the journal
//! can lose its end while a command runs, and the next daemon still knows the command, its owner
//! and its request.

use serde::{Deserialize, Serialize};
use shared_link::runner::Accepted;
use shared_types::{JournalId, SandboxId};

/// The format that is written.
const FORMAT: u32 = 1;

/// The greatest distance of a format from this one that can be read.
const NEIGHBOURS: u32 = 1;

/// An accepted operation, as its supervisor vouches for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Claim {
    format: u32,
    /// The sandbox where it runs.
    pub(super) sandbox: SandboxId,
    /// The journal that had it.
    pub(super) journal: JournalId,
    /// The journal's record of it.
    accepted: Accepted,
}

impl Claim {
    pub(super) fn new(sandbox: SandboxId, journal: JournalId, accepted: Accepted) -> Self {
        // The sandbox is left out, because a start record is short.
        let accepted = Accepted {
            sandbox: None,
            ..accepted
        };
        Self {
            format: FORMAT,
            sandbox,
            journal,
            accepted,
        }
    }

    /// The text for the supervisor; `None` where it cannot be written, which only means that the
    /// journal alone knows the command.
    pub(super) fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// The claim in a start record; `None` where it is none, or of a format too far away.
    pub(super) fn read(text: &str) -> Option<Self> {
        let claim: Self = serde_json::from_str(text).ok()?;
        (claim.format.abs_diff(FORMAT) <= NEIGHBOURS).then_some(claim)
    }

    /// The record of acceptance, as a journal has it.
    pub(super) fn into_accepted(self) -> Accepted {
        Accepted {
            sandbox: Some(self.sandbox),
            ..self.accepted
        }
    }
}

#[cfg(test)]
mod tests {
    use runner_supervisor::MAX_CLAIM_BYTES;
    use shared_link::runner::Takes;
    use shared_types::{Digest, Epoch, OperationId, Owner, SessionId};

    use super::*;

    const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_longest_claim_fits_and_is_read_by_its_neighbours_alone() {
        let accepted = Accepted {
            operation: OperationId::from_u128(u128::MAX),
            sandbox: Some(SandboxId::from_u128(u128::MAX)),
            digest: Digest::of(b"request"),
            owner: Owner::Session(SessionId::from_u128(u128::MAX)),
            epoch: Epoch(u64::MAX),
            at: Some(std::time::Duration::MAX),
            takes: Takes {
                input: true,
                terminal: true,
                signals: true,
            },
            trace: TRACEPARENT.parse().ok(),
        };
        let (sandbox, journal) = (
            SandboxId::from_u128(u128::MAX),
            JournalId::from_u128(u128::MAX),
        );
        let claim = Claim::new(sandbox, journal, accepted.clone());
        let text = claim.text().expect("JSON");
        assert!(text.len() <= MAX_CLAIM_BYTES, "{}", text.len());
        assert_eq!(Claim::read(&text), Some(claim.clone()));
        assert_eq!(claim.into_accepted(), accepted);
        for (format, read) in [(0, true), (2, true), (3, false)] {
            let other = text.replacen("\"format\":1", &format!("\"format\":{format}"), 1);
            assert_eq!(Claim::read(&other).is_some(), read, "format {format}");
        }
        assert_eq!(Claim::read("{}"), None);
    }
}
