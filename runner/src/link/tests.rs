//! Links over real connections, against a server double, with real commands.

use std::{
    future::poll_fn,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    task::Poll,
    time::Duration,
};

use proto::{
    PROTOCOL_VERSION, dismissal,
    v1::{self, runner_frame::Kind, server_frame},
};
use shared_link::runner::Incoming;
use shared_tls::ServerTls;
use shared_types::{RunnerId, SystemClock, entropy::SeededEntropy};
use tokio::{task::JoinHandle, time::timeout};

use super::*;
use crate::testing::{
    FakeLink, FakeServer, OwnNetwork, RUNNER, SOON, endpoints, incarnation, incoming, nowhere,
    operation_frame, operations, over_both, shell,
};

mod transport;
mod waits;

/// Orders that no queue before the table holds.
const MORE_THAN_WAIT: u128 = 100;

const LONG: Duration = Duration::from_secs(60);

/// A runner that is enrolled with the double and keeps its link.
struct Runner {
    directory: tempfile::TempDir,
    home: Home,
    goodbye: CancellationToken,
    task: JoinHandle<Result<(), LinkError>>,
}

impl Runner {
    async fn start(server: &FakeServer, certificate: Option<Digest>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let link = link(directory.path(), server, certificate).await;
        Self {
            directory,
            home: link.home.clone(),
            goodbye: link.goodbye.clone(),
            task: tokio::spawn(link.run()),
        }
    }

    /// How the link ended for good.
    async fn end(self) -> Result<(), LinkError> {
        let ended = timeout(SOON, self.task).await;
        ended.expect("an end in time").expect("no panic")
    }
}

/// The link of a runner whose home is here.
async fn link(directory: &Path, server: &FakeServer, certificate: Option<Digest>) -> LinkKeeper {
    let (operations, service) = operations(directory, &incarnation().boot).await;
    tokio::spawn(service.run());
    link_of(operations, directory, server, certificate)
}

/// The same, for these operations.
fn link_of(
    operations: OperationsHandle,
    directory: &Path,
    server: &FakeServer,
    certificate: Option<Digest>,
) -> LinkKeeper {
    let home = Home::within(directory);
    let _ = home.lock().expect("a home");
    let enrolled = EnrolledHome {
        servers: vec![server.url.clone()],
        allow_plain_text: false,
        runner: RUNNER,
        name: "laptop".into(),
        server_identity: server.identity(),
        certificate,
        workspace: directory.to_owned(),
        workspaces: Vec::new(),
    };
    home.save(&enrolled).expect("room");
    LinkKeeper {
        endpoints: endpoints(&[&server.url]),
        home,
        enrolled,
        key: RunnerKey::generate(&SeededEntropy::new(1)),
        introduction: Introduction {
            runner: RUNNER,
            capabilities: tokio::sync::watch::channel(v1::Capabilities::default()).1,
        },
        operations,
        room: tokio::sync::watch::channel(None).1,
        model_server: None,
        models: KnownModels::none(),
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SeededEntropy::new(2)),
        backoff: Backoff::new(crate::backoff::LONGEST),
        goodbye: CancellationToken::new(),
    }
}

/// One link, on a network that stays as it is.
async fn attempt(link: &mut LinkKeeper, progress: &mut LinkProgress) -> Result<(), LinkError> {
    link.once(progress, &mut NetworkNews::listen()).await
}

async fn welcomed(server: &mut FakeServer) -> FakeLink {
    let mut link = server.next_link().await;
    link.welcome(PROTOCOL_VERSION, LONG).await;
    link
}

over_both! {
    a_command_that_outlives_its_link_ends_on_the_next_one,
    only_a_link_that_was_welcomed_counts_as_one_that_served,
    a_silent_server_is_left_and_dialled_again,
    a_runner_that_the_server_proves_to_have_dismissed_gives_up,
    a_refusal_that_proves_no_dismissal_is_not_the_end,
    another_protocol_version_ends_the_runner_with_what_to_do,
    a_challenge_that_the_server_did_not_sign_for_this_link_is_none,
    nonsense_instead_of_a_challenge_is_not_the_end,
    a_server_that_does_not_welcome_now_is_asked_again,
    a_command_goes_on_over_the_age_of_its_link,
    a_runner_that_remembers_too_little_begins_a_new_journal,
    what_the_server_did_not_seal_ends_the_link_and_is_answered_with_nothing,
    a_stopping_runner_says_goodbye_after_all_that_it_had_to_say,
    heartbeats_come_unasked,
    heartbeats_come_while_the_table_takes_no_more_orders,
    a_lost_link_is_followed_by_one_to_the_next_address_and_then_around_again,
    every_address_is_held_to_the_servers_identity,
    a_dismissal_at_one_address_is_one_at_the_next_as_well,
    a_certificate_that_changed_is_pinned_anew_when_the_identity_vouches_for_it,
}

async fn a_command_that_outlives_its_link_ends_on_the_next_one(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let runner = Runner::start(&server, None).await;
    let script =
        "echo ran >> effects; echo first; until test -e go; do sleep 0.01; done; echo second";
    let mut asked = incoming(1, shell(script));
    let mut link = welcomed(&mut server).await;
    link.send(operation_frame(&asked)).await;
    assert!(matches!(link.next().await, Some(Kind::Accepted(_))));
    assert!(matches!(link.next().await, Some(Kind::Output(_))));
    drop(link);

    let mut link = server.next_link().await;
    let hello = link.welcome(PROTOCOL_VERSION, LONG).await;
    assert_eq!(hello.journal_sequence, 1);
    assert_eq!(hello.inventory[0].operation, asked.id.to_string());
    std::fs::write(runner.directory.path().join("workspace/go"), "").expect("a file");
    asked.from = [6, 0];
    link.send(operation_frame(&asked)).await;
    assert!(matches!(link.next().await, Some(Kind::Accepted(_))));
    let Some(Kind::Output(output)) = link.next().await else {
        panic!("no output");
    };
    assert_eq!((output.offset, &output.data[..]), (6, &b"second\n"[..]));
    assert!(matches!(link.next().await, Some(Kind::Ended(_))));
    let effects = std::fs::read_to_string(runner.directory.path().join("workspace/effects"));
    assert_eq!(effects.expect("the effect"), "ran\n");
}

async fn only_a_link_that_was_welcomed_counts_as_one_that_served(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &server, None).await;
    let mut served = LinkProgress::default();
    let ends = async {
        let mut link = server.next_link().await;
        link.challenge().await;
    };
    let (ended, ()) = tokio::join!(attempt(&mut link, &mut served), ends);
    assert!(
        ended.is_err() && served.welcomed.is_none(),
        "it was only called"
    );
    let ends = async {
        welcomed(&mut server).await;
    };
    let (ended, ()) = tokio::join!(attempt(&mut link, &mut served), ends);
    assert!(ended.is_err() && served.welcomed.is_some(), "it served");
}

async fn a_silent_server_is_left_and_dialled_again(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let _runner = Runner::start(&server, None).await;
    let mut silent = server.next_link().await;
    silent
        .welcome(PROTOCOL_VERSION, Duration::from_millis(300))
        .await;
    let _next = welcomed(&mut server).await;
    assert_eq!(silent.next().await, None, "the silent link is over");
}

async fn a_runner_that_the_server_proves_to_have_dismissed_gives_up(over: Transport) {
    let server = FakeServer::over(over, 1).await;
    server.dismiss(RUNNER, removed());
    let error = Runner::start(&server, None)
        .await
        .end()
        .await
        .expect_err("an end");
    assert!(error.is_dismissal());
    assert_eq!(error.to_string(), "the server says: the runner was removed");
}

async fn a_refusal_that_proves_no_dismissal_is_not_the_end(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &server, None).await;
    let refusals: [fn(&FakeServer); 4] = [
        |server| server.refuse(removed()),
        |server| server.refuse(Status::unauthenticated("who is there?")),
        |server| server.dismiss(RunnerId::from_u128(1), removed()),
        |server| server.refuse(dismissal::prove(removed(), &[0; 64])),
    ];
    for refuse in refusals {
        refuse(&server);
        let refused = attempt(&mut link, &mut LinkProgress::default())
            .await
            .expect_err("it is refused");
        assert!(!refused.is_final(), "{refused:?}");
    }
    server.relent();
    tokio::spawn(link.run());
    for end in [
        Code::Unauthenticated,
        Code::PermissionDenied,
        Code::FailedPrecondition,
    ] {
        let mut link = server.next_link().await;
        link.challenge().await;
        link.end(Status::new(end, "no")).await;
    }
    welcomed(&mut server).await;
}

fn removed() -> Status {
    Status::permission_denied("the runner was removed")
}

async fn another_protocol_version_ends_the_runner_with_what_to_do(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let runner = Runner::start(&server, None).await;
    server.next_link().await.welcome(99, LONG).await;
    let error = runner.end().await.expect_err("an end").to_string();
    assert!(error.contains("version 99"), "{error}");
    assert!(error.contains("install the gantry-runner"), "{error}");
}

async fn a_challenge_that_the_server_did_not_sign_for_this_link_is_none(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &server, None).await;
    type Spoil = fn(&mut v1::Challenge);
    let spoiled: [(&str, Spoil); 5] = [
        ("without a signature", |challenge| {
            challenge.signature.clear()
        }),
        ("with another nonce", |challenge| challenge.nonce[0] ^= 1),
        ("with another key", |challenge| {
            challenge.ephemeral_key[0] ^= 1
        }),
        ("with no key", |challenge| challenge.ephemeral_key.clear()),
        ("of an older server", |challenge| {
            *challenge = v1::Challenge {
                nonce: challenge.nonce.clone(),
                ..v1::Challenge::default()
            };
        }),
    ];
    for (what, spoil) in spoiled {
        let mut served = LinkProgress::default();
        let ends = async {
            let mut link = server.next_link().await;
            let mut challenge = link.challenged();
            spoil(&mut challenge);
            link.send(server_frame::Kind::Challenge(challenge)).await;
            link.next().await
        };
        let (ended, answer) = tokio::join!(attempt(&mut link, &mut served), ends);
        let ended = ended.expect_err("the link ends");
        assert!(matches!(ended, LinkError::Unproven(_)), "{what}: {ended}");
        assert!(!ended.is_final() && served.welcomed.is_none(), "{what}");
        assert_eq!(answer, None, "{what}: it is answered nothing");
    }
}

async fn nonsense_instead_of_a_challenge_is_not_the_end(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let _runner = Runner::start(&server, None).await;
    let mut link = server.next_link().await;
    link.send(server_frame::Kind::Heartbeat(v1::Heartbeat::default()))
        .await;
    welcomed(&mut server).await;
}

async fn a_server_that_does_not_welcome_now_is_asked_again(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let _runner = Runner::start(&server, None).await;
    let mut link = server.next_link().await;
    link.challenge().await;
    let reason = "the server stops".to_owned();
    link.send(server_frame::Kind::Goodbye(v1::Goodbye {
        reason,
        for_good: false,
        ..v1::Goodbye::default()
    }))
    .await;
    welcomed(&mut server).await;
}

async fn a_command_goes_on_over_the_age_of_its_link(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let runner = Runner::start(&server, None).await;
    let asked = incoming(1, shell("until test -e go; do sleep 0.01; done"));
    let mut link = welcomed(&mut server).await;
    link.send(operation_frame(&asked)).await;
    assert!(matches!(link.next().await, Some(Kind::Accepted(_))));
    link.send(server_frame::Kind::Goodbye(v1::Goodbye {
        reason: "the link has reached its greatest age; link again".to_owned(),
        reconnect_within_ms: 1,
        aged: true,
        ..v1::Goodbye::default()
    }))
    .await;
    let mut link = server.next_link().await;
    let hello = link.welcome(PROTOCOL_VERSION, LONG).await;
    assert_eq!(hello.inventory[0].operation, asked.id.to_string());
    link.send(operation_frame(&asked)).await;
    assert!(matches!(link.next().await, Some(Kind::Accepted(_))));
    std::fs::write(runner.directory.path().join("workspace/go"), "").expect("a file");
    assert!(matches!(link.next().await, Some(Kind::Ended(_))));
}

async fn a_runner_that_remembers_too_little_begins_a_new_journal(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let _runner = Runner::start(&server, None).await;
    let mut link = welcomed(&mut server).await;
    link.send(operation_frame(&incoming(1, shell("sleep 600"))))
        .await;
    assert!(matches!(link.next().await, Some(Kind::Accepted(_))));
    drop(link);
    let mut link = server.next_link().await;
    let before = link.challenge().await;
    assert_eq!(before.inventory.len(), 1);
    link.send(server_frame::Kind::NewJournal(v1::NewJournal {}))
        .await;
    drop(link);
    let after = server
        .next_link()
        .await
        .welcome(PROTOCOL_VERSION, LONG)
        .await;
    assert_ne!(after.incarnation, before.incarnation);
    assert_eq!((after.journal_sequence, after.inventory.len()), (0, 0));
}

/// Everything that would do something, if it were believed.
fn orders(running: &Incoming) -> Vec<server_frame::Kind> {
    let operation = running.id.to_string();
    vec![
        operation_frame(&incoming(2, shell("echo ran >> effects"))),
        server_frame::Kind::Cancel(v1::Cancel {
            operation: operation.clone(),
            owner: running.owner.to_string(),
            epoch: running.epoch.0,
            incarnation: running.incarnation.as_ref().map(Into::into),
        }),
        server_frame::Kind::Forget(v1::Forget { operation }),
        server_frame::Kind::NewJournal(v1::NewJournal {}),
        server_frame::Kind::Goodbye(v1::Goodbye::default()),
        server_frame::Kind::Welcome(v1::Welcome {
            protocol_version: 99,
            ..v1::Welcome::default()
        }),
    ]
}

async fn what_the_server_did_not_seal_ends_the_link_and_is_answered_with_nothing(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut runner = link(directory.path(), &server, None).await;
    let running = incoming(1, shell("sleep 600"));
    let starts = async {
        let mut link = welcomed(&mut server).await;
        link.send(operation_frame(&running)).await;
        assert!(matches!(link.next().await, Some(Kind::Accepted(_))));
    };
    let mut progress = LinkProgress::default();
    let (ended, ()) = tokio::join!(attempt(&mut runner, &mut progress), starts);
    assert!(ended.is_err());
    let bare = orders(&running).into_iter();
    for (bare, is_welcome) in bare.flat_map(|bare| [(bare.clone(), false), (bare, true)]) {
        let ends = async {
            let mut link = server.next_link().await;
            let hello = link.challenge().await;
            if is_welcome {
                link.let_in(PROTOCOL_VERSION, LONG).await;
            }
            link.send_bare(bare.clone().into()).await;
            (hello.inventory, link.next().await)
        };
        let mut progress = LinkProgress::default();
        let (ended, (inventory, answer)) = tokio::join!(attempt(&mut runner, &mut progress), ends);
        let ended = ended.expect_err("the link ends");
        assert!(matches!(ended, LinkError::Unproven(_)), "{bare:?}: {ended}");
        assert!(!ended.is_final());
        assert_eq!(answer, None, "{bare:?} is answered nothing");
        let [entry] = &inventory[..] else {
            panic!("{bare:?}: it is remembered: {inventory:?}");
        };
        assert!(!entry.ended, "{bare:?}: it goes on");
    }
    assert!(!directory.path().join("workspace/effects").exists());
}

async fn a_stopping_runner_says_goodbye_after_all_that_it_had_to_say(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let runner = Runner::start(&server, None).await;
    let mut link = welcomed(&mut server).await;
    link.send(operation_frame(&incoming(1, shell("echo done"))))
        .await;
    while !matches!(link.next().await.expect("it holds"), Kind::Ended(_)) {}
    runner.goodbye.cancel();
    assert!(matches!(link.next().await, Some(Kind::Goodbye(_))));
    assert_eq!(link.next().await, None);
    drop(link);
    runner.end().await.expect("a polite end");
}

async fn heartbeats_come_unasked(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let _runner = Runner::start(&server, None).await;
    let mut link = welcomed(&mut server).await;
    for _ in 0..2 {
        assert!(matches!(link.next_of_all().await, Some(Kind::Heartbeat(_))));
    }
}

async fn heartbeats_come_while_the_table_takes_no_more_orders(over: Transport) {
    let mut server = FakeServer::over(over, 1).await;
    let directory = tempfile::tempdir().expect("a directory");
    let (operations, service) = operations(directory.path(), &incarnation().boot).await;
    let mut table = Box::pin(service.run());
    let stuck = Arc::new(AtomicBool::new(false));
    let is_stuck = stuck.clone();
    tokio::spawn(poll_fn(move |context| match is_stuck.load(Relaxed) {
        true => Poll::Pending,
        false => table.as_mut().poll(context),
    }));
    let runner = link_of(operations, directory.path(), &server, None);
    let runner = tokio::spawn(runner.run());
    let mut link = welcomed(&mut server).await;
    stuck.store(true, Relaxed);
    for id in 0..MORE_THAN_WAIT {
        link.send(operation_frame(&incoming(id, shell("true"))))
            .await;
    }
    for _ in 0..10 {
        assert!(matches!(link.next_of_all().await, Some(Kind::Heartbeat(_))));
    }
    runner.abort();
}

async fn a_lost_link_is_followed_by_one_to_the_next_address_and_then_around_again(over: Transport) {
    let (mut first, mut second) = (
        FakeServer::over(over, 1).await,
        FakeServer::over(over, 1).await,
    );
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &first, None).await;
    link.endpoints = endpoints(&[&first.url, &nowhere(), &second.url]);
    let runner = tokio::spawn(link.run());
    for _ in 0..2 {
        drop(welcomed(&mut first).await);
        drop(welcomed(&mut second).await);
    }
    runner.abort();
}

async fn every_address_is_held_to_the_servers_identity(over: Transport) {
    let (mut server, mut stranger) = (
        FakeServer::over(over, 1).await,
        FakeServer::over(over, 2).await,
    );
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &server, None).await;
    link.endpoints = endpoints(&[&stranger.url, &server.url]);
    let runner = tokio::spawn(link.run());
    for _ in 0..2 {
        drop(welcomed(&mut server).await);
    }
    assert!(stranger.links.try_recv().is_err(), "it sees no link");
    runner.abort();
}

async fn a_dismissal_at_one_address_is_one_at_the_next_as_well(over: Transport) {
    let (first, mut second) = (
        FakeServer::over(over, 1).await,
        FakeServer::over(over, 1).await,
    );
    first.dismiss(RUNNER, removed());
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &first, None).await;
    link.endpoints = endpoints(&[&first.url, &second.url]);
    let ended = timeout(SOON, link.run()).await.expect("an end in time");
    let error = ended.expect_err("an end");
    assert_eq!(error.to_string(), "the server says: the runner was removed");
    assert!(second.links.try_recv().is_err());
}

async fn a_certificate_that_changed_is_pinned_anew_when_the_identity_vouches_for_it(
    over: Transport,
) {
    let directory = tempfile::tempdir().expect("a directory");
    let tls = ServerTls::self_signed(directory.path(), &["127.0.0.1".into()]);
    let tls = tls.expect("a certificate");
    let mut server = FakeServer::tls(over, 1, &tls).await;
    let runner = Runner::start(&server, Some(Digest::of(b"the certificate before"))).await;
    welcomed(&mut server).await;
    let enrolled = runner
        .home
        .enrolled()
        .expect("a home")
        .expect("an enrolment");
    assert_eq!(
        enrolled.certificate.map(|hash| *hash.as_bytes()),
        Some(tls.certificate_sha256())
    );
}
