//! The fair division of a scarce good among many users, such as memory for answers or places for downloads.
//!
//! A user may have as much as is still free. So the first user gets at most half of the good. Some is always left for
//! another user, even if no user gives any back.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The good, and the amount of each user.
#[derive(Debug)]
pub(crate) struct Fair<Whose> {
    all: usize,
    taken: Mutex<HashMap<Whose, usize>>,
}

/// A part of the good, until it is dropped.
#[derive(Debug)]
pub(crate) struct FairShare<Whose: Copy + Eq + Hash> {
    of: Arc<Fair<Whose>>,
    whose: Whose,
    amount: usize,
}

impl<Whose: Copy + Eq + Hash> Fair<Whose> {
    /// A good of this amount, all of it free.
    pub(crate) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            taken: Mutex::default(),
        })
    }

    /// Takes this amount; `None` if it is more than is left for this user.
    pub(crate) fn take(self: &Arc<Self>, whose: Whose, amount: usize) -> Option<FairShare<Whose>> {
        let mut taken = self.taken();
        let free = self.all.saturating_sub(taken.values().sum());
        let own = taken.get(&whose).copied().unwrap_or(0);
        if own + amount > free {
            return None;
        }
        taken.insert(whose, own + amount);
        Some(FairShare {
            of: self.clone(),
            whose,
            amount,
        })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Whose, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Whose: Copy + Eq + Hash> Drop for FairShare<Whose> {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        let rest = taken.get(&self.whose).copied().unwrap_or(0);
        match rest.saturating_sub(self.amount) {
            0 => taken.remove(&self.whose),
            rest => taken.insert(self.whose, rest),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(fair: &Arc<Fair<u8>>, whose: u8) -> Vec<FairShare<u8>> {
        std::iter::from_fn(|| fair.take(whose, 1)).collect()
    }

    #[test]
    fn one_that_gives_nothing_back_leaves_some_for_every_other() {
        let fair = Fair::new(64);
        let first = all_of(&fair, 1);
        assert_eq!(first.len(), 32);
        let second = all_of(&fair, 2);
        let third = all_of(&fair, 3);
        assert!(!second.is_empty() && !third.is_empty());
        assert!(first.len() + second.len() + third.len() < 64);
        drop(first);
        assert!(!all_of(&fair, 3).is_empty());
    }

    #[test]
    fn whoever_gave_all_back_is_not_remembered() {
        let fair = Fair::new(8);
        drop(all_of(&fair, 1));
        assert!(fair.taken().is_empty());
    }
}
