//! The schemas of this program, and the faults that the schema of a database can have.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use crate::StoreOpenError;

/// The state of a database's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Its number; absent where the database has none yet.
    pub found: Option<i64>,
    /// The newest one, which this program makes.
    pub known: i64,
}

impl Schema {
    pub(super) fn none(migrator: &Migrator) -> Self {
        Self {
            found: None,
            known: newest(migrator),
        }
    }

    /// True if the schema is the newest one.
    pub fn is_current(self) -> bool {
        self.found == Some(self.known)
    }
}

/// Changes nothing, because a server of another version may be using the database; refuses one whose
/// schemas are not exactly ours.
pub(super) async fn require_all<C: Migrate>(
    migrator: &Migrator,
    connection: &mut C,
    database: &str,
    cannot_open: impl FnOnce(sqlx::Error) -> StoreOpenError,
) -> Result<(), StoreOpenError> {
    let schema = found(migrator, connection, database, cannot_open).await?;
    match schema.is_current() {
        true => Ok(()),
        false => Err(StoreOpenError::Older {
            database: database.to_owned(),
        }),
    }
}

/// The state of the schema; refuses one that is newer than ours, or has another history. Changes nothing.
pub(super) async fn found<C: Migrate>(
    migrator: &Migrator,
    connection: &mut C,
    database: &str,
    cannot_open: impl FnOnce(sqlx::Error) -> StoreOpenError,
) -> Result<Schema, StoreOpenError> {
    let applied = connection
        .list_applied_migrations(&migrator.table_name)
        .await;
    let applied = match applied {
        Ok(applied) => applied,
        Err(error) => return Err(refusal(migrator, error, database, cannot_open)),
    };
    for applied in &applied {
        let version = applied.version;
        let known = migrator.iter().find(|known| known.version == version);
        let wrong = match known {
            None => MigrateError::VersionMissing(version),
            Some(known) if known.checksum != applied.checksum => {
                MigrateError::VersionMismatch(version)
            }
            Some(_) => continue,
        };
        return Err(refusal(migrator, wrong, database, cannot_open));
    }
    // Without a gap: each start applies the missing ones, in order.
    let missing = migrator.iter().position(|known| {
        !applied
            .iter()
            .any(|applied| applied.version == known.version)
    });
    let reached = missing.unwrap_or(migrator.iter().count());
    let found = migrator.iter().take(reached).next_back();
    Ok(Schema {
        found: found.map(|migration| migration.version),
        known: newest(migrator),
    })
}

fn newest(migrator: &Migrator) -> i64 {
    let all = migrator.iter().map(|migration| migration.version);
    all.max().unwrap_or_default()
}

/// The error that a failed migration becomes.
pub(super) fn refusal(
    migrator: &Migrator,
    error: MigrateError,
    database: &str,
    cannot_open: impl FnOnce(sqlx::Error) -> StoreOpenError,
) -> StoreOpenError {
    let (known, database) = (newest(migrator), database.to_owned());
    match error {
        MigrateError::VersionMissing(found) if found > known => StoreOpenError::Newer {
            database,
            found,
            known,
        },
        MigrateError::VersionMissing(schema) | MigrateError::VersionMismatch(schema) => {
            StoreOpenError::Foreign { database, schema }
        }
        MigrateError::ExecuteMigration(source, schema) => StoreOpenError::Migration {
            database,
            schema,
            why: Box::new(source),
        },
        MigrateError::Execute(error) => cannot_open(error),
        error => StoreOpenError::Unusable {
            database,
            source: Box::new(error),
        },
    }
}
