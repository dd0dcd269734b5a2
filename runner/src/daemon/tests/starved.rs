//! What keeps everything else of the daemon from moving does not keep the link from it.

use std::{process::Command, sync::mpsc::channel};

use proto::v1::server_frame;
use shared_types::OperationId;
use tokio::runtime::{Builder, Runtime};

use super::*;

/// Orders that no queue before the table holds.
const MORE_THAN_WAIT: u128 = 100;

/// After so long without a frame a runner dials again; of a busy machine, too.
const SILENCE: Duration = Duration::from_secs(3);

/// Signs of life, one in 100 ms, that take longer than that.
const BEATS: usize = 40;

/// Commands that are loud at a time, all with the daemon's own priority.
const LOUD: u128 = 8;

/// A runtime of one worker, which is to be stuck: as many as the daemon's own has.
fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build();
    runtime.expect("a runtime")
}

/// Occupies every worker until what is returned is dropped.
async fn block(runtime: &Runtime) -> impl Sized {
    let (keep, dropped) = channel::<()>();
    let (stuck, is_stuck) = oneshot::channel();
    runtime.spawn(async move {
        let _ = stuck.send(());
        let _ = dropped.recv();
    });
    is_stuck.await.expect("a worker");
    keep
}

fn heartbeat() -> server_frame::Kind {
    server_frame::Kind::Heartbeat(v1::Heartbeat::default())
}

/// It names no operation, and the link says so itself.
fn cancel_of_nothing() -> server_frame::Kind {
    server_frame::Kind::Cancel(v1::Cancel {
        operation: "nonsense".to_owned(),
        ..v1::Cancel::default()
    })
}

/// Many heartbeats of the runner, while the server sends some as well.
async fn many_beats(link: &mut FakeLink) {
    let mut beats = 0;
    while beats < BEATS {
        let frame = link.next_of_all().await.expect("the link lasts");
        beats += usize::from(matches!(frame, Kind::Heartbeat(_)));
        link.send(heartbeat()).await;
    }
}

/// So many operations like this one.
fn many(asked: &Incoming, count: u128) -> impl Iterator<Item = server_frame::Kind> {
    (0..count).map(|id| {
        let id = OperationId::from_u128(id);
        operation_frame(&Incoming {
            id,
            ..asked.clone()
        })
    })
}

#[tokio::test]
async fn while_all_else_is_blocked_the_link_beats_and_answers() {
    let mut server = FakeServer::plain(1).await;
    let main = runtime();
    let mut daemon = {
        let _on = main.enter();
        Daemon::start(&server, LONG)
    };
    let mut link = server.next_link().await;
    let asked = fitting(&link.welcome(PROTOCOL_VERSION, SILENCE).await, "true");
    let blocked = block(&main).await;
    many_beats(&mut link).await;
    // What the table need not be asked for is answered.
    link.send(cancel_of_nothing()).await;
    let answer = link.next().await;
    assert!(matches!(answer, Some(Kind::CancelAnswer(_))), "{answer:?}");
    // What waits for the table, because it cannot take them, is the server's fault no more than
    // its silence.
    for id in 0..MORE_THAN_WAIT {
        let id = OperationId::from_u128(id);
        let asked = Incoming {
            id,
            ..asked.clone()
        };
        link.send(operation_frame(&asked)).await;
    }
    many_beats(&mut link).await;
    drop(blocked);
    let mut ended = 0;
    while ended < MORE_THAN_WAIT {
        let frame = link.next().await.expect("the same link");
        ended += u128::from(matches!(frame, Kind::Ended(_)));
        link.send(heartbeat()).await;
    }
    daemon
        .stop
        .send(DaemonStop::HandOver)
        .await
        .expect("a daemon");
    drop(link);
    daemon.end().await.expect("an orderly end");
    main.shutdown_background();
}

#[tokio::test]
async fn while_commands_are_loud_and_keep_every_core_busy_the_link_beats_and_answers() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, Duration::ZERO);
    let mut link = server.next_link().await;
    let asked = fitting(&link.welcome(PROTOCOL_VERSION, SILENCE).await, "yes");
    for id in 0..LOUD {
        let id = OperationId::from_u128(id);
        link.send(operation_frame(&Incoming {
            id,
            ..asked.clone()
        }))
        .await;
    }
    many_beats(&mut link).await;
    link.send(cancel_of_nothing()).await;
    while !matches!(link.next().await, Some(Kind::CancelAnswer(_))) {}
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    goodbye(&mut link).await;
    drop(link);
    daemon.end().await.expect("an orderly end");
}

#[tokio::test]
async fn while_the_disk_takes_nothing_the_link_beats_and_answers() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, Duration::ZERO);
    let mut link = server.next_link().await;
    link.challenge().await;
    // Whoever opens a pipe for writing waits until somebody reads it.
    let noted = daemon.directory.path().join("runner/link");
    let made = Command::new("mkfifo").arg(&noted).status();
    assert!(made.is_ok_and(|made| made.success()), "no pipe");
    link.let_in(PROTOCOL_VERSION, SILENCE).await;
    many_beats(&mut link).await;
    link.send(cancel_of_nothing()).await;
    let answer = link.next().await;
    assert!(matches!(answer, Some(Kind::CancelAnswer(_))), "{answer:?}");
    let note = std::fs::read_to_string(&noted).expect("what was noted");
    assert!(!note.is_empty());
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    goodbye(&mut link).await;
    drop(link);
    daemon.end().await.expect("an orderly end");
}

#[tokio::test]
async fn a_server_that_orders_and_beats_but_takes_no_answers_is_left() {
    let mut server = FakeServer::plain(1).await;
    let mut daemon = Daemon::start(&server, Duration::ZERO);
    let mut link = server.next_link().await;
    let script = "head -c 1000000 /dev/zero";
    let asked = fitting(&link.welcome(PROTOCOL_VERSION, SILENCE).await, script);
    let orders = async {
        for frame in many(&asked, LOUD) {
            link.send(frame).await;
        }
        loop {
            link.send(cancel_of_nothing()).await;
            link.send(heartbeat()).await;
            tokio::time::sleep(SILENCE / 10).await;
        }
    };
    tokio::select! {
        link = server.next_link() => drop(link),
        () = orders => {}
    }
    daemon.stop.send(DaemonStop::End).await.expect("a daemon");
    daemon.end().await.expect("an orderly end");
}
