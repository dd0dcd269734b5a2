//! The errors of the store.

use std::{io, path::PathBuf, sync::Arc};

use shared_telemetry::{OTHER, server::STORE_ERRORS};
use shared_types::Epoch;

use crate::database::is_attempt;

/// The reason why a read or write was not done. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such row in this tenant.
    #[error("find it: it does not exist, or not here")]
    NotFound,
    /// The write contradicts the stored rows; the same write will fail again.
    #[error("write it: {0}")]
    Conflict(&'static str),
    /// A newer worker holds the session; this one must stop.
    #[error("write under epoch {held}: the session was taken over with epoch {newest}")]
    StaleEpoch {
        /// The writer's epoch.
        held: Epoch,
        /// The session's epoch.
        newest: Epoch,
    },
    /// The turn has messages that its model was not sent yet: it takes them, and goes on.
    #[error("end the turn: it has messages that the agent has not read yet")]
    UntakenSteers,
    /// A text is longer than its bound.
    #[error("store {what}: it is longer than {max_bytes} bytes, shorten it")]
    TooLarge {
        /// The text that is too long.
        what: &'static str,
        /// The bound in bytes.
        max_bytes: usize,
    },
    /// There are as many as there may be; the same write may succeed later.
    #[error("add to it: {0}")]
    Full(Full),
    /// The database could not answer, or holds a value that this program cannot read.
    #[error("use the database: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A bound that is reached, in words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{has} {used} of {at_most} {what}; {remedy}")]
pub struct Full {
    /// The owner of the things with a verb, such as `you have`.
    pub has: &'static str,
    /// The number of things that there are.
    pub used: u64,
    /// The number of things that there may be.
    pub at_most: u64,
    /// The things.
    pub what: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

impl From<Full> for StoreError {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}

impl StoreError {
    /// True if the same read or write may succeed later, because the database does not answer now. A row that this
    /// program cannot read stays as it is.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Full(_) => true,
            Self::Unavailable(source) => !matches!(
                source.downcast_ref::<sqlx::Error>(),
                Some(
                    sqlx::Error::ColumnDecode { .. }
                        | sqlx::Error::ColumnNotFound(_)
                        | sqlx::Error::Decode(_)
                )
            ),
            Self::NotFound
            | Self::Conflict(_)
            | Self::StaleEpoch { .. }
            | Self::UntakenSteers
            | Self::TooLarge { .. } => false,
        }
    }
}

impl StoreError {
    /// True if PostgreSQL ended the transaction in favour of another one.
    pub(crate) fn was_not_preferred(&self) -> bool {
        let Self::Unavailable(source) = self else {
            return false;
        };
        let of_database = source
            .downcast_ref::<sqlx::Error>()
            .and_then(|error| error.as_database_error());
        let code = of_database.and_then(|error| error.code());
        matches!(code.as_deref(), Some("40001" | "40P01"))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let kind = error.as_database_error().map(|error| error.kind());
        match (error, kind) {
            (sqlx::Error::RowNotFound, _) => Self::NotFound,
            (_, Some(sqlx::error::ErrorKind::UniqueViolation)) => {
                Self::Conflict("it exists already, choose another name or id")
            }
            // The foreign keys carry the tenant: no row can refer to one of another tenant.
            (_, Some(sqlx::error::ErrorKind::ForeignKeyViolation)) => Self::NotFound,
            (error, _) => Self::unavailable(Box::new(error)),
        }
    }
}

impl StoreError {
    /// The database is of no use now. That is counted, unless the work may be done again: see [`retried`].
    ///
    /// [`retried`]: crate::database::retried
    pub(crate) fn unavailable(source: Box<dyn std::error::Error + Send + Sync>) -> Self {
        let error = Self::Unavailable(source);
        if !(error.was_not_preferred() && is_attempt()) {
            error.count();
        }
        error
    }

    /// Counts it as an error of the database, where it is one.
    pub(crate) fn count(&self) {
        let Self::Unavailable(source) = self else {
            return;
        };
        let of_driver = source.downcast_ref::<sqlx::Error>().or_else(|| {
            source
                .downcast_ref::<Arc<sqlx::Error>>()
                .map(|error| &**error)
        });
        let reason = match of_driver {
            Some(sqlx::Error::PoolTimedOut) => "timeout",
            Some(sqlx::Error::Io(_)) => "io",
            Some(sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed) => "closed",
            Some(sqlx::Error::Database(_)) => "database",
            Some(
                sqlx::Error::ColumnDecode { .. }
                | sqlx::Error::ColumnNotFound(_)
                | sqlx::Error::Decode(_),
            ) => "unreadable",
            _ => OTHER,
        };
        STORE_ERRORS.add(&[reason], 1);
    }
}

/// Refuses a text that is longer than its bound.
pub(crate) fn bounded(what: &'static str, text: &str, max_bytes: usize) -> Result<(), StoreError> {
    if text.len() > max_bytes {
        return Err(StoreError::TooLarge { what, max_bytes });
    }
    Ok(())
}

/// The reason why a database could not be opened. Each text gives a remedy. The database is named by its file, or by
/// its URL without the password.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// The file or its folder cannot be written.
    #[error("write the database {}: {source}; give this user the right to write there, or choose another folder", path.display())]
    Unwritable {
        /// The database file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another server process has the file open.
    #[error("lock the database {}: another server uses it; stop that one first", path.display())]
    InUse {
        /// The database file.
        path: PathBuf,
    },
    /// It is some other file.
    #[error("open {}: it is not a database; move it away, or choose another folder", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// PostgreSQL does not answer.
    #[error(
        "reach the database {database}: {why}; start PostgreSQL, or correct the host and port in the URL"
    )]
    Unreachable {
        /// The database.
        database: String,
        /// The error of the system.
        why: io::Error,
    },
    /// PostgreSQL does not let the user in.
    #[error(
        "open the database {database}: PostgreSQL refused the user or the password; correct the URL, and allow the user in pg_hba.conf"
    )]
    Refused {
        /// The database.
        database: String,
    },
    /// It cannot be used as it is set up.
    #[error("use the database {database}: {why}")]
    Unfit {
        /// The database.
        database: String,
        /// The fault and the remedy.
        why: &'static str,
    },
    /// There is none.
    #[error("open the database {database}: there is none yet; start the server once")]
    Missing {
        /// The place where it would be.
        database: String,
    },
    /// A newer program has written it.
    #[error(
        "open the database {database}: a newer version of Gantry wrote it (schema {found}, this version knows {known}); start that version, or restore a backup"
    )]
    Newer {
        /// The database.
        database: String,
        /// Its schema.
        found: i64,
        /// The newest schema of this program.
        known: i64,
    },
    /// A job beside the server found an older schema, and may not change it.
    #[error(
        "open the database {database}: an older version of the server made it; run \"gantry-server migrate\", or start the server of this version first"
    )]
    Older {
        /// The database.
        database: String,
    },
    /// Its schema has another history than this program's.
    #[error(
        "open the database {database}: its schema {schema} is not this program's; start the build that made it, or restore a backup"
    )]
    Foreign {
        /// The database.
        database: String,
        /// The first schema that differs.
        schema: i64,
    },
    /// A change of its schema failed; nothing of that change is left.
    #[error(
        "bring the database {database} to schema {schema}: {why}; it is as it was before that step, so start the version before, or repair the cause and start again"
    )]
    Migration {
        /// The database.
        database: String,
        /// The schema that was not reached.
        schema: i64,
        /// The error of the database.
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Anything else.
    #[error("open the database {database}: {source}")]
    Unusable {
        /// The database.
        database: String,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
