//! The usage of models: a row for each call of a model that was sent, and sums over them. A row survives its session.
//!
//! A call is known by its turn, step, worker and attempt. To record it twice changes nothing.

use std::time::Duration;

use server_records::ModelCall;
use shared_types::{
    PaidBy, SessionId, TenantId, Timestamp, TurnId, UserId, event::Usage, limits::MAX_NAME_BYTES,
};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer},
    database::{Connection, FromRow, MAX_PAGE, Page, Row, page, query, query_as},
    error::bounded,
    model_account::MAX_MODEL_NAME_BYTES,
};

/// The `account` of a call that the operator's key paid for.
const OPERATOR: &str = "operator";

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// Sums over calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls without a known price.
    pub unpriced: u64,
    /// The cost of all other calls, in millionths of a US dollar.
    pub cost_micros: u64,
    /// The tokens of all calls.
    pub usage: Usage,
}

/// The property by which calls are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// The provider and the model.
    Model,
    /// The user.
    Person,
    /// The day, in UTC.
    Day,
}

/// The common property of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageOf {
    /// The calls of a model.
    Model {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
    },
    /// The calls of a user.
    Person(UserId),
    /// The calls of the day that begins then, in UTC.
    Day(Timestamp),
}

macro_rules! select_sums {
    ($columns:literal, $rest:expr) => {
        concat!(
            "SELECT ",
            $columns,
            "COUNT(*) AS calls, COUNT(*) - COUNT(cost_micros) AS unpriced,
                 CAST(COALESCE(SUM(cost_micros), 0) AS BIGINT) AS cost_micros,
                 CAST(COALESCE(SUM(input), 0) AS BIGINT) AS input,
                 CAST(COALESCE(SUM(cached), 0) AS BIGINT) AS cached,
                 CAST(COALESCE(SUM(cache_written), 0) AS BIGINT) AS cache_written,
                 CAST(COALESCE(SUM(output), 0) AS BIGINT) AS output,
                 CAST(COALESCE(SUM(thoughts), 0) AS BIGINT) AS thoughts
             FROM model_calls WHERE tenant_id = $1 ",
            $rest
        )
    };
}

/// Sums by one property, of the tenant's calls or one user's. The newest days come first.
macro_rules! by {
    ($columns:literal, $group:literal) => {
        [
            select_sums!($columns, concat!("AND at >= $2 ", $group, " LIMIT $3")),
            select_sums!(
                $columns,
                concat!("AND at >= $2 AND user_id = $4 ", $group, " LIMIT $3")
            ),
        ]
    };
}

impl Store {
    /// Sums over the calls of a session, or of one of its turns, by model; the most expensive models first. They stay
    /// after the session is deleted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage_of_session(
        &self,
        tenant: TenantId,
        session: SessionId,
        turn: Option<TurnId>,
    ) -> Result<Vec<(UsageOf, ModelUsage)>, StoreError> {
        const OF_SESSION: &str = select_sums!(
            "provider, model, ",
            "AND session_id = $2 GROUP BY provider, model
             ORDER BY cost_micros DESC, provider, model LIMIT $3"
        );
        const OF_TURN: &str = select_sums!(
            "provider, model, ",
            "AND session_id = $2 AND turn_id = $4 GROUP BY provider, model
             ORDER BY cost_micros DESC, provider, model LIMIT $3"
        );
        let sums = query(turn.map_or(OF_SESSION, |_| OF_TURN))
            .bind(tenant.to_string())
            .bind(session.to_string())
            .bind(page(MAX_PAGE));
        let sums = match turn {
            Some(turn) => sums.bind(turn.to_string()),
            None => sums,
        };
        let rows = sums.fetch_all(&mut self.read(tenant).await?).await?;
        rows.iter()
            .map(|row| sums_of(row, UsageBy::Model))
            .collect()
    }

    /// Sums over the calls of each turn of a session, by model, for a page of the turns that had calls.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage_of_turns(
        &self,
        tenant: TenantId,
        session: SessionId,
        turns: Page<TurnId>,
    ) -> Result<Vec<(TurnId, Vec<(UsageOf, ModelUsage)>)>, StoreError> {
        let after = turns.after.map(|turn| turn.to_string());
        let rows = query(select_sums!(
            "turn_id, provider, model, ",
            "AND session_id = $2 AND turn_id IN (
                 SELECT turn_id FROM model_calls
                 WHERE tenant_id = $1 AND session_id = $2 AND turn_id > $3
                 GROUP BY turn_id ORDER BY turn_id LIMIT $4)
             GROUP BY turn_id, provider, model
             ORDER BY turn_id, cost_micros DESC, provider, model"
        ))
        .bind(tenant.to_string())
        .bind(session.to_string())
        .bind(after.unwrap_or_default())
        .bind(page(turns.limit))
        .fetch_all(&mut self.read(tenant).await?)
        .await?;
        let mut turns: Vec<(TurnId, Vec<_>)> = Vec::new();
        for row in &rows {
            let turn = row.parsed("turn_id")?;
            let sums = sums_of(row, UsageBy::Model)?;
            match turns.last_mut() {
                Some((last, of_last)) if *last == turn => of_last.push(sums),
                _ => turns.push((turn, vec![sums])),
            }
        }
        Ok(turns)
    }

    /// Sums over all calls since a moment, of one user or of all.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage_in_all(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        since: Timestamp,
    ) -> Result<ModelUsage, StoreError> {
        const OF_ALL: &str = select_sums!("", "AND at >= $2");
        const OF_USER: &str = select_sums!("", "AND at >= $2 AND user_id = $3");
        let sums = query_as(user.map_or(OF_ALL, |_| OF_USER))
            .bind(tenant.to_string())
            .bind(since.as_micros());
        let sums = match user {
            Some(user) => sums.bind(user.to_string()),
            None => sums,
        };
        let usage = sums.fetch_one(&mut self.read(tenant).await?).await?;
        Ok(usage)
    }

    /// Sums over the calls since a moment, of one user or of all: the newest days first, or models and people by their
    /// cost, the highest first. There are at most [`MAX_PAGE`].
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        since: Timestamp,
        by: UsageBy,
    ) -> Result<Vec<(UsageOf, ModelUsage)>, StoreError> {
        let [of_all, of_user] = match by {
            UsageBy::Model => by!(
                "provider, model, ",
                "GROUP BY provider, model ORDER BY cost_micros DESC, provider, model"
            ),
            UsageBy::Person => by!(
                "user_id, ",
                "GROUP BY user_id ORDER BY cost_micros DESC, user_id"
            ),
            UsageBy::Day => by!(
                "at / 86400000000 AS day, ",
                "GROUP BY at / 86400000000 ORDER BY day DESC"
            ),
        };
        let sums = query(user.map_or(of_all, |_| of_user))
            .bind(tenant.to_string())
            .bind(since.as_micros())
            .bind(page(MAX_PAGE));
        let sums = match user {
            Some(user) => sums.bind(user.to_string()),
            None => sums,
        };
        let rows = sums.fetch_all(&mut self.read(tenant).await?).await?;
        rows.iter().map(|row| sums_of(row, by)).collect()
    }
}

/// The sums of a row, and the property of its calls.
fn sums_of(row: &Row, by: UsageBy) -> Result<(UsageOf, ModelUsage), StoreError> {
    let of = match by {
        UsageBy::Model => UsageOf::Model {
            provider: row.text("provider")?,
            model: row.text("model")?,
        },
        UsageBy::Person => UsageOf::Person(row.parsed("user_id")?),
        UsageBy::Day => {
            let day = integer(row.count("day")?);
            UsageOf::Day(Timestamp::from_micros(day.saturating_mul(DAY_MICROS)))
        }
    };
    Ok((of, ModelUsage::from_row(row)?))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl FromRow for ModelUsage {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            calls: row.count("calls")?,
            unpriced: row.count("unpriced")?,
            cost_micros: row.count("cost_micros")?,
            usage: Usage {
                input: row.count("input")?,
                cached: row.count("cached")?,
                cache_written: row.count("cache_written")?,
                output: row.count("output")?,
                thoughts: row.count("thoughts")?,
            },
        })
    }
}

/// Records calls of the models of a session's user. A call that is recorded already changes nothing.
///
/// # Errors
/// [`StoreError::NotFound`] if there is no such session; [`StoreError::TooLarge`] for a text above its bound.
pub(crate) async fn record(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    calls: &[ModelCall],
    now: Timestamp,
) -> Result<(), StoreError> {
    if calls.is_empty() {
        return Ok(());
    }
    let row: Row = query("SELECT user_id FROM sessions WHERE tenant_id = $1 AND id = $2")
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_one(&mut *tx)
        .await?;
    let user = row.parsed("user_id")?;
    for call in calls {
        insert(tx, tenant, session, user, call, now).await?;
    }
    Ok(())
}

/// Inserts a call of a session and its user; returns false if it is recorded already.
async fn insert(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    user: UserId,
    call: &ModelCall,
    at: Timestamp,
) -> Result<bool, StoreError> {
    bounded("the model's name", &call.model, MAX_MODEL_NAME_BYTES)?;
    bounded("the provider's name", &call.provider, MAX_NAME_BYTES)?;
    let account = match call.paid_by {
        PaidBy::Operator => OPERATOR.to_owned(),
        PaidBy::Tenant(account) | PaidBy::Own(account) => account.to_string(),
        PaidBy::Runner(runner) => runner.to_string(),
    };
    let (usage, cost) = (call.usage, call.cost.as_ref());
    let inserted = query(
        "INSERT INTO model_calls (tenant_id, id, at, user_id, session_id, turn_id, step, attempt,
             model, provider, account, whose, input, cached, cache_written, output, thoughts,
             price_date, cost_micros, duration_ms, first_byte_ms, outcome)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $21, $22)
         ON CONFLICT (tenant_id, id) DO NOTHING",
    )
    .bind(tenant.to_string())
    .bind(call.id().to_string())
    .bind(at.as_micros())
    .bind(user.to_string())
    .bind(session.to_string())
    .bind(call.turn.to_string())
    .bind(i64::from(call.step))
    .bind(i64::from(call.attempt))
    .bind(&call.model)
    .bind(&call.provider)
    .bind(account)
    .bind(call.paid_by.word())
    .bind(integer(usage.input))
    .bind(integer(usage.cached))
    .bind(integer(usage.cache_written))
    .bind(integer(usage.output))
    .bind(integer(usage.thoughts))
    .bind(cost.map(|cost| cost.price_date.as_str()))
    .bind(cost.map(|cost| integer(cost.micros)))
    .bind(millis(call.duration))
    .bind(call.first_byte.map(millis))
    .bind(call.outcome)
    .execute(tx)
    .await?;
    Ok(inserted > 0)
}

#[cfg(test)]
impl Store {
    /// Records a call of a session that need not exist; returns false if it is recorded already.
    pub(crate) async fn record_model_call(
        &self,
        tenant: TenantId,
        session: SessionId,
        user: UserId,
        call: &ModelCall,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.write(tenant).await?;
        let inserted = insert(&mut tx, tenant, session, user, call, at).await?;
        tx.commit().await?;
        Ok(inserted)
    }
}
