//! Answers that wait for slow readers: all together they have a budget of memory, shared fairly between
//! those who read.

use std::sync::Arc;

use bytes::Bytes;
use shared_types::{CredentialId, SessionId};

use crate::edge::fair::{Fair, FairShare};

/// Bytes of answers that may wait, all together.
const WAITING_BYTES: usize = 32 * 1024 * 1024;
/// An answer up to this size is not counted: the connection has buffers of that size anyhow.
pub(super) const SMALL_BYTES: usize = 16 * 1024;

/// The reader of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AnswerReader {
    /// The bearer of this credential.
    Credential(CredentialId),
    /// The bearers of a link to this session.
    Link(SessionId),
}

/// The unread answers, by reader.
#[derive(Debug)]
pub(super) struct Answers(Arc<Fair<AnswerReader>>);

impl Default for Answers {
    fn default() -> Self {
        Self(Fair::new(WAITING_BYTES))
    }
}

impl Answers {
    /// Counts an answer until its last byte was handed to the system; `None` if too much waits for the reader already.
    pub(super) fn waits(&self, reader: AnswerReader, answer: Bytes) -> Option<Bytes> {
        let part = self.0.take(reader, answer.len())?;
        Some(Bytes::from_owner(UntakenAnswer {
            answer,
            _part: part,
        }))
    }
}

/// An answer that was not taken yet. Whatever holds a part of its bytes holds this.
struct UntakenAnswer {
    answer: Bytes,
    _part: FairShare<AnswerReader>,
}

impl AsRef<[u8]> for UntakenAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 1024 * 1024;

    /// The most pages that can wait for a reader.
    fn pages(answers: &Answers, reader: AnswerReader) -> Vec<Bytes> {
        let page = || answers.waits(reader, Bytes::from(vec![0; PAGE]));
        std::iter::from_fn(page).collect()
    }

    #[test]
    fn a_link_whose_readers_take_nothing_leaves_room_for_those_who_are_signed_in() {
        let answers = Answers::default();
        let link = pages(&answers, AnswerReader::Link(SessionId::from_u128(1)));
        assert_eq!(link.len() * PAGE, WAITING_BYTES / 2);
        let credential = pages(
            &answers,
            AnswerReader::Credential(CredentialId::from_u128(1)),
        );
        assert!(!credential.is_empty());
    }

    #[test]
    fn what_was_taken_counts_no_more_and_what_is_held_in_part_does() {
        let answers = Answers::default();
        let reader = AnswerReader::Credential(CredentialId::from_u128(1));
        let mut all = pages(&answers, reader);
        let mut last = all.pop().expect("a page");
        let part = last.split_off(PAGE - 1);
        drop(last);
        assert_eq!(pages(&answers, reader).len(), 0, "a part of it still waits");
        drop(part);
        assert_eq!(pages(&answers, reader).len(), 1);
    }
}
