//! What must be remembered of operations that are gone, within bounds: which may never start
//! again, and how far each owner's epoch has come.

use std::{
    collections::{HashMap, VecDeque, hash_map},
    time::Duration,
};

use proto::v1::cancel_answer::Answer;
use shared_types::{Epoch, OperationId, Owner};

use super::record::Receipt;

/// Ids that are kept from starting again, at most; with this many nothing new starts.
pub(super) const MAX_RECEIPTS: usize = 100_000;

/// How long they are kept, at least (contract A23). A restart begins it anew.
pub(super) const KEEP_RECEIPTS_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Owners whose epochs are known, at most; the one that was heard of longest ago goes first.
pub(super) const MAX_OWNERS: usize = 4096;

/// Operations that must not start any more: they were cancelled before they came, or have ended
/// and were forgotten.
#[derive(Debug, Clone, Default)]
pub(super) struct Receipts {
    /// What a cancel of it is answered with.
    answers: HashMap<OperationId, Answer>,
    /// With the time since which each is kept.
    oldest_first: VecDeque<(OperationId, Duration)>,
}

impl Receipts {
    /// Keeps it; the first receipt of an operation stays.
    pub(super) fn add(&mut self, receipt: Receipt, now: Duration) {
        if let hash_map::Entry::Vacant(place) = self.answers.entry(receipt.operation) {
            place.insert(receipt.answer());
            self.oldest_first.push_back((receipt.operation, now));
        }
    }

    /// Drops what was kept for long enough.
    pub(super) fn expire(&mut self, now: Duration) {
        while let Some((id, since)) = self.oldest_first.front()
            && now.saturating_sub(*since) >= KEEP_RECEIPTS_FOR
        {
            self.answers.remove(id);
            self.oldest_first.pop_front();
        }
    }

    pub(super) fn contains(&self, id: OperationId) -> bool {
        self.answers.contains_key(&id)
    }

    /// What a cancel of it is answered with.
    pub(super) fn answer(&self, id: OperationId) -> Option<Answer> {
        self.answers.get(&id).copied()
    }

    /// Whether no more can be kept; until some expire nothing new may start.
    pub(super) fn is_full(&self) -> bool {
        self.answers.len() >= MAX_RECEIPTS
    }

    /// All of them, the oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = Receipt> {
        let kept = self.oldest_first.iter();
        kept.filter_map(|(id, _)| Some(Receipt::new(*id, self.answer(*id)?)))
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

    /// All that are known, the one that was heard of longest ago first.
    pub(super) fn all(&self) -> impl Iterator<Item = (Owner, Epoch)> {
        let mut all: Vec<_> = self.owners.iter().collect();
        all.sort_by_key(|(_, heard)| heard.at);
        all.into_iter().map(|(owner, heard)| (*owner, heard.epoch))
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
    fn a_receipt_is_kept_for_a_day_and_a_full_table_says_so() {
        let id = |number: usize| OperationId::from_u128(number as u128);
        let mut receipts = Receipts::default();
        for number in 0..MAX_RECEIPTS {
            let receipt = Receipt::new(id(number), Answer::NeverStarted);
            receipts.add(receipt.clone(), Duration::from_secs(number as u64));
            receipts.add(receipt, Duration::from_secs(number as u64));
        }
        assert!(receipts.is_full());
        receipts.expire(KEEP_RECEIPTS_FOR);
        assert!(!receipts.contains(id(0)));
        assert!(receipts.contains(id(1)));
        assert!(!receipts.is_full());
        assert_eq!(receipts.all().count(), MAX_RECEIPTS - 1);
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
