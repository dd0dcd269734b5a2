//! People of a tenant: their invitation, their roles and their removal.
//!
//! The row of a person who was removed stays, because sessions, runners and the audit log name it; its name is free
//! again. A method that changes who is an owner writes its audit entry, which takes the tenant's row, before it counts
//! the owners. So the second of two such changes sees the first.

use serde_json::json;
use shared_types::{OperationId, SessionId, TenantId, Timestamp, TurnId, UserId};

use crate::{
    By, Full, NewSignInCode, NewUser, Role, SettingChange, SettingsOf, Store, StoreError, UserKind,
    UserRow, audit,
    columns::{Columns as _, word},
    credential,
    database::{
        Connection, FromRow, Page, Query, Row, containing, lock_user, page, query, query_as,
        retried,
    },
    extension, model_account,
    operation::end_access,
    setting, sign_in_code, tool_grant, tool_value, user,
};

/// Most people of a tenant, without those that were removed.
pub const PEOPLE_AT_MOST: u64 = 20_000;

/// A person who was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRow {
    /// The person.
    pub user: UserRow,
    /// The time until which the person's sign-in code can be used, if there is an unused one.
    pub invited_until: Option<Timestamp>,
    /// True if the person has ever signed in.
    pub joined: bool,
    /// When one of the person's credentials was last used, as far as that was recorded.
    pub last_used_at: Option<Timestamp>,
}

macro_rules! select_people {
    ($rest:literal) => {
        concat!(
            "SELECT tenant_id, id, name, user_kind, role, created_at,
                 (SELECT expires_at FROM sign_in_codes WHERE sign_in_codes.tenant_id = users.tenant_id
                     AND sign_in_codes.user_id = users.id AND used_at IS NULL) AS invited_until,
                 (SELECT MAX(last_used_at) FROM credentials
                     WHERE credentials.tenant_id = users.tenant_id AND credentials.user_id = users.id)
                     AS last_used_at,
                 CAST(CASE WHEN EXISTS (SELECT 1 FROM credentials
                     WHERE credentials.tenant_id = users.tenant_id AND credentials.user_id = users.id)
                 THEN 1 ELSE 0 END AS BIGINT) AS joined
             FROM users WHERE tenant_id = $1 AND removed_at IS NULL ",
            $rest
        )
    };
}

impl Store {
    /// The tenant's people with this text in their names (empty: all), by name.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn people(
        &self,
        tenant: TenantId,
        name: &str,
        part: impl Into<Page<String>>,
    ) -> Result<Vec<PersonRow>, StoreError> {
        let Page { after, limit } = part.into();
        let rows = query_as(select_people!(
            "AND name > $2 AND LOWER(name) LIKE $3 ESCAPE '\\' ORDER BY name LIMIT $4"
        ))
        .bind(tenant.to_string())
        .bind(after.unwrap_or_default())
        .bind(containing(name))
        .bind(page(limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// One person, by name or id.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], also where the person was removed.
    pub async fn person(
        &self,
        tenant: TenantId,
        name_or_id: &str,
    ) -> Result<PersonRow, StoreError> {
        let row = query_as(select_people!("AND (name = $2 OR id = $2)"))
            .bind(tenant.to_string())
            .bind(name_or_id)
            .fetch_one(&mut self.read(tenant).await?)
            .await?;
        Ok(row)
    }

    /// Invites a person: a user with a one-time code. An invited person who has not signed in yet gets a new code and
    /// this role; the earlier code stops working.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the person has signed in already; [`StoreError::Full`] if the tenant
    /// has [`PEOPLE_AT_MOST`].
    pub async fn invite(
        &self,
        tenant: TenantId,
        new: &NewUser,
        role: Role,
        code: &NewSignInCode,
        by: &By,
        now: Timestamp,
    ) -> Result<UserRow, StoreError> {
        let mut tx = self.write(tenant).await?;
        let detail = json!({ "name": new.name, "role": role, "expires_at": code.expires_at });
        let mut known = named(&mut tx, tenant, &new.name).await?;
        if let Some(found) = &known {
            // The person may be signing in at this moment: a new code would then open an account in use.
            lock_user(&mut tx, tenant, found.user.id).await?;
            known = named(&mut tx, tenant, &new.name).await?;
        }
        let id = known.as_ref().map_or(new.id, |known| known.user.id);
        match known {
            Some(known) if known.user.kind == UserKind::Service => {
                return Err(StoreError::Conflict(
                    "a service account has this name, choose another one",
                ));
            }
            Some(known) if known.joined => {
                return Err(StoreError::Conflict(
                    "a person of this name is here already",
                ));
            }
            Some(_) => set_role(&mut tx, tenant, id, role).await?,
            None => user::insert(&mut tx, tenant, new, UserKind::Person, role, now).await?,
        }
        sign_in_code::put(&mut tx, tenant, id, code, now).await?;
        record(&mut tx, tenant, by, "person.invited", id, detail, now).await?;
        require_room(&mut tx, tenant).await?;
        let invited = user::find(&mut tx, tenant, id).await?;
        tx.commit().await?;
        Ok(invited)
    }

    /// Changes a person's role.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such person; [`StoreError::Conflict`] if the tenant would have no owner
    /// any more.
    pub async fn change_role(
        &self,
        tenant: TenantId,
        person: UserId,
        role: Role,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let before = user::find(&mut tx, tenant, person).await?.role;
            let detail = json!({ "from": before, "to": role });
            set_role(&mut tx, tenant, person, role).await?;
            record(
                &mut tx,
                tenant,
                by,
                "person.role_changed",
                person,
                detail,
                now,
            )
            .await?;
            require_an_owner(&mut tx, tenant).await?;
            end_access(&mut tx, tenant, by.user, now).await?;
            tx.commit().await
        })
    }

    /// Ends a person's access: credentials, codes and join tokens stop working, and no runner is shared with or by the
    /// person. The person's model accounts go with their keys. Sessions and runners stay.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such person; [`StoreError::Conflict`] if the tenant would have no owner
    /// any more.
    pub async fn remove_person(
        &self,
        tenant: TenantId,
        person: UserId,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let name = user::find(&mut tx, tenant, person).await?.name;
            let detail = json!({ "name": name });
            // No name that a person may have contains an @, and no id comes twice.
            let removed = query(
                "UPDATE users SET removed_at = $3, name = name || '@' || id
             WHERE tenant_id = $1 AND id = $2 AND removed_at IS NULL",
            );
            if at(removed, tenant, person, now).execute(&mut tx).await? == 0 {
                return Err(StoreError::NotFound);
            }
            let (of, none) = (SettingsOf::User(person), SettingChange::runner(None));
            setting::put(&mut tx, tenant, of, &none, by.user, now).await?;
            // Also the keys that the person's keys made for a service account.
            for (ended, of) in credential::end(&mut tx, tenant, person, by.user, now).await? {
                if of != person {
                    let with = Some(person.to_string());
                    credential::record_end(&mut tx, tenant, by, ended, of, with, now).await?;
                }
            }
            for ended in [
                "UPDATE sign_in_codes SET expires_at = $3
             WHERE tenant_id = $1 AND user_id = $2 AND expires_at > $3",
                "UPDATE join_tokens SET expires_at = $3
             WHERE tenant_id = $1 AND owner_id = $2 AND expires_at > $3",
            ] {
                at(query(ended), tenant, person, now)
                    .execute(&mut tx)
                    .await?;
            }
            for ended in [
                "UPDATE runners SET shared_with_everyone_at = NULL WHERE tenant_id = $1 AND owner_id = $2",
                "DELETE FROM runner_shares WHERE tenant_id = $1 AND (user_id = $2 OR runner_id IN (
                 SELECT id FROM runners WHERE tenant_id = $1 AND owner_id = $2))",
                "DELETE FROM settings WHERE tenant_id = $1 AND subject = $2",
            ] {
                query(ended)
                    .bind(tenant.to_string())
                    .bind(person.to_string())
                    .execute(&mut tx)
                    .await?;
            }
            model_account::remove_of_user(&mut tx, tenant, person).await?;
            extension::remove_of_user(&mut tx, tenant, person).await?;
            tool_grant::remove_of_user(&mut tx, tenant, person).await?;
            tool_value::remove_of_user(&mut tx, tenant, person).await?;
            record(&mut tx, tenant, by, "person.removed", person, detail, now).await?;
            require_an_owner(&mut tx, tenant).await?;
            end_access(&mut tx, tenant, by.user, now).await?;
            tx.commit().await
        })
    }
}

impl Store {
    /// The turns of a user's sessions that run or wait.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unfinished_turns_of_user(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<(SessionId, TurnId)>, StoreError> {
        let rows = query(
            "SELECT turns.session_id, turns.id FROM turns
             JOIN sessions ON sessions.tenant_id = turns.tenant_id AND sessions.id = turns.session_id
             WHERE turns.tenant_id = $1 AND sessions.user_id = $2 AND turns.state <> 'ended'
             ORDER BY turns.id",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        let turns = rows
            .iter()
            .map(|row| Ok((row.parsed("session_id")?, row.parsed("id")?)));
        turns.collect()
    }

    /// Removed users with a turn or an operation that has not ended, each with the tenant.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn removed_at_work(&self) -> Result<Vec<(TenantId, UserId)>, StoreError> {
        let rows = query(
            "SELECT users.tenant_id, users.id FROM users WHERE users.removed_at IS NOT NULL AND (
                 EXISTS (SELECT 1 FROM operations
                     WHERE operations.tenant_id = users.tenant_id
                         AND operations.user_id = users.id AND operations.outcome IS NULL)
                 OR EXISTS (SELECT 1 FROM operations
                     JOIN sessions ON sessions.tenant_id = operations.tenant_id
                         AND sessions.id = operations.session_id
                     WHERE operations.tenant_id = users.tenant_id
                         AND sessions.user_id = users.id AND operations.outcome IS NULL)
                 OR EXISTS (SELECT 1 FROM turns
                     JOIN sessions ON sessions.tenant_id = turns.tenant_id
                         AND sessions.id = turns.session_id
                     WHERE turns.tenant_id = users.tenant_id
                         AND sessions.user_id = users.id AND turns.state <> 'ended'))
             ORDER BY users.tenant_id, users.id",
        )
        .fetch_all(&mut self.read_any("removals are finished for all").await?)
        .await?;
        let users = rows
            .iter()
            .map(|row| Ok((row.parsed("tenant_id")?, row.parsed("id")?)));
        users.collect()
    }

    /// The operations that a user or a user's session asked for, and that have not ended.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn open_operations_of_user(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Vec<OperationId>, StoreError> {
        let rows = query(
            "SELECT id FROM operations
             WHERE tenant_id = $1 AND outcome IS NULL AND (user_id = $2 OR session_id IN (
                 SELECT id FROM sessions WHERE tenant_id = $1 AND user_id = $2)) ORDER BY id",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        rows.iter().map(|row| Ok(row.parsed("id")?)).collect()
    }
}

fn at<'q>(query: Query<'q>, tenant: TenantId, person: UserId, now: Timestamp) -> Query<'q> {
    query
        .bind(tenant.to_string())
        .bind(person.to_string())
        .bind(now.as_micros())
}

pub(crate) async fn record(
    tx: &mut Connection,
    tenant: TenantId,
    by: &By,
    kind: &'static str,
    person: UserId,
    detail: serde_json::Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    let entry = by.entry(kind, person, detail);
    audit::record(tx, tenant, &entry, now).await.map(drop)
}

async fn set_role(
    tx: &mut Connection,
    tenant: TenantId,
    person: UserId,
    role: Role,
) -> Result<(), StoreError> {
    let changed =
        query("UPDATE users SET role = $3 WHERE tenant_id = $1 AND id = $2 AND removed_at IS NULL")
            .bind(tenant.to_string())
            .bind(person.to_string())
            .bind(word(&role))
            .execute(tx)
            .await?;
    match changed {
        0 => Err(StoreError::NotFound),
        _ => Ok(()),
    }
}

/// Refuses a tenant without an owner: one user must be able to do everything.
async fn require_an_owner(tx: &mut Connection, tenant: TenantId) -> Result<(), StoreError> {
    let owners = query(
        "SELECT COUNT(*) AS people FROM users
         WHERE tenant_id = $1 AND role = 'owner' AND removed_at IS NULL",
    );
    let owners: Row = owners.bind(tenant.to_string()).fetch_one(tx).await?;
    match owners.count("people")? {
        0 => Err(StoreError::Conflict(
            "the last owner stays one; first make another person an owner: gantry people role NAME owner",
        )),
        _ => Ok(()),
    }
}

async fn named(
    tx: &mut Connection,
    tenant: TenantId,
    name: &str,
) -> Result<Option<PersonRow>, StoreError> {
    let known = query_as(select_people!("AND name = $2"))
        .bind(tenant.to_string())
        .bind(name)
        .fetch_optional(tx)
        .await?;
    Ok(known)
}

pub(crate) async fn require_room(tx: &mut Connection, tenant: TenantId) -> Result<(), StoreError> {
    let people =
        query("SELECT COUNT(*) AS people FROM users WHERE tenant_id = $1 AND removed_at IS NULL");
    let people: Row = people.bind(tenant.to_string()).fetch_one(tx).await?;
    match people.count("people")? {
        used if used <= PEOPLE_AT_MOST => Ok(()),
        used => Err(Full {
            has: "the tenant has",
            used: used - 1,
            at_most: PEOPLE_AT_MOST,
            what: "people",
            remedy: "remove some: gantry people remove NAME",
        }
        .into()),
    }
}

impl FromRow for PersonRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            user: UserRow::from_row(row)?,
            invited_until: row.maybe_time("invited_until")?,
            joined: row.count("joined")? == 1,
            last_used_at: row.maybe_time("last_used_at")?,
        })
    }
}
