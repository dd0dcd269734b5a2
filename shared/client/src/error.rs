//! What can go wrong between a client and its server, in words that say what to do.

use shared_api::Problem;

/// Why a request has no answer. The texts complete "failed to …" and never hold a secret.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The address cannot be used.
    #[error("{url:?} is not a server's address: {reason}")]
    Address {
        /// The address as it was given.
        url: String,
        /// What is wrong with it, and what to write instead.
        reason: String,
    },
    /// The token cannot be sent.
    #[error("the token holds characters that no token has: copy it again, whole")]
    Token,
    /// Nobody answers there, or no more.
    #[error(
        "the server at {url} does not answer ({reason}): check that it runs and that the address is right"
    )]
    Unreachable {
        /// The server's address.
        url: String,
        /// What the system says.
        reason: String,
        /// Whether the server may have got the request all the same.
        is_sent: bool,
    },
    /// Somebody answers, but does not prove to be the server.
    #[error(
        "the server at {url} shows a certificate that is not trusted here ({reason}): \
         name the fingerprint that the server printed when it started; \
         where it was named, something else answers there"
    )]
    Untrusted {
        /// The server's address.
        url: String,
        /// What the verifier says.
        reason: String,
    },
    /// The server understood and said no.
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// What answers does not speak our protocol.
    #[error(
        "the answer of {url} is not one of a Gantry server ({reason}): check the address and that both are of one version"
    )]
    Protocol {
        /// The server's address.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl ClientError {
    /// Whether the credential is missing, spent or revoked, so that a person has to sign in.
    pub fn is_unauthenticated(&self) -> bool {
        matches!(self, Self::Refused(problem) if problem.status == 401)
    }

    /// Whether the server is away or in trouble: it may have taken the request all the same.
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

    /// Whether the same request may succeed later without anybody changing anything.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => problem.status >= 500 || problem.status == 429,
            _ => false,
        }
    }
}
