use std::collections::{BTreeSet, HashMap};

use proto::v1::{self, server_frame};
use shared_sandbox::{CancelAnswer, OperationEvent, Outcome, Running, Sandbox};
use shared_types::{Epoch, RefusalCode};

use super::double::*;
use crate::links::LinkEnd;

pub(super) async fn assert_ends_with(running: &mut Running, code: RefusalCode) {
    match next(running).await {
        OperationEvent::Ended(Outcome::Refused(refusal)) => assert_eq!(refusal.code, code),
        other => panic!("expected {code:?}, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_lost_in_the_middle_of_output_loses_and_repeats_nothing() {
    let (world, runner, mut link) = World::chosen().await;
    let operation = exec(10);
    let (mut running, id) = world.begin(&mut link, operation.clone()).await;
    link.output(&id, 0, "one ").await;
    assert_eq!(next(&mut running).await, stdout(0, "one "));
    world.lose(&runner, link).await;
    let since = NOW;
    assert_eq!(
        next(&mut running).await,
        OperationEvent::Unreachable { since }
    );

    let mut link = world.link(&runner.remembering(&operation, false)).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    let frame = link.operation().await;
    assert_eq!(frame.stdout_from, 4);
    link.accept(&id).await;
    // It repeats more than it was asked for.
    link.output(&id, 0, "one two").await;
    link.exit(&id, 7).await;
    assert_eq!(next(&mut running).await, stdout(4, "two"));
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(7)));
}

#[tokio::test(start_paused = true)]
async fn a_new_server_attaches_to_what_runs_and_reads_it_from_the_beginning() {
    let (world, runner, mut link) = World::chosen().await;
    let operation = exec(10);
    drop(
        world
            .sandbox
            .start(operation.clone())
            .await
            .expect("it starts"),
    );
    link.operation().await;
    world.lose(&runner, link).await;

    // The intent is all that the new server has; the runner links after the turn has resumed.
    let restarted = World::new();
    let intent = world.store.rows().intents[&operation.id].clone();
    restarted.store.rows().intents.insert(operation.id, intent);
    restarted.store.choose(&runner);
    let mut running = restarted
        .sandbox
        .start(operation.clone())
        .await
        .expect("it attaches");
    let OperationEvent::Unreachable { .. } = next(&mut running).await else {
        panic!("the runner is away");
    };
    let mut link = restarted.link(&runner.remembering(&operation, true)).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    let id = link.operation().await.operation;
    link.accept(&id).await;
    link.output(&id, 0, "whole").await;
    link.exit(&id, 5).await;
    assert_eq!(next(&mut running).await, stdout(0, "whole"));
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(5)));
}

#[tokio::test(start_paused = true)]
async fn an_end_that_knows_of_less_output_than_came_is_lost() {
    let (world, runner, link) = World::chosen().await;
    let mut link = link;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    link.output(&id, 0, "out\n").await;
    assert_eq!(next(&mut running).await, stdout(0, "out\n"));
    world.lose(&runner, link).await;
    let OperationEvent::Unreachable { .. } = next(&mut running).await else {
        panic!("the runner is away");
    };
    // Its host has died, and what it had written last had not reached the disk.
    let mut link = world.link(&runner.remembering(&exec(10), true)).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    assert_eq!(link.operation().await.stdout_from, 4);
    link.accept(&id).await;
    link.exit_with(&id, 2, Some(7)).await;
    let OperationEvent::Ended(Outcome::Refused(refusal)) = next(&mut running).await else {
        panic!("the end is not of what came");
    };
    assert_eq!(refusal.code, RefusalCode::Lost);
    assert!(
        refusal.message.contains("more of its stdout came"),
        "{refusal:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_runner_with_another_memory_loses_the_operation_and_is_sent_nothing() {
    let (world, runner, mut link) = World::chosen().await;
    let operation = exec(10);
    let mut running = world
        .sandbox
        .start(operation.clone())
        .await
        .expect("it starts");
    link.operation().await;
    world.lose(&runner, link).await;
    let OperationEvent::Unreachable { .. } = next(&mut running).await else {
        panic!("the runner is away");
    };
    let mut link = world.link(&runner.restarted()).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    assert_ends_with(&mut running, RefusalCode::Lost).await;
    let mut again = world
        .sandbox
        .start(operation.clone())
        .await
        .expect("it is stored");
    assert_ends_with(&mut again, RefusalCode::Lost).await;
    assert!(matches!(
        world.store.outcome(&operation),
        Some(Outcome::Refused(refusal)) if refusal.code == RefusalCode::Lost
    ));
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn what_a_rebooted_runner_remembers_ends_with_its_outcome_and_is_not_started_again() {
    let (world, runner, mut link) = World::chosen().await;
    let operation = exec(10);
    let (mut running, id) = world.begin(&mut link, operation.clone()).await;
    link.output(&id, 0, "one ").await;
    assert_eq!(next(&mut running).await, stdout(0, "one "));
    world.lose(&runner, link).await;
    let OperationEvent::Unreachable { .. } = next(&mut running).await else {
        panic!("the runner is away");
    };

    let rebooted = runner.rebooted().remembering(&operation, true);
    let mut link = world.link(&rebooted).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    let frame = link.operation().await;
    assert_eq!((frame.request, frame.start_within_ms), (None, 0));
    assert_eq!(frame.stdout_from, 4);
    assert_eq!(frame.incarnation, Some((&rebooted.incarnation).into()));
    link.accept(&id).await;
    link.output(&id, 4, "two").await;
    link.exit(&id, 7).await;
    assert_eq!(next(&mut running).await, stdout(4, "two"));
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(7)));
    drop(running);
    eventually(|| world.store.outcome(&operation) == Some(exited(7))).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_rebooted_runner_does_not_find_after_all_is_lost() {
    let (world, runner, mut link) = World::chosen().await;
    let mut running = world.sandbox.start(exec(10)).await.expect("it starts");
    link.operation().await;
    world.lose(&runner, link).await;
    let OperationEvent::Unreachable { .. } = next(&mut running).await else {
        panic!("the runner is away");
    };
    let rebooted = runner.rebooted().remembering(&exec(10), true);
    let mut link = world.link(&rebooted).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    let id = link.operation().await.operation;
    link.refuse(&id, v1::refusal::Code::NotFound).await;
    assert_ends_with(&mut running, RefusalCode::Lost).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_what_a_rebooted_runner_remembers_is_answered_by_it() {
    let (world, runner, mut link) = World::chosen().await;
    let operation = exec(10);
    drop(
        world
            .sandbox
            .start(operation.clone())
            .await
            .expect("it starts"),
    );
    link.operation().await;
    world.lose(&runner, link).await;
    let rebooted = runner.rebooted().remembering(&operation, true);
    let mut link = world.link(&rebooted).await;
    link.operation().await;
    let sandbox = world.sandbox.clone();
    let cancel = tokio::spawn(async move { sandbox.cancel(operation.id, Epoch(1)).await });
    let frame = link.cancel().await;
    assert_eq!(frame.incarnation, Some((&rebooted.incarnation).into()));
    let exited = v1::cancel_answer::Answer::AlreadyExited;
    link.answer_cancel(&frame.operation, exited).await;
    let answer = within(cancel).await.expect("it does not panic");
    assert_eq!(answer, Ok(CancelAnswer::AlreadyExited));
}

#[tokio::test(start_paused = true)]
async fn a_stored_operation_stays_on_its_runner_when_another_is_chosen_meanwhile() {
    let world = World::new();
    let (one, two) = (Runner::new(1, "one"), Runner::new(2, "two"));
    let (mut first, mut second) = (world.link(&one).await, world.link(&two).await);
    world.store.choose(&one);
    drop(world.sandbox.start(exec(10)).await.expect("it starts"));
    first.operation().await;
    world.store.choose(&two);
    let running = world.sandbox.start(exec(10)).await.expect("it attaches");
    assert_eq!(running.place.runner, one.id);
    assert!(!first.has_been_sent_something(), "it was sent before");
    assert!(!second.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_the_runner_is_away_is_recorded_and_sent_when_it_is_back() {
    let (world, runner, mut link) = World::chosen().await;
    let operation = exec(10);
    let running = world
        .sandbox
        .start(operation.clone())
        .await
        .expect("it starts");
    let id = link.operation().await.operation;
    world.lose(&runner, link).await;
    let answer = world.sandbox.cancel(operation.id, Epoch(1)).await;
    assert_eq!(answer, Ok(CancelAnswer::Recorded));
    drop(running);

    let mut link = world.link(&runner.remembering(&operation, false)).await;
    // Once as the answer to the inventory, and once before it is attached to.
    assert_eq!(link.cancel().await.operation, id);
    assert_eq!(link.cancel().await.operation, id);
    // Nobody reads it any more, but its end is collected.
    let frame = link.operation().await;
    assert_eq!((frame.operation, frame.request), (id.clone(), None));
    link.accept(&id).await;
    link.output(&id, 0, "partly").await;
    link.exit(&id, 6).await;
    eventually(|| world.store.outcome(&operation) == Some(exited(6))).await;
}

#[tokio::test(start_paused = true)]
async fn a_wish_to_stop_that_was_recorded_and_not_sent_goes_before_whoever_attaches() {
    let (world, runner, mut link) = World::chosen().await;
    let (running, id) = world.begin(&mut link, exec(10)).await;
    drop(running);
    world.lose(&runner, link).await;
    let world = world.restarted();
    let mut link = world.link(&runner).await;
    {
        let mut rows = world.store.rows();
        let intent = rows.intents.get_mut(&exec(10).id);
        intent.expect("it was placed").cancel_requested = true;
    }
    let attached = world.sandbox.start(exec(10)).await;
    assert_eq!(link.cancel().await.operation, id);
    let frame = link.operation().await;
    assert_eq!((frame.operation, frame.request), (id, None));
    attached.expect("it attaches");
}

#[tokio::test(start_paused = true)]
async fn what_was_to_be_stopped_before_its_runner_had_it_never_starts() {
    let (world, runner, mut link) = World::chosen().await;
    let mut running = world.sandbox.start(exec(10)).await.expect("it starts");
    link.operation().await;
    world.lose(&runner, link).await;
    let OperationEvent::Unreachable { .. } = next(&mut running).await else {
        panic!("the runner is away");
    };
    let answer = world.sandbox.cancel(exec(10).id, Epoch(1)).await;
    assert_eq!(answer, Ok(CancelAnswer::Recorded));
    // The runner never got it, so its inventory does not name it.
    let mut link = world.link(&runner).await;
    assert_eq!(next(&mut running).await, OperationEvent::Reachable);
    assert_ends_with(&mut running, RefusalCode::Fenced).await;
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn an_operation_on_a_runner_that_was_revoked_while_away_is_lost() {
    let (world, runner, mut link) = World::chosen().await;
    drop(world.sandbox.start(exec(10)).await.expect("it starts"));
    link.operation().await;
    world.lose(&runner, link).await;
    // Nobody follows it when the revocation comes, and a new server has never seen the runner.
    let restarted = World::new();
    let intent = world.store.rows().intents[&exec(10).id].clone();
    restarted.store.rows().intents.insert(exec(10).id, intent);
    restarted.store.enrol(&runner, NOW);
    restarted.store.revoke(&runner);
    let mut running = restarted
        .sandbox
        .start(exec(10))
        .await
        .expect("it is stored");
    assert_ends_with(&mut running, RefusalCode::Lost).await;
}

#[tokio::test(start_paused = true)]
async fn revoking_a_runner_ends_its_link_and_its_operations_at_once() {
    let (world, runner, mut link) = World::chosen().await;
    let (mut running, _) = world.begin(&mut link, exec(10)).await;
    world.links.revoke(runner.id).await;
    let (reason, _) = link.goodbye().await;
    assert!(reason.contains("revoked"));
    assert_ends_with(&mut running, RefusalCode::Lost).await;
    let (reason, _) = world.dial(&runner, runner.hello()).goodbye().await;
    assert!(reason.contains("revoked"));
}

#[tokio::test(start_paused = true)]
async fn locking_a_runner_ends_its_link_and_what_runs_on_it_is_lost_only_once_it_is_revoked() {
    let (world, runner, mut link) = World::chosen().await;
    let (mut running, _) = world.begin(&mut link, exec(10)).await;
    let gate = world.links.gate(runner.id).await;
    world.links.lock(runner.id).await;
    let (reason, end) = link.goodbye().await;
    assert!(reason.contains("locked") && end == LinkEnd::Locked);
    assert_eq!(gate.while_open(|| ()), None);
    let event = next(&mut running).await;
    assert!(matches!(event, OperationEvent::Unreachable { .. }));
    world.links.unbar(runner.id).await;
    let (_, end) = world.dial(&runner, runner.hello()).goodbye().await;
    assert_eq!(end, LinkEnd::Locked);
    assert_eq!(world.store.outcome(&exec(10)), None);
    world.links.revoke(runner.id).await;
    assert_ends_with(&mut running, RefusalCode::Lost).await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_about_to_be_removed_is_given_no_tickets_and_lives_if_it_stays() {
    let world = World::new();
    let runner = Runner::new(1, "one");
    let link = world.link(&runner).await;
    let gate = world.links.gate(runner.id).await;
    world.links.bar(runner.id).await;
    assert_eq!(gate.while_open(|| ()), None);
    let same = world.links.gate(runner.id).await;
    assert_eq!(same.while_open(|| ()), None);
    world.links.unbar(runner.id).await;
    // What was to be sent meanwhile is sent over the next link.
    let (_, end) = link.goodbye().await;
    assert!(matches!(end, LinkEnd::Failed(_)), "{end:?}");
    assert_eq!(gate.while_open(|| ()), None, "nor does the old link's open");
    world.link(&runner).await;
    let gate = world.links.gate(runner.id).await;
    assert_eq!(gate.while_open(|| ()), Some(()));
    world.links.revoke(runner.id).await;
    world.links.unbar(runner.id).await;
    let revoked = world.links.gate(runner.id).await;
    assert!(revoked.while_open(|| ()).is_none() && gate.while_open(|| ()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_revoked_runner_without_operations_is_told_why_its_link_ends() {
    let world = World::new();
    for number in 1..=20 {
        let runner = Runner::new(number, "one");
        let link = world.link(&runner).await;
        world.links.revoke(runner.id).await;
        let (reason, end) = link.goodbye().await;
        assert!(reason.contains("revoked"), "{reason}");
        assert_eq!(end, LinkEnd::Revoked);
    }
}

#[tokio::test(start_paused = true)]
async fn the_inventory_is_answered_before_anything_else_is_sent() {
    let (world, runner, mut link) = World::chosen().await;
    let (kept, abandoned, unknown) = (exec(10), exec(11), exec(12));
    let _running = world.sandbox.start(kept.clone()).await.expect("it starts");
    link.operation().await;
    drop(
        world
            .sandbox
            .start(abandoned.clone())
            .await
            .expect("it starts"),
    );
    link.operation().await;
    world.lose(&runner, link).await;
    world.store.rows().abandoned.push(abandoned.id);

    let back = runner
        .remembering(&kept, false)
        .remembering(&abandoned, true)
        .remembering(&unknown, true);
    let mut link = world.link(&back).await;
    let forget = v1::Forget {
        operation: unknown.id.to_string(),
    };
    assert_eq!(link.next().await, server_frame::Kind::Forget(forget));
    let frames = [link.operation().await, link.operation().await];
    for frame in frames {
        let is_kept = frame.operation == kept.id.to_string();
        assert_eq!(frame.request.is_some(), is_kept);
        if !is_kept {
            link.accept(&frame.operation).await;
            link.exit(&frame.operation, 0).await;
        }
    }
    let forget = v1::Forget {
        operation: abandoned.id.to_string(),
    };
    assert_eq!(link.next().await, server_frame::Kind::Forget(forget));
    assert_eq!(world.store.outcome(&abandoned), Some(exited(0)));
    assert_eq!(world.store.outcome(&kept), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_overtakes_the_answers_that_a_slow_runner_has_not_taken_yet() {
    const REMEMBERED: u128 = 150;
    let world = World::new();
    let mut runner = Runner::new(1, "one");
    runner.inventory = (100..100 + REMEMBERED)
        .map(|number| (exec(number).id, true))
        .collect();
    let mut link = world.dial(&runner, runner.hello());
    let mut presence = world.links.presence(runner.id).await;
    within(presence.until(true)).await;
    world.store.choose(&runner);
    // They are more than there is room for on the way, so these wait behind them.
    let mut running = HashMap::new();
    for number in 10..13 {
        let started = world.sandbox.start(exec(number)).await.expect("it starts");
        running.insert(exec(number).id.to_string(), started);
    }

    assert!(matches!(link.next().await, server_frame::Kind::Welcome(_)));
    for _ in 0..REMEMBERED {
        let frame = link.next().await;
        assert!(matches!(frame, server_frame::Kind::Forget(_)), "{frame:?}");
    }
    while !running.is_empty() {
        let id = link.operation().await.operation;
        link.accept(&id).await;
        link.exit(&id, 0).await;
        let mut running = running
            .remove(&id)
            .expect("it was started, and is sent once");
        assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_room_on_a_link_that_takes_nothing_goes_on_over_the_next() {
    let (world, runner, link) = World::chosen().await;
    // More than wait for the connection.
    let operations: Vec<_> = (100..200).map(exec).collect();
    for operation in &operations {
        let started = world.sandbox.start(operation.clone()).await;
        drop(started.expect("it starts"));
    }
    let dark = link.go_dark();
    let mut presence = world.links.presence(runner.id).await;
    within(presence.until(false)).await;

    let mut link = world.link(&runner).await;
    let mut asked = BTreeSet::new();
    for _ in &operations {
        asked.insert(link.operation().await.operation);
    }
    assert_eq!(asked.len(), operations.len());
    drop(dark);
}
