//! Statements and rows, above the driver.
//!
//! A statement binds texts, integers and bytes, and a row yields the same three; the rest of the crate
//! names no driver. A text is bound without NUL characters, because PostgreSQL has none in a text: each
//! is replaced by `␀` (U+2400), on every database and in lookups as well, so that what was stored under
//! a name is found under it.

use std::borrow::Cow;

use sqlx::{Row as _, Sqlite};

use super::Connection;

/// A statement that is to be run. `$1` is the value that is bound first.
pub(crate) fn query<'q>(sql: &'static str) -> Query<'q> {
    Query {
        sql,
        values: Vec::new(),
    }
}

/// A statement whose rows become values of one type.
pub(crate) fn query_as<'q>(sql: &'static str) -> QueryAs<'q> {
    QueryAs(query(sql))
}

/// See [`query`].
pub(crate) struct Query<'q> {
    sql: &'static str,
    values: Vec<Value<'q>>,
}

/// See [`query_as`].
pub(crate) struct QueryAs<'q>(Query<'q>);

/// What a statement binds.
pub(crate) enum Value<'q> {
    Text(Option<Cow<'q, str>>),
    Integer(Option<i64>),
    Bytes(Vec<u8>),
}

/// What a statement yields.
pub(crate) enum Row {
    Sqlite(sqlx::sqlite::SqliteRow),
}

/// A type that is read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error>;
}

type SqliteQuery<'q> = sqlx::query::Query<'q, Sqlite, sqlx::sqlite::SqliteArguments>;

impl<'q> Query<'q> {
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Answers how many rows it has changed.
    pub(crate) async fn execute(self, connection: &mut Connection) -> Result<u64, sqlx::Error> {
        let done = self.sqlite().execute(connection.sqlite()).await?;
        Ok(done.rows_affected())
    }

    pub(crate) async fn fetch_all(
        self,
        connection: &mut Connection,
    ) -> Result<Vec<Row>, sqlx::Error> {
        let rows = self.sqlite().fetch_all(connection.sqlite()).await?;
        Ok(rows.into_iter().map(Row::Sqlite).collect())
    }

    pub(crate) async fn fetch_optional(
        self,
        connection: &mut Connection,
    ) -> Result<Option<Row>, sqlx::Error> {
        let row = self.sqlite().fetch_optional(connection.sqlite()).await?;
        Ok(row.map(Row::Sqlite))
    }

    /// One row, or [`sqlx::Error::RowNotFound`].
    pub(crate) async fn fetch_one(self, connection: &mut Connection) -> Result<Row, sqlx::Error> {
        let row = self.fetch_optional(connection).await?;
        row.ok_or(sqlx::Error::RowNotFound)
    }

    fn sqlite(self) -> SqliteQuery<'q> {
        let query = sqlx::query(self.sql);
        self.values
            .into_iter()
            .fold(query, |query, value| match value {
                Value::Text(text) => query.bind(text),
                Value::Integer(integer) => query.bind(integer),
                Value::Bytes(bytes) => query.bind(bytes),
            })
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
        }
    }

    pub(crate) fn get_integer(&self, name: &str) -> Result<Option<i64>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(name),
        }
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(name),
        }
    }
}

/// See the module.
fn without_nul(text: Cow<'_, str>) -> Cow<'_, str> {
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
