//! The whole daemon against a server double: real commands, a real link, and its end.

mod starved;

use proto::{
    PROTOCOL_VERSION,
    v1::{self, exit_record, runner_frame::Kind},
};
use shared_link::runner::Incoming;
use shared_types::{SystemClock, Token, entropy::SeededEntropy};
use tokio::task::JoinHandle;
use tonic::Status;

use super::*;
use crate::{
    home::EnrolledHome,
    testing::{FakeLink, FakeServer, RUNNER, SOON, incoming, operation_frame, shell, supervisor},
};

const LONG: Duration = Duration::from_secs(60);

struct Daemon {
    home: Home,
    directory: tempfile::TempDir,
    stop: mpsc::Sender<DaemonStop>,
    task: JoinHandle<Result<(), DaemonError>>,
}

impl Daemon {
    fn start(server: &FakeServer, drain_for: Duration) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::within(directory.path());
        drop(home.lock().expect("a home"));
        let entropy = SeededEntropy::new(1);
        let token = Token::join([1; 32], &entropy);
        home.prepare_key(&token, &entropy).expect("a key");
        home.enrol(&EnrolledHome {
            servers: vec![server.url.clone()],
            allow_plain_text: false,
            runner: RUNNER,
            name: "laptop".into(),
            server_identity: server.identity(),
            certificate: None,
            workspace: directory.path().to_owned(),
            workspaces: Vec::new(),
        })
        .expect("an enrolment");
        let (stop, stopped) = mpsc::channel(2);
        let task = tokio::spawn(run(options(&home, drain_for), stopped));
        Self {
            home,
            directory,
            stop,
            task,
        }
    }

    async fn end(&mut self) -> Result<(), DaemonError> {
        let ended = timeout(SOON, &mut self.task).await;
        ended.expect("an end in time").expect("no panic")
    }
}

fn options(home: &Home, drain_for: Duration) -> DaemonOptions {
    DaemonOptions {
        is_detached: false,
        backend: None,
        policy: PolicySource::of_test(home.journal().with_file_name("policy.toml")),
        model_server: None,
        home: home.clone(),
        drain_for,
        sync_before_start: false,
        disconnect_for: LONG,
        supervisor: supervisor(),
        transports: Transports::Auto,
        longest_wait: crate::backoff::LONGEST,
        environment: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        facts: HostFacts {
            boot: "boot".into(),
            hostname: "host".into(),
        },
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SeededEntropy::new(3)),
    }
}

/// The next link, welcomed, and an operation that fits its runner.
async fn linked(server: &mut FakeServer, script: &str) -> (FakeLink, Incoming) {
    let mut link = server.next_link().await;
    let asked = fitting(&link.welcome(PROTOCOL_VERSION, LONG).await, script);
    (link, asked)
}

/// An operation that fits the runner that said this.
fn fitting(hello: &v1::Hello, script: &str) -> Incoming {
    let capabilities = hello.capabilities.as_ref().expect("capabilities");
    let mut asked = incoming(1, shell(script));
    asked.incarnation = proto::convert::incarnation(hello.incarnation.clone());
    asked.sandbox = capabilities.sandboxes[0].sandbox.parse().expect("an id");
    asked
}

/// Starts the script and waits for its first output.
async fn running(link: &mut FakeLink, asked: &Incoming) {
    link.send(operation_frame(asked)).await;
    while !matches!(link.next().await, Some(Kind::Output(_))) {}
}

async fn goodbye(link: &mut FakeLink) -> v1::Goodbye {
    loop {
        if let Kind::Goodbye(goodbye) = link.next().await.expect("a frame") {
            return goodbye;
        }
    }
}

async fn cause_of_the_end(link: &mut FakeLink) -> exit_record::Cause {
    loop {
        if let Kind::Ended(ended) = link.next().await.expect("a frame")
            && let Some(v1::ended::Outcome::Exited(record)) = ended.outcome
        {
            return record.cause();
        }
    }
}

#[tokio::test]
async fn a_drain_lets_what_runs_finish_and_takes_nothing_new() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, LONG);
    let script = "echo up; until test -e go; do sleep 0.01; done";
    let (mut link, asked) = linked(&mut server, script).await;
    running(&mut link, &asked).await;
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    let mut next = asked.clone();
    let refusal = loop {
        next.id = shared_types::OperationId::from_u128(next.id.as_u128() + 1);
        next.request = Some(shell("true"));
        next.digest = shell("true").digest();
        link.send(operation_frame(&next)).await;
        // The signal may be behind the first of them, so one is sent after the other.
        let outcome = loop {
            if let Kind::Ended(ended) = link.next().await.expect("a frame") {
                break ended.outcome;
            }
        };
        if let Some(v1::ended::Outcome::Refused(refusal)) = outcome {
            break refusal;
        }
    };
    assert_eq!(refusal.code(), v1::refusal::Code::Draining);
    std::fs::write(daemon.directory.path().join("go"), "").expect("a file");
    assert_eq!(
        cause_of_the_end(&mut link).await,
        exit_record::Cause::Exited
    );
    assert!(!goodbye(&mut link).await.for_good, "its end is not stored");
    drop(link);
    daemon.end().await.expect("an orderly end");
}

#[tokio::test]
async fn the_server_is_told_the_mode_of_the_machines_policy_as_soon_as_it_changes() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, LONG);
    let ceiling = async |server: &mut FakeServer| {
        let mut link = server.next_link().await;
        let hello = link.welcome(PROTOCOL_VERSION, LONG).await;
        (hello.capabilities.expect("capabilities").ceiling(), link)
    };
    let (before, link) = ceiling(&mut server).await;
    assert_eq!(before, v1::Mode::Unspecified);
    let policy = options(&daemon.home, LONG).policy;
    std::fs::write(policy.path(), "mode = \"ask\"").expect("a policy");
    let (now, newer) = ceiling(&mut server).await;
    assert_eq!(now, v1::Mode::Ask);
    daemon
        .stop
        .send(DaemonStop::HandOver)
        .await
        .expect("a daemon");
    drop((link, newer));
    daemon.end().await.expect("an orderly end");
}

#[tokio::test]
async fn a_runner_that_hands_over_comes_back_and_one_with_nothing_left_leaves_for_good() {
    for (script, for_good) in [("echo up; sleep 600", false), ("echo up", true)] {
        let mut server = FakeServer::plain(1).await;
        let mut daemon = Daemon::start(&server, LONG);
        let (mut link, asked) = linked(&mut server, script).await;
        running(&mut link, &asked).await;
        if for_good {
            cause_of_the_end(&mut link).await;
            let operation = asked.id.to_string();
            link.send(v1::server_frame::Kind::Forget(v1::Forget { operation }))
                .await;
        }
        daemon
            .stop
            .send(DaemonStop::HandOver)
            .await
            .expect("a daemon");
        assert_eq!(goodbye(&mut link).await.for_good, for_good);
        drop(link);
        daemon.end().await.expect("an orderly end");
    }
}

#[tokio::test]
async fn one_that_stops_before_it_has_heard_the_welcome_leaves_for_good_as_well() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, LONG);
    let mut link = server.next_link().await;
    link.challenge().await;
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    assert!(goodbye(&mut link).await.for_good);
    drop(link);
    daemon.end().await.expect("an orderly end");
}

#[tokio::test]
async fn what_outlasts_the_drain_is_stopped_and_its_end_still_told() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, Duration::ZERO);
    let (mut link, asked) = linked(&mut server, "echo up; sleep 600").await;
    running(&mut link, &asked).await;
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    assert_eq!(
        cause_of_the_end(&mut link).await,
        exit_record::Cause::Orphaned
    );
    let operation = asked.id.to_string();
    link.send(v1::server_frame::Kind::Forget(v1::Forget { operation }))
        .await;
    assert!(goodbye(&mut link).await.for_good);
    drop(link);
    daemon.end().await.expect("an orderly end");
}

#[tokio::test]
async fn a_second_signal_stops_what_runs_whatever_the_first_one_was() {
    for first in [DaemonStop::HandOver, DaemonStop::End] {
        let mut server = FakeServer::plain(1).await;
        let mut daemon = Daemon::start(&server, Duration::from_secs(3600));
        let script = "trap 'touch stopped; exit' TERM; echo up; while :; do sleep 0.01; done";
        let (mut link, asked) = linked(&mut server, script).await;
        running(&mut link, &asked).await;
        daemon.stop.send(first).await.expect("a daemon");
        daemon
            .stop
            .send(DaemonStop::HandOver)
            .await
            .expect("a daemon");
        let stopped = daemon.directory.path().join("stopped");
        drop(link);
        daemon.end().await.expect("an end");
        assert!(stopped.exists(), "{first:?}");
    }
}

#[tokio::test]
async fn a_runner_that_was_dismissed_stops_what_it_runs_and_says_why() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, LONG);
    let script = "trap 'touch stopped; exit' TERM; echo up; while :; do sleep 0.01; done";
    let (mut link, asked) = linked(&mut server, script).await;
    running(&mut link, &asked).await;
    server.dismiss(RUNNER, Status::permission_denied("the runner was removed"));
    drop(link);
    let error = daemon.end().await.expect_err("an end").to_string();
    assert!(error.contains("the runner was removed"), "{error}");
    assert!(error.contains("--replace"), "{error}");
    assert!(daemon.directory.path().join("stopped").exists());
    assert!(!daemon.home.is_taken());
}

#[tokio::test]
async fn a_refusal_that_nobody_signed_stops_nothing() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, LONG);
    let script = "echo up; until test -e go; do sleep 0.01; done";
    let (mut link, asked) = linked(&mut server, script).await;
    running(&mut link, &asked).await;
    link.end(Status::permission_denied("forbidden")).await;
    let mut link = server.next_link().await;
    link.welcome(PROTOCOL_VERSION, LONG).await;
    std::fs::write(daemon.directory.path().join("go"), "").expect("a file");
    link.send(operation_frame(&asked)).await;
    assert_eq!(
        cause_of_the_end(&mut link).await,
        exit_record::Cause::Exited
    );
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    drop(link);
    daemon.end().await.expect("an orderly end");
}

#[tokio::test]
async fn what_runs_outlives_a_daemon_that_does_not_fit_its_server_any_more() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, Duration::ZERO);
    let script = "echo up; until test -e go; do sleep 0.01; done; touch done";
    let (mut link, asked) = linked(&mut server, script).await;
    running(&mut link, &asked).await;
    drop(link);
    server.next_link().await.welcome(99, LONG).await;
    let error = daemon.end().await.expect_err("an end").to_string();
    assert!(error.contains("version 99"), "{error}");
    assert!(!daemon.home.is_taken());
    std::fs::write(daemon.directory.path().join("go"), "").expect("a file");
    let done = daemon.directory.path().join("done");
    let finished = async {
        while !done.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, finished)
        .await
        .expect("it goes on to its end");
}

#[tokio::test]
async fn where_a_killed_daemon_had_its_link_is_forgotten_before_anything_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    drop(home.lock().expect("a home"));
    home.note_link(Some("https://earlier:7443"));
    let (_keep, stop) = mpsc::channel(1);
    let ended = run(options(&home, LONG), stop).await;
    assert!(matches!(ended, Err(DaemonError::NotEnrolled)));
    assert_eq!(home.link(), None);
}

#[tokio::test]
async fn one_home_serves_one_daemon_and_only_once_it_is_enrolled() {
    let server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, LONG);
    while !daemon.home.is_taken() {
        tokio::task::yield_now().await;
    }
    let (_keep, stop) = mpsc::channel(1);
    let second = run(options(&daemon.home, LONG), stop).await;
    assert!(matches!(
        second,
        Err(DaemonError::Home(HomeError::Taken(_)))
    ));
    let elsewhere = tempfile::tempdir().expect("a directory");
    let (_keep, stop) = mpsc::channel(1);
    let fresh = run(options(&Home::within(elsewhere.path()), LONG), stop).await;
    assert!(matches!(fresh, Err(DaemonError::NotEnrolled)));
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    daemon.end().await.expect("an orderly end");
}
