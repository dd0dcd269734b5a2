//! The rotation of master keys, also while servers run.
//!
//! The server's own file gets a new key in front, every data key is wrapped by it, and then the older keys go. Of any
//! other source the operator adds and removes the keys, and the data keys are wrapped by the first.
//!
//! A rotation that is interrupted left keys that open all data keys, and the next one goes on.

use std::path::Path;

use server_store::Store;
use shared_types::Entropy;

use super::{
    HeldKeys, MasterKeySource, MasterKeys, VaultError,
    file::{FolderTaken, replace},
};

/// Data keys that are read at once.
const PAGE: u32 = 100;

/// The result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// The id of the master key that wraps all data keys now.
    pub master_key: String,
    /// The number of data keys that the new master key wraps.
    pub data_keys: u64,
    /// The number of older master keys that wrap nothing any more: they were dropped from the server's own file, or may
    /// be removed from another source.
    pub older: usize,
}

/// Wraps every data key by a new master key, or by the current one of a source that is not the server's own file.
///
/// # Errors
/// If the keys cannot be read or written, or do not open every data key. The master keys that are needed then are still
/// in their place.
pub async fn rotate(
    store: &Store,
    source: &MasterKeySource,
    entropy: &dyn Entropy,
) -> Result<Rotated, VaultError> {
    match source {
        MasterKeySource::Own(path) => rotate_own(store, path, entropy).await,
        MasterKeySource::File(_) | MasterKeySource::Given { .. } => {
            let keys = {
                let _taken = source.taken().await?;
                fitting(store, source).await?
            };
            let mut data_keys = rewrap(store, &keys, entropy).await?;
            let _taken = match source.path() {
                Some(path) => FolderTaken::alone(path).await.ok(),
                None => None,
            };
            // A server that read the file before may have added some by an older one.
            data_keys += rewrap(store, &keys, entropy).await?;
            Ok(Rotated {
                master_key: keys.current().to_owned(),
                data_keys,
                older: keys.len() - 1,
            })
        }
    }
}

async fn rotate_own(
    store: &Store,
    path: &Path,
    entropy: &dyn Entropy,
) -> Result<Rotated, VaultError> {
    let source = MasterKeySource::Own(path.to_owned());
    let _only = FolderTaken::for_rotation(path).await?;
    let with_new = {
        let _taken = FolderTaken::alone(path).await?;
        let older = fitting(store, &source).await?;
        let with_new = MasterKeys::generate(entropy).before(older);
        replace(path, &with_new)?;
        with_new
    };
    // Without the lock: servers may add data keys, by the new master key.
    let mut data_keys = rewrap(store, &with_new, entropy).await?;
    let _taken = FolderTaken::alone(path).await?;
    // A server that read the file before may have added some by an older one.
    data_keys += rewrap(store, &with_new, entropy).await?;
    let older = with_new.len() - 1;
    let current = with_new.current_only();
    let in_use = store.master_keys_in_use().await?;
    if let Some(other) = in_use.into_iter().find(|key| key.id != current.current()) {
        return Err(VaultError::DoesNotFit {
            from: source.to_string(),
            there: current.ids(),
            id: other.id,
            data_keys: other.data_keys,
        });
    }
    replace(path, &current)?;
    Ok(Rotated {
        master_key: current.current().to_owned(),
        data_keys,
        older,
    })
}

/// The keys of the source, which open every data key. Its folder must be taken.
async fn fitting(store: &Store, source: &MasterKeySource) -> Result<MasterKeys, VaultError> {
    HeldKeys::read_in_taken(store, source.clone()).await?;
    source.read()?.ok_or_else(|| {
        VaultError::Source(format!(
            "{source} does not exist yet: the server makes it when it first starts"
        ))
    })
}

/// Wraps the data keys that another master key wraps by the current one. Returns their number.
async fn rewrap(
    store: &Store,
    keys: &MasterKeys,
    entropy: &dyn Entropy,
) -> Result<u64, VaultError> {
    let (mut after, mut rewrapped) = (None, 0);
    loop {
        let page = store.data_keys_after(after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(rewrapped);
        };
        after = Some((last.tenant, last.version));
        for row in page {
            if row.master_key == keys.current() {
                continue;
            }
            let key = keys.unwrap(&row)?;
            let new = keys.wrap(row.tenant, row.version, &key, entropy);
            let changed = store.rewrap_data_key(&new, &row.master_key).await?;
            rewrapped += u64::from(changed);
        }
    }
}
