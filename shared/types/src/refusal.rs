//! The closed set of reasons for which an operation is refused (docs/internals/contracts.md#a25).

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// The reason why an operation did not start. A new code is a new protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RefusalCode {
    /// The same id came with another request.
    Conflict,
    /// A newer holder of the owner exists.
    StaleEpoch,
    /// The operation was ended before it started, or names another incarnation.
    Fenced,
    /// Its start-by time has passed.
    Expired,
    /// The runner is stopping and takes nothing new.
    Draining,
    /// A bound is reached; try again later.
    ResourceExhausted,
    /// The credential does not hold.
    Unauthenticated,
    /// The runner's owner does not allow it.
    ForbiddenByRunnerPolicy,
    /// There is no room for output: what may be kept is full, or the disk nearly is.
    SpoolFull,
    /// The fate of the operation cannot be known.
    Lost,
    /// The other end does not know this request.
    Unsupported,
    /// There is no such thing.
    NotFound,
    /// The request makes no sense.
    Invalid,
    /// The active runner is not connected, or none is active.
    Unavailable,
}

/// The remedy for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The same request may succeed later.
    Retry,
    /// The same request will never succeed.
    Final,
    /// A person has to change something first.
    Person,
}

impl RefusalCode {
    /// The remedy for a refusal with this code.
    pub fn remedy(self) -> Remedy {
        match self {
            Self::Draining | Self::ResourceExhausted | Self::SpoolFull => Remedy::Retry,
            Self::Conflict
            | Self::StaleEpoch
            | Self::Fenced
            | Self::Expired
            | Self::Lost
            | Self::Unsupported
            | Self::NotFound
            | Self::Invalid => Remedy::Final,
            Self::Unauthenticated | Self::ForbiddenByRunnerPolicy | Self::Unavailable => {
                Remedy::Person
            }
        }
    }
}

/// A refusal, with words for a person or a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason, for programs.
    pub code: RefusalCode,
    /// The reason and what to do, for people and models: lower case, no full stop.
    pub message: String,
    /// The shortest useful wait, in milliseconds, where waiting helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Refusal {
    /// A refusal without a time to wait.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after_ms: None,
        }
    }

    /// The same, with the time to wait.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_ms = Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The remedy: to wait, where a time is given; else the remedy of the code.
    pub fn remedy(&self) -> Remedy {
        match self.retry_after_ms {
            Some(_) => Remedy::Retry,
            None => self.code.remedy(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
