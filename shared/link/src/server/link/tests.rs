use shared_types::SessionId;

use super::*;
use crate::{
    server::{ControlAnswer, InboxError, Mail},
    testing::incarnation,
};

/// Nobody reads here.
struct Nobody;

impl Post for Nobody {
    fn put(&self, mail: Mail) -> Result<(), InboxError> {
        panic!("nobody reads: {mail:?}")
    }

    fn put_answer(&self, answer: ControlAnswer) -> Result<(), InboxError> {
        panic!("nobody asked: {answer:?}")
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn id(number: u128) -> OperationId {
    OperationId::from_u128(number)
}

/// What a runner is told upon these verdicts, behind its welcome, and what is to be collected.
fn judged(verdicts: Vec<(OperationId, ReconcileVerdict)>) -> (Vec<String>, Vec<OperationId>) {
    let facts = HelloFacts {
        pool: None,
        ceiling: None,
        protocol_version: 1,
        software_version: String::new(),
        incarnation: incarnation(),
        journal_sequence: 0,
        os: String::new(),
        architecture: String::new(),
        hostname: String::new(),
        features: Vec::new(),
        sandboxes: Vec::new(),
        inventory: Vec::new(),
    };
    let times = LinkTimes {
        heartbeat_every: MINUTE,
        silence: MINUTE,
        lease: MINUTE,
    };
    let mut link = Link::<Nobody>::new(&facts, Generation(1), times, Duration::ZERO);
    let found = link.judge(verdicts);
    let frames = std::iter::from_fn(|| link.next_frame()).skip(1);
    let number = |id: &str| id.parse::<OperationId>().expect("an id").as_u128();
    let told = frames.map(|frame| match frame.kind {
        Some(server_frame::Kind::Commit(commit)) => {
            let stream = wire::output_stream(commit.stream).expect("a stream");
            format!("{} {stream} to {}", number(&commit.operation), commit.up_to)
        }
        Some(server_frame::Kind::Forget(forget)) => format!("{} forget", number(&forget.operation)),
        Some(server_frame::Kind::Cancel(cancel)) => format!("{} cancel", number(&cancel.operation)),
        other => panic!("unexpected: {other:?}"),
    });
    let told = told.collect();
    (told, found)
}

#[test]
fn a_runner_is_told_behind_the_verdicts_what_is_durable_of_what_it_keeps() {
    let keep = |committed| ReconcileVerdict::Keep { committed };
    let cancel = ReconcileVerdict::Cancel {
        owner: Owner::Session(SessionId::from_u128(1)),
        epoch: Epoch(1),
    };
    let (told, found) = judged(vec![
        (id(1), keep([7, 9])),
        (id(2), ReconcileVerdict::Forget),
        (id(3), keep([0, 5])),
        (id(4), keep([0, 0])),
        (id(5), cancel),
        (id(6), ReconcileVerdict::Collect),
    ]);
    let expected = [
        "2 forget",
        "5 cancel",
        "1 stdout to 7",
        "1 stderr to 9",
        "3 stderr to 5",
    ];
    assert_eq!(told, expected);
    assert_eq!(found, [id(5), id(6)]);
}
