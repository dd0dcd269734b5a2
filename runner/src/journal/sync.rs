//! Brings appended records to the disk, many at a time, on a thread of its own.
//!
//! Everything is counted in bytes appended since the journal was opened. After a failed sync
//! the host may have dropped what it could not write, so there is no second try.

use std::{
    fs::File,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use shared_telemetry::runner::JOURNAL_SYNC_DURATION;
use tokio::{sync::watch, time::Instant};

use super::JournalError;

/// The longest time for which appended records may be in the host's memory alone.
pub(crate) const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// The thread; it ends, with everything on the disk, when this is dropped.
#[derive(Debug)]
pub(super) struct Syncing {
    shared: Arc<SyncMonitor>,
    progress: watch::Receiver<SyncProgress>,
    thread: Option<JoinHandle<()>>,
}

/// Tells when what was appended before it was asked for is on the disk.
#[derive(Debug)]
#[must_use = "nothing is known before it was waited for"]
pub(crate) struct Synced {
    bytes: u64,
    progress: watch::Receiver<SyncProgress>,
}

#[derive(Debug)]
struct SyncMonitor {
    state: Mutex<SyncState>,
    changed: Condvar,
}

#[derive(Debug)]
struct SyncState {
    file: Arc<File>,
    appended: u64,
    /// A caller waits until this much is on the disk.
    wanted: u64,
    /// The thread waits for something to do.
    idle: bool,
    over: bool,
}

#[derive(Debug, Clone, Default)]
struct SyncProgress {
    synced: u64,
    failure: Option<String>,
}

impl Syncing {
    /// Begins with a file that is on the disk as it is.
    pub(super) fn start(file: File) -> io::Result<Self> {
        let shared = Arc::new(SyncMonitor {
            state: Mutex::new(SyncState {
                file: Arc::new(file),
                appended: 0,
                wanted: 0,
                idle: false,
                over: false,
            }),
            changed: Condvar::new(),
        });
        let (told, progress) = watch::channel(SyncProgress::default());
        let run = {
            let shared = Arc::clone(&shared);
            move || run(&shared, &told)
        };
        let thread = thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(run)?;
        Ok(Self {
            shared,
            progress,
            thread: Some(thread),
        })
    }

    /// So many bytes more are in the file.
    pub(super) fn appended(&self, bytes: usize) {
        let mut state = self.shared.state();
        state.appended += bytes as u64;
        // One that gathers finds it when its time is over.
        if state.idle {
            self.shared.changed.notify_one();
        }
    }

    /// See [`super::Journal::sync`].
    pub(super) fn ask(&self) -> Synced {
        let mut state = self.shared.state();
        state.wanted = state.appended;
        self.shared.changed.notify_one();
        Synced {
            bytes: state.wanted,
            progress: self.progress.clone(),
        }
    }

    /// From now on this is the file; it is on the disk, with all that was appended.
    pub(super) fn replace(&self, file: File) {
        self.shared.state().file = Arc::new(file);
    }

    /// Upgrades for as long as the thread or this lives.
    #[cfg(test)]
    pub(super) fn weak(&self) -> std::sync::Weak<impl Sized + use<>> {
        Arc::downgrade(&self.shared)
    }

    /// The reason why nothing reaches the disk any more.
    pub(super) fn failure(&self) -> Option<String> {
        self.progress.borrow().failure.clone()
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.shared.state().over = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It has reported why it failed, and no caller is left.
            let _ = thread.join();
        }
    }
}

impl Synced {
    /// Waits until it is there.
    pub(crate) async fn wait(mut self) -> Result<(), JournalError> {
        let there =
            |progress: &SyncProgress| progress.failure.is_some() || progress.synced >= self.bytes;
        match self.progress.wait_for(there).await {
            Ok(progress) if progress.synced >= self.bytes => Ok(()),
            Ok(progress) => Err(JournalError::Broken(
                progress.failure.clone().unwrap_or_default(),
            )),
            Err(_) => Err(JournalError::Broken("its thread has ended".to_owned())),
        }
    }
}

impl SyncMonitor {
    fn state(&self) -> MutexGuard<'_, SyncState> {
        // Every change of it is a single assignment, so it is whole also after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to do; `None` where there never will be.
    fn next(&self, synced: u64) -> Option<(Arc<File>, u64)> {
        let nothing = |state: &mut SyncState| !state.over && state.appended <= synced;
        let mut state = self.state();
        state.idle = true;
        let state = self.changed.wait_while(state, nothing);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.idle = false;
        let gather = |state: &mut SyncState| !state.over && state.wanted <= synced;
        let gathered = self.changed.wait_timeout_while(state, SYNC_WITHIN, gather);
        let (state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        (state.appended > synced).then(|| (Arc::clone(&state.file), state.appended))
    }
}

fn run(shared: &SyncMonitor, told: &watch::Sender<SyncProgress>) {
    let mut synced = 0;
    while let Some((file, appended)) = shared.next(synced) {
        let began = Instant::now();
        let done = file.sync_data();
        JOURNAL_SYNC_DURATION.record(&[], began.elapsed().as_secs_f64());
        if let Err(error) = done {
            let failure = format!("its records do not reach the disk ({error})");
            told.send_modify(|progress| progress.failure = Some(failure));
            return;
        }
        synced = appended;
        told.send_modify(|progress| progress.synced = synced);
    }
}
