//! The digest of a file's content, which names its algorithm.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::Digest;

/// An algorithm for the digests of files. Both have 256 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DigestAlgorithm {
    /// SHA-256, which every language has.
    #[default]
    Sha256,
    /// BLAKE3, which is faster.
    Blake3,
}

impl DigestAlgorithm {
    /// Its name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Blake3 => "blake3",
        }
    }

    /// The digest of these bytes.
    pub fn of(self, bytes: &[u8]) -> FileDigest {
        let mut hasher = FileHasher::new(self);
        hasher.update(bytes);
        hasher.finish()
    }
}

/// The digest of a file's content. Its text form is `sha256:` or `blake3:` and 64 hexadecimal digits;
/// the digits alone are read as SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileDigest {
    /// The algorithm that made it.
    pub algorithm: DigestAlgorithm,
    /// Its 32 bytes.
    pub value: Digest,
}

impl From<Digest> for FileDigest {
    /// A plain [`Digest`] is a SHA-256.
    fn from(value: Digest) -> Self {
        Self {
            algorithm: DigestAlgorithm::Sha256,
            value,
        }
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.value)
    }
}

impl fmt::Debug for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no digest of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected sha256: or blake3: and 64 hexadecimal digits")]
pub struct NotADigest;

impl FromStr for FileDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let (algorithm, digits) = match text.split_once(':') {
            None => (DigestAlgorithm::Sha256, text),
            Some((name, digits)) => {
                let known = [DigestAlgorithm::Sha256, DigestAlgorithm::Blake3];
                let algorithm = known.into_iter().find(|known| known.name() == name);
                (algorithm.ok_or(NotADigest)?, digits)
            }
        };
        let value = Digest::from_hex(digits).ok_or(NotADigest)?;
        Ok(Self { algorithm, value })
    }
}

impl Serialize for FileDigest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileDigest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Computes the digest of a file piece by piece.
#[derive(Debug, Clone)]
pub struct FileHasher(State);

#[derive(Debug, Clone)]
enum State {
    Sha256(sha2::Sha256),
    Blake3(Box<blake3::Hasher>),
}

impl Default for FileHasher {
    fn default() -> Self {
        Self::new(DigestAlgorithm::default())
    }
}

impl FileHasher {
    /// Of an empty file.
    pub fn new(algorithm: DigestAlgorithm) -> Self {
        Self(match algorithm {
            DigestAlgorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            DigestAlgorithm::Blake3 => State::Blake3(Box::default()),
        })
    }

    /// Adds what comes next in the file.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(hasher) => hasher.update(bytes),
            State::Blake3(hasher) => {
                hasher.update(bytes);
            }
        }
    }

    /// The digest of all that was added.
    pub fn finish(self) -> FileDigest {
        let (algorithm, value): (_, [u8; 32]) = match self.0 {
            State::Sha256(hasher) => (DigestAlgorithm::Sha256, hasher.finalize().into()),
            State::Blake3(hasher) => (DigestAlgorithm::Blake3, hasher.finalize().into()),
        };
        FileDigest {
            algorithm,
            value: Digest::from(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_says_its_algorithm_and_is_the_known_one_of_the_empty_file() {
        for (algorithm, text) in [
            (
                DigestAlgorithm::Sha256,
                "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                DigestAlgorithm::Blake3,
                "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
            ),
        ] {
            let digest = algorithm.of(b"");
            assert_eq!(digest.to_string(), text);
            assert_eq!(text.parse(), Ok(digest));
        }
    }

    #[test]
    fn digits_alone_are_a_sha_256_and_anything_else_is_no_digest() {
        let digest = Digest::of(b"a");
        assert_eq!(digest.to_string().parse(), Ok(FileDigest::from(digest)));
        for wrong in [
            "",
            "md5:00",
            &format!("md5:{digest}"),
            "sha256:",
            "blake3:zz",
        ] {
            assert_eq!(wrong.parse::<FileDigest>(), Err(NotADigest), "{wrong}");
        }
    }

    #[test]
    fn a_file_in_pieces_has_the_digest_of_the_whole() {
        for algorithm in [DigestAlgorithm::Sha256, DigestAlgorithm::Blake3] {
            let mut hasher = FileHasher::new(algorithm);
            hasher.update(b"con");
            hasher.update(b"tent");
            assert_eq!(hasher.finish(), algorithm.of(b"content"));
        }
    }
}
