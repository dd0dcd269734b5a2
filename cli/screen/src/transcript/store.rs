//! The items that are kept, with a bound on those that were printed.

use std::collections::VecDeque;

use shared_types::TurnId;

use super::item::{Item, Kind};

/// The most printed items that are kept for the pager.
pub const MOST_KEPT: usize = 2000;

/// The most memory of the printed items that are kept, in bytes, about.
pub const MOST_KEPT_BYTES: usize = 32 << 20;

/// The items of a transcript that are kept, in their order.
#[derive(Debug, Default)]
pub(super) struct Store {
    items: VecDeque<Kept>,
    /// The number of the first item that is kept.
    base: u64,
    /// Items before this one were printed.
    printed: u64,
    /// The memory of all items.
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    item: Item,
    weight: usize,
}

impl Store {
    /// Adds an item; returns its number.
    pub(super) fn push(&mut self, turn: Option<TurnId>, is_open: bool, kind: Kind) -> u64 {
        let number = self.next();
        let weight = kind.weight();
        let item = Item {
            number,
            revision: 0,
            is_open,
            turn,
            kind,
        };
        self.bytes += weight;
        self.items.push_back(Kept { item, weight });
        self.forget();
        number
    }

    /// The number of the item that comes next.
    pub(super) fn next(&self) -> u64 {
        self.base + self.items.len() as u64
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn get(&self, number: u64) -> Option<&Item> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.items.get(place).map(|kept| &kept.item)
    }

    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = &Item> {
        let place = usize::try_from(number.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let place = place.min(self.items.len());
        self.items.range(place..).map(|kept| &kept.item)
    }

    pub(super) fn last(&self) -> Option<&Item> {
        self.items.back().map(|kept| &kept.item)
    }

    /// Changes an item that is open; an item that is not stays as it is.
    pub(super) fn change(&mut self, number: u64, change: impl FnOnce(&mut Item)) {
        let place = number.checked_sub(self.base);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let kept = place.and_then(|place| self.items.get_mut(place));
        let Some(kept) = kept.filter(|kept| kept.item.is_open) else {
            return;
        };
        change(&mut kept.item);
        kept.item.revision = kept.item.revision.wrapping_add(1);
        if !kept.item.is_open {
            let weight = kept.item.kind.weight();
            self.bytes = (self.bytes + weight).saturating_sub(kept.weight);
            kept.weight = weight;
        }
    }

    /// Takes a text of the model back, also where it was complete.
    pub(super) fn void(&mut self, number: u64) {
        let place = number.checked_sub(self.base);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let Some(kept) = place.and_then(|place| self.items.get_mut(place)) else {
            return;
        };
        if let Kind::Thought(speech) | Kind::Answer(speech) = &mut kept.item.kind {
            speech.is_void = true;
            kept.item.is_open = false;
            kept.item.revision = kept.item.revision.wrapping_add(1);
        }
    }

    /// Notes that the items before this one were printed.
    pub(super) fn printed(&mut self, number: u64) {
        self.printed = self.printed.max(number.min(self.next()));
        self.forget();
    }

    fn forget(&mut self) {
        while self.base < self.printed
            && (self.items.len() > MOST_KEPT || self.bytes > MOST_KEPT_BYTES)
        {
            let Some(kept) = self.items.pop_front() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(kept.weight);
            self.base += 1;
        }
    }
}
