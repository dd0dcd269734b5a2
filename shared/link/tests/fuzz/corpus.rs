//! The stored links, made anew, and whether they still mean something.

use bytes::Bytes;
use proto::{
    PROTOCOL_VERSION,
    v1::{self, runner_frame, server_frame},
};
use shared_fuzz::stored;
use shared_link::wire::{
    self, AnswerHead, AnswerPart, AskFailure, AskFailureKind, AskKind, ModelsReport,
};
use shared_sandbox::{Consent, Request, examples};
use shared_types::{
    Incarnation, JournalId, Mode, OperationId, Owner, RunnerId, SandboxId, SessionId,
};

use super::frames;

/// The runner of every stored link.
pub(crate) const RUNNER: RunnerId = RunnerId::from_u128(1);

/// What it calls its sandbox.
const PLACE_NAME: &str = "workspace";

/// How many operations the stored links speak of, from 1 on: one for each example of a request.
pub(crate) fn operations() -> u128 {
    examples::requests().len() as u128
}

pub(crate) fn operation(number: u128) -> OperationId {
    OperationId::from_u128(number)
}

pub(crate) fn incarnation() -> Incarnation {
    Incarnation {
        journal: JournalId::from_u128(1),
        boot: "boot".to_owned(),
    }
}

pub(crate) fn place() -> SandboxId {
    SandboxId::derive(RUNNER, PLACE_NAME)
}

/// What the operation of this number asks for.
pub(crate) fn request(number: u128) -> Request {
    let mut requests = examples::requests().into_iter();
    requests.nth(number as usize - 1).expect("an example")
}

/// What servers say to a runner.
fn to_runner() -> Vec<(&'static str, Vec<v1::ServerFrame>)> {
    use server_frame::Kind;
    let id = operation(1).to_string();
    let stream = v1::OutputStream::Stdout.into();
    let credit = |up_to| {
        server(Kind::Credit(v1::Credit {
            operation: id.clone(),
            stream,
            up_to,
        }))
    };
    let commit = server(Kind::Commit(v1::Commit {
        operation: id.clone(),
        stream,
        up_to: 100,
    }));
    let goodbye = server(Kind::Goodbye(v1::Goodbye {
        reason: "bye".to_owned(),
        for_good: false,
        ..v1::Goodbye::default()
    }));
    let exec = vec![
        operation_frame(1, false),
        credit(1 << 20),
        commit,
        server(Kind::Heartbeat(v1::Heartbeat::default())),
        operation_frame(1, true),
        credit(u64::MAX),
        cancel(1),
        forget(1),
        operation_frame(1, false),
        goodbye,
    ];
    let cancels = vec![
        cancel(2),
        operation_frame(2, false),
        operation_frame(1, false),
        cancel(1),
        cancel(1),
        forget(2),
    ];
    let files = (1..=operations())
        .flat_map(|number| [operation_frame(number, false), forget(number)])
        .collect();
    let body = Bytes::from_static(b"{}");
    let asked = wire::model_ask(1, AskKind::ChatCompletions, &body, None);
    let models = asked.chain([wire::model_credit(1, 1), wire::model_drop(1)]);
    let models = models.map(server).collect();
    let new_journal = server(Kind::NewJournal(v1::NewJournal::default()));
    let after_opening = |frames: Vec<v1::ServerFrame>| [opening(), frames].concat();
    vec![
        ("exec", after_opening(exec)),
        ("cancels", after_opening(cancels)),
        ("files", after_opening(files)),
        ("models", after_opening(models)),
        ("new-journal", vec![opening().remove(0), new_journal]),
        (
            "nothing-known",
            after_opening(vec![v1::ServerFrame::default()]),
        ),
    ]
}

/// What runners say to a server.
fn to_server() -> Vec<(&'static str, Vec<v1::RunnerFrame>)> {
    vec![
        ("exec", exec_frames()),
        ("files", file_frames()),
        ("refusals", refusal_frames()),
        ("models", model_frames()),
        (
            "nothing-known",
            vec![hello(), v1::RunnerFrame { kind: None }],
        ),
    ]
}

/// A model server is told of and answers; another one fails.
fn model_frames() -> Vec<v1::RunnerFrame> {
    let report = ModelsReport::bounded(["qwen3:8b".to_owned()], "");
    let head = AnswerPart::Head(AnswerHead {
        status: 200,
        headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
    });
    let failed = AnswerPart::Failed(AskFailure {
        kind: AskFailureKind::Broken,
        reason: "reset".to_owned(),
    });
    let data = AnswerPart::Data(Bytes::from_static(b"data: {}"));
    vec![
        hello(),
        wire::models_report(&report),
        wire::model_answer(1, head),
        wire::model_answer(1, data),
        wire::model_answer(1, AnswerPart::End),
        wire::model_answer(2, failed),
    ]
}

fn server(kind: server_frame::Kind) -> v1::ServerFrame {
    kind.into()
}

fn opening() -> Vec<v1::ServerFrame> {
    vec![
        server(server_frame::Kind::Challenge(v1::Challenge {
            nonce: vec![1; 32],
            ephemeral_key: vec![2; 32],
            signature: vec![3; 64],
        })),
        server(server_frame::Kind::Welcome(v1::Welcome {
            generation: 1,
            protocol_version: PROTOCOL_VERSION,
            heartbeat_every_ms: 10_000,
            silence_ms: 30_000,
        })),
    ]
}

fn operation_frame(number: u128, attach_only: bool) -> v1::ServerFrame {
    let request = request(number);
    server(server_frame::Kind::Operation(Box::new(v1::Operation {
        operation: operation(number).to_string(),
        digest: request.digest().as_bytes().to_vec(),
        sandbox: place().to_string(),
        owner: Owner::Session(SessionId::from_u128(3)).to_string(),
        epoch: 1,
        incarnation: Some((&incarnation()).into()),
        start_within_ms: if attach_only { 0 } else { 10_000 },
        run_for_ms: 60_000,
        stdout_from: 0,
        stderr_from: 0,
        request: (!attach_only).then(|| wire::request(&request)),
        traceparent: String::new(),
        consent: (!attach_only).then(|| {
            wire::consent(match number % 3 {
                0 => Consent::Caller,
                1 => Consent::Agent(Mode::Auto),
                _ => Consent::Approved {
                    mode: Mode::Ask,
                    plan: request.digest(),
                },
            })
        }),
    })))
}

fn cancel(number: u128) -> v1::ServerFrame {
    server(server_frame::Kind::Cancel(v1::Cancel {
        operation: operation(number).to_string(),
        owner: Owner::Session(SessionId::from_u128(3)).to_string(),
        epoch: 1,
        incarnation: Some((&incarnation()).into()),
    }))
}

fn forget(number: u128) -> v1::ServerFrame {
    server(server_frame::Kind::Forget(v1::Forget {
        operation: operation(number).to_string(),
    }))
}

fn runner(kind: runner_frame::Kind) -> v1::RunnerFrame {
    v1::RunnerFrame { kind: Some(kind) }
}

fn hello() -> v1::RunnerFrame {
    let entry = |number, ended| v1::InventoryEntry {
        operation: operation(number).to_string(),
        ended,
    };
    runner(runner_frame::Kind::Hello(Box::new(v1::Hello {
        protocol_version: PROTOCOL_VERSION,
        software_version: "0.1.0".to_owned(),
        incarnation: Some((&incarnation()).into()),
        journal_sequence: 3,
        capabilities: Some(v1::Capabilities {
            os: "linux".to_owned(),
            architecture: "x86_64".to_owned(),
            hostname: "laptop".to_owned(),
            sandboxes: vec![v1::Sandbox {
                sandbox: place().to_string(),
                name: PLACE_NAME.to_owned(),
                root: "/work".to_owned(),
                isolation: "none".to_owned(),
                problem: String::new(),
            }],
            features: vec!["later".to_owned()],
            pool: None,
            ceiling: v1::Mode::Ask.into(),
        }),
        inventory: vec![entry(1, true), entry(2, false)],
    })))
}

fn accepted(number: u128) -> v1::RunnerFrame {
    let operation = operation(number).to_string();
    runner(runner_frame::Kind::Accepted(v1::Accepted {
        operation,
        journal_sequence: 0,
    }))
}

fn ended(number: u128, outcome: v1::ended::Outcome) -> v1::RunnerFrame {
    runner(runner_frame::Kind::Ended(v1::Ended {
        operation: operation(number).to_string(),
        outcome: Some(outcome),
    }))
}

fn exec_frames() -> Vec<v1::RunnerFrame> {
    use runner_frame::Kind;
    let id = operation(1).to_string();
    let stream = v1::OutputStream::Stdout.into();
    let output = |offset, data: &'static [u8]| {
        runner(Kind::Output(v1::Output {
            operation: id.clone(),
            stream,
            offset,
            data: data.into(),
        }))
    };
    let gap = v1::Gap {
        operation: id.clone(),
        stream,
        from: 4,
        to: 1000,
    };
    let cancelled = v1::CancelAnswer {
        operation: id.clone(),
        answer: v1::cancel_answer::Answer::AlreadyExited.into(),
        refusal: None,
    };
    let end = |offset| {
        Some(v1::StreamEnd {
            offset,
            checksum: Some(7),
        })
    };
    let exited = v1::ExitRecord {
        status: Some(v1::exit_record::Status::Code(0)),
        cause: v1::exit_record::Cause::Exited.into(),
        stdout: end(1007),
        stderr: end(0),
        wall_ms: 12,
        tree_gone: true,
        why: 0,
        cpu_us: 3,
        max_rss_bytes: 4096,
    };
    vec![
        hello(),
        accepted(1),
        output(0, b"one\n"),
        output(2, b"e\n"),
        runner(Kind::Gap(gap)),
        output(1000, b"tail of"),
        runner(Kind::Heartbeat(v1::Heartbeat::default())),
        runner(Kind::CancelAnswer(cancelled)),
        ended(1, v1::ended::Outcome::Exited(exited)),
        runner(Kind::Goodbye(v1::Goodbye {
            reason: "bye".to_owned(),
            for_good: false,
            ..v1::Goodbye::default()
        })),
    ]
}

/// Every operation ends as it may, in each way of which there is an example.
fn file_frames() -> Vec<v1::RunnerFrame> {
    let mut frames = vec![hello()];
    for number in 1..=operations() {
        let expected = wire::expected(&request(number));
        let outcomes = examples::outcomes().into_iter().filter(expected);
        let ends = outcomes.map(|outcome| wire::ended(operation(number), outcome));
        frames.push(accepted(number));
        frames.extend(ends);
    }
    frames
}

fn refusal_frames() -> Vec<v1::RunnerFrame> {
    use v1::ended::Outcome;
    let failed = v1::FileFailure {
        kind: v1::file_failure::Kind::TooLarge.into(),
        path: "a/file".to_owned(),
        reason: String::new(),
        number: 5,
        limit: 4,
        ..v1::FileFailure::default()
    };
    let refused = v1::Refusal {
        code: v1::refusal::Code::ResourceExhausted.into(),
        message: "later".to_owned(),
        retry_after_ms: 2000,
    };
    let answer = v1::CancelAnswer {
        operation: operation(2).to_string(),
        answer: 0,
        refusal: Some(refused.clone()),
    };
    vec![
        hello(),
        ended(1, Outcome::Refused(refused)),
        accepted(4),
        ended(4, Outcome::Failed(failed)),
        runner(runner_frame::Kind::CancelAnswer(answer)),
    ]
}

/// Every stored link: for which end, its name, its bytes.
fn links() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let runner = to_runner().into_iter();
    let runner = runner.map(|(name, frames)| ("runner", name, frames::to_bytes(&frames)));
    let server = to_server().into_iter();
    let server = server.map(|(name, frames)| ("server", name, frames::to_bytes(&frames)));
    runner.chain(server).collect()
}

#[test]
fn the_stored_links_are_those_of_this_protocol() {
    for (end, name, bytes) in links() {
        let stored = stored(&frames::corpus(end));
        let found = stored.iter().find(|(stored, _)| stored == name);
        assert!(
            found.is_some_and(|(_, stored)| *stored == bytes),
            "{end}/{name} is another one: run the ignored test that makes them"
        );
    }
}

#[test]
#[ignore = "writes the corpus anew, after a change of the protocol"]
fn write_the_corpus() {
    for (end, name, bytes) in links() {
        let folder = frames::corpus(end);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(name), bytes).expect("a file");
    }
}
