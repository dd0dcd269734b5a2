//! Rows in the neutral form, from a database and into it.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{StreamExt as _, stream::BoxStream};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sqlx::{AssertSqlSafe, ColumnIndex, Decode, Row, Type};

use super::{
    CopyError,
    tables::{ColumnKind, TableSchema},
    within,
};
use crate::database::{
    Connection,
    query::{SqlDriver, driver, without_nul},
};

/// Rows that one statement inserts. Its values stay below the bound of a statement: 32,766 on SQLite.
pub(super) const AT_ONCE: usize = 64;

/// One row, in the order of its table's columns.
pub(crate) type Cells = Vec<Cell>;

/// The rows of a table.
pub(crate) type CopiedRows<'c> = BoxStream<'c, Result<Cells, sqlx::Error>>;

/// A value. In JSON it is a number, a text, `{"base64":"…"}` or null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Text(String),
    Bytes {
        #[serde(
            rename = "base64",
            serialize_with = "encoded",
            deserialize_with = "decoded"
        )]
        bytes: Vec<u8>,
    },
}

fn encoded<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn decoded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = <Cow<'de, str>>::deserialize(deserializer)?;
    STANDARD
        .decode(text.as_bytes())
        .map_err(serde::de::Error::custom)
}

/// A row as a line of JSON.
pub(crate) fn line(cells: &Cells) -> Vec<u8> {
    let mut line = serde_json::to_vec(cells).expect("numbers and texts are JSON");
    line.push(b'\n');
    line
}

/// Reads a table in the order of its primary key, which is the same on every database: texts compare byte
/// by byte.
pub(super) fn rows<'c>(
    connection: &'c mut Connection,
    table: &'c TableSchema,
) -> Result<CopiedRows<'c>, sqlx::Error> {
    let (columns, name, key) = (listed(table.names()), &table.name, listed(&table.key));
    let sql = format!("SELECT {columns} FROM \"{name}\" ORDER BY {key}");
    let query = AssertSqlSafe(sql);
    Ok(match driver(connection) {
        SqlDriver::Sqlite(connection) => {
            let rows = sqlx::query(query).fetch(connection);
            rows.map(|row| cells(&row?, table)).boxed()
        }
        SqlDriver::Postgres(lease) => {
            let rows = sqlx::query(query).fetch(lease.ask()?);
            rows.map(|row| cells(&row?, table)).boxed()
        }
    })
}

fn cells<'r, R: Row>(row: &'r R, table: &TableSchema) -> Result<Cells, sqlx::Error>
where
    usize: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    let columns = table.columns.iter().enumerate();
    let cell = |(index, column): (usize, &super::tables::Column)| {
        let cell = match column.kind {
            ColumnKind::Integer => row.try_get::<Option<i64>, _>(index)?.map(Cell::Integer),
            ColumnKind::Text => {
                let text = row.try_get::<Option<String>, _>(index)?;
                text.map(|text| Cell::Text(without_nul(text.into()).into_owned()))
            }
            ColumnKind::Bytes => {
                let bytes = row.try_get::<Option<Vec<u8>>, _>(index)?;
                bytes.map(|bytes| Cell::Bytes { bytes })
            }
        };
        Ok(cell.unwrap_or(Cell::Null))
    };
    columns.map(cell).collect()
}

macro_rules! bound {
    ($query:expr, $table:expr, $rows:expr) => {{
        let mut query = $query;
        for row in $rows {
            for (cell, column) in row.into_iter().zip(&$table.columns) {
                query = match (cell, column.kind) {
                    (Cell::Integer(integer), _) => query.bind(integer),
                    (Cell::Text(text), _) => query.bind(text),
                    (Cell::Bytes { bytes }, _) => query.bind(bytes),
                    // PostgreSQL needs the kind of an absent value.
                    (Cell::Null, ColumnKind::Integer) => query.bind(None::<i64>),
                    (Cell::Null, ColumnKind::Text) => query.bind(None::<String>),
                    (Cell::Null, ColumnKind::Bytes) => query.bind(None::<Vec<u8>>),
                };
            }
        }
        query
    }};
}

/// Writes rows, however many.
pub(super) async fn insert(
    connection: &mut Connection,
    table: &TableSchema,
    mut rows: Vec<Cells>,
) -> Result<(), CopyError> {
    if !rows.iter().all(|row| fits(row, table)) {
        let why = "a row has other values than its columns take".to_owned();
        let table = table.name.clone();
        return Err(CopyError::Unknown { table, why });
    }
    while !rows.is_empty() {
        let later = rows.split_off(rows.len().min(AT_ONCE));
        let sql = AssertSqlSafe(statement(table, rows.len()));
        match driver(connection) {
            SqlDriver::Sqlite(connection) => {
                within(bound!(sqlx::query(sql), table, rows).execute(connection)).await?;
            }
            SqlDriver::Postgres(lease) => {
                within(bound!(sqlx::query(sql), table, rows).execute(lease.ask()?)).await?;
            }
        }
        rows = later;
    }
    Ok(())
}

fn fits(row: &Cells, table: &TableSchema) -> bool {
    let mut pairs = row.iter().zip(&table.columns);
    row.len() == table.columns.len()
        && pairs.all(|(cell, column)| {
            matches!(
                (cell, column.kind),
                (Cell::Null, _)
                    | (Cell::Integer(_), ColumnKind::Integer)
                    | (Cell::Text(_), ColumnKind::Text)
                    | (Cell::Bytes { .. }, ColumnKind::Bytes)
            )
        })
}

fn statement(table: &TableSchema, rows: usize) -> String {
    let width = table.columns.len();
    let row = |row: usize| {
        let values = (1..=width).map(|column| format!("${}", row * width + column));
        format!("({})", values.collect::<Vec<_>>().join(", "))
    };
    let values = (0..rows).map(row).collect::<Vec<_>>().join(", ");
    let (name, columns) = (&table.name, listed(table.names()));
    format!("INSERT INTO \"{name}\" ({columns}) VALUES {values}")
}

fn listed(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names = names
        .into_iter()
        .map(|name| format!("\"{}\"", name.as_ref()));
    names.collect::<Vec<_>>().join(", ")
}
