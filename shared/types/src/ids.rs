//! Every id is its own type, all in this list, so that a session can never be passed for a turn
//! and a pasted id tells what it names.
//!
//! The text form is a TypeID (specification 0.3): a prefix, `_`, and 128 bits in 26 letters of
//! lower-case Crockford base32. Ids that we make are UUIDv7, so they sort by creation time. An
//! [`OperationId`] and a [`SandboxId`] are derived (first 128 bits of a SHA-256), so that every
//! replica computes the same.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Clock, Entropy, OperationKey, OperationScope, Owner};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// The beginning of the text form, before the underscore.
            pub const PREFIX: &str = $prefix;

            /// A new id (UUIDv7) from the time and randomness that are passed in.
            pub fn generate(clock: &dyn Clock, entropy: &dyn Entropy) -> Self {
                Self(uuid_v7(clock, entropy))
            }

            /// The id with exactly these 128 bits; for tests and derived ids.
            pub const fn from_u128(bits: u128) -> Self {
                Self(bits)
            }

            /// The 128 bits of the id.
            pub const fn as_u128(self) -> u128 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $prefix, encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let wrong = || IdError { expected: $prefix };
                let rest = text.strip_prefix($prefix).and_then(|rest| rest.strip_prefix('_'));
                Ok(Self(decode(rest.ok_or_else(wrong)?).ok_or_else(wrong)?))
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let pattern = concat!("^", $prefix, "_[0-7][0-9a-hjkmnp-tv-z]{25}$");
                crate::schema::text(Some(pattern), None, "An id.")
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// An organisation; nothing crosses it.
    TenantId = "ten";
    /// A person or service account of a tenant.
    UserId = "usr";
    /// A key or terminal sign-in with which a user speaks to the API.
    CredentialId = "crd";
    /// A durable conversation.
    SessionId = "ses";
    /// The work that one input starts.
    TurnId = "trn";
    /// A question to people.
    ApprovalId = "apr";
    /// A rule about what agents may do.
    RuleId = "rul";
    /// An enrolled daemon.
    RunnerId = "run";
    /// A token with which a runner enrols.
    JoinTokenId = "jtk";
    /// A place on a runner where operations happen.
    SandboxId = "sbx";
    /// A request to exactly one sandbox.
    OperationId = "op";
    /// One memory of operations on a runner; a new one knows nothing of the old one.
    JournalId = "jrn";
    /// One server process.
    ReplicaId = "rep";
    /// A sealed text, such as the key of an account at a provider.
    SecretId = "sec";
    /// An account at a provider of models.
    ModelAccountId = "mac";
    /// An extension that is registered at the server.
    ExtensionId = "ext";
    /// One request to a model that was sent.
    ModelCallId = "mca";
}

/// A text that is not an id of the kind that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an id that looks like {expected}_01h455vb4pex5vsknk084sn02q")]
pub struct IdError {
    expected: &'static str,
}

impl OperationId {
    /// The id of the operation that `owner` names `key`, in one tenant's `scope`.
    ///
    /// The same three always give the same id, on every replica and after every restart: this
    /// is what makes "start it again" attach to what already runs.
    pub fn derive(scope: &OperationScope, owner: &Owner, key: &OperationKey) -> Self {
        Self(hash_to_u128(
            "gantry.operation.v1",
            &[
                scope.as_bytes(),
                owner.to_string().as_bytes(),
                key.to_string().as_bytes(),
            ],
        ))
    }
}

impl ApprovalId {
    /// The question of this number, from 1, about a call of a turn.
    pub fn derive(turn: TurnId, step: u32, ordinal: u32, number: u32) -> Self {
        Self(hash_to_u128(
            "gantry.approval.v1",
            &[
                turn.to_string().as_bytes(),
                &step.to_be_bytes(),
                &ordinal.to_be_bytes(),
                &number.to_be_bytes(),
            ],
        ))
    }
}

impl SessionId {
    /// The session of the agent that this call of a turn begins.
    pub fn of_agent(turn: TurnId, step: u32, ordinal: u32) -> Self {
        Self(of_call("gantry.agent-session.v1", turn, step, ordinal))
    }

    /// The session of the conversation that this call of a turn begins.
    pub fn of_chat(turn: TurnId, step: u32, ordinal: u32) -> Self {
        Self(of_call("gantry.chat-session.v1", turn, step, ordinal))
    }
}

impl TurnId {
    /// The turn in which an agent works for this call of another turn.
    pub fn of_agent(turn: TurnId, step: u32, ordinal: u32) -> Self {
        Self(of_call("gantry.agent-turn.v1", turn, step, ordinal))
    }

    /// The first turn of the conversation that this call of another turn begins.
    pub fn of_chat(turn: TurnId, step: u32, ordinal: u32) -> Self {
        Self(of_call("gantry.chat-turn.v1", turn, step, ordinal))
    }
}

fn of_call(domain: &str, turn: TurnId, step: u32, ordinal: u32) -> u128 {
    let turn = turn.to_string();
    let (step, ordinal) = (step.to_be_bytes(), ordinal.to_be_bytes());
    hash_to_u128(domain, &[turn.as_bytes(), &step, &ordinal])
}

impl SandboxId {
    /// The sandbox that a runner calls `name`; both ends of the link compute the same.
    pub fn derive(runner: RunnerId, name: &str) -> Self {
        Self(hash_to_u128(
            "gantry.sandbox.v1",
            &[runner.to_string().as_bytes(), name.as_bytes()],
        ))
    }
}

impl ModelCallId {
    /// The call of a model: the `attempt`-th, from 1, that the worker of this epoch makes for the step.
    pub fn of(turn: TurnId, step: u32, epoch: crate::Epoch, attempt: u32) -> Self {
        Self(hash_to_u128(
            "gantry.model-call.v1",
            &[
                turn.to_string().as_bytes(),
                &step.to_be_bytes(),
                &epoch.0.to_be_bytes(),
                &attempt.to_be_bytes(),
            ],
        ))
    }
}

/// The first 128 bits of SHA-256 over the domain and the length-prefixed parts.
fn hash_to_u128(domain: &str, parts: &[&[u8]]) -> u128 {
    let mut hasher = Sha256::new();
    for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut first = [0; 16];
    first.copy_from_slice(&hasher.finalize()[..16]);
    u128::from_be_bytes(first)
}

/// 48 bits of milliseconds, 74 random bits, version and variant (RFC 9562, section 5.7).
fn uuid_v7(clock: &dyn Clock, entropy: &dyn Entropy) -> u128 {
    let mut random = [0; 10];
    entropy.fill(&mut random);
    let millis = clock.now().as_millis().unsigned_abs();
    uuid::Builder::from_unix_timestamp_millis(millis, &random)
        .into_uuid()
        .as_u128()
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LENGTH: usize = 26;

fn encode(bits: u128) -> String {
    (0..TEXT_LENGTH)
        .rev()
        .map(|place| ALPHABET[(bits >> (place * 5)) as usize & 31] as char)
        .collect()
}

fn decode(text: &str) -> Option<u128> {
    // 26 letters carry 130 bits; a first letter above 7 would not fit into 128.
    if text.len() != TEXT_LENGTH || text.as_bytes()[0] > b'7' {
        return None;
    }
    text.bytes().try_fold(0u128, |bits, letter| {
        let digit = ALPHABET.iter().position(|known| *known == letter)?;
        Some(bits << 5 | digit as u128)
    })
}

#[cfg(test)]
mod tests;
