//! The thread that keeps supervisors waiting.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::Duration,
};

use super::{PoolError, spent::LOOKS, starter::Starter};
use crate::{IdleSupervisor, Realm};

/// While at least half of the supervisors wait, others are started only after none was taken for
/// this long: a command that has just begun has the host to itself.
const REFILL_AFTER: Duration = Duration::from_millis(10);

/// The time between looks for supervisors that were not wanted again and have ended, or should
/// have.
const CLEAR_EVERY: Duration = Duration::from_secs(1);

/// The news for the pool's thread. It is woken only where it waits for nothing else, or has
/// something to do at once: most commands begin and end while it waits for calm.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolWishes(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    told: Mutex<PoolNews>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PoolNews {
    /// Supervisors that were taken, and are not counted yet.
    taken: usize,
    /// One can serve another command, or is to end.
    look: bool,
    /// Start no more.
    closed: bool,
    /// The number that may be taken before the thread is woken; `None` while it does not wait.
    wakes_after: Option<usize>,
}

impl PoolWishes {
    /// One was taken. The thread need not learn it before [`PoolWishes::look`].
    pub(super) fn taken(&self) {
        self.told().taken += 1;
    }

    /// There may be something to do.
    pub(super) fn look(&self) {
        let mut told = self.told();
        told.look = true;
        if told.wakes_after.is_some_and(|taken| told.taken >= taken) {
            self.0.changed.notify_one();
        }
    }

    /// No caller will ask for supervisors any more.
    pub(super) fn close(&self) {
        self.told().closed = true;
        self.0.changed.notify_one();
    }

    /// Waits until there is something to hear, but no longer than `patience`; while fewer than
    /// `wakes_after` are taken, nothing but the close is worth waking up for.
    fn wait(&self, patience: Option<Duration>, wakes_after: usize) -> TakenNews {
        let mut told = self.told();
        told.wakes_after = Some(wakes_after);
        let wakes = |told: &PoolNews| told.closed || (told.look && told.taken >= wakes_after);
        let nothing = |told: &mut PoolNews| !wakes(told);
        let (mut told, in_vain) = match patience {
            Some(patience) => {
                let waited = self.0.changed.wait_timeout_while(told, patience, nothing);
                let (told, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                (told, waited.timed_out())
            }
            None => {
                let waited = self.0.changed.wait_while(told, nothing);
                (waited.unwrap_or_else(PoisonError::into_inner), false)
            }
        };
        let PoolNews { taken, closed, .. } = std::mem::take(&mut *told);
        TakenNews {
            taken,
            closed,
            in_vain,
        }
    }

    fn told(&self) -> MutexGuard<'_, PoolNews> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The news that the thread has taken.
struct TakenNews {
    /// The number of supervisors that were taken.
    taken: usize,
    closed: bool,
    /// The whole patience was over.
    in_vain: bool,
}

/// The state of the pool's thread.
pub(super) struct Keeper {
    starter: Starter,
    wishes: PoolWishes,
    made: Sender<Result<IdleSupervisor, PoolError>>,
    /// The number that wait to be taken. A failure counts as one, so that nothing is tried in vain
    /// until a caller asks.
    waiting: usize,
}

impl Keeper {
    /// `waiting` of them were made already.
    pub(super) fn new(
        starter: Starter,
        wishes: PoolWishes,
        made: Sender<Result<IdleSupervisor, PoolError>>,
        waiting: usize,
    ) -> Self {
        Self {
            starter,
            wishes,
            made,
            waiting,
        }
    }

    /// Until the pool is gone.
    pub(super) fn run(mut self) {
        let mut calm = true;
        loop {
            let wanted = self.starter.server.options().waiting;
            let half = wanted.div_ceil(2);
            let missing = self.waiting < wanted;
            let (mut patience, mut wakes_after) = (None, 0);
            if missing && (calm || self.waiting < half) {
                let again = self.starter.again().map(Ok);
                let started = again.unwrap_or_else(|| self.starter.start());
                self.waiting += 1;
                if let Err(unsent) = self.made.send(started) {
                    if let Ok(waiting) = unsent.0 {
                        self.starter.spent.dismiss(waiting.into_spent());
                    }
                    return self.clear_at_last();
                }
                patience = Some(Duration::ZERO);
            } else if missing {
                patience = Some(REFILL_AFTER);
                wakes_after = self.waiting - half + 1;
            } else if self.starter.spent.are_left() {
                patience = Some(CLEAR_EVERY);
            }
            let heard = self.wishes.wait(patience, wakes_after);
            if heard.closed {
                return self.clear_at_last();
            }
            self.waiting = self.waiting.saturating_sub(heard.taken);
            calm = heard.in_vain && heard.taken == 0;
            if heard.in_vain {
                self.clear(patience == Some(CLEAR_EVERY));
            }
        }
    }

    /// Removes the directories of the supervisors that are left when the pool is dropped. Only in a container:
    /// on a host the next daemon may be looking at the same folder.
    fn clear_at_last(&self) {
        let mut looks = LOOKS + 1;
        while self.starter.server.options().realm == Realm::Container
            && self.starter.spent.are_left()
            && looks > 0
        {
            std::thread::sleep(CLEAR_EVERY);
            self.clear(true);
            looks -= 1;
        }
    }

    /// Removes the directories of supervisors that were not used again.
    fn clear(&self, quiet: bool) {
        for directory in self.starter.spent.ended(quiet) {
            // The next daemon finds a directory that stays.
            let _ = self.starter.server.options().realm.remove(directory);
        }
    }
}
