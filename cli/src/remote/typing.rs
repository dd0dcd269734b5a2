//! Input on its way to the command, and what a person asks for by it.

use std::io;

use shared_client::{Controls, Piece};
use tokio::sync::mpsc;

use super::{
    escape::{Escape, Typed},
    keyboard,
};

/// The escapes that a person may type at the beginning of a line.
pub(super) const ESCAPES: &str = "\
~.  leave; the command goes on
~?  list these escapes
~~  type a ~";

/// Standard input, as it is passed on.
pub(super) struct Typing {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// True if a person types in a terminal.
    is_terminal: bool,
    escape: Escape,
}

/// The request that was typed.
pub(super) enum Key {
    End,
    Leave,
    Help,
}

impl Typing {
    pub(super) fn start(is_terminal: bool) -> Self {
        Self {
            pieces: keyboard::typed(),
            is_terminal,
            escape: Escape::default(),
        }
    }
}

/// Passes input on until it asks for something; never ends where there is none. Safe to abandon while
/// it waits.
pub(super) async fn key(typing: &mut Option<Typing>, controls: &Controls) -> io::Result<Key> {
    let Some(typing) = typing else {
        return std::future::pending().await;
    };
    loop {
        let Some(room) = controls.room().await else {
            return std::future::pending().await;
        };
        let (bytes, key) = match typing.pieces.recv().await {
            None => (Vec::new(), Some(Key::End)),
            Some(piece) if !typing.is_terminal => (piece?, None),
            Some(piece) => escaped(typing.escape.take(&piece?)),
        };
        let is_end = matches!(key, Some(Key::End));
        if !bytes.is_empty() || is_end {
            room.fill(Piece {
                at: None,
                data: bytes.into(),
                end: is_end,
            });
        }
        if let Some(key) = key {
            return Ok(key);
        }
    }
}

/// The typed bytes without escapes, and the last request among them.
fn escaped(typed: Vec<Typed>) -> (Vec<u8>, Option<Key>) {
    let (mut bytes, mut key) = (Vec::new(), None);
    for typed in typed {
        match typed {
            Typed::Bytes(more) => bytes.extend(more),
            Typed::Leave => key = Some(Key::Leave),
            Typed::Help => key = Some(Key::Help),
        }
    }
    (bytes, key)
}
