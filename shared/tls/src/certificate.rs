//! The server's certificate: its own, made once and known by its hash, or one from files.
//!
//! A self-signed certificate needs no expiry and no particular names: runners and terminals know
//! it by its SHA-256. It is made once and kept, because another one would be a stranger to them.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{ErrorKind, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::Arc,
};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use shared_types::Digest;

use crate::{TlsError, provider};

/// The byte order mark (BOM) that some editors put at the beginning of a text file.
const MARK: &[u8] = "\u{feff}".as_bytes();

const CERTIFICATE_FILE: &str = "certificate.pem";
const KEY_FILE: &str = "certificate.key";

/// The certificate and key of a server, as a TLS configuration.
#[derive(Debug, Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    certificate_sha256: [u8; 32],
    names: Vec<String>,
}

impl ServerTls {
    /// The self-signed certificate that `directory` keeps; where there is none yet, a new one
    /// (ECDSA P-256) for these DNS names and IP addresses. The key's file is readable by its
    /// owner only.
    ///
    /// # Errors
    /// Fails if files cannot be read or written, or hold something else, or if a name is invalid.
    pub fn self_signed(directory: &Path, names: &[String]) -> Result<Self, TlsError> {
        let chain = directory.join(CERTIFICATE_FILE);
        let key = directory.join(KEY_FILE);
        // The certificate is put into place last, so where it is the key is as well.
        if !chain.try_exists().map_err(failed("look for", &chain))? {
            make(directory, names)?;
        }
        Self::from_files(&chain, &key)
    }

    /// A certificate chain (leaf first) and its private key, both in PEM form.
    ///
    /// # Errors
    /// Fails if files cannot be read, hold something else, or do not belong together.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, TlsError> {
        let certificates = CertificateDer::pem_slice_iter(&read(chain)?)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .filter(|certificates| !certificates.is_empty())
            .ok_or_else(|| not_pem(chain, "certificate"))?;
        let key =
            PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| not_pem(key, "private key"))?;
        let certificate_sha256 = *Digest::of(&certificates[0]).as_bytes();
        let names = dns_names(&certificates[0]);
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(certificates, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            certificate_sha256,
            names,
        })
    }

    /// The DNS names in the leaf certificate; one may begin with `*.`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// For a `tokio_rustls::TlsAcceptor`; offers `h2` and `http/1.1`.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// SHA-256 of the leaf certificate (DER): what clients pin and the server's identity signs.
    pub fn certificate_sha256(&self) -> [u8; 32] {
        self.certificate_sha256
    }

    #[cfg(test)]
    pub(crate) fn for_test(config: ServerConfig, certificate_sha256: [u8; 32]) -> Self {
        Self {
            config: Arc::new(config),
            certificate_sha256,
            names: Vec::new(),
        }
    }
}

/// The DNS names of a certificate. There are none if it cannot be read: then clients cannot verify
/// it by name either.
fn dns_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let leaf = webpki::EndEntityCert::try_from(certificate);
    let names = leaf.iter().flat_map(|leaf| leaf.valid_dns_names());
    names.map(str::to_owned).collect()
}

fn make(directory: &Path, names: &[String]) -> Result<(), TlsError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "Gantry server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.self_signed(&key)?;
    fs::create_dir_all(directory).map_err(failed("create", directory))?;
    write(directory, KEY_FILE, key.serialize_pem().as_bytes(), 0o600)?;
    write(
        directory,
        CERTIFICATE_FILE,
        certificate.pem().as_bytes(),
        0o644,
    )
}

/// Writes a whole file with exactly these permissions, or leaves the existing one.
fn write(directory: &Path, name: &str, content: &[u8], mode: u32) -> Result<(), TlsError> {
    let path = directory.join(name);
    let unfinished = directory.join(format!("{name}.new"));
    let put = || {
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&unfinished)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)
    };
    put().map_err(failed("write", &path))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut text = fs::read(path).map_err(failed("read", path))?;
    if text.starts_with(MARK) {
        text.drain(..MARK.len());
    }
    Ok(text)
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> TlsError {
    let path = path.to_owned();
    move |source| TlsError::File {
        action,
        path,
        source,
    }
}

fn not_pem(path: &Path, wanted: &'static str) -> TlsError {
    TlsError::Pem {
        path: path.to_owned(),
        wanted,
    }
}
