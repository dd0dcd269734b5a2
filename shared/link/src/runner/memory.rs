//! What must be remembered of operations that are gone, within bounds: which may never start
//! again, and how far each owner's epoch has come.

use std::collections::{HashMap, VecDeque, hash_map};

use proto::v1::cancel_answer::Answer;
use shared_types::{Epoch, OperationId, Owner};

/// Ids that are kept from starting again, at most; the oldest go first.
pub(super) const MAX_TOMBSTONES: usize = 8192;

/// Owners whose epochs are known, at most; the one that was heard of longest ago goes first.
pub(super) const MAX_OWNERS: usize = 4096;

/// Operations that must not start any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Tombstones {
    /// What a cancel of it is answered with.
    answers: HashMap<OperationId, Answer>,
    oldest_first: VecDeque<OperationId>,
}

impl Tombstones {
    /// It does not start any more; returns what a cancel is answered with, as it was first.
    pub(super) fn add(&mut self, id: OperationId, answer: Answer) -> Answer {
        match self.answers.entry(id) {
            hash_map::Entry::Occupied(known) => return *known.get(),
            hash_map::Entry::Vacant(place) => place.insert(answer),
        };
        self.oldest_first.push_back(id);
        if self.oldest_first.len() > MAX_TOMBSTONES
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.answers.remove(&oldest);
        }
        answer
    }

    pub(super) fn contains(&self, id: OperationId) -> bool {
        self.answers.contains_key(&id)
    }
}

/// The highest epoch of each owner.
#[derive(Debug, Clone, Default)]
pub(super) struct Epochs {
    owners: HashMap<Owner, Heard>,
    heard: u64,
}

#[derive(Debug, Clone)]
struct Heard {
    epoch: Epoch,
    /// Counts up over all owners.
    at: u64,
}

impl Epochs {
    /// The highest epoch that was seen; 0 for an owner that is not known.
    pub(super) fn of(&self, owner: &Owner) -> Epoch {
        self.owners.get(owner).map_or(Epoch(0), |heard| heard.epoch)
    }

    /// Notes an epoch; a lower one than before changes nothing.
    pub(super) fn see(&mut self, owner: Owner, epoch: Epoch) {
        self.heard += 1;
        let at = self.heard;
        let heard = self.owners.entry(owner).or_insert(Heard { epoch, at });
        heard.epoch = heard.epoch.max(epoch);
        heard.at = at;
        if self.owners.len() > MAX_OWNERS
            && let Some(oldest) = self.longest_ago()
        {
            self.owners.remove(&oldest);
        }
    }

    fn longest_ago(&self) -> Option<Owner> {
        let oldest = self.owners.iter().min_by_key(|(_, heard)| heard.at);
        oldest.map(|(owner, _)| *owner)
    }
}

#[cfg(test)]
mod tests {
    use shared_types::SessionId;

    use super::*;

    fn owner(number: usize) -> Owner {
        Owner::Session(SessionId::from_u128(number as u128))
    }

    #[test]
    fn the_oldest_tombstone_makes_room_for_the_newest() {
        let id = |number: usize| OperationId::from_u128(number as u128);
        let mut tombstones = Tombstones::default();
        for number in 0..=MAX_TOMBSTONES {
            tombstones.add(id(number), Answer::NeverStarted);
            tombstones.add(id(number), Answer::NeverStarted);
        }
        assert!(!tombstones.contains(id(0)));
        assert!(tombstones.contains(id(1)));
        assert!(tombstones.contains(id(MAX_TOMBSTONES)));
        assert_eq!(tombstones.answers.len(), MAX_TOMBSTONES);
    }

    #[test]
    fn an_epoch_never_goes_back() {
        let mut epochs = Epochs::default();
        assert_eq!(epochs.of(&owner(1)), Epoch(0));
        epochs.see(owner(1), Epoch(5));
        epochs.see(owner(1), Epoch(3));
        assert_eq!(epochs.of(&owner(1)), Epoch(5));
        assert_eq!(epochs.of(&owner(2)), Epoch(0));
    }

    #[test]
    fn the_owner_that_was_silent_longest_is_the_one_that_is_dropped() {
        let mut epochs = Epochs::default();
        for number in 0..MAX_OWNERS {
            epochs.see(owner(number), Epoch(1));
        }
        epochs.see(owner(0), Epoch(2));
        epochs.see(owner(MAX_OWNERS), Epoch(1));
        assert_eq!(epochs.owners.len(), MAX_OWNERS);
        assert_eq!(epochs.of(&owner(0)), Epoch(2));
        assert_eq!(epochs.of(&owner(1)), Epoch(0));
    }
}
