//! The turns of changes to paths.
//!
//! Of two changes that meet the second waits for the first, even if they name their paths differently.
//! Two changes meet where they have a path in common, or where one changes a directory above the
//! other's path. Other changes do not wait for them. Only so many run at once, in the order in which
//! they came.
//!
//! A turn lasts until the end of its change is written down. So no two changes in a journal meet while
//! both have no end, and the content of a path tells the result of each.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::{Mutex, Notify},
    task::spawn_blocking,
};

use crate::{files::Changed, inside::Release, workspace::Workspace};

/// Changes that run at once; others wait for their turn.
const CHANGES_AT_ONCE: usize = 8;

/// The turns of changes. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// Held from asking where the paths lead to joining the queue, so that changes that meet are made
    /// in the order in which they came.
    arrival: Arc<Mutex<()>>,
    queue: Arc<ChangeQueue>,
}

/// Lets one change be made, until it is dropped.
#[derive(Debug)]
pub(super) struct ChangeTurn {
    queue: Arc<ChangeQueue>,
    number: u64,
}

/// The turn of a change whose end was sent. Changes that meet it wait until this is dropped: drop it
/// once the end is written down.
#[derive(Debug, Clone, Default)]
pub struct HeldTurn(
    #[expect(dead_code, reason = "it is given back with this")] Option<Arc<ReturnedTurn>>,
);

/// The turn that is given back.
#[derive(Debug)]
#[expect(dead_code, reason = "they are given back when dropped")]
enum ReturnedTurn {
    /// A turn of this host.
    Here(ChangeTurn),
    /// A turn of the host in a container.
    Inside(Release),
}

impl HeldTurn {
    /// The turn of a change in a container.
    pub(crate) fn inside(release: Release) -> Self {
        Self(Some(Arc::new(ReturnedTurn::Inside(release))))
    }
}

#[derive(Debug, Default)]
struct ChangeQueue {
    changes: StdMutex<WaitingChanges>,
    /// Some of them may begin.
    moved: Notify,
}

#[derive(Debug, Default)]
struct WaitingChanges {
    came: u64,
    /// In the order in which they came.
    changes: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    places: Vec<PathBuf>,
    runs: bool,
}

impl Changes {
    /// Waits for the turn to change what is at these paths.
    pub(super) async fn turn(
        &self,
        workspace: &Arc<Workspace>,
        asked: Vec<Changed>,
    ) -> Option<HeldTurn> {
        let arrival = self.arrival.lock().await;
        let workspace = Arc::clone(workspace);
        let places = spawn_blocking(move || {
            let place = |asked: &Changed| match asked {
                Changed::File(path) => workspace.place_of_change(path),
                Changed::Entry(path) => workspace.place_of_entry(path),
            };
            asked.iter().map(place).collect()
        });
        let turn = ChangeQueue::join(&self.queue, places.await.ok()?);
        drop(arrival);
        loop {
            let moved = self.queue.moved.notified();
            if turn.has_come() {
                return Some(HeldTurn(Some(Arc::new(ReturnedTurn::Here(turn)))));
            }
            moved.await;
        }
    }
}

impl ChangeTurn {
    fn has_come(&self) -> bool {
        let changes = self.queue.lock();
        let ours = changes.changes.iter().find(|one| one.number == self.number);
        ours.is_some_and(|ours| ours.runs)
    }
}

impl Drop for ChangeTurn {
    fn drop(&mut self) {
        let mut changes = self.queue.lock();
        changes.changes.retain(|one| one.number != self.number);
        changes.go_on();
        drop(changes);
        self.queue.moved.notify_waiters();
    }
}

impl ChangeQueue {
    fn join(queue: &Arc<Self>, places: Vec<PathBuf>) -> ChangeTurn {
        let mut changes = queue.lock();
        let number = changes.came;
        changes.came += 1;
        changes.changes.push_back(Waiter {
            number,
            places,
            runs: false,
        });
        changes.go_on();
        drop(changes);
        ChangeTurn {
            queue: Arc::clone(queue),
            number,
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingChanges> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingChanges {
    /// Lets run what meets none that came before it, while there is room.
    fn go_on(&mut self) {
        let mut running = self.changes.iter().filter(|one| one.runs).count();
        for at in 0..self.changes.len() {
            if running >= CHANGES_AT_ONCE {
                return;
            }
            let (one, before) = (&self.changes[at], self.changes.range(..at));
            if !one.runs && before.into_iter().all(|other| !one.meets(other)) {
                self.changes[at].runs = true;
                running += 1;
            }
        }
    }
}

impl Waiter {
    fn meets(&self, other: &Self) -> bool {
        let meet = |a: &PathBuf, b: &PathBuf| a.starts_with(b) || b.starts_with(a);
        let mut ours = self.places.iter();
        ours.any(|ours| other.places.iter().any(|theirs| meet(ours, theirs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(queue: &Arc<ChangeQueue>, places: &[&str]) -> ChangeTurn {
        ChangeQueue::join(queue, places.iter().map(PathBuf::from).collect())
    }

    #[test]
    fn changes_that_meet_run_one_after_the_other_and_others_at_once() {
        let queue = Arc::new(ChangeQueue::default());
        let folder = join(&queue, &["/a", "/z"]);
        let (beneath, beside, above) = (
            join(&queue, &["/a/b/c"]),
            join(&queue, &["/ab"]),
            join(&queue, &["/"]),
        );
        let all = [&folder, &beneath, &beside, &above];
        assert_eq!(all.map(ChangeTurn::has_come), [true, false, true, false]);
        drop(folder);
        assert_eq!([&beneath, &above].map(ChangeTurn::has_come), [true, false]);
        drop((beneath, beside));
        assert!(above.has_come());
    }

    #[test]
    fn only_so_many_run_at_once_in_the_order_in_which_they_came() {
        let queue = Arc::new(ChangeQueue::default());
        let names: Vec<_> = (0..CHANGES_AT_ONCE + 2).map(|i| format!("/{i}")).collect();
        let mut turns: Vec<_> = names.iter().map(|name| join(&queue, &[name])).collect();
        let come = |turns: &[ChangeTurn]| turns.iter().filter(|turn| turn.has_come()).count();
        assert_eq!(come(&turns), CHANGES_AT_ONCE);
        turns.remove(3);
        assert_eq!(come(&turns), CHANGES_AT_ONCE);
        assert!(turns[CHANGES_AT_ONCE - 1].has_come() && !turns[CHANGES_AT_ONCE].has_come());
    }
}
