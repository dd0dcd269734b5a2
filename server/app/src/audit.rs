//! The tenant's audit log, for those who may read it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use server_store::{AuditFilter, AuditRow, Store};
use shared_types::Timestamp;

use crate::{AppError, OpContext, Parts, gate::Gate, pages::cut, rights::Action};

/// The actor of entries that the server made itself, or that an unknown peer caused.
const SYSTEM: &str = "system";

/// Letters of an id behind its prefix.
const ID_LETTERS: usize = 26;

/// The filter of the entries to return.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// Those behind this one, the oldest first; without it, the newest of all.
    pub after: Option<u64>,
    /// Those before this one; without `after` the newest of them.
    pub before: Option<u64>,
    /// Only kinds of actions that begin with this, such as `runner.`.
    pub what: Option<String>,
    /// Only what this person, by name or id, did; or a runner, by id; or `system`.
    pub who: Option<String>,
    /// Only what was done then or later.
    pub since: Option<Timestamp>,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Audit {
    store: Store,
    gate: Gate,
}

impl Audit {
    pub(crate) fn of(parts: &Parts, gate: &Gate) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
        }
    }

    /// A page of the log, in order, and whether there is more behind it; with the names of what the ids in
    /// it stand for.
    ///
    /// # Errors
    /// If the user may not read it, or there is no such person.
    pub async fn page(
        &self,
        ctx: &OpContext,
        query: AuditQuery,
        limit: u32,
    ) -> Result<(Vec<AuditRow>, bool, BTreeMap<String, String>), AppError> {
        self.gate.own(ctx, Action::ReadAudit)?;
        let actor = match query.who {
            None => String::new(),
            Some(id) if id == SYSTEM || id.contains('_') => id,
            Some(name) => {
                let person = self.gate.person_named(ctx, &name).await?;
                person.user.id.to_string()
            }
        };
        let filter = AuditFilter {
            after: query.after,
            before: query.before,
            actor,
            kind: query.what.unwrap_or_default(),
            since: query.since,
        };
        let asked = match filter.after {
            Some(_) => limit + 1,
            None => limit,
        };
        let rows = self.store.audit_page(ctx.tenant, &filter, asked).await?;
        let (rows, more) = cut(rows, limit);
        let mut ids = BTreeSet::new();
        for row in &rows {
            collect_ids(&row.detail, &mut ids);
            if row.subject_name.is_none() {
                collect_ids(&row.subject.as_str().into(), &mut ids);
            }
        }
        let names = self.store.names_of(ctx.tenant, ids).await?;
        Ok((rows, more, names))
    }
}

/// The ids in the texts of a detail, alone or joined by `/` as a runner and its workspace are.
fn collect_ids(detail: &Value, ids: &mut BTreeSet<String>) {
    match detail {
        Value::String(text) => ids.extend(
            text.split('/')
                .filter(|part| is_id(part))
                .map(str::to_owned),
        ),
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        Value::Object(fields) => fields.values().for_each(|field| collect_ids(field, ids)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_id(text: &str) -> bool {
    let rest = text.split_once('_').map(|(_, rest)| rest);
    rest.is_some_and(|rest| {
        rest.len() == ID_LETTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}
