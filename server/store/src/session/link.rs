//! Links by which a session is read without signing in. Only the hash of a link's secret is stored.

use serde_json::json;
use shared_types::{SessionId, TenantId, Timestamp, token::TokenHash};

use super::{
    SessionRow,
    deletion::{delete_links, entry},
};
use crate::{
    By, Full, Store, StoreError, audit,
    columns::Columns as _,
    database::{Row, query, retried},
};

/// Most links to one session at once.
pub const LINKS_OF_SESSION_AT_MOST: u64 = 10;

/// A link to be made.
#[derive(Debug, Clone)]
pub struct NewSessionLink {
    /// The hash of its secret.
    pub hash: TokenHash,
    /// The time until which it can be read; without an end, if absent.
    pub expires_at: Option<Timestamp>,
}

impl Store {
    /// Makes a link to a session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Full`] if there are [`LINKS_OF_SESSION_AT_MOST`].
    pub async fn share_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        link: &NewSessionLink,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let detail = json!({ "expires_at": link.expires_at });
            let entry = entry(by, "session.shared", session, detail);
            audit::record(&mut tx, tenant, &entry, now).await?;
            // The session's lock: no other transaction counts its links or deletes it until this one ends.
            super::lock(&mut tx, tenant, session).await?;
            query(
                "DELETE FROM session_links
                 WHERE tenant_id = $1 AND session_id = $2 AND expires_at <= $3",
            )
            .bind(tenant.to_string())
            .bind(session.to_string())
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            let row: Row = query(
                "SELECT COUNT(*) AS links FROM session_links WHERE tenant_id = $1 AND session_id = $2",
            )
            .bind(tenant.to_string())
            .bind(session.to_string())
            .fetch_one(&mut tx)
            .await?;
            let used = row.count("links")?;
            if used >= LINKS_OF_SESSION_AT_MOST {
                return Err(Full {
                    has: "this session has",
                    used,
                    at_most: LINKS_OF_SESSION_AT_MOST,
                    what: "links",
                    remedy: "end them all: gantry sessions unshare SESSION",
                }
                .into());
            }
            query(
                "INSERT INTO session_links (tenant_id, hash, session_id, made_at, expires_at)
                 VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(tenant.to_string())
            .bind(link.hash.to_string())
            .bind(session.to_string())
            .bind(now.as_micros())
            .bind(link.expires_at.map(|at| at.as_micros()))
            .execute(&mut tx)
            .await?;
            tx.commit().await
        })
    }

    /// Ends all links to a session, and returns how many there were.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unshare_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        by: &By,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let entry = entry(by, "session.unshared", session, json!({}));
            audit::record(&mut tx, tenant, &entry, now).await?;
            let ended = delete_links(&mut tx, tenant, session).await?;
            if ended > 0 {
                tx.commit().await?;
            }
            Ok(ended)
        })
    }

    /// The session that this link leads to, and its tenant. None if the link was ended or has expired, the session was
    /// deleted, or its user was removed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn session_by_link(
        &self,
        hash: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<(TenantId, SessionRow)>, StoreError> {
        let row: Option<Row> = query(
            "SELECT session_links.tenant_id, session_id, hash FROM session_links
             JOIN sessions ON sessions.tenant_id = session_links.tenant_id AND sessions.id = session_id
             JOIN users ON users.tenant_id = sessions.tenant_id AND users.id = sessions.user_id
             WHERE hash = $1 AND (expires_at IS NULL OR expires_at > $2)
                 AND deleted_at IS NULL AND removed_at IS NULL",
        )
        .bind(hash.to_string())
        .bind(now.as_micros())
        .fetch_optional(&mut self.read_any("a link yields its tenant").await?)
        .await?;
        let Some(row) = row else { return Ok(None) };
        // The index found it; this comparison takes the same time for every hash.
        if TokenHash::from_hex(&row.text("hash")?).as_ref() != Some(hash) {
            return Ok(None);
        }
        let tenant = row.parsed("tenant_id")?;
        let session = self.session(tenant, row.parsed("session_id")?).await;
        match session {
            Ok(session) => Ok(Some((tenant, session))),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
