use std::{collections::HashSet, time::Duration};

use bytes::Bytes;
use proto::{
    PROTOCOL_VERSION,
    v1::{self, runner_frame::Kind, server_frame},
};
use shared_sandbox::{OperationEvent, Sandbox};
use shared_types::{RunnerId, SandboxId, limits::OUTPUT_CHUNK_BYTES};
use tokio::time::Instant;

use super::double::*;
use crate::links::{LinkEnd, LinkOptions};
use shared_link::server::TurnedAway;

#[tokio::test(start_paused = true)]
async fn a_newer_link_replaces_the_older_whose_end_does_not_unregister_it() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let old = world.link(&runner).await;
    let mut new = world.dial(&runner, runner.hello());
    let server_frame::Kind::Welcome(welcome) = new.next().await else {
        panic!("the newer link is welcome");
    };
    assert_eq!(welcome.generation, 2);
    let (reason, end) = old.goodbye().await;
    assert!(reason.contains("newer"), "{reason}");
    assert_eq!(end, LinkEnd::Replaced);
    let mut presence = world.links.presence(runner.id).await;
    within(presence.until(true)).await;
    world.store.choose(&runner);
    let mut running = world.sandbox.start(exec(10)).await.expect("it is online");
    let id = new.operation().await.operation;
    new.accept(&id).await;
    new.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
}

#[tokio::test(start_paused = true)]
async fn a_runner_whose_journal_went_back_is_told_to_begin_a_new_one() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let hello = |journal_sequence| v1::Hello {
        journal_sequence,
        ..runner.hello()
    };
    let mut link = world.dial(&runner, hello(7));
    assert!(matches!(link.next().await, server_frame::Kind::Welcome(_)));
    for _ in 0..2 {
        let mut restored = world.dial(&runner, hello(6));
        let first = restored.next().await;
        assert!(
            matches!(first, server_frame::Kind::NewJournal(_)),
            "{first:?}"
        );
    }
    let mut link = world.dial(
        &runner.restarted(),
        v1::Hello {
            journal_sequence: 0,
            ..runner.restarted().hello()
        },
    );
    assert!(matches!(link.next().await, server_frame::Kind::Welcome(_)));
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_has_accepted_over_a_link_is_held_against_the_next_before_it_is_stored() {
    let (world, runner, mut link) = World::chosen().await;
    let mut running = world.sandbox.start(exec(10)).await.expect("it is online");
    let operation = link.operation().await.operation;
    link.send(Kind::Accepted(v1::Accepted {
        operation: operation.clone(),
        journal_sequence: 1,
    }))
    .await;
    // What came before this was read, and a store that is asked now and then was not asked yet.
    link.output(&operation, 0, "ab").await;
    assert_eq!(next(&mut running).await, stdout(0, "ab"));
    let mut restored = world.dial(&runner, runner.hello());
    let first = restored.next().await;
    assert!(
        matches!(first, server_frame::Kind::NewJournal(_)),
        "{first:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_has_accepted_over_a_link_is_stored_soon_and_when_the_link_ends() {
    // Longer than the test waits, so that nothing else stores it.
    let world = World::with(LinkOptions {
        heard_every: Duration::from_secs(3600),
        ..LinkOptions::default()
    });
    let runner = Runner::new(1, "one");
    let accepted = |operation: &str, journal_sequence| {
        Kind::Accepted(v1::Accepted {
            operation: operation.to_owned(),
            journal_sequence,
        })
    };
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let _first = world.sandbox.start(exec(10)).await.expect("it is online");
    let first = link.operation().await.operation;
    link.send(accepted(&first, 7)).await;
    eventually(|| world.store.accepted_by(runner.id) == Some(7)).await;
    let _second = world.sandbox.start(exec(11)).await.expect("it is online");
    let second = link.operation().await.operation;
    link.send(accepted(&second, 8)).await;
    link.hang_up().await;
    assert_eq!(world.store.accepted_by(runner.id), Some(8));
}

#[tokio::test(start_paused = true)]
async fn a_link_that_does_not_hold_any_more_is_ended_though_nobody_has_told_this_replica() {
    for (turned_away, end) in [
        (TurnedAway::Revoked, LinkEnd::Revoked),
        (TurnedAway::Locked, LinkEnd::Locked),
        (TurnedAway::Older, LinkEnd::Replaced),
    ] {
        let world = World::with(LinkOptions {
            heard_every: Duration::from_millis(5),
            ..LinkOptions::default()
        });
        let runner = Runner::new(1, "one");
        let link = world.link(&runner).await;
        world.store.rows().turned_away = Some(turned_away);
        assert_eq!(link.goodbye().await.1, end);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_moves_to_the_newer_link_of_its_runner() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut old = world.link(&runner).await;
    world.store.choose(&runner);
    let mut running = world.sandbox.start(exec(10)).await.expect("it starts");
    let id = old.operation().await.operation;
    old.accept(&id).await;
    old.output(&id, 0, "ab").await;
    assert_eq!(next(&mut running).await, stdout(0, "ab"));
    let mut new = world.dial(&runner, runner.hello());
    assert!(matches!(new.next().await, server_frame::Kind::Welcome(_)));
    assert_eq!(new.operation().await.stdout_from, 2);
    old.output(&id, 2, "from the old link").await;
    new.accept(&id).await;
    new.output(&id, 2, "cd").await;
    new.exit(&id, 4).await;
    let mut heard = next(&mut running).await;
    // Whether the reader saw the moment without a link depends on who was faster.
    while matches!(
        heard,
        OperationEvent::Unreachable { .. } | OperationEvent::Reachable
    ) {
        heard = next(&mut running).await;
    }
    assert_eq!(heard, stdout(2, "cd"));
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(4)));
}

#[tokio::test(start_paused = true)]
async fn a_link_of_an_older_generation_is_turned_away() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut current = world.link(&runner).await;
    // No store hands out a generation twice; the registry does not rely on it.
    world.store.forget_generations();
    let late = world.dial(&runner, runner.hello());
    let (_, end) = late.goodbye().await;
    assert_eq!(end, LinkEnd::Replaced);
    assert!(world.links.online(runner.id).await);
    assert!(!current.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn each_end_hears_the_other_and_a_silent_runner_is_given_up() {
    let world = World::with(LinkOptions {
        heartbeat_every: Duration::from_millis(5),
        lease: Duration::from_millis(100),
        heard_every: Duration::from_millis(1),
        ..LinkOptions::default()
    });
    let runner = Runner::new(1, "one");
    let mut link = world.dial(&runner, runner.hello());
    assert!(matches!(link.next().await, server_frame::Kind::Welcome(_)));
    assert!(matches!(
        link.next_with_heartbeats().await,
        server_frame::Kind::Heartbeat(_)
    ));
    link.send(Kind::Heartbeat(v1::Heartbeat::default())).await;
    eventually(|| world.store.rows().heard > 0).await;
    let (_, end) = link.goodbye().await;
    assert_eq!(end, LinkEnd::Silent);
    assert!(!world.links.online(runner.id).await);
}

#[tokio::test(start_paused = true)]
async fn the_servers_end_says_goodbye_to_every_runner() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let link = world.link(&runner).await;
    world.shutdown.cancel();
    let (goodbye, end) = link.last_words().await;
    assert_eq!(end, LinkEnd::Shutdown);
    assert_eq!(
        goodbye.reconnect_within_ms, 1,
        "a millisecond for each link"
    );
}

#[tokio::test(start_paused = true)]
async fn a_link_that_reaches_its_age_ends_within_a_tenth_of_it_and_the_runner_links_again() {
    let age = Duration::from_secs(600);
    let world = World::with(LinkOptions {
        age_at_most: Some(age),
        heartbeat_every: Duration::from_secs(1),
        // Nothing else ends it.
        lease: 2 * age,
        ..LinkOptions::default()
    });
    let runner = Runner::new(1, "one");
    let mut ages = HashSet::new();
    for _ in 0..10 {
        let (link, began) = (world.link(&runner).await, Instant::now());
        let (goodbye, end) = link.last_words().await;
        assert_eq!(end, LinkEnd::Aged);
        assert!(goodbye.aged && goodbye.reconnect_within_ms > 0);
        assert!(began.elapsed().abs_diff(age) <= age / 10 + Duration::from_secs(1));
        ages.insert(began.elapsed().as_secs());
    }
    assert!(ages.len() > 1, "they are spread");
}

#[tokio::test(start_paused = true)]
async fn another_link_key_ends_every_link_and_runners_link_again() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let link = world.link(&runner).await;
    world.links.rotated().await;
    let (_, end) = link.goodbye().await;
    assert_eq!(end, LinkEnd::Rotated);
    let _again = world.link(&runner).await;
    assert!(world.links.online(runner.id).await);
}

#[tokio::test(start_paused = true)]
async fn a_runners_goodbye_ends_its_link_and_says_whether_it_comes_back() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    for (for_good, end) in [
        (false, LinkEnd::Goodbye as fn(String) -> LinkEnd),
        (true, LinkEnd::Left),
    ] {
        let link = world.link(&runner).await;
        let reason = "done for today".to_owned();
        link.send(Kind::Goodbye(v1::Goodbye {
            reason: reason.clone(),
            for_good,
            ..v1::Goodbye::default()
        }))
        .await;
        assert_eq!(link.hang_up().await, end(reason));
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_message_that_makes_no_sense_is_turned_away_with_the_reason() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let hello = |change: &dyn Fn(&mut v1::Hello)| {
        let mut hello = runner.hello();
        change(&mut hello);
        hello
    };
    let foreign = SandboxId::derive(RunnerId::from_u128(99), "workspace").to_string();
    let sandbox = |hello: &mut v1::Hello, change: &dyn Fn(&mut v1::Sandbox)| {
        let capabilities = hello.capabilities.as_mut().expect("there are some");
        change(&mut capabilities.sandboxes[0]);
    };
    let cases = [
        (hello(&|hello| hello.protocol_version = 1), "version 1"),
        (hello(&|hello| hello.incarnation = None), "incarnation"),
        (hello(&|hello| hello.capabilities = None), "capabilities"),
        (
            hello(&|hello| hello.software_version = "x".repeat(300)),
            "256 bytes",
        ),
        (
            hello(&|hello| sandbox(hello, &|sandbox| sandbox.sandbox = foreign.clone())),
            "does not belong",
        ),
        (
            hello(&|hello| sandbox(hello, &|sandbox| sandbox.isolation = "magic".to_owned())),
            "isolation",
        ),
        (
            hello(&|hello| hello.inventory = vec![v1::InventoryEntry::default()]),
            "id cannot be read",
        ),
    ];
    for (hello, why) in cases {
        let (reason, end) = world.dial(&runner, hello).goodbye().await;
        assert!(reason.contains(why), "{reason}");
        assert_eq!(end, LinkEnd::Violation(reason));
    }
    assert!(!world.links.online(runner.id).await);
}

#[tokio::test(start_paused = true)]
async fn a_runner_of_a_newer_version_is_answered_with_ours() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let hello = v1::Hello {
        protocol_version: 7,
        ..runner.hello()
    };
    let server_frame::Kind::Welcome(welcome) = world.dial(&runner, hello).next().await else {
        panic!("it is welcome");
    };
    assert_eq!(welcome.protocol_version, PROTOCOL_VERSION);
}

#[tokio::test(start_paused = true)]
async fn frames_that_break_the_protocol_end_the_link_with_the_reason() {
    let id = exec(10).id.to_string();
    let output = |offset, data: Bytes, stream: i32| {
        Kind::Output(v1::Output {
            operation: id.clone(),
            stream,
            offset,
            data,
        })
    };
    let accepted = || {
        Kind::Accepted(v1::Accepted {
            operation: id.clone(),
            journal_sequence: 0,
        })
    };
    let ended = |outcome| {
        Kind::Ended(v1::Ended {
            operation: id.clone(),
            outcome,
        })
    };
    let read = v1::ended::Outcome::Read(v1::ReadContent::default());
    let bare_exit = v1::ended::Outcome::Exited(v1::ExitRecord::default());
    let text = Bytes::from_static(b"x");
    let large = Bytes::from(vec![0; OUTPUT_CHUNK_BYTES + 1]);
    let cases: Vec<(Vec<Kind>, &str)> = vec![
        (vec![Kind::Hello(Box::default())], "second first message"),
        (vec![output(0, text.clone(), 1)], "before it was accepted"),
        (vec![accepted(), output(1, text.clone(), 1)], "hole"),
        (vec![accepted(), output(0, text.clone(), 0)], "stream 0"),
        (vec![accepted(), output(0, large, 1)], "at most 65536"),
        (vec![accepted(), accepted()], "accepted twice"),
        (vec![ended(Some(read.clone()))], "another kind"),
        (vec![accepted(), ended(Some(read))], "another kind"),
        (vec![accepted(), ended(Some(bare_exit))], "cause"),
        (vec![accepted(), ended(None)], "no known outcome"),
        (
            vec![Kind::Accepted(v1::Accepted {
                operation: "op_?".to_owned(),
                journal_sequence: 0,
            })],
            "id cannot be read",
        ),
        (
            vec![Kind::Gap(v1::Gap {
                operation: "op_1".to_owned(),
                stream: 1,
                from: 2,
                to: 1,
            })],
            "id cannot be read",
        ),
        (
            vec![Kind::CancelAnswer(v1::CancelAnswer {
                operation: id.clone(),
                answer: 0,
                refusal: None,
            })],
            "says nothing",
        ),
    ];
    for (frames, why) in cases {
        let world = World::new();
        let runner = Runner::new(1, "one");
        let mut link = world.link(&runner).await;
        world.store.choose(&runner);
        let mut running = world.sandbox.start(exec(10)).await.expect("it starts");
        link.operation().await;
        for frame in frames {
            link.send(frame).await;
        }
        let (reason, end) = link.goodbye().await;
        assert!(reason.contains(why), "{why}: {reason}");
        assert_eq!(end, LinkEnd::Violation(reason));
        // The operation itself goes on.
        let event = next(&mut running).await;
        assert!(matches!(event, OperationEvent::Unreachable { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn frames_for_nobody_and_unknown_kinds_are_ignored() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    let stranger = exec(99).id.to_string();
    link.accept(&stranger).await;
    link.output(&stranger, 1234, "who reads this?").await;
    link.exit(&stranger, 1249).await;
    link.answer_cancel(&stranger, v1::cancel_answer::Answer::Cancelled)
        .await;
    link.send_unknown().await;
    world.store.choose(&runner);
    let _running = world.sandbox.start(exec(10)).await.expect("it starts");
    assert_eq!(link.operation().await.operation, exec(10).id.to_string());
}
