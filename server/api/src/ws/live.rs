//! Bytes of command output as text, without tearing characters apart.

use std::collections::HashMap;

use server_app::{Live as Under, Piece, Voice};
use shared_api::Live;
use shared_types::OperationId;

/// Output streams whose torn characters are remembered.
const STREAMS: usize = 64;

/// The beginning of a character at the end of each stream, until the rest arrives.
#[derive(Default)]
pub(super) struct LiveText {
    torn: HashMap<(OperationId, String), Torn>,
    /// Beginnings that were remembered so far.
    heard: u64,
}

struct Torn {
    /// Larger than of any that was remembered before.
    heard: u64,
    offset: u64,
    bytes: Vec<u8>,
}

impl LiveText {
    /// The message that clients get; `None` while a character is incomplete.
    pub(super) fn convert(&mut self, live: Under) -> Option<Live> {
        match live {
            Under::Said {
                turn,
                step,
                attempt,
                offset,
                piece: Piece { part, voice, text },
            } => Some(match voice {
                Voice::Reasoning => Live::Reasoning {
                    turn,
                    step,
                    attempt,
                    part,
                    offset,
                    text,
                },
                Voice::Text => Live::Text {
                    turn,
                    step,
                    attempt,
                    part,
                    offset,
                    text,
                },
            }),
            Under::TakenBack {
                turn,
                step,
                attempt,
            } => Some(Live::TakenBack {
                turn,
                step,
                attempt,
            }),
            Under::Notice { turn, text } => Some(Live::Notice { turn, text }),
            Under::Gap {
                turn,
                step,
                ordinal,
                operation,
                stream,
                from,
                to,
            } => {
                let stream = stream.to_string();
                self.torn.remove(&(operation, stream.clone()));
                Some(Live::Gap {
                    turn,
                    step,
                    ordinal,
                    operation,
                    stream,
                    from,
                    to,
                })
            }
            Under::Output {
                turn,
                step,
                ordinal,
                operation,
                stream,
                offset,
                data,
            } => {
                let stream = stream.to_string();
                let (offset, whole) = self.whole(&(operation, stream.clone()), offset, &data)?;
                let bytes = whole.len() as u64;
                let text = String::from_utf8(whole)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                Some(Live::Output {
                    turn,
                    step,
                    ordinal,
                    operation,
                    stream,
                    offset,
                    text,
                    bytes,
                })
            }
        }
    }

    fn whole(
        &mut self,
        key: &(OperationId, String),
        offset: u64,
        data: &[u8],
    ) -> Option<(u64, Vec<u8>)> {
        let (offset, mut bytes) = match self.torn.remove(key) {
            Some(torn) if torn.offset.saturating_add(torn.bytes.len() as u64) == offset => {
                (torn.offset, torn.bytes)
            }
            _ => (offset, Vec::new()),
        };
        bytes.extend_from_slice(data);
        let rest = bytes.split_off(bytes.len() - torn_tail(&bytes));
        if !rest.is_empty() {
            if self.torn.len() >= STREAMS {
                self.forget_one();
            }
            self.heard += 1;
            self.torn.insert(
                key.clone(),
                Torn {
                    heard: self.heard,
                    offset: offset.saturating_add(bytes.len() as u64),
                    bytes: rest,
                },
            );
        }
        (!bytes.is_empty()).then_some((offset, bytes))
    }

    /// Forgets the stream that was heard of longest ago: it ended in the middle of a character, most likely,
    /// and the log has it whole.
    fn forget_one(&mut self) {
        let oldest = self.torn.iter().min_by_key(|(_, torn)| torn.heard);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.torn.remove(&key);
        }
    }
}

/// The number of bytes at the end that begin an incomplete character.
fn torn_tail(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for length in 1..=tail.len() {
        if let Err(error) = std::str::from_utf8(&tail[tail.len() - length..])
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return length;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use shared_types::TurnId;

    use super::*;

    fn piece(offset: u64, data: &'static [u8]) -> Under {
        Under::Output {
            turn: TurnId::from_u128(1),
            step: 1,
            ordinal: 0,
            operation: OperationId::from_u128(1),
            stream: server_app::OutputStream::Stdout,
            offset,
            data: data.into(),
        }
    }

    fn text(live: Option<Live>) -> Option<(u64, String, u64)> {
        match live? {
            Live::Output {
                offset,
                text,
                bytes,
                ..
            } => Some((offset, text, bytes)),
            other => panic!("{other:?} is not output"),
        }
    }

    #[test]
    fn a_character_that_is_cut_in_two_arrives_whole() {
        let mut texts = LiveText::default();
        let euro = "€".as_bytes();
        assert_eq!(
            text(texts.convert(piece(0, &"a€".as_bytes()[..2]))),
            Some((0, "a".to_owned(), 1))
        );
        assert_eq!(text(texts.convert(piece(2, &euro[1..2]))), None);
        assert_eq!(
            text(texts.convert(piece(3, &euro[2..]))),
            Some((1, "€".to_owned(), 3))
        );
    }

    #[test]
    fn streams_that_ended_in_the_middle_of_a_character_do_not_tear_later_ones() {
        let mut texts = LiveText::default();
        let euro = "€".as_bytes();
        for stream in 0..200 {
            let of_stream = |offset, data| match piece(offset, data) {
                Under::Output {
                    turn,
                    step,
                    ordinal,
                    stream: name,
                    ..
                } => Under::Output {
                    turn,
                    step,
                    ordinal,
                    operation: OperationId::from_u128(stream),
                    stream: name,
                    offset,
                    data: data.into(),
                },
                other => other,
            };
            assert_eq!(text(texts.convert(of_stream(0, &euro[..1]))), None);
            let whole = Some((0, "€".to_owned(), 3));
            assert_eq!(text(texts.convert(of_stream(1, &euro[1..]))), whole);
            assert_eq!(text(texts.convert(of_stream(3, &euro[..1]))), None);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_and_counted() {
        let mut texts = LiveText::default();
        assert_eq!(
            text(texts.convert(piece(0, b"\xff\x00ok"))),
            Some((0, "\u{fffd}\0ok".to_owned(), 4))
        );
    }

    #[test]
    fn a_gap_is_passed_on_and_ends_a_torn_character() {
        let mut texts = LiveText::default();
        assert_eq!(text(texts.convert(piece(0, &"€".as_bytes()[..1]))), None);
        let (turn, operation) = (TurnId::from_u128(1), OperationId::from_u128(1));
        let gap = texts.convert(Under::Gap {
            turn,
            step: 1,
            ordinal: 0,
            operation,
            stream: server_app::OutputStream::Stdout,
            from: 1,
            to: 100,
        });
        assert_eq!(
            gap,
            Some(Live::Gap {
                turn,
                step: 1,
                ordinal: 0,
                operation,
                stream: "stdout".to_owned(),
                from: 1,
                to: 100,
            })
        );
        assert!(texts.torn.is_empty());
    }

    #[test]
    fn after_a_gap_a_torn_character_is_not_joined_to_what_follows() {
        let mut texts = LiveText::default();
        assert_eq!(text(texts.convert(piece(0, &"€".as_bytes()[..1]))), None);
        assert_eq!(
            text(texts.convert(piece(100, b"x"))),
            Some((100, "x".to_owned(), 1))
        );
    }
}
