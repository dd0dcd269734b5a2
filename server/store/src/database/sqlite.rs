//! SQLite: the opening of its file, its readers and its writer.
//!
//! SQLite has one writer at a time. So one connection writes: writers wait in this process (in order, for a bounded
//! time) instead of running into each other's locks, and share commits (`writer`). A few others only read, and see the
//! last commit. Commits are synced (`synchronous = FULL`): an intent is on disk before it is sent. A tenant's rows are
//! kept apart by the statements alone.

use std::{
    fs::{File, OpenOptions, TryLockError},
    future::ready,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _, Sqlite, SqlitePool,
    migrate::Migrator,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    CONNECTION_WITHIN, Connection,
    migrations::{self, Schema},
};
use crate::{StoreError, StoreOpenError};

mod writer;

use writer::GroupWriter;
pub(super) use writer::Transaction;

/// Connections that read.
const READERS: u32 = 4;

/// The longest wait of a write for another process that writes, such as a backup.
const LOCK_WITHIN: Duration = Duration::from_secs(5);

/// The write-ahead log is cut back to this size, in bytes, when it was copied into the database.
const LOG_KEPT_BYTES: &str = "67108864";

/// Takes the writer's place at once: a transaction that began as a reader could not become one.
const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";

pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// One file. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SqliteDatabase {
    writer: GroupWriter,
    readers: SqlitePool,
    file: Arc<Path>,
    /// Held by a server; an operator's short job has none.
    lock: Option<Arc<File>>,
}

impl SqliteDatabase {
    /// See [`crate::Store::open`].
    pub(super) async fn open(path: &Path, schema: Option<i64>) -> Result<Self, StoreOpenError> {
        let lock = Arc::new(lock(path)?);
        create_private(path)?;
        migrate(path, schema).await?;
        Self::connect(path, Some(lock)).await
    }

    /// See [`crate::Store::open_beside`].
    pub(super) async fn open_beside(path: &Path) -> Result<Self, StoreOpenError> {
        let found = path
            .try_exists()
            .map_err(|source| unwritable(path, source))?;
        if !found {
            return Err(StoreOpenError::Missing {
                database: name(path),
            });
        }
        require_schema(path).await?;
        Self::connect(path, None).await
    }

    /// Opens every connection at once: the memory of the server does not depend on the number of reads that once ran at
    /// the same time.
    ///
    /// When a disk is full, SQLite ends a transaction by itself, but the connection still
    /// believes that it is in one. It could never begin another, so it is replaced.
    async fn connect(path: &Path, lock: Option<Arc<File>>) -> Result<Self, StoreOpenError> {
        let open = |options, connections| {
            SqlitePoolOptions::new()
                .min_connections(connections)
                .max_connections(connections)
                .acquire_timeout(CONNECTION_WITHIN)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false)
                .before_acquire(|connection, _| {
                    Box::pin(ready(Ok(!connection.is_in_transaction())))
                })
                .connect_with(options)
        };
        let opened = async {
            let writer = open(writing(path), 1).await?;
            let readers = open(reading(path), READERS).await?;
            Ok((writer, readers))
        };
        let (writer, readers) = opened.await.map_err(|error| cannot_open(path, error))?;
        Ok(Self {
            writer: GroupWriter::new(writer),
            readers,
            file: path.into(),
            lock,
        })
    }

    /// Waits for running work, copies the log into the database and closes it.
    pub(super) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
        if let Some(Err(error)) = self.lock.as_ref().map(|lock| lock.unlock()) {
            tracing::warn!(%error, "the database stays locked until this process ends");
        }
    }

    /// Bytes that are free on the disk of the file.
    pub(super) fn disk_free(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&*self.file).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// The number of connections in use, and of those that are not.
    pub(super) fn connections(&self) -> (usize, usize) {
        let idle = self.readers.num_idle().min(READERS as usize);
        let reading = READERS as usize - idle;
        match self.writer.is_in_use() {
            true => (reading + 1, idle),
            false => (reading, idle + 1),
        }
    }

    /// For statements that read.
    pub(super) async fn read(&self) -> Result<PoolConnection<Sqlite>, StoreError> {
        Ok(self.readers.acquire().await?)
    }

    /// For statements that all read the rows as they were committed before the first of them.
    pub(super) async fn frozen(&self) -> Result<Connection, StoreError> {
        Ok(Connection::SqliteSnapshot(self.readers.begin().await?))
    }

    /// See [`crate::Store::write`].
    pub(super) async fn write(&self) -> Result<Transaction, StoreError> {
        self.writer.begin().await
    }
}

fn lock(path: &Path) -> Result<File, StoreOpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = private().open(PathBuf::from(name));
    let file = file.map_err(|source| unwritable(path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreOpenError::InUse { path: path.into() }),
        Err(TryLockError::Error(source)) => Err(unwritable(path, source)),
    }
}

/// Makes the file for its owner only; SQLite gives the files beside it the same mode. It must be
/// closed again before SQLite opens it, because closing any handle of a file drops SQLite's locks.
fn create_private(path: &Path) -> Result<(), StoreOpenError> {
    let created = private().read(true).open(path);
    created.map(drop).map_err(|source| unwritable(path, source))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(LOCK_WITHIN)
        .foreign_keys(true)
        .disable_statement_logging()
}

fn writing(path: &Path) -> SqliteConnectOptions {
    options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", LOG_KEPT_BYTES)
}

fn reading(path: &Path) -> SqliteConnectOptions {
    options(path).read_only(true)
}

/// Runs on a connection of its own without foreign keys, because a migration may drop a table and build it again. So
/// all of them are checked afterwards.
async fn migrate(path: &Path, schema: Option<i64>) -> Result<(), StoreOpenError> {
    let failed = |error| cannot_open(path, error);
    let options = writing(path).foreign_keys(false);
    let mut connection = options.connect().await.map_err(failed)?;
    MIGRATIONS
        .run_direct(schema, &mut connection, false)
        .await
        .map_err(|error| migrations::refusal(&MIGRATIONS, error, &name(path), failed))?;
    let dangling = sqlx::query("PRAGMA foreign_key_check")
        .fetch_optional(&mut connection)
        .await
        .map_err(failed)?;
    if dangling.is_some() {
        return Err(StoreOpenError::Unusable {
            database: name(path),
            source: "a row refers to one that does not exist; restore a backup".into(),
        });
    }
    connection.close().await.map_err(failed)
}

/// See [`crate::Store::schema_of_file`].
pub(super) async fn schema(path: &Path) -> Result<Schema, StoreOpenError> {
    let failed = |error| cannot_open(path, error);
    let about = match path.metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Schema::none(&MIGRATIONS));
        }
        Err(source) => return Err(unwritable(path, source)),
    };
    // SQLite takes an empty file for an empty database, and cannot open it to read alone.
    if about.len() == 0 {
        return Ok(Schema::none(&MIGRATIONS));
    }
    let mut connection = reading(path).connect().await.map_err(failed)?;
    let made = sqlx::query("SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations'")
        .fetch_optional(&mut connection)
        .await
        .map_err(failed)?;
    let schema = match made {
        None => Schema::none(&MIGRATIONS),
        Some(_) => migrations::found(&MIGRATIONS, &mut connection, &name(path), failed).await?,
    };
    connection.close().await.map_err(failed)?;
    Ok(schema)
}

async fn require_schema(path: &Path) -> Result<(), StoreOpenError> {
    let failed = |error| cannot_open(path, error);
    let mut connection = reading(path).connect().await.map_err(failed)?;
    migrations::require_all(&MIGRATIONS, &mut connection, &name(path), failed).await?;
    connection.close().await.map_err(failed)
}

fn cannot_open(path: &Path, error: sqlx::Error) -> StoreOpenError {
    // The primary result code is the low byte (https://www.sqlite.org/rescode.html).
    let code = error
        .as_database_error()
        .and_then(|error| error.code()?.parse::<i32>().ok())
        .map(|code| code & 0xff);
    match code {
        Some(26) => StoreOpenError::NotADatabase { path: path.into() },
        Some(8 | 14) => unwritable(path, io::Error::other(error)),
        _ => StoreOpenError::Unusable {
            database: name(path),
            source: Box::new(error),
        },
    }
}

fn unwritable(path: &Path, source: io::Error) -> StoreOpenError {
    StoreOpenError::Unwritable {
        path: path.into(),
        source,
    }
}

/// The name of the file in errors.
fn name(path: &Path) -> String {
    path.display().to_string()
}
