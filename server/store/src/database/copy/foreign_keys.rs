//! Foreign keys, which are checked once all rows are there: tables refer to one another in circles.

use super::{CopyError, run, within};
use crate::{
    StoreError,
    database::{Connection, query},
};

/// Every foreign key of the schema.
const ALL: &str = "SELECT conrelid::regclass::text AS t, conname::text AS c FROM pg_constraint
     WHERE contype = 'f' AND connamespace = current_schema()::regnamespace";

/// From now on rows may refer to rows that come later in this transaction.
pub(super) async fn defer(connection: &mut Connection) -> Result<(), CopyError> {
    match connection.is_shared() {
        true => alter(connection, "DEFERRABLE INITIALLY DEFERRED").await,
        false => run(connection, "PRAGMA defer_foreign_keys = ON".to_owned()).await,
    }
}

/// Checks the deferred keys. On PostgreSQL the keys are then as they were before.
pub(super) async fn check(connection: &mut Connection) -> Result<(), CopyError> {
    if connection.is_shared() {
        run(connection, "SET CONSTRAINTS ALL IMMEDIATE".to_owned()).await?;
        return alter(connection, "NOT DEFERRABLE").await;
    }
    // The commit would refuse it as well, but without the reason.
    let dangling = within(query("PRAGMA foreign_key_check").fetch_optional(connection)).await?;
    match dangling {
        None => Ok(()),
        Some(_) => {
            let why = "a row refers to one that does not exist";
            Err(StoreError::Unavailable(why.into()).into())
        }
    }
}

async fn alter(connection: &mut Connection, how: &str) -> Result<(), CopyError> {
    for row in query(ALL).fetch_all(connection).await? {
        let (table, key) = (row.get_text("t")?, row.get_text("c")?);
        let (table, key) = (table.unwrap_or_default(), key.unwrap_or_default());
        let sql = format!("ALTER TABLE {table} ALTER CONSTRAINT \"{key}\" {how}");
        run(connection, sql).await?;
    }
    Ok(())
}
