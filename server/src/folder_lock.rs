//! One server uses a folder at a time: its keys and the output of commands lie there, whichever database
//! it uses.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::ErrorKind,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, bail};

use crate::running;

const LOCK: &str = "server.lock";

/// The attempts to take a folder that is in use: a verb that asks if a server runs has the lock for a moment.
const TRIES: u32 = 10;
/// The same while only such verbs have it: on a busy machine a moment is long.
const TRIES_BEHIND_VERBS: u32 = 500;
/// Between two tries.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Holds the folder until the process ends.
pub(crate) struct FolderLock {
    lock: File,
}

impl FolderLock {
    /// Takes the folder.
    ///
    /// # Errors
    /// Fails if another server has the folder, or it cannot be written.
    pub(crate) async fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(LOCK);
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        let mut tries = 1;
        let taken = loop {
            match lock.try_lock() {
                Err(TryLockError::WouldBlock)
                    if tries < TRIES || (tries < TRIES_BEHIND_VERBS && !is_taken(folder)?) =>
                {
                    tokio::time::sleep(TRY_AGAIN_AFTER).await;
                }
                taken => break taken,
            }
            tries += 1;
        };
        match taken {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "{} is in use by another server: stop that one first, or set GANTRY_HOME to another folder",
                folder.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
        // The file described a server that no longer runs.
        running::forget(folder)?;
        Ok(Self { lock })
    }

    /// The identity of the folder, which no other folder on any host has, nor a copy of this one. A process that starts
    /// at the same place knows that the one before is dead.
    pub(crate) fn place(&self, boot: &str) -> anyhow::Result<String> {
        let about = self.lock.metadata()?;
        Ok(format!("{boot}/{}/{}", about.dev(), about.ino()))
    }
}

/// The identity of a folder that a server uses now; see [`FolderLock::place`].
///
/// # Errors
/// Fails if no server has used the folder.
pub(crate) fn place_of(folder: &Path, boot: &str) -> anyhow::Result<String> {
    let path = folder.join(LOCK);
    let lock = File::open(&path);
    let lock =
        lock.with_context(|| format!("{} cannot be read: start the server once", path.display()))?;
    FolderLock { lock }.place(boot)
}

/// True if a server, or a verb that must be alone, has the folder now. A verb that asks at the same time does not
/// count.
///
/// # Errors
/// Fails if the folder cannot be read.
/// If the folder cannot be read.
pub(crate) fn is_taken(folder: &Path) -> anyhow::Result<bool> {
    let path = folder.join(LOCK);
    let lock = match File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{} cannot be locked", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_folder_is_taken_once_and_a_verb_that_only_asks_keeps_no_server_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let is_taken = || is_taken(folder.path()).expect("it can be read");
        assert!(!is_taken());
        let asked = File::create(folder.path().join(LOCK)).expect("it is made");
        asked.lock_shared().expect("it is free");
        assert!(!is_taken(), "only a verb asks");
        let mut taking = std::pin::pin!(FolderLock::in_folder(folder.path()));
        let early = tokio::time::timeout(TRY_AGAIN_AFTER / 2, taking.as_mut()).await;
        assert!(early.is_err(), "it waits for the verb");
        drop(asked);
        let lock = taking.await.expect("it is free");
        assert!(is_taken());
        let second = FolderLock::in_folder(folder.path()).await.err();
        let second = second.expect("it is taken").to_string();
        assert!(second.contains("another server"), "{second}");
        drop(lock);
        assert!(!is_taken());
    }
}
