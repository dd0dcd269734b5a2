//! Pieces of work under way as messages.

use proto::peer_v1 as wire;
use server_app::{Live, OutputStream, Piece, Voice};
use shared_types::TurnId;

/// Bytes of text or output in one message.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// The messages of a piece, in order: more than one where it is long.
pub(crate) fn messages(live: Live) -> Vec<wire::Live> {
    use wire::live::Kind;
    let (turn, kinds) = match live {
        Live::Said {
            turn,
            step,
            attempt,
            offset,
            piece,
        } => {
            let Piece { part, voice, text } = piece;
            let said = |(at, text): (usize, &str)| {
                Kind::Said(wire::Said {
                    step,
                    attempt,
                    offset: offset.saturating_add(at as u64),
                    part,
                    voice: match voice {
                        Voice::Text => wire::Voice::Text.into(),
                        Voice::Reasoning => wire::Voice::Reasoning.into(),
                    },
                    text: text.to_owned(),
                })
            };
            (turn, texts(&text).into_iter().map(said).collect())
        }
        Live::TakenBack {
            turn,
            step,
            attempt,
        } => {
            let taken_back = wire::TakenBack { step, attempt };
            (turn, vec![Kind::TakenBack(taken_back)])
        }
        Live::Output {
            turn,
            step,
            ordinal,
            operation,
            stream,
            offset,
            data,
        } => {
            let of = stream_of(step, ordinal, &operation, stream);
            let outputs = (0..data.len()).step_by(PIECE_BYTES).map(|at| {
                let end = data.len().min(at + PIECE_BYTES);
                Kind::Output(wire::Output {
                    of: Some(of.clone()),
                    offset: offset.saturating_add(at as u64),
                    data: data.slice(at..end),
                })
            });
            (turn, outputs.collect())
        }
        Live::Gap {
            turn,
            step,
            ordinal,
            operation,
            stream,
            from,
            to,
        } => {
            let of = Some(stream_of(step, ordinal, &operation, stream));
            (turn, vec![Kind::Gap(wire::Gap { of, from, to })])
        }
        Live::Notice { turn, text } => {
            let text = texts(&text)
                .first()
                .map_or("", |(_, text)| *text)
                .to_owned();
            (turn, vec![Kind::Notice(wire::Notice { text })])
        }
    };
    let message = |kind| wire::Live {
        turn: turn.to_string(),
        kind: Some(kind),
    };
    kinds.into_iter().map(message).collect()
}

/// The piece of a message; `None` where it is of another release, or wrong.
pub(crate) fn piece(message: wire::Live) -> Option<Live> {
    use wire::live::Kind;
    let turn: TurnId = message.turn.parse().ok()?;
    Some(match message.kind? {
        Kind::Said(said) => Live::Said {
            turn,
            step: said.step,
            attempt: said.attempt,
            offset: said.offset,
            piece: Piece {
                part: said.part,
                voice: match said.voice() {
                    wire::Voice::Text => Voice::Text,
                    wire::Voice::Reasoning => Voice::Reasoning,
                    wire::Voice::Unspecified => return None,
                },
                text: said.text,
            },
        },
        Kind::TakenBack(wire::TakenBack { step, attempt }) => Live::TakenBack {
            turn,
            step,
            attempt,
        },
        Kind::Output(wire::Output { of, offset, data }) => {
            let of = of?;
            Live::Output {
                turn,
                step: of.step,
                ordinal: of.ordinal,
                operation: of.operation.parse().ok()?,
                stream: stream(&of.stream)?,
                offset,
                data,
            }
        }
        Kind::Gap(wire::Gap { of, from, to }) => {
            let of = of?;
            Live::Gap {
                turn,
                step: of.step,
                ordinal: of.ordinal,
                operation: of.operation.parse().ok()?,
                stream: stream(&of.stream)?,
                from,
                to,
            }
        }
        Kind::Notice(wire::Notice { text }) => Live::Notice { turn, text },
    })
}

fn stream_of(
    step: u32,
    ordinal: u32,
    operation: &shared_types::OperationId,
    stream: OutputStream,
) -> wire::OutputStream {
    wire::OutputStream {
        step,
        ordinal,
        operation: operation.to_string(),
        stream: stream.to_string(),
    }
}

fn stream(name: &str) -> Option<OutputStream> {
    [OutputStream::Stdout, OutputStream::Stderr]
        .into_iter()
        .find(|stream| stream.to_string() == name)
}

/// A text in pieces of at most [`PIECE_BYTES`], each with its place.
fn texts(text: &str) -> Vec<(usize, &str)> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let end = text.floor_char_boundary(at + PIECE_BYTES);
        pieces.push((at, &text[at..end]));
        at = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use shared_types::OperationId;

    use super::*;

    fn all() -> Vec<Live> {
        let (turn, step, attempt, ordinal) = (TurnId::from_u128(1), 2, 3, 4);
        let (operation, stream) = (OperationId::from_u128(5), OutputStream::Stderr);
        let said = |voice| Live::Said {
            turn,
            step,
            attempt,
            offset: 6,
            piece: Piece {
                part: 7,
                voice,
                text: "é".to_owned(),
            },
        };
        vec![
            said(Voice::Text),
            said(Voice::Reasoning),
            Live::TakenBack {
                turn,
                step,
                attempt,
            },
            Live::Output {
                turn,
                step,
                ordinal,
                operation,
                stream,
                offset: 8,
                data: Bytes::from_static(b"\xff\0"),
            },
            Live::Gap {
                turn,
                step,
                ordinal,
                operation,
                stream,
                from: 9,
                to: 10,
            },
            Live::Notice {
                turn,
                text: "waits".to_owned(),
            },
        ]
    }

    #[test]
    fn every_piece_comes_as_it_went() {
        let sent = all().into_iter().flat_map(messages);
        let came: Vec<_> = sent.filter_map(piece).collect();
        assert_eq!(came, all());
    }

    #[test]
    fn a_long_text_comes_in_several_messages_and_no_letter_is_torn() {
        let text = "a".to_owned() + &"é".repeat(PIECE_BYTES);
        let long = Live::Said {
            turn: TurnId::from_u128(1),
            step: 1,
            attempt: 1,
            offset: 100,
            piece: Piece {
                part: 0,
                voice: Voice::Text,
                text: text.clone(),
            },
        };
        let mut so_far = String::new();
        for message in messages(long) {
            match piece(message) {
                Some(Live::Said { offset, piece, .. }) => {
                    assert_eq!(offset, 100 + so_far.len() as u64);
                    assert!(piece.text.len() <= PIECE_BYTES);
                    so_far += &piece.text;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(so_far, text);
    }

    #[test]
    fn a_message_of_another_release_is_left_out() {
        let unknown = proto::peer_v1::Live {
            turn: TurnId::from_u128(1).to_string(),
            kind: None,
        };
        assert_eq!(piece(unknown), None);
    }
}
