//! The keys that sign and verify link tokens, as they lie in the server's folder, and their rotation.
//!
//! `link.pem` signs. `link.previous.pem` is the key before it: what that one signed is accepted for as long as
//! a token may be good, from when the file was put there. After that the file is good for nothing.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use shared_types::{Clock, Entropy, Timestamp};

use super::{KeyError, SigningKey, write_private};

/// The time for which a link token is good.
pub(crate) const LINK_TOKEN_FOR: Duration = Duration::from_secs(600);

const NEWEST: &str = "link.pem";
const PREVIOUS: &str = "link.previous.pem";

/// The keys that sign and verify link tokens.
#[derive(Debug)]
pub struct LinkKeys {
    pub(crate) newest: SigningKey,
    /// Verifies until then.
    pub(crate) previous: Option<(SigningKey, Timestamp)>,
}

/// The fate of link tokens that the replaced key has signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokensOfBefore {
    /// They stay good until they expire.
    Accepted,
    /// They are refused from now on, because an attacker may have the key.
    Refused,
}

impl LinkKeys {
    /// One key, which signs and verifies.
    pub fn new(newest: SigningKey) -> Self {
        Self {
            newest,
            previous: None,
        }
    }

    /// The keys in this folder; where there is no newest one, it is made.
    ///
    /// # Errors
    /// If a file cannot be read or made, or holds something else.
    pub fn load(folder: &Path, clock: &dyn Clock, entropy: &dyn Entropy) -> Result<Self, KeyError> {
        let newest = SigningKey::load_or_create(&folder.join(NEWEST), entropy)?;
        let path = folder.join(PREVIOUS);
        let failed = |source| KeyError::File {
            path: path.clone(),
            source,
        };
        let since = match fs::metadata(&path) {
            // Moved there counts as well, and leaves the time of the last write as it was.
            Ok(about) => Timestamp::from_micros(about.ctime().saturating_mul(1_000_000)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::new(newest)),
            Err(error) => return Err(failed(error)),
        };
        let previous = SigningKey::load(&path)?;
        // A file from the future is one from now.
        let (now, until) = (clock.now(), since.after(LINK_TOKEN_FOR));
        let until = until.min(now.after(LINK_TOKEN_FOR));
        Ok(Self {
            newest,
            previous: (now < until).then_some((previous, until)),
        })
    }

    /// Puts a new key in the place of the newest one of this folder. A server that runs learns of it when it
    /// reloads.
    ///
    /// # Errors
    /// If there is no newest key, it is none, or a file cannot be written; then the newest key is what it was.
    pub fn rotate(
        folder: &Path,
        before: TokensOfBefore,
        entropy: &dyn Entropy,
    ) -> Result<(), KeyError> {
        let (newest, previous) = (folder.join(NEWEST), folder.join(PREVIOUS));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| KeyError::File { path, source }
        };
        let held = SigningKey::load(&newest)?;
        if before == TokensOfBefore::Accepted {
            write_private(&previous, held.to_pem().as_bytes()).map_err(failed(&previous))?;
        }
        if before == TokensOfBefore::Refused {
            match fs::remove_file(&previous) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&previous)(error));
                }
                _ => {}
            }
        }
        let new = SigningKey::generate(entropy).to_pem();
        write_private(&newest, new.as_bytes()).map_err(failed(&newest))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shared_types::{OsEntropy, SystemClock, clock::ManualClock};

    use super::*;

    fn load(folder: &Path, clock: &dyn Clock) -> LinkKeys {
        LinkKeys::load(folder, clock, &OsEntropy).expect("they are keys")
    }

    fn in_folder(folder: &Path, later: Duration) -> (Vec<u8>, Option<Vec<u8>>) {
        let clock = ManualClock::at(SystemClock::new().now().after(later));
        let LinkKeys { newest, previous } = load(folder, &clock);
        let previous = previous.map(|(key, _)| key.public().to_vec());
        (newest.public().to_vec(), previous)
    }

    #[test]
    fn a_rotated_key_verifies_for_ten_more_minutes_unless_it_is_to_be_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let at_once = Duration::ZERO;
        let (first, none) = in_folder(folder.path(), at_once);
        assert_eq!(none, None);
        let rotate = |before| LinkKeys::rotate(folder.path(), before, &OsEntropy);
        rotate(TokensOfBefore::Accepted).expect("it is rotated");
        let (second, previous) = in_folder(folder.path(), at_once);
        assert_ne!(second, first);
        assert_eq!(previous, Some(first));
        assert_eq!(
            in_folder(folder.path(), LINK_TOKEN_FOR),
            (second.clone(), None)
        );
        rotate(TokensOfBefore::Refused).expect("it is rotated");
        let (third, previous) = in_folder(folder.path(), at_once);
        assert_ne!(third, second);
        assert_eq!(previous, None);
    }

    #[test]
    fn nothing_is_rotated_where_the_newest_key_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let rotate = || LinkKeys::rotate(folder.path(), TokensOfBefore::Accepted, &OsEntropy);
        assert!(matches!(rotate(), Err(KeyError::File { .. })));
        std::fs::write(folder.path().join(NEWEST), "no key").expect("it is written");
        assert!(matches!(rotate(), Err(KeyError::NotAKey(_))));
        assert!(!folder.path().join(PREVIOUS).exists());
    }
}
