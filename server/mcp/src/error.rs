//! The reasons why a tool server gives no answer, in words for people and models.

use std::time::Duration;

use server_web::WebError;

/// The reason why a tool server gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The connection has ended.
    #[error("the tool server has gone: {0}")]
    Closed(String),
    /// It sent a message that is too long, and is cut off.
    #[error("the tool server sent a message of more than {} KiB, and was cut off", .0 / 1024)]
    TooLarge(usize),
    /// It wrote too much that is no message, and is cut off.
    #[error(
        "the tool server writes text that is no message of its protocol to its standard output, and was cut off; it has to write its log to standard error"
    )]
    Stray,
    /// The time is over.
    #[error("the tool server gave no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered with an error.
    #[error("the tool server refused: {message} (code {code})")]
    Refused {
        /// The code of JSON-RPC.
        code: i64,
        /// Its words, harmless and on one line.
        message: String,
    },
    /// It answered with something that has not the form of an answer.
    #[error("the tool server broke its protocol: {0}")]
    Form(String),
    /// It speaks no version of the protocol that this client speaks.
    #[error("the tool server speaks other versions of the protocol: {0}")]
    Version(String),
    /// It wants to know who asks.
    #[error("the tool server wants a sign-in{}", hint(.0))]
    Unauthorized(Option<String>),
    /// The person's sign-in is of no use; the words say what to do.
    #[error("{0}")]
    SignIn(String),
    /// The web refused with this status.
    #[error("the tool server's address answered with the status {0}")]
    Status(u16),
    /// The address cannot be used or reached.
    #[error("{0}")]
    Web(#[from] WebError),
    /// It asked for input more often than a call may.
    #[error("the tool server asked for input more than {0} times")]
    Rounds(usize),
}

impl McpError {
    /// True if the request may have had its effect all the same.
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::Closed(_) | Self::TooLarge(_) | Self::Stray | Self::TimedOut(_) => true,
            Self::Web(error) => matches!(
                error,
                WebError::Broken { .. } | WebError::TimedOut(_) | WebError::TooLarge(_)
            ),
            Self::Form(_) | Self::Rounds(_) => true,
            Self::Status(status) => *status >= 500,
            Self::Refused { .. } | Self::Version(_) | Self::Unauthorized(_) | Self::SignIn(_) => {
                false
            }
        }
    }

    /// True if the connection is of no use any more.
    pub fn ends_connection(&self) -> bool {
        matches!(self, Self::Closed(_) | Self::TooLarge(_) | Self::Stray)
    }
}

fn hint(challenge: &Option<String>) -> String {
    match challenge {
        Some(challenge) => format!(" ({challenge})"),
        None => String::new(),
    }
}
