//! The errors of a client, in words that say what to do.

use shared_api::Problem;

/// The reason why a request has no answer. The texts complete "failed to …" and never hold a
/// secret.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The address cannot be used.
    #[error("{url:?} is not a server's address: {reason}")]
    Address {
        /// The address as it was given.
        url: String,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// A file of the web could not be downloaded.
    #[error("{url:?} cannot be downloaded: {reason}")]
    Download {
        /// The address as it was given.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The token cannot be sent.
    #[error("the token holds characters that no token has: copy it again, whole")]
    Token,
    /// No server answers there, or it has stopped answering.
    #[error(
        "the server at {url} does not answer ({reason}): check that it runs and that the address is right"
    )]
    Unreachable {
        /// The server's address.
        url: String,
        /// The system's reason.
        reason: String,
        /// True if the server may have received the request anyway.
        is_sent: bool,
    },
    /// The host answers, but does not prove to be the server.
    #[error(
        "the server at {url} shows a certificate that is not trusted here ({reason}): \
         name the fingerprint that the server printed when it started; \
         where it was named, something else answers there"
    )]
    Untrusted {
        /// The server's address.
        url: String,
        /// The verifier's reason.
        reason: String,
    },
    /// The server understood and said no.
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// The host that answers does not speak this protocol.
    #[error(
        "the answer of {url} is not one of a Gantry server ({reason}): check the address and that both are of one version"
    )]
    Protocol {
        /// The server's address.
        url: String,
        /// The mistake in the answer.
        reason: String,
    },
}

impl ClientError {
    /// True if the credential is missing, expired or revoked, so that the person has to sign in.
    pub fn is_unauthenticated(&self) -> bool {
        matches!(self, Self::Refused(problem) if problem.status == 401)
    }

    /// True if the server is away or in trouble. It may have taken the request anyway.
    pub fn is_servers(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => problem.status >= 500,
            _ => false,
        }
    }

    /// The server's words, where it has answered.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Refused(problem) => Some(&problem.detail),
            _ => None,
        }
    }

    /// True if the same request may succeed later without any change by a person.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => problem.status >= 500 || problem.status == 429,
            _ => false,
        }
    }
}
