//! The sources of master keys.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use super::{
    MasterKeys, VaultError,
    file::{self, FolderTaken},
};

/// A place that master keys come from.
#[derive(Clone)]
pub enum MasterKeySource {
    /// The file that the server makes beside its database.
    Own(PathBuf),
    /// A file of the operator's.
    File(PathBuf),
    /// A text that was read once, from the environment or a command.
    Given {
        /// The name of that source, such as `GANTRY_MASTER_KEY`.
        from: &'static str,
        /// The text.
        text: Zeroizing<String>,
    },
}

impl MasterKeySource {
    /// A text from the environment or a command.
    pub fn given(from: &'static str, text: String) -> Self {
        let text = Zeroizing::new(text);
        Self::Given { from, text }
    }

    /// The keys as they are now; none where the server has not made its own file yet.
    ///
    /// # Errors
    /// If there are none, or other users can read the file.
    pub fn read(&self) -> Result<Option<MasterKeys>, VaultError> {
        let text = match self {
            Self::Own(path) => match file::read(path)? {
                Some(text) => text,
                None => return Ok(None),
            },
            Self::File(path) => file::read(path)?.ok_or_else(|| {
                VaultError::Source(format!(
                    "{self} does not exist: write a master key to it with \"openssl rand -base64 32\" and set its mode to 0600, or correct master_key_file under [secrets] in gantry.toml"
                ))
            })?,
            Self::Given { text, .. } => text.clone(),
        };
        MasterKeys::parse(&text, self).map(Some)
    }

    /// Keeps rotations from changing the file until the result is dropped.
    pub(super) async fn taken(&self) -> Result<Option<FolderTaken>, VaultError> {
        match self.path() {
            Some(path) => FolderTaken::shared(path).await,
            None => Ok(None),
        }
    }

    /// The file, where it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Own(path) | Self::File(path) => Some(path),
            Self::Given { .. } => None,
        }
    }
}

/// The file, or the name of the source.
impl fmt::Display for MasterKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(path) | Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Given { from, .. } => f.write_str(from),
        }
    }
}

impl fmt::Debug for MasterKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKeySource({self})")
    }
}
