use proptest::prelude::*;
use shared_types::{Timestamp, limits::MAX_NUMBER};

use super::*;

fn out(offset: u64, data: &[u8]) -> SocketMessage {
    SocketMessage::Frame(BinaryFrame {
        channel: Channel::Output(StreamName::Stdout),
        offset,
        data: Bytes::copy_from_slice(data),
    })
}

fn taken(offset: u64) -> SocketMessage {
    SocketMessage::Message(OperationServerMessage::InputTaken { offset })
}

fn typed(offsets: &mut Offsets, text: &str) {
    offsets.input(Piece {
        at: None,
        data: Bytes::copy_from_slice(text.as_bytes()),
        end: false,
    });
}

/// The output that is new, as text.
fn text(item: Option<Attached>) -> Option<(u64, String)> {
    match item? {
        Attached::Output { offset, data, .. } => {
            Some((offset, String::from_utf8_lossy(&data).into_owned()))
        }
        other => panic!("{other:?} is no output"),
    }
}

/// All input that there is to send, as pieces.
fn sent(offsets: &mut Offsets) -> Vec<(u64, String)> {
    std::iter::from_fn(|| match offsets.next_message()? {
        Outgoing::Frame(frame) => Some((
            frame.offset,
            String::from_utf8_lossy(&frame.data).into_owned(),
        )),
        Outgoing::Message(OperationClientMessage::InputEnd { offset }) => {
            Some((offset, "<end>".to_owned()))
        }
        Outgoing::Message(other) => panic!("{other:?} is no input"),
    })
    .collect()
}

#[test]
fn each_byte_of_output_comes_once_over_any_number_of_connections() {
    let mut offsets = Offsets::default();
    let mut hear = |offset, data: &[u8]| text(offsets.accept(out(offset, data)).expect("it fits"));
    assert_eq!(hear(0, b"Hello"), Some((0, "Hello".into())));
    assert_eq!(hear(0, b"Hello"), None);
    assert_eq!(hear(3, b"lo, you"), Some((5, ", you".into())));
    let missing = offsets.accept(out(11, b"!"));
    assert_eq!(missing, Err(BrokenOffset::Missing { have: 10, next: 11 }));
    offsets.connected();
    assert_eq!(offsets.have(StreamName::Stdout), 10);
    assert_eq!(offsets.have(StreamName::Stderr), 0);
}

#[test]
fn a_gap_that_the_server_announces_is_said_once_and_passed_over() {
    let mut offsets = Offsets::new(4, 0);
    let gap = SocketMessage::Message(OperationServerMessage::Gap {
        stream: StreamName::Stdout,
        from: 2,
        to: 9,
    });
    let item = offsets.accept(gap.clone()).expect("it fits");
    let expected = Attached::Gap {
        stream: StreamName::Stdout,
        from: 4,
        to: 9,
    };
    assert_eq!(item, Some(expected));
    assert_eq!(offsets.accept(gap), Ok(None));
    let item = offsets.accept(out(9, b"x")).expect("it fits");
    assert_eq!(text(item), Some((9, "x".into())));
}

#[test]
fn input_waits_for_the_offset_that_the_server_tells_and_is_sent_again_from_there() {
    let mut offsets = Offsets::default();
    typed(&mut offsets, "one ");
    typed(&mut offsets, "two ");
    assert_eq!(sent(&mut offsets), []);
    offsets.accept(taken(0)).expect("it fits");
    assert_eq!(
        sent(&mut offsets),
        [(0, "one ".to_owned()), (4, "two ".to_owned())]
    );
    offsets.accept(taken(2)).expect("it fits");
    offsets.connected();
    assert_eq!(sent(&mut offsets), []);
    offsets.accept(taken(3)).expect("it fits");
    offsets.input(Piece {
        at: None,
        data: Bytes::from_static(b"three"),
        end: true,
    });
    let rest = [(3, " "), (4, "two "), (8, "three"), (13, "<end>")];
    assert_eq!(
        sent(&mut offsets),
        rest.map(|(at, text)| (at, text.to_owned()))
    );
}

#[test]
fn no_more_input_is_held_than_a_window_and_none_is_taken_after_its_end() {
    let mut offsets = Offsets::default();
    let window = "x".repeat(INPUT_WINDOW_BYTES as usize);
    assert!(offsets.has_room());
    typed(&mut offsets, &window);
    assert!(!offsets.has_room());
    offsets.accept(taken(0)).expect("it fits");
    offsets.accept(taken(1)).expect("it fits");
    assert!(offsets.has_room());
    offsets.input(Piece {
        at: None,
        data: Bytes::new(),
        end: true,
    });
    assert!(!offsets.has_room());
}

#[test]
fn input_that_was_taken_and_lost_is_wanted_again_from_its_source() {
    let mut offsets = Offsets::default();
    typed(&mut offsets, "abcdef");
    offsets.accept(taken(0)).expect("it fits");
    offsets.accept(taken(4)).expect("it fits");
    let wanted = offsets.accept(taken(1)).expect("it fits");
    assert_eq!(wanted, Some(Attached::InputWanted { from: 1 }));
    let mut piece = Piece {
        at: Some(6),
        data: Bytes::from_static(b"ghi"),
        end: false,
    };
    offsets.input(piece.clone());
    assert_eq!(sent(&mut offsets), [], "it stands elsewhere");
    piece.at = Some(1);
    offsets.input(piece);
    assert_eq!(sent(&mut offsets), [(1, "ghi".to_owned())]);
}

#[test]
fn input_of_another_client_moves_what_is_typed_here_behind_it() {
    let mut offsets = Offsets::default();
    offsets.accept(taken(7)).expect("it fits");
    typed(&mut offsets, "ls");
    assert_eq!(sent(&mut offsets), [(7, "ls".to_owned())]);
}

#[test]
fn what_is_typed_before_the_server_says_where_stands_behind_what_others_sent() {
    let mut offsets = Offsets::new(0, 0);
    typed(&mut offsets, "early ");
    offsets.connected();
    typed(&mut offsets, "bird");
    assert_eq!(sent(&mut offsets), []);
    offsets.accept(taken(40)).expect("it fits");
    assert_eq!(
        sent(&mut offsets),
        [(40, "early ".into()), (46, "bird".into())]
    );
    assert!(!offsets.is_all_taken());
    offsets.accept(taken(50)).expect("it fits");
    assert!(offsets.is_all_taken());
}

#[test]
fn the_last_size_is_told_once_a_connection_and_a_redraw_changes_it_first() {
    let mut offsets = Offsets::default();
    let size = TerminalSize {
        rows: 24,
        columns: 80,
    };
    let told = |offsets: &mut Offsets| -> Vec<u16> {
        std::iter::from_fn(|| match offsets.next_message()? {
            Outgoing::Message(OperationClientMessage::Resize { rows, .. }) => Some(rows),
            other => panic!("{other:?} is no size"),
        })
        .collect()
    };
    offsets.resize(size, false);
    assert_eq!(told(&mut offsets), [24]);
    offsets.connected();
    offsets.resize(size, true);
    assert_eq!(told(&mut offsets), [23, 24]);
    assert_eq!(told(&mut offsets), [0; 0]);
}

#[test]
fn what_is_stored_is_told_again_on_each_connection() {
    let mut offsets = Offsets::default();
    offsets.stored(5);
    offsets.stored(3);
    let told = OperationClientMessage::Taken {
        stream: StreamName::Stdout,
        offset: 5,
    };
    assert_eq!(
        offsets.next_message(),
        Some(Outgoing::Message(told.clone()))
    );
    assert_eq!(offsets.next_message(), None);
    offsets.connected();
    assert_eq!(offsets.next_message(), Some(Outgoing::Message(told)));
}

#[test]
fn a_problem_is_the_reason_of_a_close_only_as_the_last_word() {
    let mut offsets = Offsets::default();
    let problem = Problem::new("conflict", 409, "it has ended");
    let said = OperationServerMessage::Problem {
        problem: problem.clone(),
    };
    offsets
        .accept(SocketMessage::Message(said.clone()))
        .expect("it fits");
    assert_eq!(offsets.problem(), Some(problem));
    offsets
        .accept(SocketMessage::Message(said))
        .expect("it fits");
    let since = Timestamp::from_micros(0);
    let later = OperationServerMessage::Unreachable { since };
    offsets
        .accept(SocketMessage::Message(later))
        .expect("it fits");
    assert_eq!(offsets.problem(), None);
}

#[test]
fn the_largest_offset_is_no_reason_to_panic() {
    let mut offsets = Offsets::new(MAX_NUMBER, MAX_NUMBER);
    offsets.accept(taken(MAX_NUMBER)).expect("it fits");
    assert_eq!(offsets.accept(out(0, b"x")), Ok(None));
}

/// What can happen between a client and its server.
#[derive(Debug, Clone)]
enum Step {
    Type(usize),
    /// So many messages arrive at the server.
    Arrive(usize),
    /// The server takes so much of what it has.
    Take(usize),
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..200_000_usize).prop_map(Step::Type),
        (1..9_usize).prop_map(Step::Arrive),
        (1..200_000_usize).prop_map(Step::Take),
        Just(Step::Cut),
    ]
}

/// A server that has received input, and has taken a part of it; a cut loses the rest.
#[derive(Default)]
struct Server {
    received: Vec<u8>,
    taken: usize,
    end: Option<u64>,
}

impl Server {
    fn receive(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Frame(frame) => {
                let known = self.received.len() - usize::try_from(frame.offset).expect("small");
                self.received.extend_from_slice(&frame.data[known..]);
            }
            Outgoing::Message(OperationClientMessage::InputEnd { offset }) => {
                self.end = Some(offset);
            }
            Outgoing::Message(other) => panic!("{other:?} was not asked for"),
        }
    }

    fn take(&mut self, at_most: usize) -> SocketMessage {
        self.taken = self.received.len().min(self.taken + at_most);
        taken(self.taken as u64)
    }

    fn cut(&mut self) {
        self.received.truncate(self.taken);
        self.end = None;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_input_arrives_once_and_in_order_whatever_is_cut(steps in prop::collection::vec(step(), 1..60)) {
        let (mut offsets, mut server, mut source) = (Offsets::default(), Server::default(), Vec::new());
        offsets.accept(server.take(0)).expect("it fits");
        for step in steps {
            match step {
                Step::Type(bytes) if offsets.has_room() => {
                    let data: Vec<u8> = (0..bytes).map(|n| ((source.len() + n) % 251) as u8).collect();
                    source.extend_from_slice(&data);
                    offsets.input(Piece { at: None, data: data.into(), end: false });
                }
                Step::Type(_) => {}
                Step::Arrive(messages) => {
                    for _ in 0..messages {
                        offsets.next_message().into_iter().for_each(|message| server.receive(message));
                    }
                }
                Step::Take(bytes) => {
                    offsets.accept(server.take(bytes)).expect("it fits");
                }
                Step::Cut => {
                    server.cut();
                    offsets.connected();
                    offsets.accept(server.take(0)).expect("it fits");
                }
            }
        }
        offsets.input(Piece { at: None, data: Bytes::new(), end: true });
        while let Some(message) = offsets.next_message() {
            server.receive(message);
        }
        prop_assert!(server.received == source);
        prop_assert_eq!(server.end, Some(source.len() as u64));
    }
}
