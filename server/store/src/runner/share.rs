//! The users who may use a runner beside its owner.

use serde_json::json;
use shared_types::{RunnerId, TenantId, Timestamp, UserId};

use super::{RunnerRow, entry};
use crate::{
    AuditEntry, By, Store, StoreError, audit,
    columns::Columns as _,
    database::{Connection, Row, page, query, query_as},
    operation::end_access,
};

/// The people that a runner is shared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedWith {
    /// Everyone of its tenant.
    Everyone,
    /// One person.
    Person(UserId),
}

/// The users who may use a runner, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunnerShares {
    /// The owner's name; absent where the owner was removed.
    pub owner: Option<String>,
    /// True if it is shared with everyone.
    pub everyone: bool,
    /// The names of the people that it is shared with, in order.
    pub people: Vec<String>,
}

/// A runner, and the right of one user to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerAccess {
    /// Its name.
    pub name: String,
    /// The user who owns it.
    pub owner: UserId,
    /// True if it is shared with that user.
    pub shared: bool,
    /// True if it was revoked.
    pub revoked: bool,
}

impl Store {
    /// The right of a user to a runner.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner, revoked or not.
    pub async fn runner_access(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        user: UserId,
    ) -> Result<RunnerAccess, StoreError> {
        let row: Row = query(
            "SELECT name, owner_id, revoked_at,
                 CAST(CASE WHEN shared_with_everyone_at IS NOT NULL OR EXISTS (
                     SELECT 1 FROM runner_shares WHERE runner_shares.tenant_id = runners.tenant_id
                         AND runner_shares.runner_id = runners.id AND runner_shares.user_id = $3)
                 THEN 1 ELSE 0 END AS BIGINT) AS shared
             FROM runners WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(user.to_string())
        .fetch_one(&mut self.read(tenant).await?)
        .await?;
        Ok(access(&row)?)
    }

    /// The runners that are not revoked and are the user's or shared with the user, by name, `limit`
    /// at most.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn runners_of_user(
        &self,
        tenant: TenantId,
        user: UserId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<RunnerRow>, StoreError> {
        let rows = query_as(select_runners!(
            "WHERE tenant_id = $1 AND name > $4 AND revoked_at IS NULL AND (owner_id = $3
                 OR shared_with_everyone_at IS NOT NULL OR EXISTS (
                     SELECT 1 FROM runner_shares WHERE runner_shares.tenant_id = runners.tenant_id
                         AND runner_shares.runner_id = runners.id AND runner_shares.user_id = $3))
             ORDER BY name LIMIT $2"
        ))
        .bind(tenant.to_string())
        .bind(page(limit))
        .bind(user.to_string())
        .bind(after)
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// The users who may use a runner.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner.
    pub async fn shares_of_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
    ) -> Result<RunnerShares, StoreError> {
        let mut connection = self.read(tenant).await?;
        let row: Row = query(
            "SELECT shared_with_everyone_at, (SELECT users.name FROM users
                 WHERE users.tenant_id = runners.tenant_id AND users.id = owner_id
                     AND removed_at IS NULL) AS owner
             FROM runners WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_one(&mut connection)
        .await?;
        let people = query(
            "SELECT users.name AS name FROM runner_shares
             JOIN users ON users.tenant_id = runner_shares.tenant_id
                 AND users.id = runner_shares.user_id
             WHERE runner_shares.tenant_id = $1 AND runner_id = $2 AND removed_at IS NULL
             ORDER BY users.name",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .fetch_all(&mut connection)
        .await?;
        Ok(RunnerShares {
            owner: row.maybe_text("owner")?,
            everyone: row.maybe_time("shared_with_everyone_at")?.is_some(),
            people: people
                .iter()
                .map(|row| row.text("name"))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Shares a runner; doing it twice changes nothing.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the runner or the person is not in this tenant.
    pub async fn share_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        with: SharedWith,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        match with {
            SharedWith::Everyone => {
                let shared = query(
                    "UPDATE runners SET shared_with_everyone_at = $3
                     WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
                )
                .bind(tenant.to_string())
                .bind(runner.to_string())
                .bind(now.as_micros());
                if shared.execute(&mut tx).await? == 0 {
                    return Err(StoreError::NotFound);
                }
            }
            SharedWith::Person(person) => {
                query(
                    "INSERT INTO runner_shares (tenant_id, runner_id, user_id, shared_at)
                     VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_id, runner_id, user_id) DO NOTHING",
                )
                .bind(tenant.to_string())
                .bind(runner.to_string())
                .bind(person.to_string())
                .bind(now.as_micros())
                .execute(&mut tx)
                .await?;
            }
        }
        record(
            &mut tx,
            tenant,
            runner,
            "runner.shared",
            Some(with),
            by,
            now,
        )
        .await?;
        tx.commit().await
    }

    /// Ends a share of a runner: with everyone, with one person, or (`None`) with all. Operations that run there for
    /// people who have no right to it any more are marked.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unshare_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        with: Option<SharedWith>,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        // Also if nothing changes: until it is committed, nothing is placed on a runner whose row was changed.
        query(
            "UPDATE runners SET shared_with_everyone_at =
                 CASE WHEN $3 = 1 THEN NULL ELSE shared_with_everyone_at END
             WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(i64::from(!matches!(with, Some(SharedWith::Person(_)))))
        .execute(&mut tx)
        .await?;
        match with {
            Some(SharedWith::Everyone) => {}
            Some(SharedWith::Person(person)) => {
                query(
                    "DELETE FROM runner_shares
                     WHERE tenant_id = $1 AND runner_id = $2 AND user_id = $3",
                )
                .bind(tenant.to_string())
                .bind(runner.to_string())
                .bind(person.to_string())
                .execute(&mut tx)
                .await?;
            }
            None => {
                query("DELETE FROM runner_shares WHERE tenant_id = $1 AND runner_id = $2")
                    .bind(tenant.to_string())
                    .bind(runner.to_string())
                    .execute(&mut tx)
                    .await?;
            }
        }
        record(&mut tx, tenant, runner, "runner.unshared", with, by, now).await?;
        end_access(&mut tx, tenant, by.user, now).await?;
        tx.commit().await
    }

    /// Makes the user who asks the owner of a runner. Operations that run there for the owner before are marked, if
    /// that user has no right to it any more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner, or it is revoked.
    pub async fn take_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        let taken = query(
            "UPDATE runners SET owner_id = $3
             WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(by.user.to_string());
        if taken.execute(&mut tx).await? == 0 {
            return Err(StoreError::NotFound);
        }
        record(&mut tx, tenant, runner, "runner.taken", None, by, now).await?;
        end_access(&mut tx, tenant, by.user, now).await?;
        tx.commit().await
    }

    /// Makes the isolation that the runner reports count from now on, or (`trusted` is false) no more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such runner, or it is revoked.
    pub async fn trust_runner(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        trusted: bool,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.write(tenant).await?;
        let changed = query(
            "UPDATE runners SET trusted_by = $3, trusted_at = $4
             WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
        )
        .bind(tenant.to_string())
        .bind(runner.to_string())
        .bind(trusted.then(|| by.user.to_string()))
        .bind(trusted.then(|| now.as_micros()));
        if changed.execute(&mut tx).await? == 0 {
            return Err(StoreError::NotFound);
        }
        let kind = match trusted {
            true => "runner.trusted",
            false => "runner.distrusted",
        };
        record(&mut tx, tenant, runner, kind, None, by, now).await?;
        tx.commit().await
    }
}

fn access(row: &Row) -> Result<RunnerAccess, sqlx::Error> {
    Ok(RunnerAccess {
        name: row.text("name")?,
        owner: row.parsed("owner_id")?,
        shared: row.count("shared")? == 1,
        revoked: row.maybe_time("revoked_at")?.is_some(),
    })
}

async fn record(
    tx: &mut Connection,
    tenant: TenantId,
    runner: RunnerId,
    kind: &'static str,
    with: Option<SharedWith>,
    by: &By,
    now: Timestamp,
) -> Result<(), StoreError> {
    let with = with.map(|with| match with {
        SharedWith::Everyone => "everyone".to_owned(),
        SharedWith::Person(person) => person.to_string(),
    });
    let entry = AuditEntry {
        origin: by.origin,
        ..entry(by.actor(), kind, runner, json!({ "with": with }))
    };
    audit::record(tx, tenant, &entry, now).await.map(drop)
}
