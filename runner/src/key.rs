//! The two Ed25519 keys that matter to a runner: its own, and the server's identity, which a join
//! token pins. With its own key it proves on every connect that it is the runner that enrolled.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use proto::public_key::is_sound;
use serde::{Deserialize, Serialize};
use shared_types::{Digest, Entropy};

/// The runner's own key. A process that holds it is this runner.
pub(crate) struct RunnerKey(Ed25519KeyPair);

impl RunnerKey {
    /// A new key.
    pub(crate) fn generate(entropy: &dyn Entropy) -> Self {
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        Self(pair.expect("any 32 bytes are an Ed25519 seed"))
    }

    /// The key in this file (PKCS#8, DER).
    pub(crate) fn load(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |source| KeyError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed(path.to_owned()));
        }
        let bytes = fs::read(path).map_err(unreadable)?;
        let pair =
            Ed25519KeyPair::from_pkcs8(&bytes).map_err(|_| KeyError::Damaged(path.to_owned()))?;
        Ok(Self(pair))
    }

    /// Writes the key to a new file that only its owner may read.
    pub(crate) fn store(&self, path: &Path) -> io::Result<()> {
        let document = self.0.to_pkcs8v1().map_err(io::Error::other)?;
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(document.as_ref())?;
        file.sync_all()
    }

    /// The public half.
    pub(crate) fn public(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    /// Signs a message of `proto::signing`.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

/// The server's public identity key, in hexadecimal where it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ServerIdentity(pub(crate) [u8; 32]);

impl ServerIdentity {
    /// True if the server signed exactly this. A key of small order is no server's.
    pub(crate) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        is_sound(&self.0)
            && UnparsedPublicKey::new(&ED25519, self.0)
                .verify(message, signature)
                .is_ok()
    }
}

impl TryFrom<String> for ServerIdentity {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let bytes = Digest::from_hex(&text).ok_or("expected 64 hexadecimal digits")?;
        Ok(Self(*bytes.as_bytes()))
    }
}

impl From<ServerIdentity> for String {
    fn from(identity: ServerIdentity) -> Self {
        identity
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The reason why the runner's key cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("cannot read the runner's key {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("others may read the runner's key {}: run `chmod 600` on it", .0.display())]
    Exposed(PathBuf),
    #[error("{} is not an Ed25519 key: enrol again with --replace", .0.display())]
    Damaged(PathBuf),
}

#[cfg(test)]
mod tests {
    use shared_types::entropy::SeededEntropy;

    use super::*;

    #[test]
    fn a_stored_key_reads_back_and_signs_what_its_public_half_verifies() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("identity.key");
        let key = RunnerKey::generate(&SeededEntropy::new(1));
        key.store(&path).expect("a file");
        let read = RunnerKey::load(&path).expect("the key");
        assert_eq!(read.public(), key.public());
        let identity = ServerIdentity(key.public().try_into().expect("32 bytes"));
        assert!(identity.signed(b"message", &read.sign(b"message")));
        assert!(!identity.signed(b"another", &read.sign(b"message")));
    }

    #[test]
    fn nobody_signs_in_the_place_of_a_key_of_small_order() {
        let mut nobody = [0; 32];
        nobody[0] = 1;
        let signature = [&nobody[..], &[0; 32]].concat();
        assert!(!ServerIdentity(nobody).signed(b"message", &signature));
    }

    #[test]
    fn a_key_that_others_may_read_or_that_is_none_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("identity.key");
        let key = RunnerKey::generate(&SeededEntropy::new(1));
        key.store(&path).expect("a file");
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
        assert!(matches!(RunnerKey::load(&path), Err(KeyError::Exposed(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        fs::write(&path, "no key").expect("a file");
        assert!(matches!(RunnerKey::load(&path), Err(KeyError::Damaged(_))));
    }

    fn mode(path: &Path) -> u32 {
        let file = fs::metadata(path).expect("the file");
        file.permissions().mode() & 0o777
    }
}
