//! Statements and rows, above the driver.
//!
//! A statement binds texts, integers and bytes, and a row yields the same three; the rest of the crate names no driver.
//! A text is bound without NUL characters, because PostgreSQL has none in a text. Each is replaced by `␀` (U+2400), on
//! every database and in lookups as well. So a value that was stored under a name is found under it.

use std::borrow::Cow;

use sqlx::{
    Postgres, Row as _, Sqlite, SqliteConnection,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};

use super::{Connection, postgres::within};
use crate::announce::Statement;

/// A statement that is to be run. `$1` is the value that is bound first.
pub(crate) fn query<'q>(sql: impl Into<Sql>) -> Query<'q> {
    Query {
        sql: sql.into(),
        values: Vec::new(),
    }
}

/// A statement whose rows become values of one type.
pub(crate) fn query_as<'q>(sql: impl Into<Sql>) -> QueryAs<'q> {
    QueryAs(query(sql))
}

/// The text of a statement, where the databases differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl From<&'static str> for Sql {
    fn from(both: &'static str) -> Self {
        Self {
            sqlite: both,
            postgres: both,
        }
    }
}

/// A statement that reads rows, and on PostgreSQL locks them until the end of the transaction. On SQLite a transaction
/// that writes is alone.
macro_rules! locking {
    ($select:expr, $lock:literal) => {
        $crate::database::Sql {
            sqlite: $select,
            postgres: concat!($select, " ", $lock),
        }
    };
}
pub(crate) use locking;

/// See [`query`].
#[derive(Clone)]
pub(crate) struct Query<'q> {
    sql: Sql,
    values: Vec<Value<'q>>,
}

/// See [`query_as`].
pub(crate) struct QueryAs<'q>(Query<'q>);

/// A value that a statement binds.
#[derive(Clone)]
pub(crate) enum Value<'q> {
    Text(Option<Cow<'q, str>>),
    Integer(Option<i64>),
    Bytes(Vec<u8>),
}

/// A row that a statement yields.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// A type that is read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error>;
}

/// The same connection, taken apart by driver.
pub(super) enum SqlDriver<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut super::postgres::Lease),
}

pub(super) fn driver(connection: &mut Connection) -> SqlDriver<'_> {
    match connection {
        Connection::SqliteReader(connection) => SqlDriver::Sqlite(connection),
        Connection::SqliteSnapshot(transaction) | Connection::SqliteWriter(transaction, _) => {
            SqlDriver::Sqlite(transaction)
        }
        Connection::PostgresReader(lease) => SqlDriver::Postgres(lease),
        Connection::Postgres(lease, _) => SqlDriver::Postgres(lease),
    }
}

macro_rules! bound {
    ($query:expr, $values:expr) => {
        $values
            .into_iter()
            .fold($query, |query, value| match value {
                Value::Text(text) => query.bind(text),
                Value::Integer(integer) => query.bind(integer),
                Value::Bytes(bytes) => query.bind(bytes),
            })
    };
}

/// Runs it on PostgreSQL. A statement that only reads is run once more on another connection, if the connection broke.
macro_rules! on_postgres {
    ($query:expr, $run:ident, $lease:expr) => {{
        let again = $lease.only_reads().then(|| $query.clone());
        let answer = within($query.postgres().$run($lease.ask()?)).await;
        match ($lease.answered(answer), again) {
            (Err(_), Some(again)) if $lease.replaced().await? => {
                let answer = within(again.postgres().$run($lease.ask()?)).await;
                $lease.answered(answer)
            }
            (answer, _) => answer,
        }
    }};
}

impl<'q> Query<'q> {
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Returns the number of rows that it has changed.
    pub(crate) async fn execute(self, connection: &mut Connection) -> Result<u64, sqlx::Error> {
        let noted = self.noted(connection);
        let changed = match driver(connection) {
            SqlDriver::Sqlite(connection) => {
                let done = self.sqlite().execute(connection).await?;
                done.rows_affected()
            }
            SqlDriver::Postgres(lease) => {
                let done = on_postgres!(self, execute, lease)?;
                done.rows_affected()
            }
        };
        connection.note(noted, changed > 0);
        Ok(changed)
    }

    pub(crate) async fn fetch_all(
        self,
        connection: &mut Connection,
    ) -> Result<Vec<Row>, sqlx::Error> {
        let noted = self.noted(connection);
        let rows: Vec<_> = match driver(connection) {
            SqlDriver::Sqlite(connection) => {
                let rows = self.sqlite().fetch_all(connection).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
            SqlDriver::Postgres(lease) => {
                let rows = on_postgres!(self, fetch_all, lease)?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        };
        connection.note(noted, !rows.is_empty());
        Ok(rows)
    }

    pub(crate) async fn fetch_optional(
        self,
        connection: &mut Connection,
    ) -> Result<Option<Row>, sqlx::Error> {
        let noted = self.noted(connection);
        let row = match driver(connection) {
            SqlDriver::Sqlite(connection) => {
                let row = self.sqlite().fetch_optional(connection).await?;
                row.map(Row::Sqlite)
            }
            SqlDriver::Postgres(lease) => {
                let row = on_postgres!(self, fetch_optional, lease)?;
                row.map(Row::Postgres)
            }
        };
        connection.note(noted, row.is_some());
        Ok(row)
    }

    /// One row, or [`sqlx::Error::RowNotFound`].
    pub(crate) async fn fetch_one(self, connection: &mut Connection) -> Result<Row, sqlx::Error> {
        let row = self.fetch_optional(connection).await?;
        row.ok_or(sqlx::Error::RowNotFound)
    }

    /// What it writes, for the listener of commits. The databases' texts differ in locks alone.
    fn noted(&self, connection: &Connection) -> Option<Statement> {
        if !connection.writes() {
            return None;
        }
        let texts = self.values.iter().filter_map(|value| match value {
            Value::Text(text) => text.as_deref(),
            Value::Integer(_) | Value::Bytes(_) => None,
        });
        Statement::of(self.sql.sqlite, texts)
    }

    fn sqlite(self) -> sqlx::query::Query<'q, Sqlite, SqliteArguments> {
        bound!(sqlx::query(self.sql.sqlite), self.values)
    }

    fn postgres(self) -> sqlx::query::Query<'q, Postgres, PgArguments> {
        bound!(sqlx::query(self.sql.postgres), self.values)
    }
}

impl<'q> QueryAs<'q> {
    pub(crate) fn bind(self, value: impl Into<Value<'q>>) -> Self {
        Self(self.0.bind(value))
    }

    pub(crate) async fn fetch_all<T: FromRow>(
        self,
        connection: &mut Connection,
    ) -> Result<Vec<T>, sqlx::Error> {
        let rows = self.0.fetch_all(connection).await?;
        rows.iter().map(T::from_row).collect()
    }

    pub(crate) async fn fetch_optional<T: FromRow>(
        self,
        connection: &mut Connection,
    ) -> Result<Option<T>, sqlx::Error> {
        let row = self.0.fetch_optional(connection).await?;
        row.as_ref().map(T::from_row).transpose()
    }

    /// One row, or [`sqlx::Error::RowNotFound`].
    pub(crate) async fn fetch_one<T: FromRow>(
        self,
        connection: &mut Connection,
    ) -> Result<T, sqlx::Error> {
        T::from_row(&self.0.fetch_one(connection).await?)
    }
}

impl Row {
    pub(crate) fn get_text(&self, name: &str) -> Result<Option<String>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(name),
            Self::Postgres(row) => row.try_get(name),
        }
    }

    pub(crate) fn get_integer(&self, name: &str) -> Result<Option<i64>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(name),
            Self::Postgres(row) => match row.try_get(name) {
                // A number that stands in the statement itself has half the size.
                Err(sqlx::Error::ColumnDecode { .. }) => {
                    let small: Option<i32> = row.try_get(name)?;
                    Ok(small.map(i64::from))
                }
                read => read,
            },
        }
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(name),
            Self::Postgres(row) => row.try_get(name),
        }
    }
}

/// See the module.
pub(super) fn without_nul(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.contains('\0') {
        true => text.replace('\0', "\u{2400}").into(),
        false => text,
    }
}

impl<'q> From<&'q str> for Value<'q> {
    fn from(text: &'q str) -> Self {
        Some(text).into()
    }
}

impl<'q> From<&'q String> for Value<'q> {
    fn from(text: &'q String) -> Self {
        Some(text.as_str()).into()
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Some(text).into()
    }
}

impl<'q> From<Option<&'q str>> for Value<'q> {
    fn from(text: Option<&'q str>) -> Self {
        Self::Text(text.map(|text| without_nul(text.into())))
    }
}

impl From<Option<String>> for Value<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(|text| without_nul(text.into())))
    }
}

impl From<i64> for Value<'_> {
    fn from(integer: i64) -> Self {
        Self::Integer(Some(integer))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(integer: Option<i64>) -> Self {
        Self::Integer(integer)
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
