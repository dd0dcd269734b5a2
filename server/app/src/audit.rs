//! The tenant's audit log, for those who may read it.

use server_store::{AuditFilter, AuditRow, Store};
use shared_types::Timestamp;

use crate::{AppError, OpContext, gate::Gate, pages::cut, rights::Action};

/// The word for what the server did itself, or somebody whom it does not know.
const SYSTEM: &str = "system";

/// Which entries are asked for.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// Those behind this one, the oldest first; without it, the newest of all.
    pub after: Option<u64>,
    /// Only what this person, by name or id, did; or a runner, by id; or `system`.
    pub who: Option<String>,
    /// Only what was done then or later.
    pub since: Option<Timestamp>,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Audit {
    pub(crate) store: Store,
    pub(crate) gate: Gate,
}

impl Audit {
    /// A page of the log, in order, and whether there is more behind it.
    ///
    /// # Errors
    /// If the user may not read it, or there is no such person.
    pub async fn page(
        &self,
        ctx: &OpContext,
        query: AuditQuery,
        limit: u32,
    ) -> Result<(Vec<AuditRow>, bool), AppError> {
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
            actor,
            since: query.since,
        };
        let asked = match filter.after {
            Some(_) => limit + 1,
            None => limit,
        };
        let rows = self.store.audit_page(ctx.tenant, &filter, asked).await?;
        Ok(cut(rows, limit))
    }
}
