//! The file with master keys, and the locks of its folder.
//!
//! The folder is locked rather than the file, because a rotation replaces the file. A server holds a shared lock from
//! its reading of the file until a new data key is stored. A rotation holds the exclusive one while it changes the
//! file. So it drops no master key that is about to be used.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::Path,
    time::Duration,
};

use shared_types::Entropy;
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use super::{MasterKeys, VaultError};

/// The largest file with master keys, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024;

/// The permission bits that a key file may not have: all but reading and writing by its owner.
const TOO_WIDE: u32 = 0o177;

/// The longest wait for the lock of the folder.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// The pause between two attempts to take the lock.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The folder of a key file, locked until this is dropped.
pub(super) struct FolderTaken(#[expect(dead_code, reason = "it holds the lock")] File);

impl FolderTaken {
    /// Takes it beside other readers. A folder that is not there, or that the server cannot list, is not taken.
    pub(super) async fn shared(key_file: &Path) -> Result<Option<Self>, VaultError> {
        use io::ErrorKind::{NotFound, PermissionDenied};
        let folder = folder_of(key_file);
        match File::open(folder) {
            Err(why) if matches!(why.kind(), NotFound | PermissionDenied) => Ok(None),
            opened => {
                let opened = opened.map_err(of_file(folder))?;
                Self::take(opened, File::try_lock_shared).await.map(Some)
            }
        }
    }

    /// Takes it alone.
    pub(super) async fn alone(key_file: &Path) -> Result<Self, VaultError> {
        let folder = folder_of(key_file);
        let opened = File::open(folder).map_err(of_file(folder))?;
        Self::take(opened, File::try_lock).await
    }

    /// Takes the folder above it, which keeps other rotations away.
    pub(super) async fn for_rotation(key_file: &Path) -> Result<Self, VaultError> {
        Self::alone(folder_of(key_file)).await
    }

    async fn take(
        opened: File,
        lock: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, VaultError> {
        let until = Instant::now() + TAKEN_WITHIN;
        loop {
            match lock(&opened) {
                Ok(()) => return Ok(Self(opened)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    sleep(TRY_AGAIN_AFTER).await;
                }
                Err(_) => return Err(VaultError::Busy),
            }
        }
    }
}

/// The folder that a path is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The text of a key file; none if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<String>>, VaultError> {
    let file = match File::open(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(of_file(path))?,
    };
    let about = file.metadata().map_err(of_file(path))?;
    let mode = about.permissions().mode() & 0o7777;
    if mode & TOO_WIDE != 0 {
        return Err(VaultError::Source(format!(
            "the master key file {} has mode {mode:04o}, so other users can read it: run chmod 600 on it, and rotate the key if others had access",
            path.display()
        )));
    }
    let too_large = about.len() > MAX_FILE_BYTES;
    let mut text = Zeroizing::new(String::with_capacity(MAX_FILE_BYTES as usize));
    let read = (&file).take(MAX_FILE_BYTES).read_to_string(&mut text);
    let is_text = match read {
        Ok(_) => true,
        Err(why) if why.kind() == io::ErrorKind::InvalidData => false,
        Err(why) => return Err(of_file(path)(why)),
    };
    if too_large || !is_text {
        return Err(VaultError::Source(format!(
            "the file {} holds no master keys: write one there with \"openssl rand -base64 32\"",
            path.display()
        )));
    }
    Ok(Some(text))
}

/// Makes the server's own file with a new key, unless another process was first.
pub(super) async fn make_own(path: &Path, entropy: &dyn Entropy) -> Result<MasterKeys, VaultError> {
    let _taken = FolderTaken::alone(path).await?;
    if let Some(text) = read(path)? {
        return MasterKeys::parse(&text, &path.display());
    }
    let keys = MasterKeys::generate(entropy);
    replace(path, &keys)?;
    Ok(keys)
}

/// Writes the keys to the file, whole or not at all. They are on disk when it returns. The file belongs to the owner of
/// its folder, also where root writes it, so that a running server can read it at once.
pub(super) fn replace(path: &Path, keys: &MasterKeys) -> Result<(), VaultError> {
    let folder = folder_of(path);
    let unfinished = path.with_extension("new");
    let written = || {
        match fs::remove_file(&unfinished) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        let (owner, ours) = (fs::metadata(folder)?, file.metadata()?);
        if owner.uid() != ours.uid() {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.write_all(keys.to_text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        File::open(folder)?.sync_all()
    };
    written().map_err(of_file(path))
}

fn of_file(path: &Path) -> impl FnOnce(io::Error) -> VaultError {
    let path = path.to_owned();
    move |why| VaultError::File { path, why }
}
