//! PostgreSQL: the opening of a database, and the beginning of its transactions.
//!
//! Every transaction has its tenant in `gantry.tenant`, set for itself or for its connection, and so has every
//! connection that is lent for reading. The policies of the tables let it see that tenant alone, whatever the
//! statements say: the server's role may neither be a superuser nor bypass them. Transactions read what was last
//! committed (`READ COMMITTED`) and lock the rows that they decide by, in the order of [`super::lock`].

use std::{io, sync::Arc};

use sqlx::{Connection as _, PgConnection, Row as _, migrate::Migrator};

use super::{
    CONNECTION_WITHIN, Connection, Scope,
    migrations::{self, Schema},
};
use crate::{StoreError, StoreOpenError, announce::Noted};

mod listener;
mod pool;
mod url;

pub(crate) use listener::NotificationListener;
#[cfg(test)]
pub(crate) use pool::BELIEVED_FOR;
use pool::ConnectionPool;
pub(super) use pool::{Lease, within};
pub use url::{BadPostgresUrl, PostgresUrl};

/// Connections of one server, while it serves.
const CONNECTIONS: u32 = 16;

/// The oldest version that is tried: 13.
const OLDEST_VERSION: i32 = 130_000;

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/postgres");

/// One database. Clones share its connections.
#[derive(Debug, Clone)]
pub(super) struct PostgresDatabase {
    pool: Arc<ConnectionPool>,
}

impl PostgresDatabase {
    /// See [`crate::Store::open_postgres`].
    pub(super) async fn open(
        url: &PostgresUrl,
        schema: Option<i64>,
    ) -> Result<Self, StoreOpenError> {
        let mut connection = connect(url).await?;
        require_usable(&mut connection, url).await?;
        migrate(&mut connection, url, schema).await?;
        close(connection).await;
        Ok(Self::over(url))
    }

    /// See [`crate::Store::open_postgres_beside`].
    pub(super) async fn open_beside(url: &PostgresUrl) -> Result<Self, StoreOpenError> {
        let mut connection = connect(url).await?;
        require_usable(&mut connection, url).await?;
        if !is_made(&mut connection, url).await? {
            return Err(StoreOpenError::Missing {
                database: url.to_string(),
            });
        }
        let refused = |error| cannot_open(url, error);
        migrations::require_all(&MIGRATIONS, &mut connection, &url.to_string(), refused).await?;
        close(connection).await;
        Ok(Self::over(url))
    }

    fn over(url: &PostgresUrl) -> Self {
        Self {
            pool: ConnectionPool::new(url.clone(), CONNECTIONS),
        }
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    /// The number of connections in use, and of those that are not.
    pub(super) fn connections(&self) -> (usize, usize) {
        self.pool.connections()
    }

    /// Listens to notifications, over another connection than those of the pool.
    pub(super) async fn listen(&self, channel: &str) -> Result<NotificationListener, StoreError> {
        Ok(NotificationListener::connect(self.pool.url(), channel).await?)
    }

    /// For statements that read, each by itself.
    pub(super) async fn read(&self, scope: Scope) -> Result<Lease, StoreError> {
        Ok(self.pool.read(scope).await?)
    }

    /// For statements that all read the rows as they were committed before the first of them.
    pub(super) async fn frozen(&self) -> Result<Connection, StoreError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        let scope = Scope::Any("a copy has the rows of all tenants");
        let lease = self.pool.begin(begin, scope).await?;
        Ok(Connection::Postgres(lease, Noted::default()))
    }

    pub(super) async fn write(&self, scope: Scope) -> Result<Lease, StoreError> {
        Ok(self.pool.begin("BEGIN READ WRITE", scope).await?)
    }
}

/// See [`crate::Store::schema_of_postgres`].
pub(super) async fn schema(url: &PostgresUrl) -> Result<Schema, StoreOpenError> {
    let mut connection = connect(url).await?;
    require_usable(&mut connection, url).await?;
    let refused = |error| cannot_open(url, error);
    let schema = match is_made(&mut connection, url).await? {
        false => Schema::none(&MIGRATIONS),
        true => migrations::found(&MIGRATIONS, &mut connection, &url.to_string(), refused).await?,
    };
    close(connection).await;
    Ok(schema)
}

async fn is_made(connection: &mut PgConnection, url: &PostgresUrl) -> Result<bool, StoreOpenError> {
    let found = sqlx::query("SELECT 1 WHERE to_regclass('_sqlx_migrations') IS NOT NULL")
        .fetch_optional(connection)
        .await;
    let found = found.map_err(|error| cannot_open(url, error))?;
    Ok(found.is_some())
}

/// Sets the tenant for this transaction alone: later statements on the connection do not inherit it.
fn set_tenant(scope: Scope) -> String {
    let (tenant, why) = named(scope);
    format!("SELECT set_config('gantry.tenant', '{tenant}', true){why}")
}

/// Sets the tenant for the connection, outside transactions: its statements read this tenant's rows, and write none.
fn see(scope: Scope) -> String {
    let (tenant, why) = named(scope);
    format!("SET default_transaction_read_only = on; SET gantry.tenant = '{tenant}'{why}")
}

/// The tenant, and a comment with the reason if it is every tenant.
fn named(scope: Scope) -> (String, String) {
    match scope {
        // An id in text form has letters, digits and `_` alone.
        Scope::Tenant(tenant) => (tenant.to_string(), String::new()),
        Scope::Any(why) => ("*".to_owned(), format!(" /* {why} */")),
    }
}

async fn connect(url: &PostgresUrl) -> Result<PgConnection, StoreOpenError> {
    let connected = pool::connect(url).await;
    connected.map_err(|error| cannot_open(url, error))
}

async fn close(connection: PgConnection) {
    let _ = tokio::time::timeout(CONNECTION_WITHIN, connection.close()).await;
}

/// Refuses a database or a role with which the promises of this crate would not hold.
async fn require_usable(
    connection: &mut PgConnection,
    url: &PostgresUrl,
) -> Result<(), StoreOpenError> {
    let row = sqlx::query(
        "SELECT current_setting('server_version_num')::int AS version,
             current_setting('server_encoding') AS encoding,
             (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS bypasses",
    )
    .fetch_one(&mut *connection)
    .await;
    let read = row.and_then(|row| {
        let encoding: String = row.try_get("encoding")?;
        let version: i32 = row.try_get("version")?;
        Ok((version, encoding, row.try_get("bypasses")?))
    });
    let (version, encoding, bypasses) = read.map_err(|error| cannot_open(url, error))?;
    let refused = |why: &'static str| {
        Err(StoreOpenError::Unfit {
            database: url.to_string(),
            why,
        })
    };
    if version < OLDEST_VERSION {
        return refused("this PostgreSQL is older than version 13; upgrade it");
    }
    if encoding != "UTF8" {
        return refused(
            "its encoding is not UTF8; make another database: CREATE DATABASE gantry OWNER gantry ENCODING 'UTF8' TEMPLATE template0",
        );
    }
    if bypasses {
        return refused(
            "its user is a superuser or may bypass row-level security, which keeps tenants apart; make another one: CREATE ROLE gantry LOGIN PASSWORD '…', and let it own the database",
        );
    }
    let asked = keeps_settings(connection, url);
    match tokio::time::timeout(CONNECTION_WITHIN, asked).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => refused(
            "a pooler before it gives each transaction another connection, so that none keeps its tenant; have it pool sessions (PgBouncer: pool_mode = session), or go past it",
        ),
        Ok(Err(error)) => Err(cannot_open(url, error)),
        Err(_) => Err(cannot_open(url, sqlx::Error::PoolTimedOut)),
    }
}

/// Tells if the settings of a connection hold for its next statement, while another client has begun a transaction. A
/// pooler of transactions would give that client the same connection.
async fn keeps_settings(
    connection: &mut PgConnection,
    url: &PostgresUrl,
) -> Result<bool, sqlx::Error> {
    let mut other = pool::connect(url).await?;
    let set = sqlx::raw_sql("SET gantry.kept = 'yes'");
    set.execute(&mut *connection).await?;
    let begun = sqlx::raw_sql("BEGIN; SELECT 1");
    begun.execute(&mut other).await?;
    let kept = sqlx::raw_sql("SELECT current_setting('gantry.kept', true) AS kept");
    let kept = kept.fetch_one(connection).await?;
    close(other).await;
    let kept: Option<String> = kept.try_get("kept")?;
    Ok(kept.as_deref() == Some("yes"))
}

/// Several servers may start at once: the migrations hold an advisory lock, for which the others wait.
async fn migrate(
    connection: &mut PgConnection,
    url: &PostgresUrl,
    schema: Option<i64>,
) -> Result<(), StoreOpenError> {
    // To copy a large table takes its time, and so does another server's migration.
    sqlx::raw_sql("SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0")
        .execute(&mut *connection)
        .await
        .map_err(|error| cannot_open(url, error))?;
    // `run` asks for more than a connection, and its future cannot be sent.
    let run = MIGRATIONS.run_direct(schema, connection, false).await;
    let refused = |error| cannot_open(url, error);
    run.map_err(|error| migrations::refusal(&MIGRATIONS, error, &url.to_string(), refused))
}

/// PostgreSQL's own words name neither password nor URL.
fn cannot_open(url: &PostgresUrl, error: sqlx::Error) -> StoreOpenError {
    let database = url.to_string();
    let code = error.as_database_error().and_then(|error| error.code());
    let code = code.map(|code| code.into_owned());
    match (code.as_deref(), error) {
        // https://www.postgresql.org/docs/current/errcodes-appendix.html
        (Some("28P01" | "28000"), _) => StoreOpenError::Refused { database },
        (Some("3D000"), _) => StoreOpenError::Unfit {
            database,
            why: "there is no such database; make it, with the user of the URL as its owner: CREATE DATABASE gantry OWNER gantry",
        },
        (Some("42501"), _) => StoreOpenError::Unfit {
            database,
            why: "its user may not make tables there; let it own the database: ALTER DATABASE gantry OWNER TO gantry",
        },
        (_, sqlx::Error::Io(why)) => StoreOpenError::Unreachable { database, why },
        (_, sqlx::Error::PoolTimedOut) => StoreOpenError::Unreachable {
            database,
            why: io::ErrorKind::TimedOut.into(),
        },
        (_, error) => StoreOpenError::Unusable {
            database,
            source: Box::new(error),
        },
    }
}
