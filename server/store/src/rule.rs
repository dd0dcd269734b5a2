//! Rules about what agents may do: of a tenant for all of its people, and of a user.

use serde_json::json;
use server_records::{RuleRow, StandingRules};
use shared_consent::Decision;
use shared_types::{RuleId, SessionId, TenantId, Timestamp, UserId};

use crate::{
    AuditEntry, By, SettingName, Store, StoreError, audit,
    columns::{Columns as _, damaged},
    database::{Connection, FromRow, Row, query, query_as, retried},
    room::Room,
};

/// The rules of a tenant, and of a user.
const RULES: Room = Room {
    count: "SELECT COUNT(*) AS used FROM permission_rules
            WHERE tenant_id = $1 AND COALESCE(user_id, '') = $2",
    has: "there are",
    at_most: 500,
    what: "rules",
    remedy: "remove one with: gantry permissions remove",
};

macro_rules! select_rules {
    ($rest:literal) => {
        concat!(
            "SELECT permission_rules.id, permission_rules.user_id, decision, rule, set_by, set_at,
                 users.name AS set_by_name
             FROM permission_rules LEFT JOIN users ON users.tenant_id = permission_rules.tenant_id
                 AND users.id = set_by ",
            $rest
        )
    };
}

impl Store {
    /// The rules that count for a user's agents: those of the tenant, then the user's own, each in the order in which
    /// they were set.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn rules(&self, tenant: TenantId, user: UserId) -> Result<Vec<RuleRow>, StoreError> {
        let rows = query_as(select_rules!(
            "WHERE permission_rules.tenant_id = $1
                 AND (permission_rules.user_id IS NULL OR permission_rules.user_id = $2)
             ORDER BY permission_rules.user_id IS NOT NULL, set_at, permission_rules.id"
        ))
        .bind(tenant.to_string())
        .bind(user.to_string())
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        Ok(rows)
    }

    /// The bounds of the agent of a session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub(crate) async fn rules_of_session(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<StandingRules, StoreError> {
        let user = self.session_owner(tenant, session).await?;
        let rules = self.rules(tenant, user).await?;
        let settings = self.settings(tenant, user, None).await?;
        let ceiling = settings.in_effect(SettingName::MaxMode);
        let ceiling = ceiling.map(|row| row.value.parse()).transpose();
        Ok(StandingRules {
            rules: rules.into_iter().map(RuleRow::set).collect(),
            ceiling: ceiling.map_err(|error| damaged("value", error))?,
        })
    }

    /// Sets a rule: for all people of the tenant, or for one user. One that is set already stays as it is.
    ///
    /// # Errors
    /// [`StoreError::Full`] above 500 rules.
    pub async fn add_rule(
        &self,
        tenant: TenantId,
        new: &NewRuleRow<'_>,
        by: &By,
        now: Timestamp,
    ) -> Result<RuleRow, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            add(&mut tx, tenant, new, by, now).await?;
            let row = query_as(select_rules!(
                "WHERE permission_rules.tenant_id = $1
                     AND COALESCE(permission_rules.user_id, '') = $2 AND decision = $3 AND rule = $4"
            ))
            .bind(tenant.to_string())
            .bind(new.user.map_or_else(String::new, |user| user.to_string()))
            .bind(new.decision.to_string())
            .bind(new.rule)
            .fetch_one(&mut tx)
            .await?;
            tx.commit().await?;
            Ok(row)
        })
    }

    /// Removes a rule: the tenant's, or this user's.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    pub async fn remove_rule(
        &self,
        tenant: TenantId,
        id: RuleId,
        user: Option<UserId>,
        by: &By,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let gone: Row = query(
                "DELETE FROM permission_rules
                 WHERE tenant_id = $1 AND id = $2 AND COALESCE(user_id, '') = $3
                 RETURNING decision, rule",
            )
            .bind(tenant.to_string())
            .bind(id.to_string())
            .bind(user.map_or_else(String::new, |user| user.to_string()))
            .fetch_one(&mut tx)
            .await?;
            let (decision, rule) = (gone.text("decision")?, gone.text("rule")?);
            let entry = entry(by, "permission.removed", id, user, &decision, &rule);
            audit::record(&mut tx, tenant, &entry, now).await?;
            tx.commit().await
        })
    }
}

/// A rule that is to be set.
#[derive(Debug, Clone, Copy)]
pub struct NewRuleRow<'a> {
    /// Its id.
    pub id: RuleId,
    /// The user whose rule it is; absent for a rule of the tenant.
    pub user: Option<UserId>,
    /// The decision that the rule gives.
    pub decision: Decision,
    /// The rule, as people write it.
    pub rule: &'a str,
}

/// Sets a rule, unless it is set.
pub(crate) async fn add(
    tx: &mut Connection,
    tenant: TenantId,
    new: &NewRuleRow<'_>,
    by: &By,
    now: Timestamp,
) -> Result<(), StoreError> {
    let NewRuleRow {
        id,
        user,
        decision,
        rule,
    } = *new;
    let whose = user.map_or_else(String::new, |user| user.to_string());
    let added = query(
        "INSERT INTO permission_rules (tenant_id, id, user_id, decision, rule, set_by, set_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
    )
    .bind(tenant.to_string())
    .bind(id.to_string())
    .bind(user.map(|user| user.to_string()))
    .bind(decision.to_string())
    .bind(rule)
    .bind(by.user.to_string())
    .bind(now.as_micros())
    .execute(&mut *tx)
    .await?;
    if added == 0 {
        return Ok(());
    }
    RULES.must_hold(tx, tenant, &whose).await?;
    let decision = decision.to_string();
    let entry = entry(by, "permission.added", id, user, &decision, rule);
    audit::record(tx, tenant, &entry, now).await?;
    Ok(())
}

fn entry(
    by: &By,
    kind: &'static str,
    id: RuleId,
    user: Option<UserId>,
    decision: &str,
    rule: &str,
) -> AuditEntry {
    let scope = match user {
        Some(_) => "user",
        None => "tenant",
    };
    by.entry(
        kind,
        id,
        json!({ "scope": scope, "decision": decision, "rule": rule }),
    )
}

impl FromRow for RuleRow {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.parsed("id")?,
            user: row.maybe_parsed("user_id")?,
            rule: row.parsed("rule")?,
            decision: row.parsed("decision")?,
            by: row.parsed("set_by")?,
            by_name: row.maybe_text("set_by_name")?.unwrap_or_default(),
            at: row.time("set_at")?,
        })
    }
}
