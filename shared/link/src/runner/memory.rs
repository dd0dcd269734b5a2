//! The memory of operations that are gone, within bounds: which operations may never start again,
//! and the highest epoch of each owner.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use proto::v1::cancel_answer::Answer;
use shared_types::{Epoch, OperationId, Owner};

use super::record::{Receipt, ReceiptBlock, Record};

/// Ids that are kept from starting again, at most; with this many nothing new starts. So many are
/// six each second for a day, and 8 MiB.
pub(super) const MAX_RECEIPTS: usize = 500_000;

/// So many of the latest are kept one by one; then they become blocks. As a line of the journal, in
/// which an id takes 33 bytes, a block is below 1 MiB.
const YOUNG_RECEIPTS: usize = 16 * 1024;

/// The shortest time for which they, and the epochs of owners, are kept
/// (docs/internals/contracts.md#a23), restarts of the daemon included. A new boot of the host ends
/// it: what was sent before names an incarnation that is refused (docs/internals/contracts.md#a3).
pub(super) const KEEP_RECEIPTS_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Owners whose epochs are known, at most; with this many no other one is served. So many can be
/// heard of within a day, one every five seconds.
pub(super) const MAX_OWNERS: usize = 16 * 1024;

/// Operations that must not start any more: they were cancelled before they came, or have ended
/// and were forgotten.
#[derive(Debug, Clone, Default)]
pub(super) struct Receipts {
    /// The latest, and what a cancel of each is answered with.
    young: HashMap<OperationId, Answer>,
    /// The same, with the time since which each is kept.
    oldest_first: VecDeque<(OperationId, Duration)>,
    /// The others.
    blocks: VecDeque<ReceiptBlock>,
}

impl Receipts {
    /// Keeps it; the first receipt of an operation stays.
    pub(super) fn add(&mut self, receipt: Receipt, now: Duration) {
        if self.contains(receipt.operation) {
            return;
        }
        self.young.insert(receipt.operation, receipt.answer());
        self.oldest_first.push_back((receipt.operation, now));
        if self.young.len() == YOUNG_RECEIPTS {
            let young = std::mem::take(&mut self.young);
            self.oldest_first.clear();
            self.blocks.extend(ReceiptBlock::of(young, now));
        }
    }

    /// Keeps those that have become a block before.
    pub(super) fn add_block(&mut self, block: ReceiptBlock) {
        self.blocks.push_back(block);
    }

    /// Drops what was kept for long enough; those of a block go with the last of them.
    pub(super) fn expire(&mut self, now: Duration) {
        let is_over = |since: Duration| now.saturating_sub(since) >= KEEP_RECEIPTS_FOR;
        while self
            .blocks
            .front()
            .is_some_and(|block| is_over(block.until))
        {
            self.blocks.pop_front();
        }
        while let Some((id, since)) = self.oldest_first.front()
            && is_over(*since)
        {
            self.young.remove(id);
            self.oldest_first.pop_front();
        }
    }

    pub(super) fn contains(&self, id: OperationId) -> bool {
        self.answer(id).is_some()
    }

    /// The answer to a cancel of it.
    pub(super) fn answer(&self, id: OperationId) -> Option<Answer> {
        let young = self.young.get(&id).copied();
        young.or_else(|| self.blocks.iter().find_map(|block| block.answer(id)))
    }

    /// True if no more can be kept; until some expire nothing new may start.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= MAX_RECEIPTS
    }

    /// The number of receipts.
    pub(super) fn count(&self) -> usize {
        let in_blocks = self.blocks.iter().map(ReceiptBlock::len);
        self.young.len() + in_blocks.sum::<usize>()
    }

    /// All of them, the oldest first.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let blocks = self.blocks.iter().cloned().map(Record::Receipts);
        let young = self.oldest_first.iter().filter_map(|(id, since)| {
            let answer = *self.young.get(id)?;
            Some(Record::Receipt(Receipt::new(*id, answer, *since)))
        });
        blocks.chain(young)
    }
}

/// The highest epoch of each owner (docs/internals/contracts.md#a4). An epoch is dropped only where
/// no lower one can arrive that is still good. That is so when nothing is remembered of its owner,
/// and nothing was heard of the owner for as long as receipts are kept. After a restart of the
/// daemon, only the times on disk count. Every request that an older holder sent must have started
/// long before.
#[derive(Debug, Clone, Default)]
pub(super) struct Epochs {
    owners: HashMap<Owner, OwnerEpoch>,
    /// Each of them once, with a time when a frame of it came.
    oldest_first: VecDeque<(Owner, Duration)>,
}

#[derive(Debug, Clone)]
struct OwnerEpoch {
    epoch: Epoch,
    /// For the last time.
    at: Duration,
}

impl Epochs {
    /// The highest epoch that was seen; 0 for an owner that is not known.
    pub(super) fn of(&self, owner: &Owner) -> Epoch {
        self.owners.get(owner).map_or(Epoch(0), |heard| heard.epoch)
    }

    /// True if the owner's epoch is known, or if there is room for it.
    pub(super) fn has_room_for(&self, owner: &Owner) -> bool {
        self.owners.len() < MAX_OWNERS || self.owners.contains_key(owner)
    }

    /// Notes an epoch; a lower one than before changes nothing.
    pub(super) fn see(&mut self, owner: Owner, epoch: Epoch, now: Duration) {
        let heard = self.owners.entry(owner).or_insert_with(|| {
            self.oldest_first.push_back((owner, now));
            OwnerEpoch { epoch, at: now }
        });
        heard.epoch = heard.epoch.max(epoch);
        heard.at = heard.at.max(now);
    }

    /// Drops what was kept for long enough, of owners for which nothing `is_remembered`.
    pub(super) fn expire(&mut self, now: Duration, is_remembered: impl Fn(&Owner) -> bool) {
        while let Some((owner, since)) = self.oldest_first.front().copied()
            && now.saturating_sub(since) >= KEEP_RECEIPTS_FOR
        {
            self.oldest_first.pop_front();
            let heard = self.owners.get(&owner).map_or(since, |heard| heard.at);
            let at = if is_remembered(&owner) { now } else { heard };
            if at > since {
                self.oldest_first.push_back((owner, at));
            } else {
                self.owners.remove(&owner);
            }
        }
    }

    /// The time when a frame of the owner came last.
    pub(super) fn heard_at(&self, owner: &Owner) -> Option<Duration> {
        self.owners.get(owner).map(|heard| heard.at)
    }

    /// Begins another clock, and drops all owners for which nothing `is_remembered`.
    pub(super) fn begin_clock(&mut self, is_remembered: impl Fn(&Owner) -> bool) {
        self.owners.retain(|owner, _| is_remembered(owner));
        for heard in self.owners.values_mut() {
            heard.at = Duration::ZERO;
        }
        let known = self.owners.keys();
        self.oldest_first = known.map(|owner| (*owner, Duration::ZERO)).collect();
    }

    /// All that are known, in the order of the time when a frame of each came last.
    pub(super) fn all(&self) -> Vec<(Owner, Epoch, Duration)> {
        let known = self.owners.iter();
        let mut known: Vec<_> = known
            .map(|(id, heard)| (*id, heard.epoch, heard.at))
            .collect();
        known.sort_by_key(|(_, _, at)| *at);
        known
    }
}

#[cfg(test)]
mod tests {
    use shared_types::SessionId;

    use super::*;

    fn owner(number: usize) -> Owner {
        Owner::Session(SessionId::from_u128(number as u128))
    }

    fn id(number: usize) -> OperationId {
        OperationId::from_u128(number as u128)
    }

    #[test]
    fn a_receipt_is_kept_for_a_day() {
        let mut receipts = Receipts::default();
        for number in 0..YOUNG_RECEIPTS - 1 {
            let now = Duration::from_secs(number as u64);
            let receipt = Receipt::new(id(number), Answer::NeverStarted, now);
            receipts.add(receipt.clone(), now);
            receipts.add(receipt, now);
        }
        receipts.expire(KEEP_RECEIPTS_FOR);
        assert!(!receipts.contains(id(0)));
        assert!(receipts.contains(id(1)));
        assert_eq!(receipts.records().count(), YOUNG_RECEIPTS - 2);
    }

    #[test]
    fn many_receipts_are_kept_in_few_records_and_each_for_a_day_at_least() {
        let answers = [
            Answer::NeverStarted,
            Answer::AlreadyExited,
            Answer::Cancelled,
        ];
        let (mut receipts, count) = (Receipts::default(), 3 * YOUNG_RECEIPTS + 7);
        // An odd factor scatters them, as hashes are.
        let scattered = |number: usize| id(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let at = |number: usize| Duration::from_secs(number as u64 / 4);
        for number in 0..count {
            let receipt = Receipt::new(scattered(number), answers[number % 3], at(number));
            receipts.add(receipt, at(number));
        }
        let records: Vec<_> = receipts.records().collect();
        assert_eq!(records.len(), 3 * 3 + 7);
        let mut again = Receipts::default();
        for record in records {
            match record {
                Record::Receipts(block) => again.add_block(block),
                Record::Receipt(receipt) => {
                    again.add(receipt.clone(), receipt.at.unwrap_or_default())
                }
                _ => panic!("{record:?}"),
            }
        }
        for receipts in [&mut receipts, &mut again] {
            assert_eq!(receipts.count(), count);
            for number in (0..count).step_by(97) {
                let answer = receipts.answer(scattered(number));
                assert_eq!(answer, Some(answers[number % 3]), "{number}");
            }
            assert!(!receipts.contains(scattered(count)));
            let last_of_first = at(YOUNG_RECEIPTS - 1);
            receipts.expire(KEEP_RECEIPTS_FOR + last_of_first - Duration::from_secs(1));
            assert_eq!(receipts.count(), count);
            receipts.expire(KEEP_RECEIPTS_FOR + last_of_first);
            assert_eq!(receipts.count(), count - YOUNG_RECEIPTS);
            assert!(!receipts.contains(scattered(1)));
            assert!(receipts.contains(scattered(YOUNG_RECEIPTS)));
        }
    }

    #[test]
    fn a_full_memory_of_receipts_says_so_until_some_expire() {
        let mut receipts = Receipts::default();
        for first in (0..MAX_RECEIPTS).step_by(MAX_RECEIPTS / 10) {
            assert!(!receipts.is_full());
            let young = (first..first + MAX_RECEIPTS / 10).map(|n| (id(n), Answer::Cancelled));
            for block in ReceiptBlock::of(young, Duration::from_secs(first as u64)) {
                receipts.add_block(block);
            }
        }
        assert!(receipts.is_full());
        receipts.expire(KEEP_RECEIPTS_FOR);
        assert!(!receipts.is_full());
    }

    const NOBODY: fn(&Owner) -> bool = |_| false;

    #[test]
    fn an_epoch_never_goes_back() {
        let mut epochs = Epochs::default();
        assert_eq!(epochs.of(&owner(1)), Epoch(0));
        epochs.see(owner(1), Epoch(5), Duration::ZERO);
        epochs.see(owner(1), Epoch(3), Duration::ZERO);
        assert_eq!(epochs.of(&owner(1)), Epoch(5));
        assert_eq!(epochs.of(&owner(2)), Epoch(0));
    }

    #[test]
    fn an_epoch_is_kept_for_a_day_after_its_owner_was_heard_of() {
        let (hour, mut epochs) = (KEEP_RECEIPTS_FOR / 24, Epochs::default());
        epochs.see(owner(1), Epoch(5), Duration::ZERO);
        epochs.see(owner(2), Epoch(6), Duration::ZERO);
        epochs.see(owner(1), Epoch(5), 10 * hour);
        epochs.expire(24 * hour, NOBODY);
        assert_eq!(epochs.all(), [(owner(1), Epoch(5), 10 * hour)]);
        epochs.expire(34 * hour, NOBODY);
        assert_eq!(epochs.all(), []);
    }

    #[test]
    fn an_epoch_is_kept_while_anything_is_remembered_of_its_owner_and_a_day_more() {
        let (hour, mut epochs) = (KEEP_RECEIPTS_FOR / 24, Epochs::default());
        epochs.see(owner(1), Epoch(5), Duration::ZERO);
        epochs.expire(24 * hour, |owner_of| *owner_of == owner(1));
        epochs.expire(47 * hour, NOBODY);
        assert_eq!(epochs.of(&owner(1)), Epoch(5));
        epochs.expire(48 * hour, NOBODY);
        assert_eq!(epochs.of(&owner(1)), Epoch(0));
    }

    #[test]
    fn a_full_table_has_room_for_the_owners_in_it_alone() {
        let mut epochs = Epochs::default();
        for number in 0..MAX_OWNERS {
            assert!(epochs.has_room_for(&owner(number)));
            epochs.see(owner(number), Epoch(1), Duration::ZERO);
        }
        assert!(epochs.has_room_for(&owner(0)));
        assert!(!epochs.has_room_for(&owner(MAX_OWNERS)));
        epochs.expire(KEEP_RECEIPTS_FOR, NOBODY);
        assert!(epochs.has_room_for(&owner(MAX_OWNERS)));
    }
}
