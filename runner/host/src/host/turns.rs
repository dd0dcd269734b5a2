//! Whose turn it is to change a file.
//!
//! Of two changes of one file the second waits for the first, by whatever names they call it; changes
//! of other files do not wait for them. Only so many run at once, in the order in which they came to
//! have their file for themselves.

use std::{
    collections::HashMap,
    future::ready,
    path::PathBuf,
    sync::{Arc, Mutex as StdMutex, PoisonError, Weak},
};

use tokio::{
    sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use crate::workspace::Workspace;

/// Changes of files that run at once; others wait for their turn.
const CHANGES_AT_ONCE: usize = 8;

/// The turns of changes. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    /// Held from asking which file it is to waiting for it, so that changes of one file are made in
    /// the order in which they came.
    arrival: Arc<Mutex<()>>,
    files: Arc<StdMutex<HashMap<PathBuf, Weak<Mutex<()>>>>>,
    at_once: Arc<Semaphore>,
}

/// Lets one change be made, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _file: OwnedMutexGuard<()>,
    _one_of_many: OwnedSemaphorePermit,
}

impl Changes {
    pub(super) fn new() -> Self {
        Self {
            arrival: Arc::default(),
            files: Arc::default(),
            at_once: Arc::new(Semaphore::new(CHANGES_AT_ONCE)),
        }
    }

    /// Waits for the turn to change the file that is asked for.
    pub(super) async fn turn(&self, workspace: &Arc<Workspace>, asked: &str) -> Option<Turn> {
        let arrival = self.arrival.lock().await;
        let (workspace, asked) = (Arc::clone(workspace), asked.to_owned());
        let place = spawn_blocking(move || workspace.place_of_change(&asked)).await;
        let mut file = Box::pin(self.file(place.ok()?).lock_owned());
        // From here on it waits in its place.
        let free = tokio::select! {
            biased;
            file = &mut file => Some(file),
            () = ready(()) => None,
        };
        drop(arrival);
        let file = match free {
            Some(file) => file,
            None => file.await,
        };
        let one_of_many = Arc::clone(&self.at_once).acquire_owned().await.ok()?;
        Some(Turn {
            _file: file,
            _one_of_many: one_of_many,
        })
    }

    fn file(&self, place: PathBuf) -> Arc<Mutex<()>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|_, file| file.strong_count() > 0);
        let known = files.get(&place).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let file = Arc::default();
            files.insert(place, Arc::downgrade(&file));
            file
        })
    }
}
