//! Secrets at rest: the keys of people's accounts elsewhere, sealed in the database.
//!
//! A *data key* of a tenant seals its secrets with AES-256-GCM, and a *master key* wraps the data key. The database has
//! the sealed and the wrapped forms alone. A master key comes from a file, the environment or a command
//! ([`MasterKeySource`]), and is not part of a backup.
//!
//! - A sealed secret opens only at its own place: it is bound to its tenant, its id and its version.
//! - A master key that does not fit the stored data keys is refused before anything is written ([`Vault::unlock`]).
//! - A rotation wraps the data keys under the new master key and leaves the secrets as they are ([`rotate`]). A running
//!   server reads its file again when it meets a master key that it does not know.

mod file;
mod master;
mod rotation;
mod sealing;
mod source;

use std::{
    io,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use server_store::{DataKeyRow, MasterKeyInUse, SealedSecret, Store, StoreError};
use shared_types::{Clock, Entropy, SecretId, TenantId};
use zeroize::Zeroizing;

pub use master::MasterKeys;
pub use rotation::{Rotated, rotate};
pub use source::MasterKeySource;

use self::{
    file::make_own,
    sealing::{KEY_BYTES, NotOpened},
};
use crate::AppError;

/// The first version of a tenant's data key.
const FIRST: u32 = 1;

/// A text that is shown nowhere. Its bytes are overwritten when it is dropped.
pub struct Plain(Zeroizing<Vec<u8>>);

/// Seals and opens the secrets of all tenants; cheap to clone.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    held: RwLock<HeldKeys>,
}

/// The master keys that a server holds, and their source.
#[derive(Clone)]
pub struct HeldKeys {
    source: MasterKeySource,
    /// Absent where the server could not make any.
    keys: Option<Arc<MasterKeys>>,
}

/// The reason why a secret was not sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// A source has no usable master keys.
    #[error("{0}")]
    Source(String),
    /// The file with master keys cannot be read or written.
    #[error("use the master key file {}: {why}; correct that, or set master_key_file under [secrets] in gantry.toml to another file", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// There is no master key, and secrets are stored.
    #[error(
        "open the stored secrets: {data_keys} data keys are wrapped by the master key {id}, and there is none in {}; put that file back with mode 0600, or set the source of the key under [secrets] in gantry.toml; if it is lost, run gantry-server secrets forget {id}", path.display()
    )]
    Missing {
        /// The file in which the master key would be.
        path: PathBuf,
        /// The id of the master key that is needed.
        id: String,
        /// The number of data keys that it wraps.
        data_keys: u64,
    },
    /// The master keys do not open all that is stored.
    #[error(
        "open the stored secrets: {data_keys} data keys are wrapped by the master key {id}, and {from} has only {there}; add that key on a line of its own, or if it is lost, run gantry-server secrets forget {id}"
    )]
    DoesNotFit {
        /// The source of the master keys.
        from: String,
        /// The ids of its master keys.
        there: String,
        /// The id of the master key that is needed.
        id: String,
        /// The number of data keys that it wraps.
        data_keys: u64,
    },
    /// A server without a master key is to seal a secret.
    #[error(
        "seal a secret: this server has no master key, because {why}; set master_key_file under [secrets] in gantry.toml, or GANTRY_MASTER_KEY"
    )]
    NoKey {
        /// The reason why it has none.
        why: String,
    },
    /// It is not the text that was sealed here.
    #[error(
        "open the {0}: it was changed, or is one of another place; restore it from a backup, or enter the secret again"
    )]
    Damaged(&'static str),
    /// A newer version sealed it.
    #[error("open the {0}: a newer version of Gantry sealed it; start that version")]
    Newer(&'static str),
    /// A rotation has the keys.
    #[error("use the master keys: a rotation is under way; try again once it has ended")]
    Busy,
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Plain {
    /// Takes a text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text.into_bytes()))
    }

    /// The bytes; they must not be copied to where they stay.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The text, where it is one.
    pub fn expose_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl Vault {
    /// A vault with the keys of a source. Where the server's own file is missing and no data key is stored, it
    /// is made. Where it cannot be made, the vault has no key and seals nothing.
    ///
    /// # Errors
    /// If the keys cannot be read, or do not open every stored data key. Then nothing was written.
    pub async fn unlock(
        store: Store,
        source: MasterKeySource,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, VaultError> {
        let mut held = HeldKeys::read(&store, source).await?;
        if let (None, MasterKeySource::Own(path)) = (&held.keys, &held.source) {
            match make_own(path, &*entropy).await {
                Ok(keys) => held.keys = Some(Arc::new(keys)),
                Err(VaultError::File { path, why }) if is_read_only(&why) => {
                    let path = path.display();
                    tracing::warn!(file = %path, error = %why, "the master key cannot be made, so no secret can be stored: set master_key_file under [secrets] in gantry.toml, or GANTRY_MASTER_KEY");
                }
                Err(error) => return Err(error),
            }
        }
        let inner = Inner {
            store,
            clock,
            entropy,
            held: RwLock::new(held),
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Reads the master keys of a source, to be taken up with [`Vault::use_keys`].
    ///
    /// # Errors
    /// If they cannot be read, or do not open every stored data key.
    pub async fn read(&self, source: MasterKeySource) -> Result<HeldKeys, VaultError> {
        HeldKeys::read(&self.0.store, source).await
    }

    /// Takes up other master keys.
    pub fn use_keys(&self, held: HeldKeys) {
        *self.0.held.write().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// Seals a text as this version of a secret: the first is 1.
    ///
    /// # Errors
    /// If there is no master key, or the tenant's data key cannot be unwrapped.
    pub async fn seal(
        &self,
        tenant: TenantId,
        id: SecretId,
        version: u32,
        text: &Plain,
    ) -> Result<SealedSecret, VaultError> {
        let (data_key, key) = match self.0.store.newest_data_key(tenant).await? {
            Some(row) => (row.version, self.unwrapped(row).await?),
            None => self.new_data_key(tenant).await?,
        };
        let place = sealing::of_secret(tenant, id, version);
        Ok(SealedSecret {
            id,
            version,
            data_key,
            sealed: sealing::seal(&key, &place, text.expose(), &*self.0.entropy),
        })
    }

    /// Opens a secret of this tenant.
    ///
    /// # Errors
    /// If it was sealed elsewhere, or its data key cannot be unwrapped.
    pub async fn open(&self, tenant: TenantId, secret: &SealedSecret) -> Result<Plain, VaultError> {
        let row = self.0.store.data_key(tenant, secret.data_key).await?;
        let key = self.unwrapped(row).await?;
        let place = sealing::of_secret(tenant, secret.id, secret.version);
        let opened = sealing::open(&key, &place, &secret.sealed);
        Ok(Plain(opened.map_err(|why| why.of("secret"))?))
    }

    /// The secret of the tenant with this id. Where there is none yet, it is made; of several servers that make it at
    /// once, one is first, and all return its text.
    ///
    /// # Errors
    /// Those of [`Vault::seal`] and [`Vault::open`].
    pub async fn kept_or(
        &self,
        tenant: TenantId,
        id: SecretId,
        make: impl FnOnce() -> Plain,
    ) -> Result<Plain, VaultError> {
        match self.0.store.secret(tenant, id).await {
            Ok(stored) => return self.open(tenant, &stored).await,
            Err(StoreError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        let sealed = self.seal(tenant, id, FIRST, &make()).await?;
        let (store, now) = (&self.0.store, self.0.clock.now());
        // Another server may have been first.
        let stored = store.secret_or_put(tenant, &sealed, now).await?;
        self.open(tenant, &stored).await
    }

    fn held(&self) -> HeldKeys {
        let held = self.0.held.read();
        held.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The data key itself. A rotation may have replaced the master keys, so they and the row are read once more.
    async fn unwrapped(&self, row: DataKeyRow) -> Result<Zeroizing<[u8; KEY_BYTES]>, VaultError> {
        let held = self.held();
        let known = held.keys.as_ref().filter(|keys| keys.has(&row.master_key));
        if let Some(keys) = known {
            return keys.unwrap(&row);
        }
        let _taken = held.source.taken().await?;
        let row = self.0.store.data_key(row.tenant, row.version).await?;
        match self.read_again().await?.keys {
            Some(keys) => keys.unwrap(&row),
            None => Err(held.without_keys()),
        }
    }

    /// Reads the file with the master keys again; its folder must be taken.
    async fn read_again(&self) -> Result<HeldKeys, VaultError> {
        let held = HeldKeys::read_in_taken(&self.0.store, self.held().source).await?;
        self.use_keys(held.clone());
        Ok(held)
    }

    /// Makes the first data key of a tenant. Until it is stored, no rotation drops the master key that wraps it.
    async fn new_data_key(
        &self,
        tenant: TenantId,
    ) -> Result<(u32, Zeroizing<[u8; KEY_BYTES]>), VaultError> {
        let _taken = self.held().source.taken().await?;
        let held = self.read_again().await?;
        let keys = held.keys.clone().ok_or_else(|| held.without_keys())?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        self.0.entropy.fill(&mut *key);
        let new = keys.wrap(tenant, FIRST, &key, &*self.0.entropy);
        let stored = self.0.store.add_data_key(&new, self.0.clock.now()).await?;
        // Another server may have been first.
        let key = keys.unwrap(&stored)?;
        Ok((stored.version, key))
    }
}

impl HeldKeys {
    /// Reads the master keys of a source, and tries them on every kind of stored data key. Nothing is written.
    ///
    /// # Errors
    /// If they cannot be read, or do not open every stored data key.
    pub async fn read(store: &Store, source: MasterKeySource) -> Result<Self, VaultError> {
        let _taken = source.taken().await?;
        Self::read_in_taken(store, source).await
    }

    /// The same, under the lock that keeps a rotation from changing the file.
    async fn read_in_taken(store: &Store, source: MasterKeySource) -> Result<Self, VaultError> {
        let keys = source.read()?.map(Arc::new);
        let in_use = store.master_keys_in_use().await?;
        for MasterKeyInUse { id, data_keys } in in_use {
            let Some(keys) = &keys else {
                let path = source.path().map(PathBuf::from).unwrap_or_default();
                return Err(VaultError::Missing {
                    path,
                    id,
                    data_keys,
                });
            };
            if !keys.has(&id) {
                return Err(VaultError::DoesNotFit {
                    from: source.to_string(),
                    there: keys.ids(),
                    id,
                    data_keys,
                });
            }
            // The id alone proves nothing.
            if let Some(row) = store.data_key_of_master_key(&id).await? {
                keys.unwrap(&row)?;
            }
        }
        Ok(Self { source, keys })
    }

    /// The number of master keys.
    pub fn len(&self) -> usize {
        self.keys.as_ref().map_or(0, |keys| keys.len())
    }

    /// True if there is no master key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_none()
    }

    fn without_keys(&self) -> VaultError {
        let why = match self.source.path() {
            Some(path) => format!("there is none in {}", path.display()),
            None => "none is set".to_owned(),
        };
        VaultError::NoKey { why }
    }
}

impl NotOpened {
    fn of(self, what: &'static str) -> VaultError {
        match self {
            Self::Damaged => VaultError::Damaged(what),
            Self::Newer => VaultError::Newer(what),
        }
    }
}

impl From<VaultError> for AppError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Store(error) => error.into(),
            other => Self::unavailable(other),
        }
    }
}

/// True if the folder is one that the server may not write to, such as a mounted Secret of Kubernetes.
fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests;
