//! All chance of a run: the same numbers for the same seed.

/// See the module.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that are fully determined by `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, which is not 0 (SplitMix64).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A number up to `most`; one of few digits is as likely as one of many.
    pub fn up_to(&mut self, most: usize) -> usize {
        let digits = u64::from(usize::BITS - most.leading_zeros());
        let bound = (most as u64).min(1 << self.below(digits + 1).min(62));
        self.below(bound + 1) as usize
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
