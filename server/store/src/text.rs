//! Long texts of a session. The model is shown a part of each. A text is stored once, is found by the digest of its
//! bytes, and goes with its session.

use shared_types::{Digest, SessionId, TenantId, Timestamp};

use crate::{
    Full, Store, StoreError,
    columns::Columns as _,
    database::{Row, query, retried},
    session,
};

/// Longest text, in bytes.
pub const TEXT_OF_SESSION_BYTES: usize = 5 * 1024 * 1024;

/// Most bytes of a session's texts.
pub const TEXTS_OF_SESSION_BYTES: u64 = 64 * 1024 * 1024;

impl Store {
    /// Stores a text, unless the session has it already. Returns the digest by which it is found.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for more than [`TEXT_OF_SESSION_BYTES`]; [`StoreError::Full`] if the session would have
    /// more than [`TEXTS_OF_SESSION_BYTES`]; [`StoreError::NotFound`] if there is no such session, or it is deleted.
    pub async fn put_text(
        &self,
        tenant: TenantId,
        session: SessionId,
        text: &[u8],
        now: Timestamp,
    ) -> Result<Digest, StoreError> {
        if text.len() > TEXT_OF_SESSION_BYTES {
            return Err(StoreError::TooLarge {
                what: "the text",
                max_bytes: TEXT_OF_SESSION_BYTES,
            });
        }
        let digest = Digest::of(text);
        retried!({
            let mut tx = self.write(tenant).await?;
            // Takes the session's lock, so that no other text is counted at the same time.
            session::lock(&mut tx, tenant, session).await?;
            let stored = query(
                "INSERT INTO session_texts (tenant_id, session_id, digest, bytes, created_at)
                 VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (tenant_id, session_id, digest) DO NOTHING",
            )
            .bind(tenant.to_string())
            .bind(session.to_string())
            .bind(digest.to_string())
            .bind(text.to_vec())
            .bind(now.as_micros())
            .execute(&mut tx)
            .await?;
            if stored > 0 {
                let row: Row = query(
                    "SELECT CAST(SUM(LENGTH(bytes)) AS BIGINT) AS bytes FROM session_texts
                     WHERE tenant_id = $1 AND session_id = $2",
                )
                .bind(tenant.to_string())
                .bind(session.to_string())
                .fetch_one(&mut tx)
                .await?;
                let used = row.count("bytes")?;
                if used > TEXTS_OF_SESSION_BYTES {
                    return Err(Full {
                        has: "the session would have",
                        used: used.div_ceil(MEBIBYTE),
                        at_most: TEXTS_OF_SESSION_BYTES / MEBIBYTE,
                        what: "MiB of texts",
                        remedy: "start a new session for more",
                    }
                    .into());
                }
            }
            tx.commit().await?;
            Ok(digest)
        })
    }

    /// The text with this digest, if the session has it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn text(
        &self,
        tenant: TenantId,
        session: SessionId,
        digest: Digest,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut connection = self.read(tenant).await?;
        let row: Option<Row> = query(
            "SELECT bytes FROM session_texts
             WHERE tenant_id = $1 AND session_id = $2 AND digest = $3",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .bind(digest.to_string())
        .fetch_optional(&mut connection)
        .await?;
        Ok(row.map(|row| row.bytes("bytes")).transpose()?)
    }
}

const MEBIBYTE: u64 = 1024 * 1024;
