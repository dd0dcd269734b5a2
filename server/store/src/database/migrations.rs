//! The schemas, and what can be wrong with those that a database has.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use crate::OpenError;

/// Changes nothing, because a server of another version may be using the database; refuses one whose
/// schemas are not exactly ours.
pub(super) async fn require_all<C: Migrate>(
    migrator: &Migrator,
    connection: &mut C,
    database: &str,
    cannot_open: impl FnOnce(sqlx::Error) -> OpenError,
) -> Result<(), OpenError> {
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
    match applied.len() < migrator.iter().count() {
        true => Err(OpenError::Older {
            database: database.to_owned(),
        }),
        false => Ok(()),
    }
}

/// What a migration that did not succeed means.
pub(super) fn refusal(
    migrator: &Migrator,
    error: MigrateError,
    database: &str,
    cannot_open: impl FnOnce(sqlx::Error) -> OpenError,
) -> OpenError {
    let known = migrator.iter().map(|migration| migration.version).max();
    let (known, database) = (known.unwrap_or_default(), database.to_owned());
    match error {
        MigrateError::VersionMissing(found) if found > known => OpenError::Newer {
            database,
            found,
            known,
        },
        MigrateError::VersionMissing(schema) | MigrateError::VersionMismatch(schema) => {
            OpenError::Foreign { database, schema }
        }
        MigrateError::ExecuteMigration(source, schema) => OpenError::Migration {
            database,
            schema,
            why: Box::new(source),
        },
        MigrateError::Execute(error) => cannot_open(error),
        error => OpenError::Unusable {
            database,
            source: Box::new(error),
        },
    }
}
