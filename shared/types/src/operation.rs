//! The identity of an operation, and the counters that fence it (docs/internals/contracts.md#a1 to
//! #a4).

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{JournalId, SandboxId, SessionId, TenantId, TurnId};

/// The owner of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The engine's work in a session.
    Session(SessionId),
    /// An API caller's work in a sandbox.
    Sandbox(SandboxId),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => id.fmt(f),
            Self::Sandbox(id) => id.fmt(f),
        }
    }
}

/// The owner's name for the operation. It is never the vendor's call id, so that another replica
/// computes the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKey {
    /// The engine's: the `attempt`-th operation of the `ordinal`-th call (from 0) of a step (from 1).
    Call {
        /// The turn that asked.
        turn: TurnId,
        /// The model call that asked, from 1.
        step: u32,
        /// The place of the call in the model's answer, from 0.
        ordinal: u32,
        /// 0, or more where a pure operation is run again after it was lost.
        attempt: u32,
    },
    /// An API caller's idempotency key.
    Request(String),
}

impl fmt::Display for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call {
                turn,
                step,
                ordinal,
                attempt,
            } => write!(f, "call/{turn}/{step}/{ordinal}/{attempt}"),
            Self::Request(key) => write!(f, "request/{key}"),
        }
    }
}

/// Stands for a tenant where operation ids are derived, so that the engine need not name one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationScope([u8; 32]);

impl OperationScope {
    /// The scope of one tenant.
    pub fn of(tenant: TenantId) -> Self {
        Self(Sha256::digest(tenant.to_string()).into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

counters! {
    /// The number of takeovers of an owner; a lower number is refused everywhere.
    Epoch;
    /// The number of links that a runner has had; the end of a lower one never ends a higher one.
    Generation;
}

/// The identity of a runner's memory of operations. An operation sent under one incarnation and
/// unknown under another is lost; it is never sent again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Incarnation {
    /// The journal that remembers.
    pub journal: JournalId,
    /// The host's boot (`/proc/sys/kernel/random/boot_id`): processes do not survive another.
    pub boot: String,
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.journal, self.boot)
    }
}

/// The effect of a second run; declared by the tool, not guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: it only reads, and may be run again under a new id.
    Pure,
    /// Nothing more than the first: it may be run again under the same key.
    Idempotent,
    /// Something again: it is never re-run.
    Effectful,
}

/// SHA-256 of a canonical request: the same id with another digest is a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest that was computed elsewhere; `None` where it is not 32 bytes long.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// A digest from its text form of 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::from_hex(&text)
            .ok_or_else(|| serde::de::Error::custom("expected 64 hexadecimal digits"))
    }
}
