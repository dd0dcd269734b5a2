use aws_lc_rs::hmac;
use shared_types::{Timestamp, clock::ManualClock, entropy::SeededEntropy};

use super::*;
use crate::keys::verifies;

const RUNNER: RunnerId = RunnerId::from_u128(1);
const GENERATION: u64 = 3;

/// The runner's end of a link, and the tickets of the server's.
struct Edge {
    clock: Arc<ManualClock>,
    identity: Arc<SigningKey>,
    nonce: [u8; 32],
    runner: Ephemeral,
    tickets: Tickets,
}

impl Edge {
    /// A link whose ends have agreed.
    fn agreed() -> Self {
        let (edge, challenge) = Self::challenged();
        let (runners_key, identity) = (edge.runner.public(), edge.identity.clone());
        let agreed = challenge.agree(RUNNER, &runners_key, identity, &SeededEntropy::new(3));
        assert!(agreed.is_ok());
        edge
    }

    fn challenged() -> (Self, LinkChallenge) {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
        let entropy = SeededEntropy::new(2);
        let (challenge, tickets) = LinkChallenge::issue(clock.clone(), &entropy);
        let edge = Self {
            clock,
            identity: Arc::new(SigningKey::generate(&SeededEntropy::new(1))),
            nonce: *challenge.nonce(),
            runner: Ephemeral::generate(&entropy),
            tickets,
        };
        (edge, challenge)
    }

    /// What becomes of this frame.
    fn pass(&mut self, kind: server_frame::Kind) -> server_frame::Kind {
        let mut frame = v1::ServerFrame::from(kind);
        self.tickets.sign(&mut frame);
        frame.kind.expect("a kind")
    }

    fn welcome(&mut self) -> v1::Welcome {
        let welcome = v1::Welcome {
            generation: GENERATION,
            protocol_version: 1,
            heartbeat_every_ms: 15_000,
            silence_ms: 45_000,
            ..v1::Welcome::default()
        };
        match self.pass(server_frame::Kind::Welcome(welcome)) {
            server_frame::Kind::Welcome(welcome) => welcome,
            other => panic!("no welcome: {other:?}"),
        }
    }

    fn operation(&mut self) -> v1::Operation {
        let operation = v1::Operation {
            operation: "op_1".to_owned(),
            epoch: 4,
            // Whatever the router says is not passed on as a ticket.
            ticket: Some(v1::Ticket::default()),
            ..v1::Operation::default()
        };
        let kind = server_frame::Kind::Operation(Box::new(operation));
        match self.pass(kind) {
            server_frame::Kind::Operation(operation) => *operation,
            other => panic!("no operation: {other:?}"),
        }
    }

    /// The key that the runner makes of the welcome.
    fn key(self, welcome: &v1::Welcome) -> LinkKey {
        let (ours, theirs) = (self.runner.public(), &welcome.ephemeral_key);
        let info = signing::link_key(GENERATION, RUNNER, &ours, theirs);
        let secret = self.runner.agree(theirs, &self.nonce);
        secret.expect("a secret").key(&info)
    }
}

#[test]
fn behind_a_closed_gate_no_ticket_is_made_and_only_the_last_word_passes() {
    use server_frame::Kind;
    let gate = Gate::open();
    let (mut edge, challenge) = Edge::challenged();
    let (runners_key, identity) = (edge.runner.public(), edge.identity.clone());
    let agreed = challenge.behind(gate.clone()).agree(
        RUNNER,
        &runners_key,
        identity,
        &SeededEntropy::new(3),
    );
    assert!(agreed.is_ok());
    edge.welcome();
    assert!(edge.operation().ticket.is_some());
    gate.close();
    for kind in [
        Kind::Operation(Box::default()),
        Kind::Input(v1::Input::default()),
        Kind::Cancel(v1::Cancel::default()),
        Kind::Commit(v1::Commit::default()),
        Kind::Forget(v1::Forget::default()),
    ] {
        let mut frame = v1::ServerFrame::from(kind);
        edge.tickets.sign(&mut frame);
        let beat = Kind::Heartbeat(v1::Heartbeat {}).into();
        assert_eq!(frame, beat);
    }
    let goodbye = Kind::Goodbye(v1::Goodbye::default());
    assert_eq!(edge.pass(goodbye.clone()), goodbye);
}

#[test]
fn a_welcome_leaves_with_the_signature_of_the_identity_over_all_of_it() {
    let mut edge = Edge::agreed();
    let welcome = edge.welcome();
    assert_eq!(welcome.protocol_version, 1, "the rest is the router's");
    let (runners, identity) = (edge.runner.public(), edge.identity.public());
    let holds = |changed: &v1::Welcome| {
        let signed = signing::welcome(&edge.nonce, RUNNER, &runners, changed);
        verifies(&identity, &signed, &welcome.signature)
    };
    assert!(holds(&welcome));
    let changes: [fn(&mut v1::Welcome); 5] = [
        |welcome| welcome.generation += 1,
        |welcome| welcome.protocol_version += 1,
        |welcome| welcome.heartbeat_every_ms += 1,
        |welcome| welcome.silence_ms += 1,
        |welcome| welcome.ephemeral_key[0] ^= 1,
    ];
    for change in changes {
        let mut changed = welcome.clone();
        change(&mut changed);
        assert!(!holds(&changed), "{changed:?}");
    }
}

#[test]
fn an_operation_leaves_with_a_ticket_that_the_runner_can_check() {
    let mut edge = Edge::agreed();
    let welcome = edge.welcome();
    edge.clock.advance(Duration::from_millis(1500));
    let operation = edge.operation();
    let ticket = operation.ticket.as_ref().expect("a ticket");
    assert_eq!(ticket.issued_ms, 1500);
    let nonce = edge.nonce;
    let key = edge.key(&welcome);
    let holds = |operation: &v1::Operation| {
        let message = signing::ticket(&nonce, GENERATION, RUNNER, 1500, operation);
        hmac::verify(&key.hmac(), &message, &ticket.mac).is_ok()
    };
    assert!(holds(&operation));
    let another = v1::Operation {
        epoch: 5,
        ..operation.clone()
    };
    assert!(!holds(&another));
}

#[test]
fn an_operation_before_the_welcome_leaves_without_a_ticket() {
    let mut edge = Edge::agreed();
    assert_eq!(edge.operation().ticket, None);
}

#[test]
fn a_link_that_agreed_on_nothing_proves_nothing() {
    let (mut edge, challenge) = Edge::challenged();
    assert_eq!(edge.welcome().signature, b"");
    assert_eq!(edge.operation().ticket, None);
    let (runners_key, identity) = (edge.runner.public(), edge.identity.clone());
    let late = challenge.agree(RUNNER, &runners_key, identity, &SeededEntropy::new(3));
    assert!(late.is_ok());
    assert_eq!(edge.welcome().signature, b"");
    assert_eq!(edge.operation().ticket, None);

    let (mut edge, challenge) = Edge::challenged();
    let identity = edge.identity.clone();
    let agreed = challenge.agree(RUNNER, &[0; 32], identity, &SeededEntropy::new(3));
    assert_eq!(agreed.err(), Some(NotAKey));
    assert_eq!(edge.welcome().signature, b"");
}

#[test]
fn an_order_leaves_with_a_ticket_that_the_runner_can_check() {
    let mut edge = Edge::agreed();
    let forget = server_frame::Kind::Forget(v1::Forget {
        operation: "op_1".to_owned(),
    });
    let mut early = v1::ServerFrame::from(forget.clone());
    edge.tickets.sign(&mut early);
    assert_eq!(early.ticket, None, "before the welcome there is no key");
    let welcome = edge.welcome();
    edge.clock.advance(Duration::from_millis(1500));
    let mut frame = v1::ServerFrame::from(forget.clone());
    edge.tickets.sign(&mut frame);
    let ticket = frame.ticket.expect("a ticket");
    let message = signing::order(&edge.nonce, GENERATION, RUNNER, 1500, &forget);
    let key = edge.key(&welcome);
    let checked = hmac::verify(&key.hmac(), &message.expect("it needs one"), &ticket.mac);
    assert_eq!((ticket.issued_ms, checked.is_ok()), (1500, true));
}

#[test]
fn that_a_new_journal_is_to_begin_leaves_with_the_signature_of_the_identity() {
    let told = |edge: &mut Edge| {
        let new_journal = server_frame::Kind::NewJournal(v1::NewJournal::default());
        match edge.pass(new_journal) {
            server_frame::Kind::NewJournal(new_journal) => new_journal.signature,
            other => panic!("no new journal: {other:?}"),
        }
    };
    let mut edge = Edge::agreed();
    let signature = told(&mut edge);
    let signed = signing::new_journal(&edge.nonce, RUNNER);
    assert!(verifies(&edge.identity.public(), &signed, &signature));
    assert_eq!(edge.welcome().signature, b"", "and nothing follows");
    let (mut edge, _challenge) = Edge::challenged();
    assert_eq!(told(&mut edge), b"");
}
