//! The writers of SQLite: one connection, and transactions that share their synced commit.
//!
//! Writers stand in line for the connection. A writer that has done its work does not commit it at
//! once but stands in line again. The writers before it do their work in the same transaction of
//! the database, each within a savepoint, so that a failure undoes its own work only. The first of
//! them that comes round commits for all, and all are answered after that. So a single writer pays
//! no more than before, and many share the price of one sync. A group is as large as the line was
//! when its first member joined it again.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, OnceLock},
};

use sqlx::SqlitePool;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};

use super::{BEGIN_WRITE, CONNECTION_WITHIN, Connection};
use crate::{StoreError, announce::Noted, database::query};

/// The line. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct GroupWriter {
    pool: SqlitePool,
    line: GroupLine,
}

type GroupLine = Arc<Mutex<Option<Group>>>;

/// A transaction of the database that is not committed yet.
#[derive(Debug)]
struct Group {
    open: Connection,
    /// The number of writers whose work is done.
    members: u32,
    /// True if the last writer left its work half done.
    undo: bool,
    fate: Fate,
}

/// The result of a group's commit; empty before it.
type Fate = Arc<OnceLock<Result<(), Arc<sqlx::Error>>>>;

/// One writer's work; nothing of it is written before [`Transaction::commit`], or if it is dropped.
#[derive(Debug)]
pub(crate) struct Transaction {
    line: GroupLine,
    /// Holds the group that it is part of.
    turn: Option<OwnedMutexGuard<Option<Group>>>,
}

impl GroupWriter {
    /// `pool` has one connection.
    pub(super) fn new(pool: SqlitePool) -> Self {
        Self {
            pool,
            line: GroupLine::default(),
        }
    }

    pub(super) async fn begin(&self) -> Result<Transaction, StoreError> {
        let turn = timeout(CONNECTION_WITHIN, Arc::clone(&self.line).lock_owned()).await;
        let mut turn = turn.map_err(|_| sqlx::Error::PoolTimedOut)?;
        undo(&mut turn).await;
        match &mut *turn {
            Some(group) => {
                // A writer that left its work half done has noted what it wrote.
                drop(group.open.take_noted());
                run(&mut group.open, "SAVEPOINT work").await?;
            }
            None => {
                let begun = self.pool.begin_with(BEGIN_WRITE).await?;
                *turn = Some(Group {
                    open: Connection::SqliteWriter(begun, Noted::default()),
                    members: 0,
                    undo: false,
                    fate: Fate::default(),
                });
            }
        }
        Ok(Transaction {
            line: Arc::clone(&self.line),
            turn: Some(turn),
        })
    }

    /// True if a writer has a transaction, or one is not committed yet.
    pub(super) fn is_in_use(&self) -> bool {
        self.line.try_lock().map_or(true, |turn| turn.is_some())
    }

    /// Waits for running work, and closes the connection.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

impl Transaction {
    /// Returns once the work is synced to disk, and after `told` was called. If the caller stops waiting, both
    /// happen all the same.
    pub(crate) async fn commit(
        mut self,
        told: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        let mut turn = self.turn.take().expect(IN_TURN);
        let group = turn.as_mut().expect(IN_TURN);
        if group.members > 0
            && let Err(error) = run(&mut group.open, "RELEASE work").await
        {
            return Err(end(&mut turn, error));
        }
        let group = turn.as_mut().expect(IN_TURN);
        group.members += 1;
        let fate = Arc::clone(&group.fate);
        drop(turn);
        // A task of its own commits, because the work of other writers depends on it as well.
        let line = Arc::clone(&self.line);
        let committed = tokio::spawn(async move {
            commit_group(line, fate).await?;
            told();
            Ok::<_, Arc<sqlx::Error>>(())
        });
        match committed.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(StoreError::unavailable(Box::new(error))),
            Err(error) => Err(StoreError::unavailable(Box::new(error))),
        }
    }
}

/// A transaction has its turn until it is committed or dropped, and a turn has a group.
const IN_TURN: &str = "a transaction that is not over has its turn";

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self
            .turn
            .as_ref()
            .and_then(|turn| turn.as_ref())
            .expect(IN_TURN)
            .open
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self
            .turn
            .as_mut()
            .and_then(|turn| turn.as_mut())
            .expect(IN_TURN)
            .open
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        match turn.as_mut() {
            // The other members will commit their work, and undo this before.
            Some(group) if group.members > 0 => group.undo = true,
            _ => **turn = None,
        }
    }
}

/// Commits the group, if no other member has.
async fn commit_group(line: GroupLine, fate: Fate) -> Result<(), Arc<sqlx::Error>> {
    let mut turn = line.lock_owned().await;
    if fate.get().is_none() {
        undo(&mut turn).await;
    }
    // The undo may have ended the group.
    if fate.get().is_none()
        && let Some(group) = turn.take()
    {
        let committed = group.open.commit().await.map_err(Arc::new);
        // No other task has set it: this one took the group.
        let _ = group.fate.set(committed);
    }
    fate.get()
        .cloned()
        .unwrap_or_else(|| Err(Arc::new(sqlx::Error::WorkerCrashed)))
}

/// Takes back the half-done work of the last writer. Where the database has ended the transaction
/// by itself, as it does on a full disk, all of the group is lost.
async fn undo(turn: &mut Option<Group>) {
    let Some(group) = turn.as_mut().filter(|group| group.undo) else {
        return;
    };
    match run(&mut group.open, "ROLLBACK TO work").await {
        // The savepoint itself does no harm: the commit ends it.
        Ok(()) => group.undo = false,
        Err(error) => drop(end(turn, error)),
    }
}

/// Ends the group without a commit.
fn end(turn: &mut Option<Group>, why: sqlx::Error) -> StoreError {
    let why = Arc::new(why);
    if let Some(group) = turn.take() {
        // It is set only when the group is taken away, so it was empty before.
        let _ = group.fate.set(Err(Arc::clone(&why)));
    }
    StoreError::unavailable(Box::new(why))
}

async fn run(connection: &mut Connection, statement: &'static str) -> Result<(), sqlx::Error> {
    query(statement).execute(connection).await.map(drop)
}

#[cfg(test)]
mod tests;
