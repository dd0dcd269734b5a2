//! The database: its kind, its readers and its writers.
//!
//! Everything above this module runs [`query`]s on a [`Connection`], for one tenant: [`Store::read`] and
//! [`Store::write`] take it. Work before a tenant is known, or for all of them, gives a reason ([`Store::read_any`],
//! [`Store::write_any`]). The types of the drivers stand only here.

use std::{
    ops::{Deref, DerefMut},
    path::Path,
    sync::Arc,
    time::Duration,
};

use shared_telemetry::server::STORE_TRANSACTION_DURATION;
use shared_types::TenantId;
use sqlx::{Sqlite, pool::PoolConnection};
use tokio::time::{Instant, timeout};

use crate::{
    StoreError, StoreOpenError,
    announce::{Listener, Noted, Statement},
    subject::KnownTenants,
};

mod copy;
mod lock;
mod migrations;
mod postgres;
mod query;
mod retry;
mod sqlite;

pub(crate) use copy::{Cell, Cells, Filling, Snapshot, TableSchema, line, next};
pub use copy::{CopiedTable, CopyError, copy, require_empty};
pub(crate) use lock::{lock_runner, lock_table, lock_tenant, lock_user};
pub use migrations::Schema;
#[cfg(test)]
pub(crate) use postgres::BELIEVED_FOR;
pub(crate) use postgres::NotificationListener;
pub use postgres::{BadPostgresUrl, PostgresUrl};
pub(crate) use query::{FromRow, Query, Row, Sql, locking, query, query_as};
pub(crate) use retry::{Tries, attempt, is_attempt, retried};
#[cfg(test)]
pub(crate) use {postgres::MIGRATIONS as POSTGRES_SCHEMA, sqlite::MIGRATIONS as SQLITE_SCHEMA};

/// Most rows that one page of a list carries, even if the caller asks for more.
pub const MAX_PAGE: u32 = 1000;

/// The longest wait of a read or write for a connection; then it fails.
const CONNECTION_WITHIN: Duration = Duration::from_secs(10);

/// The time in which the database must answer a check.
const CHECKED_WITHIN: Duration = Duration::from_secs(3);

/// The database. Clones share it; it is closed when the last one is dropped, or by [`Store::close`].
#[derive(Debug, Clone)]
pub struct Store {
    database: Arc<Backend>,
    pub(crate) tenants: KnownTenants,
    pub(crate) listener: Listener,
}

#[derive(Debug)]
enum Backend {
    Sqlite(sqlite::SqliteDatabase),
    Postgres(postgres::PostgresDatabase),
}

/// The tenant whose rows statements are about.
#[derive(Debug, Clone, Copy)]
enum Scope {
    Tenant(TenantId),
    /// The rows of all tenants, and the reason.
    Any(&'static str),
}

impl Scope {
    fn tenant(self) -> Option<TenantId> {
        match self {
            Self::Tenant(tenant) => Some(tenant),
            Self::Any(_) => None,
        }
    }

    /// True if both see the same rows; the reasons may differ.
    fn is_as(self, other: Self) -> bool {
        match (self, other) {
            (Self::Tenant(one), Self::Tenant(other)) => one == other,
            (Self::Any(_), Self::Any(_)) => true,
            _ => false,
        }
    }
}

/// A connection that statements run on: one that reads, or a transaction.
#[derive(Debug)]
pub(crate) enum Connection {
    SqliteReader(MeasuredReader<PoolConnection<Sqlite>>),
    SqliteSnapshot(sqlx::Transaction<'static, Sqlite>),
    SqliteWriter(sqlx::Transaction<'static, Sqlite>, Noted),
    PostgresReader(MeasuredReader<postgres::Lease>),
    Postgres(postgres::Lease, Noted),
}

/// A connection that reads, until it is dropped. The time that it was used is measured.
#[derive(Debug)]
pub(crate) struct MeasuredReader<C> {
    connection: C,
    asked: Instant,
}

/// One piece of work. Nothing of it is written before [`Transaction::commit`], or if it is dropped. The time until it
/// was on disk is measured.
#[derive(Debug)]
pub(crate) struct Transaction {
    work: OpenTransaction,
    asked: Instant,
    tenant: Option<TenantId>,
    listener: Listener,
}

#[derive(Debug)]
enum OpenTransaction {
    Sqlite(sqlite::Transaction),
    // Much larger than the other one.
    Postgres(Box<Connection>),
}

impl Store {
    /// Opens the database file, makes it where there is none, and brings its schema up to date. The
    /// folder must exist. A lock file beside it (`….lock`) keeps a second server away.
    ///
    /// # Errors
    /// If the file cannot be written, is in use, is not a database, or is not this program's.
    pub async fn open(path: &Path) -> Result<Self, StoreOpenError> {
        Ok(Backend::Sqlite(sqlite::SqliteDatabase::open(path, None).await?).into())
    }

    /// Opens a database file like [`Store::open`], for a backup of an older version: brings the schema to this version
    /// and no further.
    ///
    /// # Errors
    /// If the file cannot be written, is in use, is not a database, or is not this program's.
    pub async fn open_at(path: &Path, schema: i64) -> Result<Self, StoreOpenError> {
        Ok(Backend::Sqlite(sqlite::SqliteDatabase::open(path, Some(schema)).await?).into())
    }

    /// Opens the database of a server that may be running, for one short job of an operator at the same machine. It
    /// takes no lock, so it neither makes the file nor changes the schema.
    ///
    /// # Errors
    /// If there is no database, or it is not this program's.
    pub async fn open_beside(path: &Path) -> Result<Self, StoreOpenError> {
        Ok(Backend::Sqlite(sqlite::SqliteDatabase::open_beside(path).await?).into())
    }

    /// Opens a PostgreSQL database, and brings its schema up to date. Several servers may do so at once.
    ///
    /// # Errors
    /// If the database does not answer, refuses the user, is not set up as it must be, or is not this program's.
    pub async fn open_postgres(url: &PostgresUrl) -> Result<Self, StoreOpenError> {
        Ok(Backend::Postgres(postgres::PostgresDatabase::open(url, None).await?).into())
    }

    /// Opens a database like [`Store::open_postgres`], for a backup of an older version: brings the schema to this
    /// version and no further.
    ///
    /// # Errors
    /// If the database does not answer, refuses the user, is not set up as it must be, or is not this program's.
    pub async fn open_postgres_at(url: &PostgresUrl, schema: i64) -> Result<Self, StoreOpenError> {
        Ok(Backend::Postgres(postgres::PostgresDatabase::open(url, Some(schema)).await?).into())
    }

    /// Opens a PostgreSQL database for one short job of an operator: it does not change the schema.
    ///
    /// # Errors
    /// If the database does not answer, refuses the user, is not set up as it must be, or was made by a server of
    /// another version.
    pub async fn open_postgres_beside(url: &PostgresUrl) -> Result<Self, StoreOpenError> {
        Ok(Backend::Postgres(postgres::PostgresDatabase::open_beside(url).await?).into())
    }

    /// The schema of a database file. It takes no lock, and neither makes nor changes the file.
    ///
    /// # Errors
    /// If the file cannot be read, is not a database, or is not this program's.
    pub async fn schema_of_file(path: &Path) -> Result<Schema, StoreOpenError> {
        sqlite::schema(path).await
    }

    /// The schema of a PostgreSQL database, which is not changed.
    ///
    /// # Errors
    /// If the database does not answer, refuses the user, is not set up as it must be, or is not this program's.
    pub async fn schema_of_postgres(url: &PostgresUrl) -> Result<Schema, StoreOpenError> {
        postgres::schema(url).await
    }

    /// Waits for running work, and closes the database. Later calls, also of clones, fail; another server may open it.
    pub async fn close(&self) {
        match &*self.database {
            Backend::Sqlite(database) => database.close().await,
            Backend::Postgres(database) => database.close().await,
        }
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if it does not.
    pub async fn check(&self) -> Result<(), StoreError> {
        let checked = timeout(CHECKED_WITHIN, async {
            let mut connection = self.read_any("whether the database answers").await?;
            query("SELECT 1").execute(&mut connection).await?;
            Ok(())
        });
        checked
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut.into()))
    }

    /// Bytes that the server may still write on the disk of the database file; none where the database is
    /// no file here, or the system does not say.
    pub fn disk_free(&self) -> Option<u64> {
        match &*self.database {
            Backend::Sqlite(database) => database.disk_free(),
            Backend::Postgres(_) => None,
        }
    }

    /// The number of connections to the database that are in use now, and of those that are not.
    pub fn connections(&self) -> (usize, usize) {
        match &*self.database {
            Backend::Sqlite(database) => database.connections(),
            Backend::Postgres(database) => database.connections(),
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(*self.database, Backend::Postgres(_))
    }

    /// Listens to notifications that other servers send. A file has no other server.
    pub(crate) async fn listen(&self, channel: &str) -> Result<NotificationListener, StoreError> {
        match &*self.database {
            Backend::Sqlite(_) => Err(sqlx::Error::PoolClosed.into()),
            Backend::Postgres(database) => database.listen(channel).await,
        }
    }

    /// For statements that read rows of one tenant.
    pub(crate) async fn read(&self, tenant: TenantId) -> Result<Connection, StoreError> {
        self.reading(Scope::Tenant(tenant)).await
    }

    /// For statements that read before the tenant is known, or rows of all tenants: `why` gives the reason.
    pub(crate) async fn read_any(&self, why: &'static str) -> Result<Connection, StoreError> {
        self.reading(Scope::Any(why)).await
    }

    /// For everything that writes rows of one tenant; nothing is written before its `commit`.
    pub(crate) async fn write(&self, tenant: TenantId) -> Result<Transaction, StoreError> {
        self.writing(Scope::Tenant(tenant)).await
    }

    /// Like [`Store::write`], before the tenant is known, or for rows of all tenants: `why` gives the reason.
    pub(crate) async fn write_any(&self, why: &'static str) -> Result<Transaction, StoreError> {
        self.writing(Scope::Any(why)).await
    }

    /// All rows of all tenants as they are now, also while others write.
    async fn frozen(&self) -> Result<Connection, StoreError> {
        match &*self.database {
            Backend::Sqlite(database) => database.frozen().await,
            Backend::Postgres(database) => database.frozen().await,
        }
    }

    async fn reading(&self, scope: Scope) -> Result<Connection, StoreError> {
        let asked = Instant::now();
        Ok(match &*self.database {
            Backend::Sqlite(database) => {
                Connection::SqliteReader(MeasuredReader::new(database.read().await?, asked))
            }
            Backend::Postgres(database) => {
                Connection::PostgresReader(MeasuredReader::new(database.read(scope).await?, asked))
            }
        })
    }

    async fn writing(&self, scope: Scope) -> Result<Transaction, StoreError> {
        let asked = Instant::now();
        let work = match &*self.database {
            Backend::Sqlite(database) => OpenTransaction::Sqlite(database.write().await?),
            Backend::Postgres(database) => {
                let lease = database.write(scope).await?;
                OpenTransaction::Postgres(Box::new(Connection::Postgres(lease, Noted::default())))
            }
        };
        Ok(Transaction {
            work,
            asked,
            tenant: scope.tenant(),
            listener: self.listener.clone(),
        })
    }
}

impl From<Backend> for Store {
    fn from(database: Backend) -> Self {
        Self {
            database: Arc::new(database),
            tenants: KnownTenants::new(),
            listener: Listener::default(),
        }
    }
}

impl Transaction {
    /// Returns once the work is synced to disk, and the listener was told which lists it changes.
    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        let (noted, tenant, listener) = (self.take_noted(), self.tenant, self.listener);
        let tell = move || listener.tell(noted, tenant);
        match self.work {
            OpenTransaction::Sqlite(work) => work.commit(tell).await?,
            OpenTransaction::Postgres(connection) => {
                connection.commit().await?;
                tell();
            }
        }
        let took = self.asked.elapsed().as_secs_f64();
        STORE_TRANSACTION_DURATION.record(&["write"], took);
        Ok(())
    }
}

impl<C> MeasuredReader<C> {
    fn new(connection: C, asked: Instant) -> Self {
        Self { connection, asked }
    }
}

impl<C> Drop for MeasuredReader<C> {
    fn drop(&mut self) {
        let took = self.asked.elapsed().as_secs_f64();
        STORE_TRANSACTION_DURATION.record(&["read"], took);
    }
}

impl<C> Deref for MeasuredReader<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C> DerefMut for MeasuredReader<C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.connection
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.work {
            OpenTransaction::Sqlite(work) => work,
            OpenTransaction::Postgres(connection) => connection,
        }
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        match &mut self.work {
            OpenTransaction::Sqlite(work) => work,
            OpenTransaction::Postgres(connection) => connection,
        }
    }
}

impl Connection {
    /// True if other transactions may write at the same time: a transaction must lock the rows that it decides by.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::PostgresReader(_) | Self::Postgres(..))
    }

    async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Self::SqliteReader(_) | Self::SqliteSnapshot(_) | Self::PostgresReader(_) => Ok(()),
            Self::SqliteWriter(transaction, _) => transaction.commit().await,
            Self::Postgres(lease, _) => lease.commit().await,
        }
    }

    /// What its statements have written since it was asked last; nothing of one that only reads.
    fn take_noted(&mut self) -> Noted {
        self.noted().map(std::mem::take).unwrap_or_default()
    }

    fn writes(&self) -> bool {
        matches!(self, Self::SqliteWriter(..) | Self::Postgres(..))
    }

    /// Notes a statement that was run, where it changed rows.
    fn note(&mut self, statement: Option<Statement>, changed: bool) {
        if let (Some(statement), true) = (statement, changed)
            && let Some(noted) = self.noted()
        {
            noted.add(statement);
        }
    }

    fn noted(&mut self) -> Option<&mut Noted> {
        match self {
            Self::SqliteWriter(_, noted) | Self::Postgres(_, noted) => Some(noted),
            Self::SqliteReader(_) | Self::SqliteSnapshot(_) | Self::PostgresReader(_) => None,
        }
    }
}

/// A part of a list: the rows behind a place in it.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The place; from the start, if absent.
    pub after: Option<T>,
    /// The most rows; never more than [`MAX_PAGE`].
    pub limit: u32,
}

impl<T> From<u32> for Page<T> {
    /// The first so many.
    fn from(limit: u32) -> Self {
        Self { after: None, limit }
    }
}

/// The pattern that narrows a list to names or titles with this text in them, whatever the case of the letters A to Z.
/// It is for `LIKE … ESCAPE '\'` on a text in small letters. An empty text matches all.
pub(crate) fn containing(text: &str) -> String {
    let mut pattern = "%".to_owned();
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter.to_ascii_lowercase());
    }
    pattern.push('%');
    pattern
}

/// The bound of a page, as a number of SQL.
pub(crate) fn page(limit: u32) -> i64 {
    i64::from(limit.min(MAX_PAGE))
}
