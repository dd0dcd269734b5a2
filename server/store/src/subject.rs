//! Subjects: a credential, its user, and the rights of the two. They are read in one statement, because every request
//! needs them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use shared_types::{AddressRange, CredentialId, TenantId, Timestamp, UserId, token::TokenHash};

use crate::{
    CookieRow, CredentialKind, Role, Scopes, Store, StoreError,
    columns::Columns as _,
    database::{Connection, FromRow, Row, query, query_as},
};

/// Credentials whose tenant is known, at most; one takes about 150 bytes.
const KNOWN_TENANTS: usize = 4096;

/// A credential that was not revoked, of a user who was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectRow {
    /// The tenant that it opens.
    pub tenant: TenantId,
    /// The credential.
    pub credential: CredentialId,
    /// Its purpose.
    pub kind: CredentialKind,
    /// The user that it acts for.
    pub user: UserId,
    /// The role of that user now.
    pub role: Role,
    /// The scopes of the credential.
    pub scopes: Scopes,
    /// The time until which it can be used.
    pub expires_at: Option<Timestamp>,
    /// The addresses from which it can be used; absent for any.
    pub from: Option<AddressRange>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, as far as that was recorded.
    pub last_used_at: Option<Timestamp>,
    /// The state of a browser's cookie, beside the hash.
    pub cookie: Option<CookieRow>,
}

macro_rules! select_subjects {
    ($rest:literal) => {
        concat!(
            "SELECT credentials.tenant_id, credentials.id, user_id, kind, hash, scopes,
                 expires_at, address_range, credentials.created_at AS created_at, last_used_at, role,
                 second_hash, replaced_hash, replaced_at, salt, taken_up_at
             FROM credentials
             JOIN users ON users.tenant_id = credentials.tenant_id AND users.id = user_id
             WHERE revoked_at IS NULL AND removed_at IS NULL AND ",
            $rest
        )
    };
}

impl Store {
    /// The subject that holds the secret with this hash. Without a tenant: the credential yields it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn subject_by_hash(
        &self,
        hash: &TokenHash,
    ) -> Result<Option<SubjectRow>, StoreError> {
        let found = match self.tenants.of(hash) {
            Some(tenant) => find(&mut self.read(tenant).await?, hash).await?,
            None => None,
        };
        let found = match found {
            Some(subject) => Some(subject),
            None => {
                let mut any = self.read_any("a credential yields its tenant").await?;
                find(&mut any, hash).await?
            }
        };
        if let Some(subject) = &found {
            self.tenants.learn(hash, subject.tenant);
        }
        Ok(found)
    }

    /// The subject of this credential, as it is now.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn subject(
        &self,
        tenant: TenantId,
        credential: CredentialId,
    ) -> Result<Option<SubjectRow>, StoreError> {
        let row = query_as(select_subjects!(
            "credentials.tenant_id = $1 AND credentials.id = $2"
        ))
        .bind(tenant.to_string())
        .bind(credential.to_string())
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        Ok(row)
    }
}

async fn find(
    connection: &mut Connection,
    hash: &TokenHash,
) -> Result<Option<SubjectRow>, StoreError> {
    let row: Option<Row> = query(select_subjects!("hash = $1"))
        .bind(hash.to_string())
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(None) };
    // The index found it; this comparison takes the same time for every hash.
    let same = TokenHash::from_hex(&row.text("hash")?).as_ref() == Some(hash);
    Ok(same.then(|| SubjectRow::from_row(&row)).transpose()?)
}

/// The tenants of credentials that were used lately. They only say where to look first: the right of a credential
/// stands in its row alone. So most requests read on a connection that sees their tenant already.
#[derive(Clone)]
pub(crate) struct KnownTenants(Arc<Mutex<LruCache<String, TenantId>>>);

impl KnownTenants {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(KNOWN_TENANTS))))
    }

    fn of(&self, hash: &TokenHash) -> Option<TenantId> {
        self.known().get(&hash.to_string()).copied()
    }

    fn learn(&self, hash: &TokenHash, tenant: TenantId) {
        self.known().insert(hash.to_string(), tenant);
    }

    fn known(&self) -> MutexGuard<'_, LruCache<String, TenantId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for KnownTenants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownTenants").finish_non_exhaustive()
    }
}

impl FromRow for SubjectRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            tenant: row.parsed("tenant_id")?,
            credential: row.parsed("id")?,
            kind: row.word("kind")?,
            user: row.parsed("user_id")?,
            role: row.word("role")?,
            scopes: scopes(row)?,
            expires_at: row.maybe_time("expires_at")?,
            from: row.maybe_parsed("address_range")?,
            created_at: row.time("created_at")?,
            last_used_at: row.maybe_time("last_used_at")?,
            cookie: CookieRow::of(row)?,
        })
    }
}

/// The scopes in a row. A row without a list, from an earlier release, has all that its user may do.
pub(crate) fn scopes(row: &Row) -> Result<Scopes, sqlx::Error> {
    match row.maybe_text("scopes")? {
        None => Ok(Scopes::ALL),
        Some(_) => Ok(Scopes::of_words(&row.json::<Vec<String>>("scopes")?)),
    }
}
