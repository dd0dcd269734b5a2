//! Connections to PostgreSQL, each lent for one transaction, or for statements that read.
//!
//! A connection that died without a word must not keep its place: sqlx's own pool waits for it without a
//! bound (<https://github.com/launchbadge/sqlx/issues/4349>). So here every answer has a time, and a
//! connection is kept only where the answer to its last statement came in time and whole. Any other one is
//! dropped: PostgreSQL rolls its transaction back.
//!
//! Statements that read have no transaction, so that each costs one round trip and not three. Their tenant
//! is set for the connection, which is lent again for the same one if there is a choice.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, PgConnection,
    error::DatabaseError,
    postgres::{PgDatabaseError, PgSeverity},
    raw_sql,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::PostgresUrl;
use crate::database::{CONNECTION_WITHIN, Scope};

/// The longest wait for the answer to a statement. PostgreSQL gives up first: see [`SETTINGS`].
const ANSWER_WITHIN: Duration = Duration::from_secs(25);

/// The longest wait for the answer to a statement that costs PostgreSQL nothing: the begin and the end of a transaction
/// that has changed nothing.
pub(super) const SHORT_ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// The time after its last answer in which a connection is trusted without a check.
pub(crate) const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// The settings of every connection. A statement, a wait for a lock, and a transaction whose server has fallen silent
/// are bounded. The end of a client is noticed within a minute. A commit is on disk when it is answered. Over a Unix
/// socket the `tcp_` settings have no effect.
pub(super) const SETTINGS: &str = "SET statement_timeout = '20s'; SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '30s';
    SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 4;
    SET synchronous_commit = on; SET default_transaction_isolation = 'read committed';
    SET client_min_messages = warning";

/// Connections that are not lent.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    url: PostgresUrl,
    room: Arc<Semaphore>,
    size: u32,
    idle: Mutex<Vec<Connected>>,
}

#[derive(Debug)]
struct Connected {
    connection: PgConnection,
    /// The tenant whose rows its statements see; without one they see none. A transaction may be about another.
    sees: Option<Scope>,
    answered_at: Instant,
}

impl Connected {
    fn sees_as(&self, scope: Scope) -> bool {
        self.sees.is_some_and(|sees| sees.is_as(scope))
    }
}

/// A connection that is lent: for a transaction, which is rolled back unless it is committed, or for
/// statements that read.
pub(crate) struct Lease {
    /// Absent once it is committed or broken.
    connection: Option<Connected>,
    /// The rows that its statements read; absent for a transaction.
    reads: Option<Scope>,
    /// True while a statement is not answered: its caller may have stopped waiting.
    is_asked: bool,
    /// A statement failed: PostgreSQL takes no other one, and a commit would roll back without an error.
    has_failed: bool,
    pool: Arc<ConnectionPool>,
    permit: Option<OwnedSemaphorePermit>,
}

impl ConnectionPool {
    pub(super) fn new(url: PostgresUrl, size: u32) -> Arc<Self> {
        Arc::new(Self {
            url,
            room: Arc::new(Semaphore::new(size as usize)),
            size,
            idle: Mutex::default(),
        })
    }

    /// Begins a transaction on these rows with this statement.
    pub(super) async fn begin(
        self: &Arc<Self>,
        begin: &str,
        scope: Scope,
    ) -> Result<Lease, sqlx::Error> {
        let permit = self.permit().await?;
        let statements = |sees_them| match sees_them {
            true => begin.to_owned(),
            false => format!("{begin}; {}", super::set_tenant(scope)),
        };
        let connection = self.prepared(scope, statements).await?;
        Ok(self.lease(connection, None, permit))
    }

    /// For statements that read.
    pub(super) async fn read(self: &Arc<Self>, scope: Scope) -> Result<Lease, sqlx::Error> {
        let permit = self.permit().await?;
        let connection = match self.that_sees(scope) {
            Some(connection) => connection,
            None => self.made_to_see(scope).await?,
        };
        Ok(self.lease(connection, Some(scope), permit))
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, sqlx::Error> {
        let permit = timeout(CONNECTION_WITHIN, Arc::clone(&self.room).acquire_owned()).await;
        let permit = permit.map_err(|_| sqlx::Error::PoolTimedOut)?;
        permit.map_err(|_| sqlx::Error::PoolClosed)
    }

    fn lease(
        self: &Arc<Self>,
        connection: Connected,
        reads: Option<Scope>,
        permit: OwnedSemaphorePermit,
    ) -> Lease {
        Lease {
            connection: Some(connection),
            reads,
            is_asked: false,
            has_failed: false,
            pool: Arc::clone(self),
            permit: Some(permit),
        }
    }

    /// A connection that sees these rows already, and has answered just now.
    fn that_sees(&self, scope: Scope) -> Option<Connected> {
        let mut idle = self.idle();
        let fits = |one: &Connected| one.sees_as(scope) && one.answered_at.elapsed() < BELIEVED_FOR;
        let place = idle.iter().rposition(fits)?;
        Some(idle.remove(place))
    }

    fn any_idle(&self, scope: Scope) -> Option<Connected> {
        let mut idle = self.idle();
        match idle.iter().rposition(|one| one.sees_as(scope)) {
            Some(place) => Some(idle.remove(place)),
            None => idle.pop(),
        }
    }

    /// A connection whose statements read these rows from now on and write nothing.
    async fn made_to_see(&self, scope: Scope) -> Result<Connected, sqlx::Error> {
        let mut connected = self.prepared(scope, |_| super::see(scope)).await?;
        connected.sees = Some(scope);
        Ok(connected)
    }

    /// A connection on which these statements were run; they depend on whether it sees these rows already. One that
    /// sees them is preferred, so that the others need not be set again.
    async fn prepared(
        &self,
        scope: Scope,
        statements: impl Fn(bool) -> String,
    ) -> Result<Connected, sqlx::Error> {
        loop {
            let Some(mut connected) = self.any_idle(scope) else {
                let mut connection = connect(&self.url).await?;
                short(&mut connection, &statements(false)).await?;
                return Ok(Connected {
                    connection,
                    sees: None,
                    answered_at: Instant::now(),
                });
            };
            let statements = statements(connected.sees_as(scope));
            match short(&mut connected.connection, &statements).await {
                Ok(()) => return Ok(connected),
                // The connection died while it was idle, and the others may have died with it.
                Err(sqlx::Error::PoolTimedOut) => self.idle().clear(),
                Err(_) => {}
            }
        }
    }

    /// The database.
    pub(super) fn url(&self) -> &PostgresUrl {
        &self.url
    }

    /// The number of connections that are lent, and of those that are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        let lent = self.size as usize - self.room.available_permits().min(self.size as usize);
        (lent, self.idle().len())
    }

    /// Waits for running work, and closes every connection.
    pub(super) async fn close(&self) {
        let all = self.room.acquire_many(self.size);
        // A lease that is still not back has waited longer than any statement may: its connection is lost.
        let _ = timeout(ANSWER_WITHIN, all).await;
        self.room.close();
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            let closing = sqlx::Connection::close(connection.connection);
            let _ = timeout(SHORT_ANSWER_WITHIN, closing).await;
        }
    }

    fn take_back(&self, connected: Connected) {
        self.idle().push(Connected {
            answered_at: Instant::now(),
            ..connected
        });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connected>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new connection, with our settings.
pub(super) async fn connect(url: &PostgresUrl) -> Result<PgConnection, sqlx::Error> {
    let connecting = async {
        let mut connection = url.options().connect().await?;
        raw_sql(SETTINGS).execute(&mut connection).await?;
        Ok(connection)
    };
    let connected = timeout(CONNECTION_WITHIN, connecting).await;
    connected.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

async fn short(connection: &mut PgConnection, statements: &str) -> Result<(), sqlx::Error> {
    let done = raw_sql(AssertSqlSafe(statements.to_owned())).execute(connection);
    let done = timeout(SHORT_ANSWER_WITHIN, done).await;
    done.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map(drop)
}

impl Lease {
    /// The connection for the next statement; its answer goes to [`Lease::answered`].
    pub(crate) fn ask(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        self.is_asked = true;
        let connected = self.connection.as_mut();
        let connected = connected.ok_or(sqlx::Error::WorkerCrashed)?;
        Ok(&mut connected.connection)
    }

    /// Takes the answer to the last statement.
    pub(crate) fn answered<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        self.is_asked = false;
        match &answer {
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) if !ends_session(&**error) => self.has_failed = true,
            Err(_) => self.connection = None,
        }
        answer
    }

    /// True if its statements only read, so that one whose connection broke may be run again.
    pub(crate) fn only_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// Replaces a broken connection of statements that read by one that answers. Returns false where the connection is
    /// not broken, or the lease is a transaction.
    pub(crate) async fn replaced(&mut self) -> Result<bool, sqlx::Error> {
        let Some(scope) = self.reads.filter(|_| self.connection.is_none()) else {
            return Ok(false);
        };
        self.connection = Some(self.pool.made_to_see(scope).await?);
        Ok(true)
    }

    /// Ends the transaction; it is on disk once this returns. Where the answer is lost, the outcome is unknown.
    pub(in crate::database) async fn commit(mut self) -> Result<(), sqlx::Error> {
        if self.has_failed {
            return Err(sqlx::Error::Protocol(
                "a statement of the transaction failed before its commit".to_owned(),
            ));
        }
        let done = within(raw_sql("COMMIT").execute(self.ask()?)).await;
        self.answered(done)?;
        if let Some(connected) = self.connection.take() {
            self.pool.take_back(connected);
        }
        Ok(())
    }
}

/// True if PostgreSQL closes the connection with that error: it stops, or was told to.
/// <https://www.postgresql.org/docs/current/runtime-config-logging.html#RUNTIME-CONFIG-SEVERITY-LEVELS>
fn ends_session(error: &dyn DatabaseError) -> bool {
    let error = error.try_downcast_ref::<PgDatabaseError>();
    let severity = error.map(PgDatabaseError::severity);
    matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic))
}

/// The answer, if it comes in time.
pub(crate) async fn within<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let answer = timeout(ANSWER_WITHIN, answer).await;
    answer.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (connected, permit) = (self.connection.take(), self.permit.take());
        let Some(mut connected) = connected.filter(|_| !self.is_asked) else {
            return;
        };
        if self.only_reads() {
            self.pool.take_back(connected);
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let pool = Arc::clone(&self.pool);
        runtime.spawn(async move {
            if short(&mut connected.connection, "ROLLBACK").await.is_ok() {
                pool.take_back(connected);
            }
            drop(permit);
        });
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}
