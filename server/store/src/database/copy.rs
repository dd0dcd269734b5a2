//! The whole content of a database, row by row and in a form that both kinds share: for backups, and to move from one
//! kind to the other.
//!
//! A [`Snapshot`] reads every table as it was at one moment, while others write. A [`Filling`] writes rows into
//! a database that has the same schema and no rows, and commits all of them or none. The database's own
//! catalog names the tables and columns, so that no table of a later schema is forgotten.
//!
//! A table's digest is the SHA-256 of its rows as [`line`]s, in the order of its primary key.

use std::{collections::BTreeMap, time::Duration};

use futures_util::TryStreamExt as _;
use shared_types::{Digest, FileHasher};
use sqlx::AssertSqlSafe;
use tokio::time::timeout;

use super::{
    Connection, Store, Transaction, query,
    query::{SqlDriver, driver},
};
use crate::StoreError;

mod foreign_keys;
mod rows;
mod tables;

pub(crate) use rows::{Cell, Cells, line};
pub(crate) use tables::TableSchema;

/// The longest time of one step of a copy: the next row, or one statement. To check the foreign keys of a large
/// database is one statement.
const STEP_WITHIN: Duration = Duration::from_secs(600);

/// Rows are written once they have so many bytes, or are as many as one statement takes.
const BYTES_AT_ONCE: usize = 1024 * 1024;

/// The reason why statements here have no tenant.
const WHY: &str = "a copy has the rows of all tenants";

/// A table that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedTable {
    /// Its name.
    pub name: String,
    /// The number of its rows.
    pub rows: u64,
    /// See the module.
    pub digest: Digest,
}

/// The reason why a database was not copied. Nothing was written, except where a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The one to be written has rows already.
    #[error("write into the database: its table {table} has rows already; use an empty database")]
    NotEmpty {
        /// The first table with rows.
        table: String,
    },
    /// The two have different tables or columns.
    #[error(
        "copy the table {table}: it is not the same in both databases; use the same version of gantry-server for both"
    )]
    OtherTable {
        /// The first table that differs.
        table: String,
    },
    /// A column, or a value of it, is of a kind that no copy carries.
    #[error("copy the table {table}: {why}")]
    Unknown {
        /// Its table.
        table: String,
        /// The fault.
        why: String,
    },
    /// The rows that were written are not those that were read.
    #[error(
        "copy the table {table}: {read} rows were read and {written} are written, or their digests differ; nothing is kept of the copy, so try again"
    )]
    Differs {
        /// The table.
        table: String,
        /// Rows that were read.
        read: u64,
        /// Rows that were found afterwards.
        written: u64,
    },
    /// The commit was not answered: all of it was written or nothing.
    #[error(
        "the database did not answer the last step ({0}), so it has all rows or none: try again, which says whether it is empty"
    )]
    InDoubt(#[source] StoreError),
    /// The database could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for CopyError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(StoreError::Unavailable(Box::new(error)))
    }
}

/// All rows of all tenants at one moment.
pub(crate) struct Snapshot {
    connection: Connection,
}

/// A transaction that writes rows into an empty database.
pub(crate) struct Filling {
    tx: Transaction,
    tables: Vec<TableSchema>,
}

/// Copies every row of one database into another one, which has the same schema and no rows. Returns the tables, once
/// the digest of each is the same on both sides and the rows are committed.
///
/// # Errors
/// [`CopyError`]; then nothing was written.
pub async fn copy(from: &Store, to: &Store) -> Result<Vec<CopiedTable>, CopyError> {
    let mut snapshot = Snapshot::of(from).await?;
    let tables = snapshot.tables().await?;
    let mut filling = Filling::of(to).await?;
    filling.expect(tables.iter().map(|table| {
        (
            table.name.as_str(),
            table.names().map(str::to_owned).collect(),
        )
    }))?;
    let mut copied = Vec::with_capacity(tables.len());
    for table in &tables {
        let (mut count, mut hasher, mut batch) = (0, FileHasher::default(), Vec::new());
        let mut bytes = 0;
        let mut rows = snapshot.rows(table)?;
        while let Some(row) = next(&mut rows).await? {
            let line = line(&row);
            hasher.update(&line);
            count += 1;
            bytes += line.len();
            batch.push(row);
            if batch.len() == rows::AT_ONCE || bytes >= BYTES_AT_ONCE {
                filling.insert(table, std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
        }
        filling.insert(table, batch).await?;
        copied.push(CopiedTable {
            name: table.name.clone(),
            rows: count,
            digest: hasher.finish().value,
        });
    }
    filling.finish(&copied).await?;
    Ok(copied)
}

/// Refuses a database that has rows already; its schema may be an earlier one.
///
/// # Errors
/// [`CopyError::NotEmpty`].
pub async fn require_empty(store: &Store) -> Result<(), CopyError> {
    let mut connection = store.read_any(WHY).await?;
    require_no_rows(&mut connection).await.map(drop)
}

impl Snapshot {
    pub(crate) async fn of(store: &Store) -> Result<Self, CopyError> {
        let mut connection = store.frozen().await?;
        without_time_limit(&mut connection).await?;
        Ok(Self { connection })
    }

    /// The schema of the database.
    pub(crate) async fn schema(&mut self) -> Result<i64, CopyError> {
        let newest = query("SELECT MAX(version) AS newest FROM _sqlx_migrations");
        let row = within(newest.fetch_one(&mut self.connection)).await?;
        Ok(row.get_integer("newest")?.unwrap_or_default())
    }

    /// The tables, in the order of their names.
    pub(crate) async fn tables(&mut self) -> Result<Vec<TableSchema>, CopyError> {
        let mut tables = tables::all(&mut self.connection).await?;
        tables.retain(TableSchema::is_copied);
        Ok(tables)
    }

    /// The rows of a table, in the order of its primary key. They are not held in memory.
    pub(crate) fn rows<'s>(
        &'s mut self,
        table: &'s TableSchema,
    ) -> Result<rows::CopiedRows<'s>, CopyError> {
        Ok(rows::rows(&mut self.connection, table)?)
    }
}

impl Filling {
    /// Begins it.
    ///
    /// # Errors
    /// [`CopyError::NotEmpty`].
    pub(crate) async fn of(store: &Store) -> Result<Self, CopyError> {
        let mut tx = store.write_any(WHY).await?;
        without_time_limit(&mut tx).await?;
        // Twice: a server that uses the database need not wait, and no server can begin to use it in between.
        require_no_rows(&mut tx).await?;
        foreign_keys::defer(&mut tx).await?;
        let tables = require_no_rows(&mut tx).await?;
        Ok(Self { tx, tables })
    }

    /// Refuses other tables or columns than the database has.
    pub(crate) fn expect<'t>(
        &self,
        tables: impl IntoIterator<Item = (&'t str, Vec<String>)>,
    ) -> Result<(), CopyError> {
        let named = |table: &'_ TableSchema| {
            (
                table.name.clone(),
                table.names().map(str::to_owned).collect(),
            )
        };
        let mut ours: BTreeMap<String, Vec<String>> = self.tables.iter().map(named).collect();
        for (name, columns) in tables {
            if ours.remove(name).is_none_or(|ours| ours != columns) {
                let table = name.to_owned();
                return Err(CopyError::OtherTable { table });
            }
        }
        match ours.pop_first() {
            Some((table, _)) => Err(CopyError::OtherTable { table }),
            None => Ok(()),
        }
    }

    /// A table of this name.
    pub(crate) fn table(&self, name: &str) -> Option<TableSchema> {
        self.tables.iter().find(|table| table.name == name).cloned()
    }

    /// Writes rows.
    pub(crate) async fn insert(
        &mut self,
        table: &TableSchema,
        rows: Vec<Cells>,
    ) -> Result<(), CopyError> {
        rows::insert(&mut self.tx, table, rows).await
    }

    /// Commits, once every table has these rows and no others.
    ///
    /// # Errors
    /// [`CopyError::Differs`] if a table has not; then nothing was written.
    pub(crate) async fn finish(mut self, copied: &[CopiedTable]) -> Result<(), CopyError> {
        foreign_keys::check(&mut self.tx).await?;
        for table in &self.tables {
            tables::count_on(&mut self.tx, table).await?;
            let (written, digest) = digest_of(&mut self.tx, table).await?;
            let read = copied.iter().find(|copied| copied.name == table.name);
            let (read, wanted) = read.map_or((0, Digest::of(b"")), |read| (read.rows, read.digest));
            if (read, wanted) != (written, digest) {
                return Err(CopyError::Differs {
                    table: table.name.clone(),
                    read,
                    written,
                });
            }
        }
        self.look_at_rows().await?;
        self.tx.commit().await.map_err(CopyError::InDoubt)
    }

    /// Has PostgreSQL gather statistics of the tables. By itself it does so only a minute later: until then it plans as
    /// if they were empty, and reads a whole tenant to find one row.
    async fn look_at_rows(&mut self) -> Result<(), CopyError> {
        if self.tx.is_shared() {
            for TableSchema { name, .. } in &self.tables {
                run(&mut self.tx, format!("ANALYZE \"{name}\"")).await?;
            }
        }
        Ok(())
    }
}

/// The next row of a table.
pub(crate) async fn next(rows: &mut rows::CopiedRows<'_>) -> Result<Option<Cells>, CopyError> {
    within(rows.try_next()).await
}

/// Returns the tables that a copy has.
async fn require_no_rows(connection: &mut Connection) -> Result<Vec<TableSchema>, CopyError> {
    let mut tables = tables::all(connection).await?;
    for table in &tables {
        if tables::has_rows(connection, table).await? {
            let table = table.name.clone();
            return Err(CopyError::NotEmpty { table });
        }
    }
    tables.retain(TableSchema::is_copied);
    Ok(tables)
}

/// The number of rows of a table, and their digest.
async fn digest_of(
    connection: &mut Connection,
    table: &TableSchema,
) -> Result<(u64, Digest), CopyError> {
    let (mut count, mut hasher) = (0, FileHasher::default());
    let mut rows = rows::rows(connection, table)?;
    while let Some(row) = next(&mut rows).await? {
        hasher.update(&line(&row));
        count += 1;
    }
    Ok((count, hasher.finish().value))
}

/// Lifts the time limits. To read a large table takes longer than any statement of a server may, and between two
/// statements many files may be read or written.
async fn without_time_limit(connection: &mut Connection) -> Result<(), CopyError> {
    if connection.is_shared() {
        for limit in ["statement_timeout", "idle_in_transaction_session_timeout"] {
            run(connection, format!("SET LOCAL {limit} = 0")).await?;
        }
    }
    Ok(())
}

/// Runs a statement that has no parameters.
async fn run(connection: &mut Connection, sql: String) -> Result<(), CopyError> {
    let sql = sqlx::raw_sql(AssertSqlSafe(sql));
    match driver(connection) {
        SqlDriver::Sqlite(connection) => within(sql.execute(connection)).await.map(drop),
        SqlDriver::Postgres(lease) => within(sql.execute(lease.ask()?)).await.map(drop),
    }
}

/// The answer, if it comes in time.
async fn within<T, E: Into<CopyError>>(
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, CopyError> {
    let answer = timeout(STEP_WITHIN, answer).await;
    answer
        .map_err(|_| sqlx::Error::PoolTimedOut)?
        .map_err(Into::into)
}
