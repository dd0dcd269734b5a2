//! Extensions that people registered, and the files on runners that they trust.

use bytes::Bytes;
use serde_json::json;
use server_records::{
    ExtensionKind, RegisteredExtension, StandingExtensions, TrustedExtension, WholeSkill,
};
use shared_types::{
    Digest, ExtensionId, SandboxId, SessionId, TenantId, Timestamp, UserId, event::Layer,
};

use crate::{
    AuditEntry, By, SealedSecret, Store, StoreError, audit,
    columns::Columns as _,
    database::{Connection, FromRow, Row, lock_user, query, query_as, retried},
    room::Room,
    secret, tool_grant,
};

/// The extensions of a tenant, and of a user.
const EXTENSIONS: Room = Room {
    count: "SELECT COUNT(*) AS used FROM extensions
            WHERE tenant_id = $1 AND COALESCE(user_id, '') = $2",
    has: "there are",
    at_most: 300,
    what: "extensions",
    remedy: "remove one with: gantry extensions remove",
};

/// The files that a user trusts.
const TRUSTED: Room = Room {
    count: "SELECT COUNT(*) AS used FROM trusted_extensions WHERE tenant_id = $1 AND user_id = $2",
    has: "you trust",
    at_most: 500,
    what: "files with extensions",
    remedy: "trust one no more with: gantry extensions untrust",
};

macro_rules! select_extensions {
    ($rest:literal) => {
        concat!(
            "SELECT extensions.id, extensions.kind, extensions.user_id, extensions.name,
                 CASE WHEN extensions.kind = 'skill' THEN substr(text, 1, 8192) ELSE text END AS text,
                 digest, source,
                 LENGTH(packed) AS packed_bytes, secret_id, set_by, set_at,
                 users.name AS set_by_name
             FROM extensions LEFT JOIN users ON users.tenant_id = extensions.tenant_id
                 AND users.id = set_by ",
            $rest
        )
    };
}

/// An extension that is to be registered.
#[derive(Debug, Clone, Copy)]
pub struct NewExtension<'a> {
    /// Its id, where none has its name.
    pub id: ExtensionId,
    /// Its kind.
    pub kind: ExtensionKind,
    /// Whose it is; absent for all people of the tenant.
    pub user: Option<UserId>,
    /// Its name.
    pub name: &'a str,
    /// Its file.
    pub text: &'a str,
    /// The digest of the text and the packed files.
    pub digest: Digest,
    /// Its source.
    pub source: &'a str,
    /// The other files of its folder, packed; empty without any.
    pub packed: &'a [u8],
    /// The secrets that belong to it, in the place of those that it had.
    pub secret: Option<&'a SealedSecret>,
    /// The digest of the one in whose place it is put, where the caller names it.
    pub replaces: Option<Digest>,
}

impl Store {
    /// The extensions that count for a user: those of the tenant, then the user's own, by kind and name.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn extensions(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<RegisteredExtension>, StoreError> {
        let rows = query_as(select_extensions!(
            "WHERE extensions.tenant_id = $1
                 AND (extensions.user_id IS NULL OR extensions.user_id = $2)
             ORDER BY extensions.user_id IS NOT NULL, extensions.kind, extensions.name, extensions.id"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// The extensions for a session, and the files that its owner trusts.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub(crate) async fn extensions_of_session(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<StandingExtensions, StoreError> {
        let user = self.session_owner(tenant, session).await?;
        self.standing_extensions(tenant, user).await
    }

    /// The extensions that are registered for the user, and the files that the user trusts.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn standing_extensions(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<StandingExtensions, StoreError> {
        Ok(StandingExtensions {
            registered: self.extensions(tenant, user).await?,
            trusted: self.trusted_extensions(tenant, user).await?,
        })
    }

    /// All files of a skill of the tenant or of this user, if there is one of this name.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn whole_skill(
        &self,
        tenant: TenantId,
        user: UserId,
        layer: Layer,
        name: &str,
    ) -> Result<Option<WholeSkill>, StoreError> {
        let whose = match layer {
            Layer::User => user.to_string(),
            _ => String::new(),
        };
        let row: Option<Row> = query(
            "SELECT text, packed FROM extensions
             WHERE tenant_id = $1 AND kind = $2 AND name = $3 AND COALESCE(user_id, '') = $4",
        )
        .bind(tenant.to_string())
        .bind(ExtensionKind::Skill.word())
        .bind(name)
        .bind(whose)
        .fetch_optional(&mut self.read(tenant).await?)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let packed = Bytes::from(row.bytes("packed")?);
        Ok(Some(WholeSkill {
            text: row.text("text")?,
            packed: (!packed.is_empty()).then_some(packed),
        }))
    }

    /// All files of a skill for a session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub(crate) async fn skill_of_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        layer: Layer,
        name: &str,
    ) -> Result<Option<WholeSkill>, StoreError> {
        let user = self.session_owner(tenant, session).await?;
        self.whole_skill(tenant, user, layer, name).await
    }

    /// Registers an extension. It takes the place of the one of the same kind, owner and name.
    ///
    /// # Errors
    /// [`StoreError::Full`] above 300 of the owner; [`StoreError::Conflict`] if it replaces another one than the caller
    /// names.
    pub async fn put_extension(
        &self,
        tenant: TenantId,
        new: NewExtension<'_>,
        by: &By,
        now: Timestamp,
    ) -> Result<RegisteredExtension, StoreError> {
        let whose = new.user.map_or_else(String::new, |user| user.to_string());
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, by.user).await?;
            let before: Option<RegisteredExtension> = query_as(select_extensions!(
                "WHERE extensions.tenant_id = $1 AND extensions.kind = $2 AND extensions.name = $3
                     AND COALESCE(extensions.user_id, '') = $4"
            ))
            .bind(tenant.to_string())
            .bind(new.kind.word())
            .bind(new.name)
            .bind(whose.as_str())
            .fetch_optional(&mut tx)
            .await?;
            let known = before.as_ref().map(|before| before.digest);
            if new.replaces.is_some() && new.replaces != known {
                return Err(StoreError::Conflict(
                    "it was changed since it was read; look at it again",
                ));
            }
            let id = before.as_ref().map_or(new.id, |before| before.id);
            if let Some(secret) = new.secret {
                secret::put(&mut tx, tenant, secret, now).await?;
            }
            write(&mut tx, tenant, (id, new), by.user, now).await?;
            if let Some(before) = before.as_ref().and_then(|before| before.secret) {
                secret::remove(&mut tx, tenant, before).await?;
            }
            let address = before
                .as_ref()
                .and_then(|before| address(before.kind, &before.text));
            if let Some(before) = address
                && self::address(new.kind, new.text).as_ref() != Some(&before)
            {
                tool_grant::remove_of_url(&mut tx, tenant, new.user, &before).await?;
            }
            EXTENSIONS.must_hold(&mut tx, tenant, &whose).await?;
            let put: RegisteredExtension = query_as(select_extensions!(
                "WHERE extensions.tenant_id = $1 AND extensions.id = $2"
            ))
            .bind(tenant.to_string())
            .bind(id.to_string())
            .fetch_one(&mut tx)
            .await?;
            let entry = entry(by, "extension.set", &put);
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await?;
            Ok(put)
        })
    }

    /// Removes an extension: the tenant's, or this user's. Returns it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn remove_extension(
        &self,
        tenant: TenantId,
        id: ExtensionId,
        user: Option<UserId>,
        by: &By,
        now: Timestamp,
    ) -> Result<RegisteredExtension, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let gone: RegisteredExtension = query_as(select_extensions!(
                "WHERE extensions.tenant_id = $1 AND extensions.id = $2
                     AND COALESCE(extensions.user_id, '') = $3"
            ))
            .bind(tenant.to_string())
            .bind(id.to_string())
            .bind(user.map_or_else(String::new, |user| user.to_string()))
            .fetch_one(&mut tx)
            .await?;
            query("DELETE FROM extensions WHERE tenant_id = $1 AND id = $2")
                .bind(tenant.to_string())
                .bind(id.to_string())
                .execute(&mut tx)
                .await?;
            if let Some(secret) = gone.secret {
                secret::remove(&mut tx, tenant, secret).await?;
            }
            if let Some(address) = address(gone.kind, &gone.text) {
                tool_grant::remove_of_url(&mut tx, tenant, user, &address).await?;
            }
            let entry = entry(by, "extension.removed", &gone);
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await?;
            Ok(gone)
        })
    }

    /// The files with extensions that a user trusts, by workspace and path.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn trusted_extensions(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<TrustedExtension>, StoreError> {
        let rows = query_as(
            "SELECT sandbox_id, path, digest, trusted_at FROM trusted_extensions
             WHERE tenant_id = $1 AND user_id = $2 ORDER BY sandbox_id, path",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// Trusts a file with extensions with this very text, or trusts it no more.
    ///
    /// # Errors
    /// [`StoreError::Full`] above 500 files of the user.
    pub async fn trust_extension(
        &self,
        tenant: TenantId,
        user: UserId,
        (sandbox, path): (SandboxId, &str),
        digest: Option<Digest>,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, user).await?;
            let changed = match digest {
                Some(digest) => {
                    query(
                        "INSERT INTO trusted_extensions
                         (tenant_id, user_id, sandbox_id, path, digest, trusted_at)
                     VALUES ($1, $2, $3, $4, $5, $6)
                     ON CONFLICT (tenant_id, user_id, sandbox_id, path) DO UPDATE
                         SET digest = excluded.digest, trusted_at = excluded.trusted_at",
                    )
                    .bind(tenant.to_string())
                    .bind(user.to_string())
                    .bind(sandbox.to_string())
                    .bind(path)
                    .bind(digest.to_string())
                    .bind(now.as_micros())
                    .execute(&mut tx)
                    .await?
                }
                None => {
                    query(
                        "DELETE FROM trusted_extensions
                     WHERE tenant_id = $1 AND user_id = $2 AND sandbox_id = $3 AND path = $4",
                    )
                    .bind(tenant.to_string())
                    .bind(user.to_string())
                    .bind(sandbox.to_string())
                    .bind(path)
                    .execute(&mut tx)
                    .await?
                }
            };
            if changed == 0 {
                return Ok(());
            }
            TRUSTED
                .must_hold(&mut tx, tenant, &user.to_string())
                .await?;
            let kind = match digest {
                Some(_) => "extension.trusted",
                None => "extension.untrusted",
            };
            let entry = by.entry(
                kind,
                sandbox,
                json!({ "path": path, "digest": digest.map(|digest| digest.to_string()) }),
            );
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await
        })
    }
}

/// Writes an extension under this id, in place of the one that has it.
async fn write(
    tx: &mut Connection,
    tenant: TenantId,
    (id, new): (ExtensionId, NewExtension<'_>),
    set_by: UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO extensions
             (tenant_id, id, kind, user_id, name, text, digest, source, packed, secret_id, set_by, set_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (tenant_id, id) DO UPDATE
             SET text = excluded.text, digest = excluded.digest, source = excluded.source,
                 packed = excluded.packed, secret_id = excluded.secret_id,
                 set_by = excluded.set_by, set_at = excluded.set_at",
    )
    .bind(tenant.to_string())
    .bind(id.to_string())
    .bind(new.kind.word())
    .bind(new.user.map(|user| user.to_string()))
    .bind(new.name)
    .bind(new.text)
    .bind(new.digest.to_string())
    .bind(new.source)
    .bind(new.packed.to_vec())
    .bind(new.secret.map(|secret| secret.id.to_string()))
    .bind(set_by.to_string())
    .bind(now.as_micros())
    .execute(tx)
    .await?;
    Ok(())
}

/// Removes the extensions of a user who leaves the tenant, with their secrets.
pub(crate) async fn remove_of_user(
    tx: &mut Connection,
    tenant: TenantId,
    user: UserId,
) -> Result<(), StoreError> {
    let removed: Vec<Row> =
        query("DELETE FROM extensions WHERE tenant_id = $1 AND user_id = $2 RETURNING secret_id")
            .bind(tenant.to_string())
            .bind(user.to_string())
            .fetch_all(&mut *tx)
            .await?;
    secret::remove_of(tx, tenant, &removed).await
}

/// The address of a tool server, where it has one: people may have signed in to it.
fn address(kind: ExtensionKind, text: &str) -> Option<String> {
    let file: serde_json::Value = match kind {
        ExtensionKind::Mcp => serde_json::from_str(text).ok()?,
        _ => return None,
    };
    let server = file.get("mcpServers")?.as_object()?.values().next()?;
    server.get("url")?.as_str().map(str::to_owned)
}

fn entry(by: &By, kind: &'static str, of: &RegisteredExtension) -> AuditEntry {
    by.entry(
        kind,
        of.id,
        json!({
            "layer": of.layer().word(), "kind": of.kind.word(), "name": of.name,
            "digest": of.digest.to_string(), "source": of.source,
        }),
    )
}

impl FromRow for RegisteredExtension {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            kind: row.parsed("kind")?,
            user: row.maybe_parsed("user_id")?,
            name: row.text("name")?,
            text: row.text("text")?,
            digest: row.digest("digest")?,
            source: row.text("source")?,
            packed_bytes: row.count("packed_bytes")?,
            secret: row.maybe_parsed("secret_id")?,
            by: row.parsed("set_by")?,
            by_name: row.maybe_text("set_by_name")?.unwrap_or_default(),
            at: row.time("set_at")?,
        })
    }
}

impl FromRow for TrustedExtension {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            sandbox: row.parsed("sandbox_id")?,
            path: row.text("path")?,
            digest: row.digest("digest")?,
            at: row.time("trusted_at")?,
        })
    }
}
