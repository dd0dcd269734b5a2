//! Randomness is passed in: below `main` no code asks the system.

use std::{fmt, sync::Mutex};

use sha2::{Digest, Sha256};

/// A source of random bytes.
pub trait Entropy: Send + Sync + fmt::Debug {
    /// Fills `bytes` with randomness fit for secrets.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's generator.
#[derive(Debug, Clone, Copy)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    /// # Panics
    /// If the system has no randomness to give: to go on would make guessable secrets.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the entropy that `main` passes down"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}

/// The same bytes for the same seed: for tests and simulations only.
#[derive(Debug)]
pub struct SeededEntropy {
    state: Mutex<[u8; 32]>,
}

impl SeededEntropy {
    /// A generator that is fully determined by `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(Sha256::digest(seed.to_be_bytes()).into()),
        }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for chunk in bytes.chunks_mut(32) {
            *state = Sha256::digest(*state).into();
            chunk.copy_from_slice(&state[..chunk.len()]);
        }
    }
}
