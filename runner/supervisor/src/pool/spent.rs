//! Supervisors whose commands have ended, on their way to another one, and those that go.
//!
//! None of them stays: one that is well ends by itself a second after it has heard the last of its
//! daemon. One that does not is stopped, or hangs, and is killed.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Directory, Realm, Spent, ToSupervisor, boot_id};

/// Supervisors of this host that are kept in each state, at most.
const KEPT_AT_MOST: usize = 64;

/// The same in a container, where they count among the processes that its commands may have.
const KEPT_IN_CONTAINER: usize = 4;

/// Looks, a quiet second apart, in which one that is to end may still be there.
pub(super) const LOOKS: u32 = 3;

/// Those that there are.
#[derive(Debug)]
pub(super) struct SpentOnes {
    lists: Mutex<Lists>,
    realm: Realm,
}

#[derive(Debug, Default)]
struct Lists {
    /// Their commands are still remembered; the latest last.
    remembered: VecDeque<Spent>,
    /// Their commands are forgotten; the latest last.
    forgotten: VecDeque<Leaving>,
    /// They are asked to end.
    dismissed: VecDeque<Leaving>,
}

/// A supervisor that ends if it gets no request.
#[derive(Debug)]
struct Leaving {
    spent: Spent,
    /// The number of looks at which it was still there.
    seen: u32,
}

impl SpentOnes {
    pub(super) fn new(realm: Realm) -> Self {
        Self {
            lists: Mutex::default(),
            realm,
        }
    }

    /// Keeps one until its command is forgotten. Too many, and one ends; its directory stays.
    pub(super) fn keep(&self, spent: Spent) {
        let mut lists = self.lists();
        lists.remembered.push_back(spent);
        if lists.remembered.len() > self.kept_at_most() {
            lists.remembered.pop_front();
        }
    }

    /// The command of this directory is forgotten; `false` where no supervisor was kept for it that
    /// is still there.
    pub(super) fn forget(&self, directory: &Path) -> bool {
        let mut lists = self.lists();
        let mut remembered = lists.remembered.iter();
        let position = remembered.position(|spent| spent.directory.path() == directory);
        let spent = position.and_then(|position| lists.remembered.remove(position));
        match spent.filter(|spent| spent.line.is_open()) {
            Some(spent) if lists.forgotten.len() < self.kept_at_most() => {
                lists.forgotten.push_back(Leaving::new(spent));
                true
            }
            _ => false,
        }
    }

    /// One that waited in vain ends. With too many of them the directories of some stay.
    pub(super) fn dismiss(&self, mut spent: Spent) {
        // One that is gone already needs not be asked.
        let _ = spent.line.send(&ToSupervisor::Cancel, &[]);
        self.bury(spent);
    }

    /// A supervisor that does not follow its orders is killed.
    pub(super) fn kill(&self, spent: Spent) {
        kill(self.realm, &spent.directory);
        self.bury(spent);
    }

    fn bury(&self, spent: Spent) {
        let mut lists = self.lists();
        if lists.dismissed.len() < self.kept_at_most() {
            lists.dismissed.push_back(Leaving::new(spent));
        }
    }

    /// One that may serve another command.
    pub(super) fn take(&self) -> Option<Spent> {
        self.lists()
            .forgotten
            .pop_back()
            .map(|leaving| leaving.spent)
    }

    /// True if there are any that are not cleared away yet.
    pub(super) fn are_left(&self) -> bool {
        let lists = self.lists();
        !lists.forgotten.is_empty() || !lists.dismissed.is_empty()
    }

    /// The directories of those that were not wanted in time, or not at all, and have ended. Where
    /// the last second was `quiet`, those are killed that should have ended.
    pub(super) fn ended(&self, quiet: bool) -> Vec<Directory> {
        let lists = &mut *self.lists();
        let mut directories = Vec::new();
        for list in [&mut lists.forgotten, &mut lists.dismissed] {
            let all = list.drain(..);
            let (mut open, ended): (VecDeque<_>, VecDeque<_>) = all.partition(Leaving::is_there);
            if quiet {
                open.iter_mut().for_each(|leaving| leaving.look(self.realm));
            }
            *list = open;
            directories.extend(ended.into_iter().map(|leaving| leaving.spent.directory));
        }
        directories
    }

    fn kept_at_most(&self) -> usize {
        match self.realm {
            Realm::Host => KEPT_AT_MOST,
            Realm::Container => KEPT_IN_CONTAINER,
        }
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leaving {
    fn new(spent: Spent) -> Self {
        Self { spent, seen: 0 }
    }

    fn is_there(&self) -> bool {
        self.spent.line.is_open()
    }

    fn look(&mut self, realm: Realm) {
        self.seen += 1;
        if self.seen >= LOOKS {
            kill(realm, &self.spent.directory);
        }
    }
}

/// Kills a supervisor that was promised to no caller.
fn kill(realm: Realm, directory: &Directory) {
    // The pids of a container are not this host's; what is stopped there goes with its directory's removal.
    if realm == Realm::Host
        && let (Ok(Some(identity)), Ok(boot)) = (directory.identity(), boot_id())
    {
        // One that the host keeps is looked at again.
        let _ = identity.supervisor.kill(&boot);
    }
}
