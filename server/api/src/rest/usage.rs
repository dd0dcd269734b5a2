//! The usage of models: of the user or everyone, of a session, and of its turns.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::{Deserialize, de::IntoDeserializer as _};
use server_app::{AppError, Page, Since, UsageOf, UsageSums};
use shared_api::{
    ModelUsage, Problem, Tokens, TurnUsage, TurnUsages, UsageBy, UsageKey, UsageRow, UsageSum,
};
use shared_types::{SessionId, Timestamp, TurnId, parse_duration};

use super::{
    Signed,
    audit::named,
    id::Id,
    page::{PageQuery, asked, cursor},
    problem::Refused,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Doors, words};

/// The name of the list of turns in its cursors.
const TURNS: &str = "turns";

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageQuery {
    /// The begin of the time: a day in UTC (`2026-11-01`), a moment (RFC 3339), or the time until now (`7d`). Absent
    /// for 30 days; 366 days at most. Sums by day begin with a whole day.
    #[serde(default)]
    since: Option<String>,
    /// The property by which calls are summed.
    #[serde(default)]
    #[param(inline)]
    by: UsageBy,
    /// True for the calls of everyone, which only admins see.
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionUsageQuery {
    /// The turn of the session to sum alone.
    #[serde(default)]
    #[param(value_type = Option<TurnId>)]
    turn: Option<String>,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(usage))
        .routes(routes!(of_session))
        .routes(routes!(of_turns))
}

/// The calls of models by the user, or by everyone, with their tokens and their cost.
#[utoipa::path(get, path = "/api/v1/usage", operation_id = "read_usage", params(UsageQuery), responses(
    (status = 200, body = ModelUsage), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn usage(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<UsageQuery>, QueryRejection>,
) -> Result<Json<ModelUsage>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let since = query.since.as_deref().map_or(Ok(Since::Usual), since)?;
    let by = match query.by {
        UsageBy::Model => server_app::UsageBy::Model,
        UsageBy::Person => server_app::UsageBy::Person,
        UsageBy::Day => server_app::UsageBy::Day,
    };
    let sums = doors.app.usage.since(&ctx, since, by, query.all).await?;
    Ok(Json(to_usage(sums)))
}

/// The calls of models in a session, or in one of its turns, by model.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/usage", operation_id = "read_session_usage", params(("id" = inline(SessionId), Path), SessionUsageQuery), responses(
    (status = 200, body = ModelUsage), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn of_session(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    query: Result<Query<SessionUsageQuery>, QueryRejection>,
) -> Result<Json<ModelUsage>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let turn = query.turn.map(|id| id.parse()).transpose();
    let turn = turn.map_err(|_| AppError::NotFound("turn"))?;
    let sums = doors.app.usage.of_session(&ctx, id, turn).await?;
    Ok(Json(to_usage(sums)))
}

/// A page of the turns of a session that asked a model, with their usage.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/usage/turns", operation_id = "list_turn_usage", params(("id" = inline(SessionId), Path), PageQuery), responses(
    (status = 200, body = TurnUsages), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn of_turns(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<TurnUsages>, Refused> {
    let page: Page<TurnId> = asked(TURNS, query)?;
    let (turns, more) = doors.app.usage.of_turns(&ctx, id, page).await?;
    let last = turns.last().filter(|_| more);
    Ok(Json(TurnUsages {
        next: last.and_then(|(turn, _)| cursor(TURNS, turn)),
        turns: turns.into_iter().map(to_turn).collect(),
    }))
}

/// The begin of a time, as a day, a moment or the length of the time.
///
/// # Errors
/// Fails if it is none of these.
fn since(text: &str) -> Result<Since, AppError> {
    let moment = match text.contains('T') {
        true => text.to_owned(),
        false => format!("{text}T00:00:00Z"),
    };
    let moment: Result<_, serde::de::value::Error> =
        Timestamp::deserialize(moment.into_deserializer());
    match (moment, parse_duration(text)) {
        (Ok(moment), _) => Ok(Since::Moment(moment)),
        (Err(_), Ok(ago)) => Ok(Since::Ago(ago)),
        (Err(_), Err(_)) => Err(AppError::Invalid(format!(
            "since is {text:?}; write a day such as 2026-11-01, or a time until now such as 12h or 7d"
        ))),
    }
}

fn to_usage(sums: UsageSums) -> ModelUsage {
    let names = sums.names;
    let rows = sums.rows.into_iter();
    ModelUsage {
        since: sums.since,
        rows: rows
            .map(|(of, usage)| {
                let key = match of {
                    UsageOf::Model { provider, model } => UsageKey {
                        model: Some(model),
                        provider: Some(provider).filter(|name| !name.is_empty()),
                        ..UsageKey::default()
                    },
                    UsageOf::Person(id) => UsageKey {
                        person: Some(id),
                        name: names
                            .get(&id.to_string())
                            .map(|name| named(Some(name.clone()), &id.to_string())),
                        ..UsageKey::default()
                    },
                    UsageOf::Day(day) => UsageKey {
                        day: Some(day.date()),
                        ..UsageKey::default()
                    },
                };
                to_row(key, &usage)
            })
            .collect(),
        total: to_sum(&sums.total),
    }
}

fn to_turn((turn, sums): (TurnId, UsageSums)) -> TurnUsage {
    let ModelUsage { rows, total, .. } = to_usage(sums);
    TurnUsage { turn, rows, total }
}

fn to_row(key: UsageKey, usage: &server_app::ModelUsage) -> UsageRow {
    let UsageSum {
        calls,
        tokens,
        cost_micros,
        unpriced,
    } = to_sum(usage);
    UsageRow {
        key,
        calls,
        tokens,
        cost_micros,
        unpriced,
    }
}

fn to_sum(sum: &server_app::ModelUsage) -> UsageSum {
    let usage = sum.usage;
    let of_cache = usage.cached.saturating_add(usage.cache_written);
    UsageSum {
        calls: sum.calls,
        tokens: Tokens {
            fresh: usage.input.saturating_sub(of_cache),
            cached: usage.cached,
            cache_written: usage.cache_written,
            output: usage.output,
            thoughts: usage.thoughts,
        },
        cost_micros: sum.cost_micros,
        unpriced: sum.unpriced,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_begins_with_a_day_a_moment_or_so_long_ago() {
        let day = Since::Moment(Timestamp::from_micros(1_793_491_200_000_000));
        for text in [
            "2026-11-01",
            "2026-11-01T00:00:00Z",
            "2026-11-01T01:00:00+01:00",
        ] {
            assert_eq!(since(text).ok(), Some(day), "{text}");
        }
        let week = Since::Ago(Duration::from_secs(7 * 24 * 60 * 60));
        assert_eq!(since("7d").ok(), Some(week));
        for wrong in ["", "2026-13-01", "yesterday", "-7d", "2026-11-01T"] {
            let refused = since(wrong).expect_err("it is none").to_string();
            assert!(refused.contains("2026-11-01, or"), "{refused}");
        }
    }
}
