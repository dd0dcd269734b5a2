//! Gives an operation its input, while it is listened to.

use std::sync::Arc;

use bytes::Bytes;
use shared_sandbox::{Controls, Input};

/// Most bytes of a piece.
const PIECE_BYTES: usize = 64 * 1024;

/// The input of an operation, and the way in.
#[derive(Debug)]
pub(super) struct Feeding {
    controls: Arc<dyn Controls>,
    input: Bytes,
    /// The bytes that the sandbox has.
    given: u64,
    /// True once it has the end, or takes no more.
    is_done: bool,
}

impl Feeding {
    pub(super) fn new(controls: Arc<dyn Controls>, input: Bytes) -> Self {
        Self {
            controls,
            input,
            given: 0,
            is_done: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// The operation has taken its input up to here. It may have lost what came behind that.
    pub(super) fn taken(&mut self, through: u64) {
        if through < self.given {
            (self.given, self.is_done) = (through, false);
        }
    }

    /// Gives the next piece. Dropping this loses nothing: the piece is given again, and a repeat does no harm.
    pub(super) async fn give(&mut self) {
        let from = usize::try_from(self.given)
            .unwrap_or(usize::MAX)
            .min(self.input.len());
        let to = (from + PIECE_BYTES).min(self.input.len());
        let end = to == self.input.len();
        let piece = Input {
            offset: from as u64,
            data: self.input.slice(from..to),
            end,
        };
        match self.controls.input(piece).await {
            Ok(given) => {
                self.given = given;
                self.is_done = end && given >= to as u64;
            }
            // It takes no more: it has ended, or its end will come over another reader.
            Err(_) => self.is_done = true,
        }
    }
}
