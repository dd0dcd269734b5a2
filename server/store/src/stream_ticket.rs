//! Tickets with which a page opens a WebSocket. A browser cannot send a header along, and others than the two ends see
//! an address. So a ticket is good for one stream, once, and not for long. Only the hash of a ticket is stored.

use shared_types::{CredentialId, OperationId, TenantId, Timestamp, UserId, token::TokenHash};

use crate::{
    Full, Store, StoreError,
    columns::Columns as _,
    database::{Row, lock_user, query, retried},
};

/// Most tickets of a credential that can be used at once.
pub const TICKETS_OF_CREDENTIAL_AT_MOST: u64 = 64;

/// A ticket to be made.
#[derive(Debug, Clone)]
pub struct NewStreamTicket {
    /// The credential that it stands for.
    pub credential: CredentialId,
    /// The hash of its secret.
    pub hash: TokenHash,
    /// The operation whose stream it opens; without one, the stream of sessions.
    pub operation: Option<OperationId>,
    /// The time until which it can be used.
    pub expires_at: Timestamp,
}

impl Store {
    /// Makes a ticket, and forgets those of the tenant that are over.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the credential has [`TICKETS_OF_CREDENTIAL_AT_MOST`].
    pub async fn insert_stream_ticket(
        &self,
        tenant: TenantId,
        user: UserId,
        ticket: &NewStreamTicket,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            lock_user(&mut tx, tenant, user).await?;
            query("DELETE FROM stream_tickets WHERE tenant_id = $1 AND expires_at <= $2")
                .bind(tenant.to_string())
                .bind(now.as_micros())
                .execute(&mut tx)
                .await?;
            let row: Row = query(
                "SELECT COUNT(*) AS tickets FROM stream_tickets
                 WHERE tenant_id = $1 AND credential_id = $2",
            )
            .bind(tenant.to_string())
            .bind(ticket.credential.to_string())
            .fetch_one(&mut tx)
            .await?;
            let used = row.count("tickets")?;
            if used >= TICKETS_OF_CREDENTIAL_AT_MOST {
                return Err(Full {
                    has: "this sign-in has",
                    used,
                    at_most: TICKETS_OF_CREDENTIAL_AT_MOST,
                    what: "tickets that were not used",
                    remedy: "use them, or wait 30 s",
                }
                .into());
            }
            query(
                "INSERT INTO stream_tickets (tenant_id, hash, credential_id, operation_id, expires_at)
                 VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(tenant.to_string())
            .bind(ticket.hash.to_string())
            .bind(ticket.credential.to_string())
            .bind(ticket.operation.map(|id| id.to_string()))
            .bind(ticket.expires_at.as_micros())
            .execute(&mut tx)
            .await?;
            tx.commit().await
        })
    }

    /// Uses a ticket up, and returns the credential that it stands for, and its tenant. None if it was used, has
    /// expired, or was made for another stream. Without a tenant: the ticket yields it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn take_stream_ticket(
        &self,
        hash: &TokenHash,
        operation: Option<OperationId>,
        now: Timestamp,
    ) -> Result<Option<(TenantId, CredentialId)>, StoreError> {
        let row: Option<Row> = query(
            "SELECT tenant_id, credential_id, hash, operation_id FROM stream_tickets
             WHERE hash = $1 AND expires_at > $2",
        )
        .bind(hash.to_string())
        .bind(now.as_micros())
        .fetch_optional(&mut self.read_any("a ticket yields its tenant").await?)
        .await?;
        let Some(row) = row else { return Ok(None) };
        // The index found it; this comparison takes the same time for every hash.
        let same = TokenHash::from_hex(&row.text("hash")?).as_ref() == Some(hash);
        if !same || row.maybe_parsed::<OperationId>("operation_id")? != operation {
            return Ok(None);
        }
        let tenant: TenantId = row.parsed("tenant_id")?;
        let mut tx = self.write(tenant).await?;
        let taken = query("DELETE FROM stream_tickets WHERE tenant_id = $1 AND hash = $2")
            .bind(tenant.to_string())
            .bind(hash.to_string())
            .execute(&mut tx)
            .await?;
        tx.commit().await?;
        let credential = row.parsed("credential_id")?;
        Ok((taken == 1).then_some((tenant, credential)))
    }
}
