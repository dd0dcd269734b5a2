//! The trust of a client in its server.
//!
//! A runner and a terminal know their server by something better than a public name: the SHA-256 of
//! its certificate. If a proxy ends TLS, the platform's roots decide. At first contact a client may
//! know neither. It then records the certificate, until the server's identity signature on that
//! connection vouches for it.

use std::sync::{Arc, OnceLock};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use shared_types::Digest;

use crate::{TlsError, provider};

/// Which certificate a client accepts.
#[derive(Debug, Clone)]
pub enum Trust {
    /// One that the platform's root certificates vouch for, under the name that was dialled.
    Platform,
    /// The one whose leaf has this SHA-256, whatever its name and dates say.
    Pinned([u8; 32]),
    /// Any, once, to learn which it is.
    ///
    /// **Nothing secret may be sent** over such a connection before the server's identity
    /// signature over the recorded hash was checked: until then it may end at anyone.
    Record(Recorder),
}

/// The certificate's fingerprint at a first contact.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<OnceLock<[u8; 32]>>);

impl Recorder {
    /// One that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// SHA-256 of the leaf that was presented first; `None` before a handshake. A connection that
    /// presents another one afterwards is refused.
    pub fn recorded(&self) -> Option<[u8; 32]> {
        self.0.get().copied()
    }
}

/// A client's configuration under this trust, without ALPN: the caller that knows its protocol
/// sets `alpn_protocols` on a clone.
///
/// # Errors
/// Fails with [`Trust::Platform`] if the host has no root certificates.
pub fn client_config(trust: Trust) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider();
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Platform => Arc::new(rustls_platform_verifier::Verifier::new(provider.clone())?),
        Trust::Pinned(pin) => Arc::new(ByLeaf {
            rule: LeafRule::Pinned(pin),
            provider: provider.clone(),
        }),
        Trust::Record(recorder) => Arc::new(ByLeaf {
            rule: LeafRule::Record(recorder),
            provider: provider.clone(),
        }),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Judges a certificate by the hash of its leaf alone.
#[derive(Debug)]
struct ByLeaf {
    rule: LeafRule,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum LeafRule {
    Pinned([u8; 32]),
    Record(Recorder),
}

impl ServerCertVerifier for ByLeaf {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let leaf = *Digest::of(end_entity).as_bytes();
        let expected = match &self.rule {
            LeafRule::Pinned(pin) => pin,
            LeafRule::Record(recorder) => recorder.0.get_or_init(|| leaf),
        };
        if leaf == *expected {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
