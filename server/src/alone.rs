//! One server uses a folder at a time: its keys and the output of commands lie there, whichever database
//! it uses.

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use anyhow::{Context as _, bail};

/// Holds the folder until the process ends.
pub(crate) struct Alone {
    lock: File,
}

impl Alone {
    /// Takes the folder.
    ///
    /// # Errors
    /// If another server has it, or it cannot be written.
    pub(crate) fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("server.lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { lock }),
            Err(TryLockError::WouldBlock) => bail!(
                "{} is in use by another server: stop that one first, or set GANTRY_HOME to another folder",
                folder.display()
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("{} cannot be locked", path.display()))
            }
        }
    }

    /// What no other folder has on any host, and a copy of this folder neither. A process that starts at the
    /// same place knows that the one before is dead.
    pub(crate) fn place(&self, boot: &str) -> anyhow::Result<String> {
        let about = self.lock.metadata()?;
        Ok(format!("{boot}/{}/{}", about.dev(), about.ino()))
    }
}
