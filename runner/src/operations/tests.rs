//! The table's task over a real host: real commands in a temporary workspace.

use std::{path::PathBuf, sync::Arc, time::Duration};

use proto::v1::{self, runner_frame::Kind};
use runner_host::HostOptions;
use shared_sandbox::Request;
use shared_types::{Epoch, SystemClock};
use tokio::time::timeout;

use super::*;
use crate::testing::{PLACE, SOON, incarnation, incoming, shell};

struct Bench {
    directory: tempfile::TempDir,
    operations: Operations,
    link: LinkId,
    frames: mpsc::Receiver<v1::RunnerFrame>,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let options = HostOptions {
            root: directory.path().to_owned(),
            environment: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            kill_grace: Duration::from_secs(2),
            file_operation_within: Duration::from_secs(10),
        };
        let host = Host::open(options, Arc::new(SystemClock::new())).expect("a host");
        let (operations, service) = Operations::new(host, incarnation(), PLACE);
        tokio::spawn(service.run());
        let (outgoing, frames) = mpsc::channel(8);
        let link = operations.open_link(outgoing).await.expect("a link").link;
        Self {
            directory,
            operations,
            link,
            frames,
        }
    }

    /// Loses the link and opens another.
    async fn relink(&mut self) -> Opened {
        let (outgoing, frames) = mpsc::channel(8);
        self.frames = frames;
        let opened = self.operations.open_link(outgoing).await.expect("a link");
        self.link = opened.link;
        opened
    }

    async fn ask(&self, number: u128, request: Request, from: u64) {
        let mut incoming = incoming(number, request);
        incoming.from[0] = from;
        let order = Order::Operation(Box::new(incoming));
        self.operations
            .order(self.link, order)
            .await
            .expect("a table");
    }

    async fn next(&mut self) -> Kind {
        let frame = timeout(SOON, self.frames.recv()).await;
        frame
            .expect("a frame in time")
            .and_then(|f| f.kind)
            .expect("a kind")
    }

    /// The text of stdout up to the end, and the end.
    async fn read_all(&mut self) -> (String, v1::ended::Outcome) {
        let mut text = String::new();
        loop {
            match self.next().await {
                Kind::Output(output) => text += &String::from_utf8_lossy(&output.data),
                Kind::Ended(ended) => return (text, ended.outcome.expect("an outcome")),
                _ => {}
            }
        }
    }

    /// Waits until stdout has had this many bytes.
    async fn output_of(&mut self, bytes: u64) {
        loop {
            if let Kind::Output(output) = self.next().await
                && output.offset + output.data.len() as u64 >= bytes
            {
                return;
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn code(outcome: &v1::ended::Outcome) -> Option<i32> {
    match outcome {
        v1::ended::Outcome::Exited(v1::ExitRecord {
            status: Some(v1::exit_record::Status::Code(code)),
            ..
        }) => Some(*code),
        _ => None,
    }
}

#[tokio::test]
async fn a_command_runs_once_and_its_whole_output_arrives_over_a_lost_link() {
    let mut bench = Bench::new().await;
    let script =
        "echo ran >> effects; echo first; until test -e go; do sleep 0.01; done; echo second";
    bench.ask(1, shell(script), 0).await;
    bench.output_of(6).await;
    let opened = bench.relink().await;
    assert_eq!(opened.inventory.len(), 1);
    assert!(!opened.inventory[0].ended);
    std::fs::write(bench.path("go"), "").expect("a file");
    bench.ask(1, shell(script), 6).await;
    let (text, outcome) = bench.read_all().await;
    assert_eq!(text, "second\n");
    assert_eq!(code(&outcome), Some(0));
    bench.ask(1, shell(script), 0).await;
    let (text, _) = bench.read_all().await;
    assert_eq!(text, "first\nsecond\n");
    let effects = std::fs::read_to_string(bench.path("effects")).expect("the effect");
    assert_eq!(effects, "ran\n");
}

#[tokio::test]
async fn a_command_without_a_link_goes_on_and_is_never_slowed() {
    let mut bench = Bench::new().await;
    let script = "until test -e go; do sleep 0.01; done; head -c 8000000 /dev/zero; touch done";
    bench.ask(1, shell(script), 0).await;
    assert!(matches!(bench.next().await, Kind::Accepted(_)));
    bench.operations.close_link(bench.link).await;
    std::fs::write(bench.path("go"), "").expect("a file");
    let mut unfinished = bench.operations.unfinished();
    let ended = timeout(SOON, unfinished.wait_for(|left| left.running == 0)).await;
    ended.expect("an end in time").expect("a table");
    assert!(bench.path("done").exists());

    bench.relink().await;
    bench.ask(1, shell(script), 0).await;
    let (mut received, mut missing) = (0, 0);
    let record = loop {
        match bench.next().await {
            Kind::Output(output) => {
                received += output.data.len() as u64;
                let credit = Order::Credit {
                    operation: OperationId::from_u128(1),
                    stream: shared_sandbox::OutputStream::Stdout,
                    up_to: u64::MAX,
                };
                bench
                    .operations
                    .order(bench.link, credit)
                    .await
                    .expect("a table");
            }
            Kind::Gap(gap) => missing += gap.to - gap.from,
            Kind::Ended(v1::Ended {
                outcome: Some(v1::ended::Outcome::Exited(record)),
                ..
            }) => break record,
            _ => {}
        }
    };
    assert_eq!(received, 2 * 1024 * 1024, "the head and the tail");
    assert_eq!(received + missing, 8_000_000);
    assert_eq!(record.stdout.map(|end| end.offset), Some(8_000_000));
}

#[tokio::test]
async fn a_cancel_stops_the_command_and_is_answered_once_it_is_gone() {
    let mut bench = Bench::new().await;
    bench
        .ask(1, shell("echo up; sleep 600 | cat; touch late"), 0)
        .await;
    bench.output_of(3).await;
    let cancel = Order::Cancel {
        operation: OperationId::from_u128(1),
        epoch: Epoch(1),
        incarnation: Some(incarnation()),
    };
    bench
        .operations
        .order(bench.link, cancel)
        .await
        .expect("a table");
    let Kind::CancelAnswer(answer) = bench.next().await else {
        panic!("no answer");
    };
    assert_eq!(answer.answer(), v1::cancel_answer::Answer::Cancelled);
    let (_, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Exited(record) = outcome else {
        panic!("no exit: {outcome:?}");
    };
    assert_eq!(record.cause(), v1::exit_record::Cause::Cancelled);
    assert!(!bench.path("late").exists());
}

#[tokio::test]
async fn the_end_of_an_older_link_does_not_end_a_newer_one() {
    let mut bench = Bench::new().await;
    let older = bench.link;
    bench.relink().await;
    bench.operations.close_link(older).await;
    bench.ask(1, shell("echo here"), 0).await;
    assert_eq!(bench.read_all().await.0, "here\n");
    let order = Order::Operation(Box::new(incoming(2, shell("touch from-older"))));
    bench.operations.order(older, order).await.expect("a table");
    bench.ask(3, shell("true"), 0).await;
    bench.read_all().await;
    assert!(!bench.path("from-older").exists());
}

#[tokio::test]
async fn what_still_runs_at_the_end_of_a_drain_is_stopped_as_orphaned() {
    let mut bench = Bench::new().await;
    bench.ask(1, shell("echo up; sleep 600"), 0).await;
    bench.output_of(3).await;
    bench.operations.drain().await;
    bench.operations.orphan().await;
    let (_, outcome) = bench.read_all().await;
    let v1::ended::Outcome::Exited(record) = outcome else {
        panic!("no exit: {outcome:?}");
    };
    assert_eq!(record.cause(), v1::exit_record::Cause::Orphaned);
}
