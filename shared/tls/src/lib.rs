//! TLS for every process of the project: the server's certificate, and the trust of its clients.
//!
//! There is one provider (aws-lc-rs), and every mode checks the handshake's signature: the host
//! that answers must prove that it holds the certificate's key. Modes of trust differ only in the
//! certificates that they accept.

pub mod certificate;
pub mod client;
pub mod peer;
mod socket;

pub use certificate::ServerTls;
pub use client::{Recorder, Trust, client_config};
pub use socket::TlsSocket;

use std::{path::PathBuf, sync::Arc};

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Makes aws-lc-rs the provider of every TLS library in this process. Called first in every
/// `main`; calling it again changes nothing.
pub fn install_provider() {
    // An error says only that a provider is installed already.
    let _ = aws_lc_rs::default_provider().install_default();
}

/// The reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The attempted action: "read", "write", …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A PEM file does not hold what it should.
    #[error("{} holds no {wanted} in PEM form", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// "certificate" or "private key".
        wanted: &'static str,
    },
    /// A certificate cannot be made for these names.
    #[error("cannot make a certificate: {0}")]
    Generate(#[from] rcgen::Error),
    /// The certificate and the key do not fit together, or the host has no root certificates.
    #[error("cannot set up TLS: {0}")]
    Rustls(#[from] rustls::Error),
}

fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()))
}

#[cfg(test)]
mod tests;
