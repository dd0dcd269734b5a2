//! The usage of models: a row for each call of a model that was sent, and sums over them. A row survives its session.
//!
//! A call is known by its turn, step and attempt. To record it twice changes nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use shared_types::{
    ModelAccountId, ModelCallId, SessionId, TenantId, Timestamp, TurnId, UserId,
    limits::MAX_NAME_BYTES,
};

use crate::{
    Store, StoreError,
    columns::{Columns as _, integer, word},
    database::{FromRow, MAX_PAGE, Row, page, query, query_as},
    error::bounded,
    model_account::MAX_MODEL_NAME_BYTES,
};

/// The `account` of a call that the operator's key paid for.
const OPERATOR: &str = "operator";

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// The payer of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaidBy {
    /// The operator's key, for all tenants.
    Operator,
    /// An account of the tenant.
    Tenant(ModelAccountId),
    /// An account of the user's own.
    Own(ModelAccountId),
}

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTokens {
    /// Tokens that were sent.
    pub input: u64,
    /// Of those, tokens that the provider had in its cache.
    pub cached: u64,
    /// Of those, tokens that the provider wrote to its cache.
    pub cache_written: u64,
    /// Tokens that came back.
    pub output: u64,
    /// Of those, tokens of thoughts.
    pub thoughts: u64,
}

/// The cost of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCost {
    /// In millionths of a US dollar.
    pub micros: u64,
    /// The date of the list of prices, such as `2026-11-01`.
    pub price_date: String,
}

/// A call of a model that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCall {
    /// Its id.
    pub id: ModelCallId,
    /// When it was sent.
    pub at: Timestamp,
    /// The user of the session.
    pub user: UserId,
    /// Its session.
    pub session: SessionId,
    /// Its turn.
    pub turn: TurnId,
    /// Its step, from 1.
    pub step: u32,
    /// Its number in the step, from 1.
    pub attempt: u32,
    /// The model.
    pub model: String,
    /// The provider, such as `openai`.
    pub provider: String,
    /// The payer.
    pub paid_by: PaidBy,
    /// Its tokens.
    pub tokens: ModelTokens,
    /// Its cost, where a price is known.
    pub cost: Option<ModelCost>,
    /// The time until it ended.
    pub duration: Duration,
    /// The time until the first byte of the answer, if there was any.
    pub first_byte: Option<Duration>,
    /// Its end in one word, such as `ok`, `cancelled` or `rate_limited`.
    pub outcome: String,
}

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
    pub tokens: ModelTokens,
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
    /// Records a call. Returns false, and changes nothing, if it is recorded already.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such tenant; [`StoreError::TooLarge`] for a text above its bound.
    pub async fn record_model_call(
        &self,
        tenant: TenantId,
        call: &ModelCall,
    ) -> Result<bool, StoreError> {
        bounded("the model's name", &call.model, MAX_MODEL_NAME_BYTES)?;
        bounded("the provider's name", &call.provider, MAX_NAME_BYTES)?;
        bounded("the call's outcome", &call.outcome, MAX_NAME_BYTES)?;
        let (account, whose) = match call.paid_by {
            PaidBy::Operator => (OPERATOR.to_owned(), Whose::Operator),
            PaidBy::Tenant(account) => (account.to_string(), Whose::Tenant),
            PaidBy::Own(account) => (account.to_string(), Whose::Own),
        };
        let (tokens, cost) = (call.tokens, call.cost.as_ref());
        let mut tx = self.write(tenant).await?;
        let recorded = query(
            "INSERT INTO model_calls (tenant_id, id, at, user_id, session_id, turn_id, step, attempt,
                 model, provider, account, whose, input, cached, cache_written, output, thoughts,
                 price_date, cost_micros, duration_ms, first_byte_ms, outcome)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                 $19, $20, $21, $22)
             ON CONFLICT (tenant_id, turn_id, step, attempt) DO NOTHING",
        )
        .bind(tenant.to_string())
        .bind(call.id.to_string())
        .bind(call.at.as_micros())
        .bind(call.user.to_string())
        .bind(call.session.to_string())
        .bind(call.turn.to_string())
        .bind(i64::from(call.step))
        .bind(i64::from(call.attempt))
        .bind(&call.model)
        .bind(&call.provider)
        .bind(account)
        .bind(word(&whose))
        .bind(integer(tokens.input))
        .bind(integer(tokens.cached))
        .bind(integer(tokens.cache_written))
        .bind(integer(tokens.output))
        .bind(integer(tokens.thoughts))
        .bind(cost.map(|cost| cost.price_date.as_str()))
        .bind(cost.map(|cost| integer(cost.micros)))
        .bind(millis(call.duration))
        .bind(call.first_byte.map(millis))
        .bind(&call.outcome)
        .execute(&mut tx)
        .await?;
        tx.commit().await?;
        Ok(recorded > 0)
    }

    /// Sums over the calls of a turn.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage_of_turn(
        &self,
        tenant: TenantId,
        turn: TurnId,
    ) -> Result<ModelUsage, StoreError> {
        let usage = query_as(select_sums!("", "AND turn_id = $2"))
            .bind(tenant.to_string())
            .bind(turn.to_string())
            .fetch_one(&mut self.read(tenant).await?)
            .await?;
        Ok(usage)
    }

    /// Sums over the calls of a session, also after it is deleted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn usage_of_session(
        &self,
        tenant: TenantId,
        session: SessionId,
    ) -> Result<ModelUsage, StoreError> {
        let usage = query_as(select_sums!("", "AND session_id = $2"))
            .bind(tenant.to_string())
            .bind(session.to_string())
            .fetch_one(&mut self.read(tenant).await?)
            .await?;
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
        let rows = rows.iter().map(|row| {
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
        });
        rows.collect()
    }
}

/// The owner of the account that paid.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Whose {
    Own,
    Tenant,
    Operator,
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
            tokens: ModelTokens {
                input: row.count("input")?,
                cached: row.count("cached")?,
                cache_written: row.count("cache_written")?,
                output: row.count("output")?,
                thoughts: row.count("thoughts")?,
            },
        })
    }
}
