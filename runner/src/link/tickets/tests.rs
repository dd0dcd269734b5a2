use shared_types::entropy::SeededEntropy;

use super::*;
use crate::key::RunnerKey;

const RUNNER: RunnerId = RunnerId::from_u128(1);
const NONCE: [u8; 32] = [9; 32];
const GENERATION: u64 = 3;

/// The server's end, and what it says of itself when it opens a link.
struct Server {
    key: RunnerKey,
    generation: u64,
    nonce: [u8; 32],
    runner: RunnerId,
}

/// A welcome, and the key that its maker has.
struct Welcome {
    said: v1::Welcome,
    key: LinkKey,
}

impl Welcome {
    fn with(mut self, change: impl FnOnce(&mut v1::Welcome)) -> Self {
        change(&mut self.said);
        self
    }
}

impl Server {
    fn new() -> Self {
        Self {
            key: RunnerKey::generate(&SeededEntropy::new(1)),
            generation: GENERATION,
            nonce: NONCE,
            runner: RUNNER,
        }
    }

    fn stranger() -> Self {
        Self {
            key: RunnerKey::generate(&SeededEntropy::new(2)),
            ..Self::new()
        }
    }

    fn identity(&self) -> ServerIdentity {
        ServerIdentity(self.key.public().try_into().expect("32 bytes"))
    }

    /// A welcome for the runner with this ephemeral key.
    fn welcome(&self, theirs: &[u8]) -> Welcome {
        let ephemeral = Ephemeral::generate(&SeededEntropy::new(3));
        let ours = ephemeral.public();
        let info = signing::link_key(self.generation, self.runner, theirs, &ours);
        let key = ephemeral
            .agree(theirs, &self.nonce)
            .map(|secret| secret.key(&info));
        Welcome {
            said: self.sign(theirs, ours),
            key: key.expect("a public key"),
        }
    }

    fn sign(&self, theirs: &[u8], ours: Vec<u8>) -> v1::Welcome {
        let mut welcome = v1::Welcome {
            generation: self.generation,
            protocol_version: 1,
            heartbeat_every_ms: 15_000,
            silence_ms: 45_000,
            ephemeral_key: ours,
            signature: Vec::new(),
        };
        let signed = signing::welcome(&self.nonce, self.runner, theirs, &welcome);
        welcome.signature = self.key.sign(&signed);
        welcome
    }
}

/// Tickets that were introduced in the first second of the link, and their ephemeral key.
fn introduced(identity: &ServerIdentity, seed: u64) -> (Tickets<'_>, Vec<u8>) {
    let mut tickets = Tickets::new(identity, RUNNER, KeyPlace::default());
    let entropy = SeededEntropy::new(seed);
    let ours = tickets.introduce(&NONCE, Duration::from_secs(1), &entropy);
    (tickets, ours)
}

/// Tickets of an open link, and the key that the server makes them with.
fn linked<'a>(server: &Server, identity: &'a ServerIdentity, seed: u64) -> (Tickets<'a>, LinkKey) {
    let (mut tickets, theirs) = introduced(identity, seed);
    let welcome = server.welcome(&theirs);
    assert_eq!(open(&mut tickets, &welcome), Ok(()));
    (tickets, welcome.key)
}

fn open(tickets: &mut Tickets<'_>, welcome: &Welcome) -> Result<(), Unproven> {
    tickets.open(&welcome.said)
}

fn ordered(key: &LinkKey, issued_ms: u64) -> v1::Operation {
    let mut operation = v1::Operation {
        operation: "op_1".to_owned(),
        digest: vec![1; 32],
        epoch: 4,
        ..v1::Operation::default()
    };
    let message = signing::ticket(&NONCE, GENERATION, RUNNER, issued_ms, &operation);
    let mac = hmac::sign(&key.hmac(), &message).as_ref().to_vec();
    operation.ticket = Some(v1::Ticket { issued_ms, mac });
    operation
}

fn passes(tickets: &mut Tickets<'_>, operation: v1::Operation, at_s: u64) -> bool {
    let frame = Kind::Operation(Box::new(operation)).into();
    checked(tickets, &frame, at_s) == Ok(())
}

fn checked(tickets: &mut Tickets<'_>, frame: &v1::ServerFrame, at_s: u64) -> Result<(), Unproven> {
    tickets.check(&mut frame.clone(), Duration::from_secs(at_s))
}

/// One of each order that needs a ticket.
fn orders() -> Vec<Kind> {
    let operation = "op_1".to_owned();
    vec![
        Kind::Commit(v1::Commit {
            operation: operation.clone(),
            stream: 1,
            up_to: 7,
        }),
        Kind::Cancel(v1::Cancel {
            operation: operation.clone(),
            owner: "ses_1".to_owned(),
            epoch: 4,
            incarnation: None,
        }),
        Kind::Forget(v1::Forget {
            operation: operation.clone(),
        }),
        Kind::Input(v1::Input {
            operation: operation.clone(),
            offset: 3,
            data: b"rm".to_vec().into(),
            end: false,
        }),
        Kind::Resize(v1::Resize {
            operation: operation.clone(),
            id: 1,
            size: Some(v1::TerminalSize {
                rows: 24,
                columns: 80,
            }),
        }),
        Kind::Signal(v1::Signal {
            operation,
            id: 1,
            kind: 9,
        }),
    ]
}

/// This order, with a ticket for that one.
fn sealed(key: &LinkKey, order: Kind, ticket_for: &Kind) -> v1::ServerFrame {
    let message = signing::order(&NONCE, GENERATION, RUNNER, 5_000, ticket_for);
    let mac = hmac::sign(&key.hmac(), &message.expect("it needs one"));
    v1::ServerFrame {
        kind: Some(order),
        ticket: Some(v1::Ticket {
            issued_ms: 5_000,
            mac: mac.as_ref().to_vec(),
        }),
    }
}

#[test]
fn an_order_passes_with_its_own_ticket_of_this_link_alone() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, key) = linked(&server, &identity, 5);
    let (_, elsewhere) = linked(&server, &identity, 6);
    let orders = orders();
    for (place, order) in orders.iter().enumerate() {
        let good = sealed(&key, order.clone(), order);
        assert_eq!(checked(&mut tickets, &good, 6), Ok(()), "{order:?}");
        assert_eq!(
            checked(&mut tickets, &good, 67),
            Err(Unproven::Order),
            "too old"
        );
        let bare = order.clone().into();
        assert_eq!(
            checked(&mut tickets, &bare, 6),
            Err(Unproven::Order),
            "{order:?}"
        );
        let foreign = sealed(&elsewhere, order.clone(), order);
        assert_eq!(checked(&mut tickets, &foreign, 6), Err(Unproven::Order));
        let another = &orders[(place + 1) % orders.len()];
        let borrowed = sealed(&key, order.clone(), another);
        assert_eq!(checked(&mut tickets, &borrowed, 6), Err(Unproven::Order));
    }
}

#[test]
fn an_order_whose_words_were_changed_does_not_pass() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, key) = linked(&server, &identity, 5);
    let changed = |order: &Kind| {
        let mut changed = order.clone();
        match &mut changed {
            Kind::Commit(commit) => commit.up_to += 1,
            Kind::Cancel(cancel) => cancel.owner = "ses_2".to_owned(),
            Kind::Forget(forget) => forget.operation.push('2'),
            Kind::Input(input) => input.data = b"ls".to_vec().into(),
            Kind::Resize(resize) => resize.size = None,
            Kind::Signal(signal) => signal.kind = 15,
            _ => unreachable!("not one of them"),
        }
        changed
    };
    for order in orders() {
        let frame = sealed(&key, changed(&order), &order);
        assert_eq!(
            checked(&mut tickets, &frame, 6),
            Err(Unproven::Order),
            "{order:?}"
        );
    }
}

#[test]
fn a_cancel_passes_under_its_own_epoch_alone() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, key) = linked(&server, &identity, 5);
    let cancel = |epoch| {
        Kind::Cancel(v1::Cancel {
            epoch,
            ..v1::Cancel::default()
        })
    };
    let frame = sealed(&key, cancel(5), &cancel(4));
    assert_eq!(checked(&mut tickets, &frame, 6), Err(Unproven::Order));
}

#[test]
fn signs_of_life_credit_and_pieces_of_a_file_need_no_ticket() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, _) = linked(&server, &identity, 5);
    for kind in [
        Kind::Heartbeat(v1::Heartbeat {}),
        Kind::Credit(v1::Credit::default()),
        Kind::Piece(v1::Input::default()),
        Kind::Goodbye(v1::Goodbye::default()),
    ] {
        assert_eq!(checked(&mut tickets, &kind.into(), 6), Ok(()));
    }
}

#[test]
fn only_the_server_itself_can_have_the_journal_forgotten() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, _) = introduced(&identity, 5);
    let mut told = |signature| {
        let mut frame = Kind::NewJournal(v1::NewJournal { signature }).into();
        tickets.check(&mut frame, Duration::from_secs(2))
    };
    let signed = signing::new_journal(&NONCE, RUNNER);
    assert_eq!(told(server.key.sign(&signed)), Ok(()));
    assert_eq!(
        told(Server::stranger().key.sign(&signed)),
        Err(Unproven::FirstWord)
    );
    let another_link = signing::new_journal(&[8; 32], RUNNER);
    assert_eq!(
        told(server.key.sign(&another_link)),
        Err(Unproven::FirstWord)
    );
    assert_eq!(told(Vec::new()), Err(Unproven::FirstWord));
}

#[test]
fn an_operation_with_a_ticket_of_this_link_passes_while_it_is_young() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, key) = linked(&server, &identity, 5);
    assert!(passes(&mut tickets, ordered(&key, 5_000), 6));
    assert!(passes(&mut tickets, ordered(&key, 5_000), 65));
    assert!(!passes(&mut tickets, ordered(&key, 5_000), 67), "too old");
    assert!(
        !passes(&mut tickets, ordered(&key, 500_000), 6),
        "from the future"
    );
}

#[test]
fn the_time_to_start_in_shrinks_by_what_an_operation_took_on_its_way() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, key) = linked(&server, &identity, 5);
    for (start_within_ms, at_s, left_ms) in
        [(30_000, 6, 30_000), (30_000, 26, 10_000), (5_000, 26, 0)]
    {
        let mut operation = ordered(&key, 5_000);
        operation.start_within_ms = start_within_ms;
        let message = signing::ticket(&NONCE, GENERATION, RUNNER, 5_000, &operation);
        let mac = hmac::sign(&key.hmac(), &message).as_ref().to_vec();
        operation.ticket = Some(v1::Ticket {
            issued_ms: 5_000,
            mac,
        });
        let mut frame = Kind::Operation(Box::new(operation)).into();
        let checked = tickets.check(&mut frame, Duration::from_secs(at_s));
        assert_eq!(checked, Ok(()));
        let Some(Kind::Operation(operation)) = frame.kind else {
            panic!("no operation");
        };
        assert_eq!(operation.start_within_ms, left_ms);
    }
}

#[test]
fn an_operation_without_a_ticket_or_with_a_changed_one_does_not_pass() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, key) = linked(&server, &identity, 5);
    let change = |change: fn(&mut v1::Operation)| {
        let mut operation = ordered(&key, 0);
        change(&mut operation);
        operation
    };
    let incarnation = |operation: &mut v1::Operation| {
        operation.incarnation = Some(v1::Incarnation {
            journal: String::new(),
            boot: "another".to_owned(),
        });
    };
    let mac = |operation: &mut v1::Operation, change: fn(&mut Vec<u8>)| {
        change(&mut operation.ticket.as_mut().expect("a ticket").mac);
    };
    assert!(passes(&mut tickets, ordered(&key, 0), 1));
    let changed = [
        change(|operation| operation.ticket = None),
        change(|operation| operation.operation = "op_2".to_owned()),
        change(|operation| operation.digest = vec![2; 32]),
        change(|operation| operation.sandbox = "sbx_1".to_owned()),
        change(|operation| operation.owner = "ses_1".to_owned()),
        change(|operation| operation.epoch = 5),
        change(incarnation),
        change(|operation| operation.start_within_ms = 1),
        change(|operation| operation.run_for_ms = 1 << 40),
        change(|operation| operation.stdout_from = 1),
        change(|operation| operation.stderr_from = 1),
        change(|operation| operation.ticket.as_mut().expect("a ticket").issued_ms = 1),
    ];
    for operation in changed {
        assert!(!passes(&mut tickets, operation.clone(), 1), "{operation:?}");
    }
    let macs: [fn(&mut Vec<u8>); 5] = [
        |mac| mac.truncate(31),
        |mac| mac.truncate(16),
        Vec::clear,
        |mac| mac.push(0),
        |mac| mac[31] ^= 1,
    ];
    for spoil in macs {
        let mut operation = ordered(&key, 0);
        mac(&mut operation, spoil);
        assert!(!passes(&mut tickets, operation.clone(), 1), "{operation:?}");
    }
}

#[test]
fn a_ticket_of_another_link_does_not_pass() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, _) = linked(&server, &identity, 5);
    let (_, other) = linked(&server, &identity, 6);
    assert!(
        !passes(&mut tickets, ordered(&other, 0), 1),
        "other ephemeral keys"
    );
}

#[test]
fn an_operation_before_the_welcome_does_not_pass() {
    let server = Server::new();
    let identity = server.identity();
    let (introduced, theirs) = introduced(&identity, 5);
    let key = server.welcome(&theirs).key;
    let called = Tickets::new(&identity, RUNNER, KeyPlace::default());
    for mut tickets in [called, introduced] {
        assert!(!passes(&mut tickets, ordered(&key, 0), 1));
    }
}

#[test]
fn a_welcome_that_the_server_did_not_sign_for_this_link_opens_nothing() {
    let server = Server::new();
    let identity = server.identity();
    let (_, theirs) = introduced(&identity, 5);
    let elsewhere = Ephemeral::generate(&SeededEntropy::new(7)).public();
    let right = || server.welcome(&theirs);
    let cases = [
        ("a stranger's", Server::stranger().welcome(&theirs)),
        ("of another link of this runner", server.welcome(&elsewhere)),
        (
            "of an older nonce",
            Server {
                nonce: [8; 32],
                ..Server::new()
            }
            .welcome(&theirs),
        ),
        (
            "for another runner",
            Server {
                runner: RunnerId::from_u128(2),
                ..Server::new()
            }
            .welcome(&theirs),
        ),
        (
            "with another generation",
            right().with(|said| said.generation += 1),
        ),
        (
            "with another key of the server's",
            right().with(|said| said.ephemeral_key = elsewhere.clone()),
        ),
        (
            "with another version",
            right().with(|said| said.protocol_version += 1),
        ),
        (
            "with other heartbeats",
            right().with(|said| said.heartbeat_every_ms += 1),
        ),
        (
            "with another silence",
            right().with(|said| said.silence_ms += 1),
        ),
        (
            "without a signature",
            right().with(|said| said.signature.clear()),
        ),
        (
            "with a key that makes no secret",
            right().with(|said| *said = server.sign(&theirs, vec![0; 32])),
        ),
        (
            "with a key that is none",
            right().with(|said| *said = server.sign(&theirs, vec![1; 31])),
        ),
    ];
    for (what, welcome) in cases {
        let (mut tickets, _) = introduced(&identity, 5);
        assert_eq!(
            open(&mut tickets, &welcome),
            Err(Unproven::FirstWord),
            "{what}"
        );
        assert!(!passes(&mut tickets, ordered(&welcome.key, 0), 1), "{what}");
        assert_eq!(
            open(&mut tickets, &right()),
            Err(Unproven::FirstWord),
            "{what}: over"
        );
    }
}

#[test]
fn a_second_welcome_opens_nothing() {
    let server = Server::new();
    let identity = server.identity();
    let (mut tickets, theirs) = introduced(&identity, 5);
    let welcome = server.welcome(&theirs);
    assert_eq!(open(&mut tickets, &welcome), Ok(()));
    assert_eq!(open(&mut tickets, &welcome), Err(Unproven::FirstWord));
    assert!(!passes(&mut tickets, ordered(&welcome.key, 0), 1));
}
