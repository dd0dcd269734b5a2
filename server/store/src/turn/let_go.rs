//! A worker lets go of a turn that another replica is to carry on.

use server_records::TurnState;
use shared_types::{Epoch, ReplicaId, SessionId, TenantId, TurnId};

use crate::{Store, StoreError, columns::integer, database::query};

/// Stands for the replica of a turn that has none: no replica has this id, so each of them may claim the turn, also one
/// of an earlier release.
pub(super) const NO_REPLICA: ReplicaId = ReplicaId::from_u128(0);

impl Store {
    /// Takes the turn from its worker. From then on any replica may claim it, under a higher epoch.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::StaleEpoch`] if another worker took the session since;
    /// [`StoreError::Conflict`] if the turn does not run.
    pub async fn let_go_turn(
        &self,
        tenant: TenantId,
        turn: TurnId,
        held: Epoch,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        let let_go = query(
            "UPDATE turns SET claimed_by = $1
             WHERE tenant_id = $2 AND id = $3 AND state = 'running' AND waits_until IS NULL
                 AND claimed_epoch = $4",
        )
        .bind(NO_REPLICA.to_string())
        .bind(tenant.to_string())
        .bind(turn.to_string())
        .bind(integer(held.0))
        .execute(&mut tx)
        .await?;
        if let_go == 0 {
            return Err(match super::find(&mut tx, tenant, turn).await?.state {
                TurnState::Running { epoch: newest, .. } => StoreError::StaleEpoch { held, newest },
                _ => StoreError::Conflict("the turn does not run"),
            });
        }
        tx.commit().await?;
        Ok(())
    }

    /// Lets go of the running turns that this replica has, of one session or of all. No worker may carry them. Returns
    /// their number.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn let_go_of_left(
        &self,
        tenant: Option<TenantId>,
        session: Option<SessionId>,
        replica: ReplicaId,
    ) -> Result<u64, StoreError> {
        let mut tx = match tenant {
            Some(tenant) => self.write(tenant).await?,
            None => self.write_any("a replica has turns of all tenants").await?,
        };
        let let_go = query(
            "UPDATE turns SET claimed_by = $1
             WHERE claimed_by = $2 AND state = 'running' AND waits_until IS NULL
                 AND tenant_id = COALESCE($3, tenant_id) AND session_id = COALESCE($4, session_id)",
        )
        .bind(NO_REPLICA.to_string())
        .bind(replica.to_string())
        .bind(tenant.map(|id| id.to_string()))
        .bind(session.map(|id| id.to_string()))
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(let_go)
    }
}
