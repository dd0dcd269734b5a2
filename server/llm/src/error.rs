//! The failures of a model, by the remedy.

use std::fmt;

/// The reason why there is no answer. The message is for the user: the cause and the remedy, in
/// lower case, without a full stop, and never with the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// The vendor does not accept the key.
    Unauthenticated(String),
    /// The account has nothing left to spend; waiting does not help.
    QuotaExhausted(String),
    /// The conversation is longer than the model can read.
    Overflow(String),
    /// The vendor will never accept this request.
    Refused(String),
    /// Too many requests for now.
    RateLimited(String),
    /// The vendor cannot be reached or has trouble of its own.
    Unavailable(String),
    /// The answer was cut off or makes no sense.
    Broken(String),
    /// The vendor took too long.
    TimedOut(String),
}

impl ModelError {
    /// True if the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::RateLimited(_) | Self::Unavailable(_) | Self::Broken(_) | Self::TimedOut(_) => {
                true
            }
            Self::Unauthenticated(_)
            | Self::QuotaExhausted(_)
            | Self::Overflow(_)
            | Self::Refused(_) => false,
        }
    }

    /// True if another key or another model may answer in place of this one. A conversation that is too long for one
    /// model is shortened and not sent elsewhere.
    pub fn falls_back(&self) -> bool {
        match self {
            Self::Overflow(_) | Self::Refused(_) => false,
            Self::Unauthenticated(_) | Self::QuotaExhausted(_) => true,
            _ => self.is_passing(),
        }
    }

    /// The failure in a few words, to stand behind the provider's name: `is overloaded`.
    pub fn brief(&self) -> &'static str {
        let says = |words: &[&str]| words.iter().any(|word| self.message().contains(word));
        match self {
            Self::Unauthenticated(_) => "refuses the key",
            Self::QuotaExhausted(_) => "has no quota left for the key",
            Self::Overflow(_) => "finds the conversation too long",
            Self::Refused(_) => "refuses the request",
            Self::RateLimited(_) => "limits the rate",
            Self::Unavailable(_) if says(&["is offline"]) => "is offline",
            Self::Unavailable(_) if says(&["the model server of runner"]) => {
                "cannot reach its model server"
            }
            Self::Unavailable(_) if says(&["cannot be reached"]) => "cannot be reached",
            Self::Unavailable(_) if says(&["verload", "status 503", "status 529"]) => {
                "is overloaded"
            }
            Self::Unavailable(_) => "has trouble of its own",
            Self::Broken(_) if says(&["went away in mid-answer"]) => "went away in mid-answer",
            Self::Broken(_) => "broke its answer off",
            Self::TimedOut(_) => "is too slow",
        }
    }

    /// The name of the kind of failure, in metrics and in the ledger of usage.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => "unauthenticated",
            Self::QuotaExhausted(_) => "quota_exhausted",
            Self::Overflow(_) => "overflow",
            Self::Refused(_) => "refused",
            Self::RateLimited(_) => "rate_limited",
            Self::Unavailable(_) => "unavailable",
            Self::Broken(_) => "broken",
            Self::TimedOut(_) => "timed_out",
        }
    }

    /// The cause and the remedy, for the user.
    pub fn message(&self) -> &str {
        match self {
            Self::Unauthenticated(message)
            | Self::QuotaExhausted(message)
            | Self::Overflow(message)
            | Self::Refused(message)
            | Self::RateLimited(message)
            | Self::Unavailable(message)
            | Self::Broken(message)
            | Self::TimedOut(message) => message,
        }
    }

    /// The same error with another message.
    pub(crate) fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Unauthenticated(message) => Self::Unauthenticated(change(message)),
            Self::QuotaExhausted(message) => Self::QuotaExhausted(change(message)),
            Self::Overflow(message) => Self::Overflow(change(message)),
            Self::Refused(message) => Self::Refused(change(message)),
            Self::RateLimited(message) => Self::RateLimited(change(message)),
            Self::Unavailable(message) => Self::Unavailable(change(message)),
            Self::Broken(message) => Self::Broken(change(message)),
            Self::TimedOut(message) => Self::TimedOut(change(message)),
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for ModelError {}
