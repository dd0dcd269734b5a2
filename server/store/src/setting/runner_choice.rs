//! The runners that users and sessions have chosen: columns of their rows, which no other file names.
//!
//! They stand in columns, and not in rows of `settings`, because the previous release reads and writes the columns
//! while it runs beside this one. [`runner_choices`] reads them as rows of `settings`. Later releases make these rows
//! the only place, one step each, because each release runs beside the one before:
//!
//! 1. The next release writes each choice as a row as well.
//! 2. Its successor copies the columns into the rows, once, and reads the rows.
//! 3. The third writes the rows alone, and the fourth removes the columns.

use shared_types::RunnerId;

use super::SettingsOf;
use crate::{columns::Columns as _, database::Row};

/// The runner on which a session works, whichever its user chooses. It may have been revoked since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The runner.
    pub runner: RunnerId,
    /// Its name.
    pub name: String,
    /// The runner's name for the sandbox that was chosen with it; absent for the runner's first one.
    pub workspace: Option<String>,
}

/// The choices of the user $2 and of the session $3 of the tenant $1, as rows of `settings`. A sandbox that another
/// runner has does not count: an early release changed the runner alone.
macro_rules! runner_choices {
    () => {
        "SELECT users.id AS subject, 'runner' AS name,
             active_runner_id || COALESCE('/' || sandboxes.id, '') AS value,
             users.id AS set_by, active_runner_at AS set_at
         FROM users LEFT JOIN sandboxes ON sandboxes.tenant_id = users.tenant_id
             AND sandboxes.runner_id = active_runner_id AND sandboxes.id = active_sandbox_id
         WHERE users.tenant_id = $1 AND users.id = $2 AND active_runner_id IS NOT NULL
         UNION ALL
         SELECT sessions.id AS subject, 'runner' AS name,
             pinned_runner_id || COALESCE('/' || sandboxes.id, '') AS value,
             sessions.user_id AS set_by, pinned_runner_at AS set_at
         FROM sessions LEFT JOIN sandboxes ON sandboxes.tenant_id = sessions.tenant_id
             AND sandboxes.runner_id = pinned_runner_id AND sandboxes.id = pinned_sandbox_id
         WHERE sessions.tenant_id = $1 AND sessions.id = $3 AND pinned_runner_id IS NOT NULL"
    };
}
pub(super) use runner_choices;

/// The columns of a row of `sessions` that [`pinned`] reads.
macro_rules! pin_columns {
    () => {
        "pinned_runner_id,
             (SELECT runners.name FROM runners WHERE runners.tenant_id = sessions.tenant_id
                 AND runners.id = sessions.pinned_runner_id) AS pinned_runner_name,
             (SELECT sandboxes.name FROM sandboxes WHERE sandboxes.tenant_id = sessions.tenant_id
                 AND sandboxes.runner_id = sessions.pinned_runner_id
                 AND sandboxes.id = sessions.pinned_sandbox_id) AS pinned_workspace"
    };
}
pub(crate) use pin_columns;

pub(crate) fn pinned(row: &Row) -> Result<Option<Pin>, sqlx::Error> {
    Ok(match row.maybe_parsed("pinned_runner_id")? {
        Some(runner) => Some(Pin {
            runner,
            name: row.text("pinned_runner_name")?,
            workspace: row.maybe_text("pinned_workspace")?,
        }),
        None => None,
    })
}

/// The statement that sets the choice of a user or a session to the runner $3 at the time $4 and the sandbox $5, or
/// takes it back where they are NULL; none for the tenant, whose choice is a row of `settings`. It changes nothing where
/// that is the choice already.
pub(super) fn update(of: SettingsOf) -> Option<&'static str> {
    match of {
        SettingsOf::Tenant => None,
        SettingsOf::User(_) => Some(
            "UPDATE users SET active_runner_id = $3, active_runner_at = $4, active_sandbox_id = $5
             WHERE tenant_id = $1 AND id = $2
                 AND (COALESCE(active_runner_id, '') <> COALESCE($3, '')
                     OR COALESCE(active_sandbox_id, '') <> COALESCE($5, ''))",
        ),
        SettingsOf::Session(_) => Some(
            "UPDATE sessions SET pinned_runner_id = $3, pinned_runner_at = $4, pinned_sandbox_id = $5
             WHERE tenant_id = $1 AND id = $2
                 AND (COALESCE(pinned_runner_id, '') <> COALESCE($3, '')
                     OR COALESCE(pinned_sandbox_id, '') <> COALESCE($5, ''))",
        ),
    }
}
