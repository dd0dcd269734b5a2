//! The tables of a database, as its catalog names them.

use super::{CopyError, run, within};
use crate::database::{
    Connection, Sql, query,
    query::{Row, SqlDriver, driver},
};

/// The tables with rows of live processes. A copy has none of them: a server would wait for processes that are dead.
const OF_PROCESSES: [&str; 2] = ["replicas", "duties"];

/// A table, without its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableSchema {
    pub(crate) name: String,
    /// In the order of their names, because that of the tables differs from one database to the other.
    pub(crate) columns: Vec<Column>,
    /// The columns of the primary key, in its order.
    pub(super) key: Vec<String>,
    /// The column that PostgreSQL counts by itself.
    pub(super) counted: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(super) kind: ColumnKind,
}

/// Every column holds values of one of these kinds, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    Integer,
    Bytes,
}

/// One row for each column. `_sqlx_migrations` belongs to the program, and comes with the schema.
const CATALOG: Sql = Sql {
    sqlite: "SELECT t.name AS t, c.name AS c, c.type AS kind, c.pk AS in_key, 0 AS counted
         FROM sqlite_schema t JOIN pragma_table_info(t.name) c
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'
             AND t.name <> '_sqlx_migrations'
         ORDER BY t.name, c.name",
    postgres: "SELECT t.relname::text AS t, c.attname::text AS c,
             format_type(c.atttypid, NULL) AS kind,
             COALESCE(array_position(k.indkey::int2[], c.attnum) + 1, 0)::bigint AS in_key,
             (c.attidentity <> '')::int::bigint AS counted
         FROM pg_class t
         JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
         LEFT JOIN pg_index k ON k.indrelid = t.oid AND k.indisprimary
         WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace
             AND t.relname <> '_sqlx_migrations'
         ORDER BY t.relname::text COLLATE \"C\", c.attname::text COLLATE \"C\"",
};

impl TableSchema {
    /// True if a copy has its rows.
    pub(super) fn is_copied(&self) -> bool {
        !OF_PROCESSES.contains(&self.name.as_str())
    }

    /// The names of its columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }
}

/// Every table, in the order of their names.
pub(super) async fn all(connection: &mut Connection) -> Result<Vec<TableSchema>, CopyError> {
    let mut tables = Vec::<(TableSchema, Vec<(i64, String)>)>::new();
    for row in query(CATALOG).fetch_all(connection).await? {
        let (table, column) = (text(&row, "t")?, text(&row, "c")?);
        if tables.last().is_none_or(|(last, _)| last.name != table) {
            let new = TableSchema {
                name: table.clone(),
                columns: Vec::new(),
                key: Vec::new(),
                counted: None,
            };
            tables.push((new, Vec::new()));
        }
        let (last, key) = tables.last_mut().expect("one was pushed");
        let kind = match text(&row, "kind")?.as_str() {
            "TEXT" | "text" => ColumnKind::Text,
            "INTEGER" | "bigint" => ColumnKind::Integer,
            "BLOB" | "bytea" => ColumnKind::Bytes,
            other => {
                let why =
                    format!("its column {column} is of the kind {other}, which no copy carries");
                return Err(CopyError::Unknown { table, why });
            }
        };
        match row.get_integer("in_key")? {
            None | Some(0) => {}
            Some(place) => key.push((place, column.clone())),
        }
        if row.get_integer("counted")? == Some(1) {
            last.counted = Some(column.clone());
        }
        last.columns.push(Column { name: column, kind });
    }
    tables.into_iter().map(with_key).collect()
}

fn with_key(
    (mut table, mut key): (TableSchema, Vec<(i64, String)>),
) -> Result<TableSchema, CopyError> {
    if key.is_empty() {
        let why = "it has no primary key, by which its rows are put in order".to_owned();
        return Err(CopyError::Unknown {
            table: table.name,
            why,
        });
    }
    key.sort();
    table.key = key.into_iter().map(|(_, column)| column).collect();
    Ok(table)
}

fn text(row: &Row, name: &str) -> Result<String, CopyError> {
    Ok(row.get_text(name)?.unwrap_or_default())
}

/// Tells if the table has a row.
pub(super) async fn has_rows(
    connection: &mut Connection,
    table: &TableSchema,
) -> Result<bool, CopyError> {
    let sql = sqlx::AssertSqlSafe(format!("SELECT 1 FROM \"{}\" LIMIT 1", table.name));
    Ok(match driver(connection) {
        SqlDriver::Sqlite(connection) => {
            let row = within(sqlx::query(sql).fetch_optional(connection)).await?;
            row.is_some()
        }
        SqlDriver::Postgres(lease) => {
            let row = within(sqlx::query(sql).fetch_optional(lease.ask()?)).await?;
            row.is_some()
        }
    })
}

/// Lets PostgreSQL continue to count after the rows that came with their numbers. SQLite does so by itself.
pub(super) async fn count_on(
    connection: &mut Connection,
    table: &TableSchema,
) -> Result<(), CopyError> {
    let Some(column) = table.counted.as_ref().filter(|_| connection.is_shared()) else {
        return Ok(());
    };
    let name = &table.name;
    let sql = format!(
        "SELECT setval(pg_get_serial_sequence('{name}', '{column}'),
             (SELECT COALESCE(MAX(\"{column}\"), 0) + 1 FROM \"{name}\"), false)"
    );
    run(connection, sql).await
}
