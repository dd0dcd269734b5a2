//! The audit log, page by page.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use server_app::{AuditQuery, AuditRow};
use shared_api::{AuditEntry, AuditLog, AuditOutcome, Problem};
use shared_types::Timestamp;

use super::{Signed, page, problem::Refused};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Doors, words};

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    /// Entries behind this one, the oldest first; without it, the newest of all.
    #[serde(default)]
    #[param(minimum = 0, maximum = 9007199254740991_u64)]
    after: Option<u64>,
    /// Only entries before this one; without `after`, the newest of them.
    #[serde(default)]
    #[param(minimum = 1, maximum = 9007199254740991_u64)]
    before: Option<u64>,
    /// Only actions whose name begins with this, such as `runner.`.
    #[serde(default)]
    #[param(max_length = 64)]
    what: Option<String>,
    /// Only actions of this person (name or id), of this runner (id) or of `system`.
    #[serde(default)]
    who: Option<String>,
    /// Only entries of this time or later (RFC 3339).
    #[serde(default)]
    #[param(value_type = Option<String>)]
    since: Option<Timestamp>,
    /// At most this many, from 1 to 500.
    #[serde(default = "page::usual")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new().routes(routes!(audit))
}

/// The audited actions in the tenant, with their actors and addresses.
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "read_audit", params(LogQuery), responses(
    (status = 200, body = AuditLog), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn audit(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<LogQuery>, QueryRejection>,
) -> Result<Json<AuditLog>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let limit = page::limit(query.limit)?;
    let asked = AuditQuery {
        after: query.after,
        before: query.before,
        what: query.what,
        who: query.who,
        since: query.since,
    };
    let (rows, more, names) = doors.app.audit.page(&ctx, asked, limit).await?;
    Ok(Json(AuditLog {
        next: rows.last().filter(|_| more).map(|row| row.seq.to_string()),
        entries: rows.into_iter().map(|row| to_entry(row, &names)).collect(),
        names: names
            .iter()
            .map(|(id, name)| (id.clone(), named(Some(name.clone()), id)))
            .collect(),
    }))
}

fn to_entry(row: AuditRow, names: &BTreeMap<String, String>) -> AuditEntry {
    let to = row
        .subject_name
        .or_else(|| names.get(&row.subject).cloned());
    let outcome = match row.kind.ends_with("refused") {
        true => AuditOutcome::Refused,
        false => AuditOutcome::Done,
    };
    AuditEntry {
        seq: row.seq,
        at: row.at,
        who: named(row.actor_name, &row.actor),
        who_id: row.actor,
        what: row.kind,
        to: named(to, &row.subject),
        to_id: row.subject,
        outcome,
        address: row.address,
        credential: row.credential,
        detail: row.detail,
    }
}

/// The name, else the id. A removed person's name ends with `@` and the id.
pub(super) fn named(name: Option<String>, id: &str) -> String {
    match name {
        Some(name) => match name.split_once('@') {
            Some((before, of)) if of == id => format!("{before} (removed)"),
            _ => name,
        },
        None => id.to_owned(),
    }
}
