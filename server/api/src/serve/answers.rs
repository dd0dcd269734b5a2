//! Answers that wait for slow readers: all together they have a budget of memory.
//!
//! A credential may have as much waiting as is still free. So the first one gets at most half of the
//! budget, and there is always room for another one, however many read nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use shared_types::CredentialId;

/// Bytes of answers that may wait, all together.
const WAITING_BYTES: usize = 32 * 1024 * 1024;
/// An answer up to this size is not counted: the connection has buffers of that size anyhow.
pub(super) const SMALL_BYTES: usize = 16 * 1024;

/// What waits, by the credential that asked for it.
#[derive(Debug, Default)]
pub(super) struct Answers {
    waiting: Mutex<HashMap<CredentialId, usize>>,
}

impl Answers {
    /// Counts an answer until its last byte was handed to the system; none where the credential
    /// has too much waiting already.
    pub(super) fn waits(
        self: &Arc<Self>,
        credential: CredentialId,
        answer: Bytes,
    ) -> Option<Bytes> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let free = WAITING_BYTES.saturating_sub(waiting.values().sum());
        let own = waiting.get(&credential).copied().unwrap_or(0);
        if own + answer.len() > free {
            return None;
        }
        waiting.insert(credential, own + answer.len());
        Some(Bytes::from_owner(Waiting {
            answers: self.clone(),
            credential,
            answer,
        }))
    }
}

/// An answer that was not taken yet. Whatever holds a part of its bytes holds this.
struct Waiting {
    answers: Arc<Answers>,
    credential: CredentialId,
    answer: Bytes,
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let waiting = self.answers.waiting.lock();
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let rest = waiting.get(&self.credential).copied().unwrap_or(0);
        match rest.saturating_sub(self.answer.len()) {
            0 => waiting.remove(&self.credential),
            rest => waiting.insert(self.credential, rest),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 1024 * 1024;

    /// As many pages as a credential can have waiting.
    fn pages(answers: &Arc<Answers>, credential: u128) -> Vec<Bytes> {
        let credential = CredentialId::from_u128(credential);
        let page = || answers.waits(credential, Bytes::from(vec![0; PAGE]));
        std::iter::from_fn(page).collect()
    }

    #[test]
    fn a_credential_that_reads_nothing_leaves_room_for_every_other() {
        let answers = Arc::new(Answers::default());
        let first = pages(&answers, 1);
        assert_eq!(first.len() * PAGE, WAITING_BYTES / 2);
        let second = pages(&answers, 2);
        let third = pages(&answers, 3);
        assert!(!second.is_empty() && !third.is_empty());
        assert!((first.len() + second.len() + third.len()) * PAGE < WAITING_BYTES);
    }

    #[test]
    fn what_was_taken_counts_no_more_and_what_is_held_in_part_does() {
        let answers = Arc::new(Answers::default());
        let mut all = pages(&answers, 1);
        let mut last = all.pop().expect("a page");
        let part = last.split_off(PAGE - 1);
        drop(last);
        assert_eq!(pages(&answers, 1).len(), 0, "a part of it still waits");
        drop(part);
        assert_eq!(pages(&answers, 1).len(), 1);
        drop(all);
        assert_eq!(answers.waiting.lock().expect("no panic").len(), 0);
    }
}
