//! The replica that holds a runner's link. Each new link raises the generation, and a report under an older one has no
//! effect: its late end never removes a newer link.

use server_records::{Heard, LinkHolder, LinkState};
use shared_link::server::{HelloFacts, TurnedAway};
use shared_types::{Generation, Incarnation, ReplicaId, RunnerId, TenantId, Timestamp};

use super::{Late, MAX_HOST_BYTES, RunnerRow};
use crate::{
    Full, Store, StoreError,
    columns::{Columns as _, integer, json},
    database::{Connection, MAX_PAGE, Row, page, query, retried},
    error::bounded,
    operation, sandbox,
};

/// Most sandboxes or features that a runner reports.
const MAX_REPORTED: usize = 1000;

/// A link that a runner begins.
#[derive(Debug, Clone)]
pub struct LinkClaim {
    /// The replica that it reached.
    pub replica: ReplicaId,
    /// The runner's report.
    pub hello: HelloFacts,
}

/// A link that this replica holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkClaimed {
    /// Fences every earlier link of the runner.
    pub generation: Generation,
    /// The operations whose call had ended before they were lost, and their sessions, whose logs
    /// have grown.
    pub late: Late,
}

impl Store {
    /// Gives the runner's link to a replica, also if another one held it, and stores the runner's report. In the same
    /// transaction the open operations of its earlier incarnations that it does not remember are lost: they can never
    /// be started any more, whichever journal links next.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::Conflict`] if the runner is revoked or locked, if its
    /// journal went back, or if another link came at the same moment; [`StoreError::TooLarge`] and [`StoreError::Full`] if it
    /// reports more than the bounds.
    pub async fn link_claim(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        claim: &LinkClaim,
        now: Timestamp,
    ) -> Result<LinkClaimed, StoreError> {
        within_bounds(&claim.hello)?;
        retried!({
            let hello = &claim.hello;
            let mut tx = self.write(tenant).await?;
            let before = super::lock(&mut tx, tenant, runner).await?;
            if before.is_barred() {
                return Err(StoreError::Conflict(
                    "the runner is revoked or locked, enrol it again",
                ));
            }
            if before.incarnation.as_ref() == Some(&hello.incarnation)
                && hello.journal_sequence < before.accepted_sequence
            {
                return Err(StoreError::Conflict(
                    "the runner's journal shows less than an earlier link has seen",
                ));
            }
            // Each link has used a join state of its own, so no earlier link has a higher generation than its state.
            // That also holds if this database is an older copy, and does not know all of them.
            let generation = Generation((before.generation.0 + 1).max(before.join_state));
            take(&mut tx, &before, generation, claim, now).await?;
            for (position, facts) in hello.sandboxes.iter().enumerate() {
                sandbox::upsert(&mut tx, tenant, runner, generation, position, facts, now).await?;
            }
            let lost = operation::lose_forgotten(&mut tx, &before, hello, now).await?;
            tx.commit().await?;
            self.waits_changed();
            self.link_changed(runner);
            let late = self.operations_ended(lost).await;
            Ok(LinkClaimed { generation, late })
        })
    }

    /// Records that the runner was last heard of at this time, and the number of operations that its journal has
    /// accepted by its own report, which never falls. If the link does not hold any more nothing is written, and the
    /// caller has to end it. A synced write: call it now and then, not for every frame.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn link_heard(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        heard: Heard,
    ) -> Result<Option<TurnedAway>, StoreError> {
        let mut tx = self.write(tenant).await?;
        let stored = query(
            "UPDATE runners SET last_seen_at = $1, accepted_sequence =
                 CASE WHEN accepted_sequence < $5 THEN $5 ELSE accepted_sequence END
             WHERE tenant_id = $2 AND id = $3 AND generation = $4
                 AND replica_id IS NOT NULL AND revoked_at IS NULL AND locked_at IS NULL",
        )
        .bind(heard.at.as_micros())
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(integer(heard.generation.0))
        .bind(integer(heard.accepted))
        .execute(&mut tx)
        .await?;
        if stored == 1 {
            tx.commit().await?;
            return Ok(None);
        }
        let row = super::find(&mut tx, tenant, runner).await?;
        Ok(match (row.revoked_at, row.locked_at) {
            (Some(_), _) => Some(TurnedAway::Revoked),
            (None, Some(_)) => Some(TurnedAway::Locked),
            (None, None) => Some(TurnedAway::Older),
        })
    }

    /// Records that the link ended; `last_heard` is the time of its last frame, and `accepted` the number of operations
    /// that its runner's journal had accepted then. Returns true if it was the runner's newest; if not, nothing is
    /// written.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn link_ended(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        last: Heard,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write(tenant).await?;
        let ended = query(
            "UPDATE runners SET replica_id = NULL, connected_at = NULL, last_seen_at = $1,
                 accepted_sequence =
                     CASE WHEN accepted_sequence < $5 THEN $5 ELSE accepted_sequence END
             WHERE tenant_id = $2 AND id = $3 AND generation = $4 AND replica_id IS NOT NULL",
        )
        .bind(last.at.as_micros())
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(integer(last.generation.0))
        .bind(integer(last.accepted))
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        if ended == 1 {
            self.link_changed(runner);
        }
        Ok(ended == 1)
    }

    /// The state of the runner's link, for this replica. Without a tenant: a replica is asked for links of all tenants.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner; [`StoreError::Unavailable`].
    pub async fn link_state(
        &self,
        runner: RunnerId,
        here: ReplicaId,
    ) -> Result<LinkState, StoreError> {
        let row = query(
            "SELECT runners.tenant_id AS tenant_id, replica_id, address, generation, journal_id, boot_id, revoked_at,
                 locked_at
             FROM runners LEFT JOIN replicas ON replicas.id = replica_id WHERE runners.id = $1",
        )
        .bind(runner.to_string())
        .fetch_optional(&mut self.read_any("it is about a link of any tenant").await?)
        .await?
        .ok_or(StoreError::NotFound)?;
        if row.maybe_time("revoked_at")?.is_some() {
            return Ok(LinkState::Barred(TurnedAway::Revoked));
        }
        if row.maybe_time("locked_at")?.is_some() {
            return Ok(LinkState::Barred(TurnedAway::Locked));
        }
        let (Some(replica), Some(journal)) = (
            row.maybe_parsed("replica_id")?,
            row.maybe_parsed("journal_id")?,
        ) else {
            return Ok(LinkState::Absent);
        };
        let generation = Generation(row.count("generation")?);
        if replica == here {
            return Ok(LinkState::Here(generation));
        }
        Ok(LinkState::Elsewhere(LinkHolder {
            replica,
            address: row.maybe_text("address")?,
            tenant: row.parsed("tenant_id")?,
            runner,
            generation,
            incarnation: Incarnation {
                journal,
                boot: row.text("boot_id")?,
            },
        }))
    }

    /// The runners that were revoked (`true`) or locked and still have a link to this replica, a bounded number of them.
    /// Another replica may have done that. Without a tenant: a replica has links of all tenants.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn barred_but_linked(
        &self,
        replica: ReplicaId,
    ) -> Result<Vec<(RunnerId, bool)>, StoreError> {
        let rows: Vec<Row> = query(
            "SELECT id, revoked_at FROM runners
             WHERE replica_id = $1 AND (revoked_at IS NOT NULL OR locked_at IS NOT NULL)
             ORDER BY id LIMIT $2",
        )
        .bind(replica.to_string())
        .bind(page(MAX_PAGE))
        .fetch_all(&mut self.read_any("links are of all tenants").await?)
        .await?;
        let found = rows
            .iter()
            .map(|row| Ok((row.parsed("id")?, row.maybe_time("revoked_at")?.is_some())));
        let found: Result<_, sqlx::Error> = found.collect();
        Ok(found?)
    }

    /// Records for which version of the link protocol the runner was refused, until it links.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn link_version_refused(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        version: u32,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        query(
            "UPDATE runners SET refused_version = $1
             WHERE tenant_id = $2 AND id = $3 AND COALESCE(refused_version, -1) <> $1",
        )
        .bind(i64::from(version))
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }
}

fn within_bounds(hello: &HelloFacts) -> Result<(), StoreError> {
    let reported = hello.sandboxes.len().max(hello.features.len());
    if reported > MAX_REPORTED {
        return Err(Full {
            has: "the runner reports",
            used: reported as u64,
            at_most: MAX_REPORTED as u64,
            what: "sandboxes or features",
            remedy: "use fewer",
        }
        .into());
    }
    let texts = [
        &hello.incarnation.boot,
        &hello.software_version,
        &hello.hostname,
        &hello.os,
        &hello.architecture,
    ];
    texts
        .into_iter()
        .chain(&hello.features)
        .try_for_each(|text| bounded("what the runner reports", text, MAX_HOST_BYTES))
}

async fn take(
    tx: &mut Connection,
    before: &RunnerRow,
    generation: Generation,
    claim: &LinkClaim,
    now: Timestamp,
) -> Result<(), StoreError> {
    let LinkClaim { replica, hello } = claim;
    let pool = hello.pool.as_ref();
    let taken = query(
        "UPDATE runners SET generation = $1, replica_id = $2, connected_at = $3,
             last_seen_at = $3, journal_id = $4, boot_id = $5, journal_sequence = $6,
             accepted_sequence = $6, version = $7, hostname = $8, os = $9, architecture = $10,
             features = $11, loses_unlisted = 0, pool_backend = $15, pool_templates = $16,
             pool_isolation = $17, pool_problem = $18, pool_sudo_templates = $19,
             ceiling = $20, refused_version = NULL
         WHERE tenant_id = $12 AND id = $13 AND generation = $14 AND revoked_at IS NULL",
    )
    .bind(integer(generation.0))
    .bind(replica.to_string())
    .bind(now.as_micros())
    .bind(hello.incarnation.journal.to_string())
    .bind(&hello.incarnation.boot)
    .bind(integer(hello.journal_sequence))
    .bind(&hello.software_version)
    .bind(&hello.hostname)
    .bind(&hello.os)
    .bind(&hello.architecture)
    .bind(json(&hello.features))
    .bind(before.tenant.to_string())
    .bind(before.id.to_string())
    .bind(integer(before.generation.0))
    .bind(pool.map(|pool| pool.backend.clone()))
    .bind(pool.map(|pool| json(&pool.templates)))
    .bind(pool.map(|pool| pool.isolation.to_string()))
    .bind(pool.map(|pool| pool.problem.clone()))
    .bind(pool.map_or_else(|| "[]".to_owned(), |pool| json(&pool.sudo_templates)))
    .bind(hello.ceiling.map(|mode| mode.name()))
    .execute(tx)
    .await?;
    if taken == 0 {
        return Err(StoreError::Conflict(
            "another link of the runner came first",
        ));
    }
    Ok(())
}
