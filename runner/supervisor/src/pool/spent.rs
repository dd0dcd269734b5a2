//! Supervisors whose commands have ended, on their way to another one, and those that go.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Directory, Spent, ToSupervisor};

/// Supervisors that are kept in each state, at most.
const KEPT_AT_MOST: usize = 64;

/// Those that there are.
#[derive(Debug, Default)]
pub(super) struct SpentOnes {
    lists: Mutex<Lists>,
}

#[derive(Debug, Default)]
struct Lists {
    /// Their commands are still remembered; the latest last.
    remembered: VecDeque<Spent>,
    /// Nobody will ask for their commands any more; the latest last.
    forgotten: VecDeque<Spent>,
    /// They are asked to end.
    dismissed: VecDeque<Spent>,
}

impl SpentOnes {
    /// Keeps one until its command is forgotten. Too many, and one ends; its directory stays.
    pub(super) fn keep(&self, spent: Spent) {
        let mut lists = self.lists();
        lists.remembered.push_back(spent);
        if lists.remembered.len() > KEPT_AT_MOST {
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
        match spent.filter(|spent| spent.link.is_open()) {
            Some(spent) if lists.forgotten.len() < KEPT_AT_MOST => {
                lists.forgotten.push_back(spent);
                true
            }
            _ => false,
        }
    }

    /// One that waited in vain ends. With too many of them the directories of some stay.
    pub(super) fn dismiss(&self, mut spent: Spent) {
        // One that is gone already needs not be asked.
        let _ = spent.link.send(&ToSupervisor::Cancel, &[]);
        let mut lists = self.lists();
        if lists.dismissed.len() < KEPT_AT_MOST {
            lists.dismissed.push_back(spent);
        }
    }

    /// One that may serve another command.
    pub(super) fn take(&self) -> Option<Spent> {
        self.lists().forgotten.pop_back()
    }

    /// Whether there are any of which nobody has taken care.
    pub(super) fn are_left(&self) -> bool {
        let lists = self.lists();
        !lists.forgotten.is_empty() || !lists.dismissed.is_empty()
    }

    /// The directories of those that were not wanted in time, or not at all, and have ended.
    pub(super) fn ended(&self) -> Vec<Directory> {
        let lists = &mut *self.lists();
        let mut directories = Vec::new();
        for list in [&mut lists.forgotten, &mut lists.dismissed] {
            let all = list.drain(..);
            let (open, ended): (VecDeque<_>, VecDeque<_>) =
                all.partition(|spent| spent.link.is_open());
            *list = open;
            directories.extend(ended.into_iter().map(|spent| spent.directory));
        }
        directories
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
