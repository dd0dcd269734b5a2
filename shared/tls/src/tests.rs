//! Real handshakes over loopback.

use std::os::unix::fs::PermissionsExt;

use rustls::pki_types::ServerName;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

/// Lets one client shake hands with a server that has `tls`; `true` where it was content.
async fn shakes_hands(tls: &ServerTls, trust: Trust) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let acceptor = TlsAcceptor::from(tls.config());
    let serve = async {
        let (socket, _) = listener.accept().await.expect("a connection");
        let _ = acceptor.accept(socket).await;
    };
    let dial = async {
        let socket = TcpStream::connect(address).await.expect("a listener");
        let connector = TlsConnector::from(client_config(trust).expect("a configuration"));
        let name = ServerName::from(address.ip());
        connector.connect(name, socket).await.is_ok()
    };
    tokio::join!(serve, dial).1
}

fn self_signed(directory: &tempfile::TempDir) -> ServerTls {
    ServerTls::self_signed(directory.path(), &["localhost".into(), "127.0.0.1".into()])
        .expect("a certificate")
}

#[tokio::test]
async fn a_pinned_client_accepts_the_pinned_certificate_and_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let tls = self_signed(&directory);
    assert!(shakes_hands(&tls, Trust::Pinned(tls.certificate_sha256())).await);
    assert!(!shakes_hands(&tls, Trust::Pinned([7; 32])).await);
}

#[tokio::test]
async fn the_platforms_roots_do_not_vouch_for_a_self_signed_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(!shakes_hands(&self_signed(&directory), Trust::Platform).await);
}

#[tokio::test]
async fn a_recorder_notes_the_first_certificate_and_refuses_a_second() {
    let (one, other) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let (one, other) = (self_signed(&one), self_signed(&other));
    let recorder = Recorder::new();
    assert_eq!(recorder.recorded(), None);
    assert!(shakes_hands(&one, Trust::Record(recorder.clone())).await);
    assert_eq!(recorder.recorded(), Some(one.certificate_sha256()));
    assert!(!shakes_hands(&other, Trust::Record(recorder.clone())).await);
    assert_eq!(recorder.recorded(), Some(one.certificate_sha256()));
}

/// A server that shows the certificate of another, without having its key.
#[derive(Debug)]
struct Impostor(Arc<rustls::sign::CertifiedKey>);

impl rustls::server::ResolvesServerCert for Impostor {
    fn resolve(
        &self,
        _: rustls::server::ClientHello<'_>,
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        Some(self.0.clone())
    }
}

#[tokio::test]
async fn whoever_shows_a_certificate_must_hold_its_key_in_every_mode_and_version() {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let (shown, held) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let pin = self_signed(&shown).certificate_sha256();
    self_signed(&held);
    let chain = CertificateDer::from_pem_file(shown.path().join("certificate.pem")).expect("PEM");
    let key = PrivateKeyDer::from_pem_file(held.path().join("certificate.key")).expect("PEM");
    let key = aws_lc_rs::sign::any_supported_type(&key).expect("a key");
    let impostor = Arc::new(Impostor(Arc::new(rustls::sign::CertifiedKey::new(
        vec![chain],
        key,
    ))));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_no_client_auth()
            .with_cert_resolver(impostor.clone());
        let tls = certificate::ServerTls::for_test(config, pin);
        assert!(!shakes_hands(&tls, Trust::Pinned(pin)).await);
        assert!(!shakes_hands(&tls, Trust::Record(Recorder::new())).await);
    }
}

#[test]
fn a_self_signed_certificate_is_made_once_and_its_key_is_private() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = self_signed(&directory);
    assert_eq!(
        self_signed(&directory).certificate_sha256(),
        first.certificate_sha256()
    );
    let mode = |name| {
        let file = std::fs::metadata(directory.path().join(name)).expect("the file");
        file.permissions().mode() & 0o777
    };
    assert_eq!(mode("certificate.key"), 0o600);
    assert_eq!(mode("certificate.pem"), 0o644);
}

#[test]
fn files_that_are_missing_foreign_or_of_another_key_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let other = tempfile::tempdir().expect("a directory");
    self_signed(&directory);
    self_signed(&other);
    let chain = directory.path().join("certificate.pem");
    let key = directory.path().join("certificate.key");
    let error = |chain: &std::path::Path, key: &std::path::Path| {
        ServerTls::from_files(chain, key)
            .expect_err("an error")
            .to_string()
    };
    assert!(error(&directory.path().join("none.pem"), &key).contains("cannot read"));
    assert!(error(&key, &key).contains("holds no certificate"));
    assert!(error(&chain, &chain).contains("holds no private key"));
    assert!(error(&chain, &other.path().join("certificate.key")).contains("cannot set up TLS"));
}
