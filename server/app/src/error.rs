//! The error of a use case. Each door turns it into its own words.

use std::borrow::Cow;

use server_records::SessionError;
use server_store::StoreError;
use shared_types::token::TokenError;

use crate::Rate;

/// A use case was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// There is no such thing, or it belongs to another tenant: the two are not told apart.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The request makes no sense; the text says why and what would.
    #[error("{0}")]
    Invalid(String),
    /// It contradicts what is there.
    #[error("{0}")]
    Conflict(String),
    /// There are as many as there may be; the text names the limit, the use and what to do.
    #[error("{0}")]
    Full(String),
    /// The credential does not hold. Never says which part of it.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The subject may not do this.
    #[error("{0}")]
    Forbidden(Cow<'static, str>),
    /// Too often.
    #[error("too many attempts; wait {retry_after_s} s and try again")]
    TooMany {
        /// Seconds to wait.
        retry_after_s: u64,
    },
    /// More in a minute than one user may.
    #[error("too many {rate} in a minute; wait {retry_after_s} s and try again, or have the operator raise {} under [limits] in gantry.toml", rate.setting())]
    OverRate {
        /// The rate that was exceeded.
        rate: Rate,
        /// Seconds to wait.
        retry_after_s: u64,
    },
    /// The server cannot do it now; nothing was changed.
    #[error("the server cannot do this now, try again")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl AppError {
    pub(crate) fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(Box::new(source))
    }
}

impl From<TokenError> for AppError {
    fn from(_: TokenError) -> Self {
        Self::Unauthenticated("the credential is not valid; sign in again")
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound => Self::NotFound("it"),
            StoreError::Conflict(why) => Self::Conflict(why.to_owned()),
            StoreError::TooLarge { what, max_bytes } => Self::Invalid(format!(
                "{what} is longer than {max_bytes} bytes; shorten it"
            )),
            StoreError::Full(full) => Self::Full(full.to_string()),
            other => Self::unavailable(other),
        }
    }
}

impl From<SessionError> for AppError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NotFound => Self::NotFound("it"),
            other => Self::unavailable(other),
        }
    }
}
