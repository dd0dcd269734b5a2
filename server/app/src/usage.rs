//! The usage of models: what a turn, a session and a day cost.
//!
//! Users see their own usage, and admins everyone's. The ledger (`server/store/src/model_call.rs`) keeps a call after
//! its session is deleted. So the sums of a time count more than those of the sessions that are left.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use server_store::{MAX_PAGE, ModelUsage, Page, Store, UsageBy, UsageOf};
use shared_types::{Clock, SessionId, Timestamp, TurnId, event};

use crate::{
    AppError, OpContext, Parts,
    gate::Gate,
    pages::{and_one, cut},
    rights::Action,
};

/// The time that is summed where the request names none.
const USUAL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The longest time that is summed. It has fewer days than an answer has rows.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// The begin of the time whose calls are summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Since {
    /// The usual time before now.
    #[default]
    Usual,
    /// This time before now.
    Ago(Duration),
    /// This moment.
    Moment(Timestamp),
}

/// Sums over calls, by one property and in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSums {
    /// The begin of the time; absent for a session or a turn.
    pub since: Option<Timestamp>,
    /// The sums by the property. Where there are too many, the most expensive ones.
    pub rows: Vec<(UsageOf, ModelUsage)>,
    /// The sum of all calls, also of those in no row.
    pub total: ModelUsage,
    /// The names of the people in the rows, by their ids.
    pub names: BTreeMap<String, String>,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Usage {
    store: Store,
    gate: Gate,
    clock: Arc<dyn Clock>,
}

impl Usage {
    pub(crate) fn of(parts: &Parts, gate: &Gate) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            clock: parts.clock.clone(),
        }
    }

    /// The usage of the user, or of everyone.
    ///
    /// # Errors
    /// If the user may not see it, or the time is out of bounds.
    pub async fn since(
        &self,
        ctx: &OpContext,
        since: Since,
        by: UsageBy,
        everyone: bool,
    ) -> Result<UsageSums, AppError> {
        let user = match everyone {
            true => {
                self.gate.own(ctx, Action::SeeTenantUsage)?;
                None
            }
            false => {
                self.gate.own(ctx, Action::SeeUsage)?;
                Some(ctx.user)
            }
        };
        let since = begin(since, by, self.clock.now())?;
        let rows = self.store.usage(ctx.tenant, user, since, by).await?;
        let total = match rows.len() < MAX_PAGE as usize {
            true => sum(&rows),
            false => self.store.usage_in_all(ctx.tenant, user, since).await?,
        };
        let people: BTreeSet<_> = rows
            .iter()
            .filter_map(|(of, _)| match of {
                UsageOf::Person(id) => Some(id.to_string()),
                UsageOf::Model { .. } | UsageOf::Day(_) => None,
            })
            .collect();
        Ok(UsageSums {
            since: Some(since),
            rows,
            total,
            names: self.store.names_of(ctx.tenant, people).await?,
        })
    }

    /// The usage of a session, or of one of its turns, by model.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn of_session(
        &self,
        ctx: &OpContext,
        session: SessionId,
        turn: Option<TurnId>,
    ) -> Result<UsageSums, AppError> {
        self.gate.session(ctx, Action::ReadSession, session).await?;
        let rows = self.store.usage_of_session(ctx.tenant, session, turn);
        Ok(of_models(rows.await?))
    }

    /// The usage of the turns of a session that asked a model, in their order, and whether there are more.
    ///
    /// # Errors
    /// If the user has no such session.
    pub async fn of_turns(
        &self,
        ctx: &OpContext,
        session: SessionId,
        page: Page<TurnId>,
    ) -> Result<(Vec<(TurnId, UsageSums)>, bool), AppError> {
        self.gate.session(ctx, Action::ReadSession, session).await?;
        let limit = page.limit;
        let turns = self
            .store
            .usage_of_turns(ctx.tenant, session, and_one(page))
            .await?;
        let (turns, more) = cut(turns, limit);
        let turns = turns.into_iter();
        let turns = turns.map(|(turn, rows)| (turn, of_models(rows))).collect();
        Ok((turns, more))
    }
}

fn of_models(rows: Vec<(UsageOf, ModelUsage)>) -> UsageSums {
    UsageSums {
        since: None,
        total: sum(&rows),
        rows,
        names: BTreeMap::new(),
    }
}

fn sum(rows: &[(UsageOf, ModelUsage)]) -> ModelUsage {
    rows.iter().fold(ModelUsage::default(), |all, (_, row)| {
        let (sum, more) = (all.usage, row.usage);
        ModelUsage {
            calls: all.calls.saturating_add(row.calls),
            unpriced: all.unpriced.saturating_add(row.unpriced),
            cost_micros: all.cost_micros.saturating_add(row.cost_micros),
            usage: event::Usage {
                input: sum.input.saturating_add(more.input),
                cached: sum.cached.saturating_add(more.cached),
                cache_written: sum.cache_written.saturating_add(more.cache_written),
                output: sum.output.saturating_add(more.output),
                thoughts: sum.thoughts.saturating_add(more.thoughts),
            },
        }
    })
}

/// The moment from which calls are summed. Of days only whole ones are summed, so that they can be compared.
///
/// # Errors
/// If it is in the future, or longer ago than [`LONGEST`].
fn begin(since: Since, by: UsageBy, now: Timestamp) -> Result<Timestamp, AppError> {
    let ago = |time: Duration| {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(now.as_micros().saturating_sub(micros))
    };
    let begin = match since {
        Since::Usual => ago(USUAL),
        Since::Ago(time) => ago(time),
        Since::Moment(moment) => moment,
    };
    if begin > now {
        return Err(AppError::Invalid(format!(
            "since is {begin:.0}, which is in the future; name a day that has begun (days begin at midnight UTC)"
        )));
    }
    if now.since(begin) > LONGEST {
        return Err(AppError::Invalid(format!(
            "since is too long ago; usage is summed over 366 days at most, from {} on",
            ago(LONGEST).after(Duration::from_secs(24 * 60 * 60)).date()
        )));
    }
    Ok(match by {
        UsageBy::Day => {
            let of_day = begin.as_micros().rem_euclid(DAY_MICROS);
            Timestamp::from_micros(begin.as_micros() - of_day)
        }
        UsageBy::Model | UsageBy::Person => begin,
    })
}

#[cfg(test)]
mod tests;
