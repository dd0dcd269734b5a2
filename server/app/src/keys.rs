//! The server's own keys: who it is to runners, and what it signs for them
//! (docs/internals/contracts.md#b1 to #b3).
//!
//! The *identity key* is what a join token pins; it signs every `Identify` reply and the welcome of
//! every link. *Link keys* sign the short-lived access tokens of runners; while they rotate two are
//! live ([`LinkKeys`]). All are Ed25519, kept as PKCS#8 in PEM, so that `openssl
//! genpkey -algorithm ed25519` makes one too.

mod link;

pub(crate) use link::LINK_TOKEN_FOR;
pub use link::{LinkKeys, TokensOfBefore};

use std::{
    fmt, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use aws_lc_rs::{
    encoding::{AsBigEndian as _, Curve25519SeedBin},
    hmac,
    signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use proto::public_key::is_sound;
use shared_types::{Digest, Entropy, clean::without_mark};

/// An Ed25519 key that can sign.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    pkcs8: Vec<u8>,
}

impl SigningKey {
    /// A new key.
    pub fn generate(entropy: &dyn Entropy) -> Self {
        // PKCS#8 version 1 of an Ed25519 key is a fixed header and the seed (RFC 8410, section 7).
        const HEADER: [u8; 16] = [
            0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22,
            0x04, 0x20,
        ];
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let pkcs8 = [HEADER.as_slice(), &seed].concat();
        Self::from_pkcs8(pkcs8).expect("a header and 32 bytes are a key")
    }

    fn from_pkcs8(pkcs8: Vec<u8>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8).ok()?;
        Some(Self { pair, pkcs8 })
    }

    fn from_pem(text: &str) -> Option<Self> {
        let body = text
            .trim()
            .strip_prefix("-----BEGIN PRIVATE KEY-----")?
            .strip_suffix("-----END PRIVATE KEY-----")?;
        Self::from_pkcs8(
            STANDARD
                .decode(body.split_whitespace().collect::<String>())
                .ok()?,
        )
    }

    fn to_pem(&self) -> String {
        format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(&self.pkcs8)
        )
    }

    /// The key from this file; where there is none, a new one that is written there, readable by
    /// its owner only.
    ///
    /// # Errors
    /// If the file cannot be read or made, or holds something else.
    pub fn load_or_create(path: &Path, entropy: &dyn Entropy) -> Result<Self, KeyError> {
        match Self::load(path) {
            Err(KeyError::File { path, source }) if source.kind() == io::ErrorKind::NotFound => {
                let key = Self::generate(entropy);
                match write_private(&path, key.to_pem().as_bytes()) {
                    Ok(()) => Ok(key),
                    Err(source) => Err(KeyError::File { path, source }),
                }
            }
            loaded => loaded,
        }
    }

    /// The key from this file.
    ///
    /// # Errors
    /// If the file cannot be read, or holds something else.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let bytes = std::fs::read(path).map_err(|source| KeyError::File {
            path: path.to_owned(),
            source,
        })?;
        std::str::from_utf8(&bytes)
            .ok()
            .map(without_mark)
            .and_then(Self::from_pem)
            .ok_or_else(|| KeyError::NotAKey(path.to_owned()))
    }

    /// The public key, 32 bytes.
    pub fn public(&self) -> [u8; 32] {
        self.pair
            .public_key()
            .as_ref()
            .try_into()
            .expect("an Ed25519 public key has 32 bytes")
    }

    /// Signs; the signature has 64 bytes.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    /// A secret for this purpose, which every holder of the key can make, and nobody else.
    pub(crate) fn secret_for(&self, purpose: &str) -> [u8; 32] {
        let seed = self.pair.seed();
        let seed = seed.and_then(|seed| seed.as_be_bytes());
        let seed: Curve25519SeedBin<'_> = seed.expect("an Ed25519 key has a seed");
        let seed = hmac::Key::new(hmac::HMAC_SHA256, seed.as_ref());
        let made = hmac::sign(&seed, purpose.as_bytes());
        let made = made.as_ref().try_into();
        made.expect("HMAC-SHA256 gives 32 bytes")
    }

    pub(crate) fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", Digest::of(&self.public()))
    }
}

/// True if the holder of `public_key` made `signature` over `message`. A key of small order proves
/// nothing.
pub fn verifies(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    is_sound(public_key)
        && UnparsedPublicKey::new(&ED25519, public_key)
            .verify(message, signature)
            .is_ok()
}

/// A key file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("failed to use the key file {}: check that the folder belongs to the user that runs the server", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{} is not an Ed25519 private key in PEM; restore it from a backup, or move it away (where it is identity.pem, every runner is to be enrolled anew then)", .0.display())]
    NotAKey(PathBuf),
}

/// Writes a file that only its owner may read, whole or not at all.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let temporary = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use shared_types::entropy::SeededEntropy;

    use super::*;

    #[test]
    fn a_key_is_the_same_after_a_restart_and_only_its_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("identity.pem");
        let made = SigningKey::load_or_create(&path, &SeededEntropy::new(1)).expect("it is made");
        let read = SigningKey::load_or_create(&path, &SeededEntropy::new(2)).expect("it is read");
        assert_eq!(made.public(), read.public());
        assert!(verifies(&read.public(), b"hello", &made.sign(b"hello")));
        assert!(!verifies(&read.public(), b"hullo", &made.sign(b"hello")));
        assert_eq!(
            std::fs::metadata(&path)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }

    #[test]
    fn a_key_of_small_order_proves_nothing() {
        let mut nobody = [0; 32];
        nobody[0] = 1;
        let signature = [&nobody[..], &[0; 32]].concat();
        assert!(!verifies(&nobody, b"hello", &signature));
    }

    #[test]
    fn a_file_that_is_not_a_key_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("identity.pem");
        for content in [b"not a key".as_slice(), b"", b"\xff\xfe"] {
            std::fs::write(&path, content).expect("it is written");
            assert!(matches!(
                SigningKey::load_or_create(&path, &SeededEntropy::new(1)),
                Err(KeyError::NotAKey(_))
            ));
            assert_eq!(std::fs::read(&path).expect("it is there"), content);
        }
    }
}
