//! TLS between the servers (replicas) that share a database: each end shows a certificate of their cluster key.
//!
//! The *cluster key* is a certificate authority of the database. A replica signs itself a certificate for each connection,
//! and names its id in it. Either end refuses a certificate of another authority. The end that connects also refuses that
//! of another replica than the one it asked for. There are no sessions to resume: every handshake shows certificates.

use std::{fmt, sync::Arc, time::Duration};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    client::{Resumption, WebPkiServerVerifier},
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName},
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    version::TLS13,
};

use crate::{TlsError, provider};

/// A certificate is valid from this long before it is made, because the clocks of two machines differ.
const VALID_BEFORE: Duration = Duration::from_secs(60 * 60);
/// It is valid for this long after it was made. It is made for one handshake.
const VALID_AFTER: Duration = Duration::from_secs(60 * 60);

/// The key of a cluster, which no text of ours prints.
pub struct ClusterKey {
    key: KeyPair,
}

/// The certificates of one replica, and its trust in those of the same cluster.
#[derive(Clone)]
pub struct PeerTls(Arc<Inner>);

struct Inner {
    issuer: Issuer<'static, KeyPair>,
    key: KeyPair,
    name: String,
    roots: Arc<RootCertStore>,
}

impl ClusterKey {
    /// A new key (ECDSA P-256).
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate() -> Result<Self, TlsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        Ok(Self { key })
    }

    /// The key that [`ClusterKey::to_pem`] wrote.
    ///
    /// # Errors
    /// If it is none. The error does not repeat the text.
    pub fn from_pem(pem: &str) -> Result<Self, TlsError> {
        let key = KeyPair::from_pem(pem)?;
        Ok(Self { key })
    }

    /// The private key as PKCS #8 in PEM: a secret.
    pub fn to_pem(&self) -> String {
        self.key.serialize_pem()
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey")
    }
}

impl PeerTls {
    /// The certificates of the replica with this id in text form.
    ///
    /// # Errors
    /// If the library refuses the key.
    pub fn new(cluster: ClusterKey, replica: &str) -> Result<Self, TlsError> {
        let authority = authority();
        // Others trust the name and the key of the authority alone, so each replica makes this certificate itself.
        let root = authority.self_signed(&cluster.key)?;
        let mut roots = RootCertStore::empty();
        roots.add(root.der().clone())?;
        Ok(Self(Arc::new(Inner {
            issuer: Issuer::new(authority, cluster.key),
            key: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
            name: host_name(replica),
            roots: Arc::new(roots),
        })))
    }

    /// For the end that accepts a connection at this time (since 1970).
    ///
    /// # Errors
    /// If no certificate can be made.
    pub fn server_config(&self, now: Duration) -> Result<Arc<ServerConfig>, TlsError> {
        let verifier =
            WebPkiClientVerifier::builder_with_provider(self.0.roots.clone(), provider())
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
        let (chain, key) = self.certificate(now)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// For the end that connects at this time (since 1970), and the name that the other end has to show: that of the
    /// replica with this id.
    ///
    /// # Errors
    /// If no certificate can be made, or the id cannot be in one.
    pub fn client_config(
        &self,
        replica: &str,
        now: Duration,
    ) -> Result<(Arc<ClientConfig>, ServerName<'static>), TlsError> {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(self.0.roots.clone(), provider())
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
        let (chain, key) = self.certificate(now)?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(host_name(replica))
            .map_err(|_| rustls::Error::General("the replica's id is no name".to_owned()))?;
        Ok((Arc::new(config), name))
    }

    fn certificate(
        &self,
        now: Duration,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let mut params = CertificateParams::new([self.0.name.clone()])?;
        params.distinguished_name = DistinguishedName::new();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let now = date_time_ymd(1970, 1, 1) + now;
        params.not_before = now - VALID_BEFORE;
        params.not_after = now + VALID_AFTER;
        let certificate = params.signed_by(&self.0.key, &self.0.issuer)?;
        let key = PrivatePkcs8KeyDer::from(self.0.key.serialize_der());
        Ok((vec![certificate.der().clone()], key.into()))
    }
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerTls({})", self.0.name)
    }
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let name = "Gantry cluster";
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// An id as the name of a host, which has no `_`.
fn host_name(replica: &str) -> String {
    replica.replace('_', "-")
}

#[cfg(test)]
mod tests;
