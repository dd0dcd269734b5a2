//! Bytes in a row that are taken from the front.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};
use shared_types::limits::INPUT_CHUNK_BYTES;

/// Pieces of at least so many bytes are kept as they came. A smaller one is copied, because it may
/// be a part of something much larger, which would be held with it.
const AS_IT_CAME_BYTES: usize = INPUT_CHUNK_BYTES / 2;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplayBuffer {
    pieces: VecDeque<KeptPiece>,
    length: usize,
}

#[derive(Debug, Clone)]
enum KeptPiece {
    AsItCame(Bytes),
    Joined(BytesMut),
}

impl ReplayBuffer {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.length = 0;
    }

    /// Adds these at the end.
    pub(super) fn push(&mut self, data: Bytes) {
        self.length += data.len();
        match self.pieces.back_mut() {
            _ if data.len() >= AS_IT_CAME_BYTES => self.pieces.push_back(KeptPiece::AsItCame(data)),
            Some(KeptPiece::Joined(last)) => last.extend_from_slice(&data),
            _ if data.is_empty() => {}
            _ => self
                .pieces
                .push_back(KeptPiece::Joined(BytesMut::from(data))),
        }
    }

    /// Lets go of the first `count`, or of all.
    pub(super) fn advance(&mut self, count: usize) {
        let mut left = count.min(self.length);
        self.length -= left;
        while left > 0
            && let Some(piece) = self.pieces.front_mut()
        {
            let length = left.min(piece.bytes().len());
            left -= length;
            match piece {
                KeptPiece::AsItCame(data) => data.advance(length),
                KeptPiece::Joined(data) => data.advance(length),
            }
            if piece.bytes().is_empty() {
                self.pieces.pop_front();
            }
        }
    }

    /// At least one byte from `place` on and at most `max`; none where nothing stands there.
    pub(super) fn piece(&self, mut place: usize, max: usize) -> Bytes {
        for piece in &self.pieces {
            let length = piece.bytes().len();
            if place < length {
                let range = place..length.min(place.saturating_add(max));
                return match piece {
                    KeptPiece::AsItCame(data) => data.slice(range),
                    KeptPiece::Joined(data) => Bytes::copy_from_slice(&data[range]),
                };
            }
            place -= length;
        }
        Bytes::new()
    }
}

impl KeptPiece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::AsItCame(data) => data,
            Self::Joined(data) => data,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_was_added_and_not_taken(
            steps in prop::collection::vec((0..3_u8, 0..2 * AS_IT_CAME_BYTES), 1..60),
        ) {
            let (mut kept, mut expected) = (ReplayBuffer::default(), VecDeque::<u8>::new());
            for (number, (what, size)) in steps.into_iter().enumerate() {
                match what {
                    0 => {
                        // Small ones as well, which are joined.
                        let size = if number % 2 == 0 { size } else { size % 100 };
                        let data: Vec<u8> = (0..size).map(|at| (at + number) as u8).collect();
                        expected.extend(&data);
                        kept.push(data.into());
                    }
                    1 => {
                        kept.advance(size);
                        expected.drain(..size.min(expected.len()));
                    }
                    _ => {
                        let piece = kept.piece(size, 1000);
                        let there = expected.len().saturating_sub(size);
                        prop_assert!(piece.len() <= 1000.min(there));
                        prop_assert_eq!(piece.is_empty(), there == 0);
                        let stands = expected.iter().skip(size).take(piece.len());
                        prop_assert!(piece.iter().eq(stands));
                    }
                }
                prop_assert_eq!(kept.len(), expected.len());
            }
        }
    }

    #[test]
    fn a_large_piece_is_not_copied() {
        let mut kept = ReplayBuffer::default();
        let came = Bytes::from(vec![1; 1 << 20]);
        kept.push(came.slice(..10));
        kept.push(came.clone());
        assert_eq!(kept.pieces.len(), 2);
        assert_eq!(kept.piece(110, 50).as_ptr(), came[100..].as_ptr());
        kept.advance(10 + (1 << 20));
        assert_eq!((kept.len(), kept.pieces.len()), (0, 0));
    }
}
