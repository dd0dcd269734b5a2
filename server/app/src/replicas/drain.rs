//! Draining a server, by its row: the operator's command may run anywhere that reaches the database.

use std::sync::Arc;

use server_store::{ReplicaRow, Store};
use shared_types::{Clock, ReplicaId};

use super::tell;
use crate::AppError;

/// Renewals of a replica after a wish until all that it does follows it: at the first it hears of the wish, and before the
/// second it has acted.
const RENEWALS_UNTIL_HEARD: u64 = 2;

/// The use cases of this file.
pub struct Drain {
    store: Store,
    clock: Arc<dyn Clock>,
}

/// The state of a server that was asked to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainProgress {
    /// It does not know of the wish yet.
    Unheard,
    /// It has given these to others, or is about to.
    Has {
        /// The runners whose links it holds.
        links: u64,
        /// The turns that its workers have.
        turns: u64,
    },
    /// It is gone.
    Gone,
}

impl Drain {
    /// Over the server's own database.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// The server whose id begins with this text, or the one that runs at this place.
    ///
    /// # Errors
    /// If there is no such server, or several are meant.
    pub async fn find(&self, beginning: Option<&str>, place: &str) -> Result<ReplicaRow, AppError> {
        if !self.store.is_shared() {
            return Err(AppError::Invalid(
                "the database is a file, so there is one server, and no other could take its work: stop it with SIGTERM"
                    .to_owned(),
            ));
        }
        let replicas = self.store.replicas().await?.into_iter();
        let mut found: Vec<_> = match beginning {
            Some(beginning) => replicas
                .filter(|row| row.id.to_string().starts_with(beginning))
                .collect(),
            None => replicas.filter(|row| row.place == place).collect(),
        };
        let listed = "gantry status --replicas lists them";
        match (found.pop(), found.is_empty(), beginning) {
            (Some(one), true, _) => Ok(one),
            (None, _, None) => Err(AppError::Invalid(format!(
                "no server of the database runs on this home: name one with --replica ID; {listed}"
            ))),
            (None, _, Some(id)) => Err(AppError::Invalid(format!(
                "the database has no server {id}; {listed}"
            ))),
            (Some(_), false, id) => Err(AppError::Invalid(format!(
                "several servers begin with {}: name one by more of its id; {listed}",
                id.unwrap_or_default()
            ))),
        }
    }

    /// Lets the server drain, or has it work again.
    ///
    /// # Errors
    /// If it is gone, or the store does not answer.
    pub async fn ask(&self, replica: ReplicaId, drain: bool) -> Result<(), AppError> {
        let since = drain.then(|| self.clock.now());
        if !self.store.drain_replica(replica, since).await? {
            return Err(AppError::NotFound("the server"));
        }
        tell(&self.store, None).await
    }

    /// The state of a server that was asked when it had `asked` ([`ReplicaRow::renewals`]).
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn progress(&self, asked: &ReplicaRow) -> Result<DrainProgress, AppError> {
        let mut rows = self.store.replicas().await?.into_iter();
        Ok(match rows.find(|row| row.id == asked.id) {
            None => DrainProgress::Gone,
            Some(row) if row.renewals < asked.renewals + RENEWALS_UNTIL_HEARD => {
                DrainProgress::Unheard
            }
            Some(ReplicaRow { links, turns, .. }) => DrainProgress::Has { links, turns },
        })
    }

    /// Closes the store.
    pub async fn close(&self) {
        self.store.close().await;
    }
}
