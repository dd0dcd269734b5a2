use std::time::Duration;

use bytes::Bytes;
use proto::v1;
use shared_sandbox::{
    CancelAnswer, Operation, OperationEvent, Outcome, OutputStream, Read, ReadContent, Request,
    Sandbox, Write,
};
use shared_types::{
    Epoch, Isolation, RefusalCode, Timestamp,
    isolation::Property,
    limits::{CREDIT_WINDOW_BYTES, MAX_FRAME_BYTES, OUTPUT_CHUNK_BYTES},
};

use super::double::*;
use crate::bounds::END_TAKEN_WITHIN;

#[tokio::test(start_paused = true)]
async fn an_operation_runs_on_the_chosen_of_two_runners_and_the_record_says_so() {
    let world = World::new();
    let (one, two) = (Runner::new(1, "one"), Runner::new(2, "two"));
    let (mut first, mut second) = (world.link(&one).await, world.link(&two).await);
    world.store.choose(&two);
    let operation = exec(10);
    let mut running = world
        .sandbox
        .start(operation.clone())
        .await
        .expect("it starts");
    assert_eq!(running.place.runner, two.id);
    let frame = second.operation().await;
    let stored = world.store.rows().intents[&operation.id].clone();
    assert_eq!(stored.place, running.place);
    assert_eq!(frame.operation, operation.id.to_string());
    assert_eq!(frame.digest, stored.digest.as_bytes());
    assert_eq!(frame.start_within_ms, 60_000);
    assert_eq!(frame.run_for_ms, 120_000);
    assert!(matches!(
        frame.request,
        Some(v1::operation::Request::Exec(_))
    ));
    second.accept(&frame.operation).await;
    second.output(&frame.operation, 0, "hello").await;
    second.exit(&frame.operation, 5).await;
    assert_eq!(next(&mut running).await, stdout(0, "hello"));
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(5)));
    drop(running);
    eventually(|| world.store.outcome(&operation) == Some(exited(5))).await;
    assert!(!first.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn an_offline_choice_is_an_error_that_says_since_when_and_nothing_runs_anywhere() {
    let world = World::new();
    let (chosen, other) = (Runner::new(1, "chosen"), Runner::new(2, "other"));
    let since = Timestamp::from_micros(1_700_000_000_000_000);
    world.store.enrol(&chosen, since);
    world.store.choose(&chosen);
    let mut link = world.link(&other).await;
    let refusal = world.sandbox.start(exec(10)).await.expect_err("it is off");
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    let since = format!("{since:.0}");
    assert!(refusal.message.contains(&since), "{refusal}");
    assert!(world.store.rows().intents.is_empty());
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_the_store_still_believes_online_is_refused_before_anything_is_stored() {
    let (world, runner, link) = World::chosen().await;
    world.lose(&runner, link).await;
    world.store.believe_online(&runner);
    let refusal = world.sandbox.start(exec(10)).await.expect_err("it is off");
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert!(world.store.rows().intents.is_empty());
}

#[tokio::test(start_paused = true)]
async fn missing_isolation_is_named_and_nothing_is_sent() {
    let (world, _runner, mut link) = World::chosen().await;
    world.store.rows().demanded = Isolation::of([Property::Network]);
    let refusal = world.sandbox.start(exec(10)).await.expect_err("not proved");
    assert_eq!(refusal.code, RefusalCode::ForbiddenByRunnerPolicy);
    assert!(refusal.message.contains("network"));
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn the_same_id_with_another_request_is_a_conflict() {
    let (world, _runner, mut link) = World::chosen().await;
    let _running = world.sandbox.start(exec(10)).await.expect("it starts");
    link.operation().await;
    let mut other = exec(11);
    other.id = exec(10).id;
    let refusal = world.sandbox.start(other).await.expect_err("it is taken");
    assert_eq!(refusal.code, RefusalCode::Conflict);
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn of_two_starts_at_once_one_places_the_operation_and_the_other_attaches_to_it() {
    let (world, _runner, mut link) = World::chosen().await;
    let starts = tokio::join!(world.sandbox.start(exec(10)), world.sandbox.start(exec(10)));
    let (Ok(_one), Ok(_other)) = starts else {
        panic!("both start it");
    };
    let sent = link.operation().await;
    assert!(sent.request.is_some());
    assert_eq!(sent.operation, exec(10).id.to_string());
    assert_eq!(world.store.rows().intents.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_links_anew_while_it_is_asked_is_sent_nothing() {
    let (world, runner, mut link) = World::chosen().await;
    // The store has read of the link that has gone.
    let known = runner.rebooted().incarnation;
    world.store.believe(&runner, known);
    let refusal = world
        .sandbox
        .start(exec(10))
        .await
        .expect_err("it is not the one");
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert!(refusal.message.contains("linked anew"), "{refusal}");
    assert!(world.store.rows().intents.is_empty());
    assert!(!link.has_been_sent_something());
}

#[tokio::test(start_paused = true)]
async fn what_has_not_ended_is_not_forgotten() {
    let (world, _runner, mut link) = World::chosen().await;
    let (running, _) = world.begin(&mut link, exec(10)).await;
    drop(running);
    world.sandbox.forget(exec(10).id).await;
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    assert_eq!(link.operation().await.operation, exec(11).id.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_frame_can_carry_is_refused_before_it_is_stored() {
    let (world, _runner, _link) = World::chosen().await;
    let mut operation = exec(10);
    operation.request = Request::Write(Write {
        path: "f".to_owned(),
        content: vec![0; MAX_FRAME_BYTES],
    });
    let refusal = world.sandbox.start(operation).await.expect_err("too large");
    assert_eq!(refusal.code, RefusalCode::Invalid);
    assert!(world.store.rows().intents.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_runner_refuses_is_the_operations_stored_end() {
    let (world, _runner, mut link) = World::chosen().await;
    let operation = exec(10);
    let mut running = world
        .sandbox
        .start(operation.clone())
        .await
        .expect("it starts");
    let frame = link.operation().await;
    link.refuse(&frame.operation, v1::refusal::Code::Draining)
        .await;
    let OperationEvent::Ended(Outcome::Refused(refusal)) = next(&mut running).await else {
        panic!("it is refused");
    };
    assert_eq!(refusal.code, RefusalCode::Draining);
    assert_eq!(
        world.store.outcome(&operation),
        Some(Outcome::Refused(refusal))
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_holds_up_nothing_and_a_runner_that_goes_beyond_its_credit_is_cut_off() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    let chunk = Bytes::from(vec![b'x'; OUTPUT_CHUNK_BYTES]);
    for offset in (0..CREDIT_WINDOW_BYTES).step_by(OUTPUT_CHUNK_BYTES) {
        link.output(&id, offset, chunk.clone()).await;
    }
    // Nobody has read any of it.
    let mut credit = 0;
    while credit < 3 * CREDIT_WINDOW_BYTES / 2 {
        credit = link.credit().await.up_to;
    }
    let mut taken = 0;
    while taken < CREDIT_WINDOW_BYTES {
        match next(&mut running).await {
            OperationEvent::Output { offset, data, .. } => {
                assert_eq!(offset, taken);
                taken += data.len() as u64;
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    let far = 2 * CREDIT_WINDOW_BYTES + 1 - OUTPUT_CHUNK_BYTES as u64;
    for offset in (CREDIT_WINDOW_BYTES..far).step_by(OUTPUT_CHUNK_BYTES) {
        link.output(&id, offset, chunk.clone()).await;
    }
    link.output(&id, 3 * CREDIT_WINDOW_BYTES, chunk).await;
    let end = loop {
        match link.next().await {
            v1::server_frame::Kind::Credit(_) | v1::server_frame::Kind::Commit(_) => {}
            v1::server_frame::Kind::Goodbye(goodbye) => break goodbye.reason,
            other => panic!("unexpected {other:?}"),
        }
    };
    assert!(!end.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_loud_operation_that_nobody_reads_does_not_starve_a_quiet_one() {
    let (world, _runner, mut link) = World::chosen().await;
    let _loud = world.sandbox.start(exec(10)).await.expect("it starts");
    let loud = link.operation().await.operation;
    let mut quiet_one = world.sandbox.start(exec(11)).await.expect("it starts");
    let quiet = link.operation().await.operation;
    link.accept(&loud).await;
    link.accept(&quiet).await;
    let chunk = Bytes::from(vec![b'x'; OUTPUT_CHUNK_BYTES]);
    for offset in (0..CREDIT_WINDOW_BYTES).step_by(OUTPUT_CHUNK_BYTES) {
        link.output(&loud, offset, chunk.clone()).await;
    }
    link.output(&quiet, 0, "psst").await;
    link.exit(&quiet, 4).await;
    assert_eq!(next(&mut quiet_one).await, stdout(0, "psst"));
    assert_eq!(next(&mut quiet_one).await, OperationEvent::Ended(exited(4)));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_stored_although_its_reader_has_gone() {
    let (world, _runner, mut link) = World::chosen().await;
    let operation = exec(10);
    let running = world
        .sandbox
        .start(operation.clone())
        .await
        .expect("it starts");
    let id = link.operation().await.operation;
    drop(running);
    link.accept(&id).await;
    link.output(&id, 0, "unheard").await;
    link.exit(&id, 7).await;
    eventually(|| world.store.outcome(&operation) == Some(exited(7))).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_has_the_token_may_store_the_end_and_a_dropped_one_goes_back() {
    let (world, _runner, mut link) = World::chosen().await;
    for (number, stores_it) in [(10, true), (11, false)] {
        let operation = exec(number);
        let (mut running, id) = world.begin(&mut link, operation.clone()).await;
        let mut other = world
            .sandbox
            .read(operation.id, [0, 0])
            .await
            .expect("it runs");
        link.exit(&id, 0).await;
        assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
        assert_eq!(other.events.end_token().map(drop), None);
        let token = running
            .events
            .end_token()
            .expect("it is the one that asked");
        drop(running);
        tokio::time::sleep(2 * END_TAKEN_WITHIN).await;
        assert_eq!(world.store.outcome(&operation), None, "it is held");
        match stores_it {
            true => {
                world.store.keep_end(&operation, exited(0));
                token.spend();
            }
            false => drop(token),
        }
        assert_eq!(next(&mut other).await, OperationEvent::Ended(exited(0)));
        assert_eq!(world.store.outcome(&operation), Some(exited(0)));
        assert_eq!(link.forgets().await, id);
    }
    assert_eq!(
        world.store.rows().settled,
        1,
        "only what nobody else stored"
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_that_its_reader_does_not_take_in_time_is_stored_without_it() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    link.exit(&id, 0).await;
    tokio::time::sleep(END_TAKEN_WITHIN / 2).await;
    assert_eq!(world.store.outcome(&exec(10)), None);
    eventually(|| world.store.outcome(&exec(10)) == Some(exited(0))).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    assert!(running.events.end_token().is_none());
}

#[tokio::test(start_paused = true)]
async fn where_another_end_is_stored_that_one_stays_and_is_told_to_everybody_else() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    world.store.keep_end(&exec(10), exited(7));
    link.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    // Its holder cannot store it, and asks again.
    drop(running);
    let mut again = world.sandbox.start(exec(10)).await.expect("it is stored");
    let told = loop {
        if let OperationEvent::Ended(told) = next(&mut again).await {
            break told;
        }
    };
    assert_eq!(told, exited(7));
    assert!(again.events.end_token().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_second_start_is_told_all_and_takes_the_token_over() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut first, id) = world.begin(&mut link, exec(10)).await;
    link.output(&id, 0, "abc").await;
    assert_eq!(next(&mut first).await, stdout(0, "abc"));
    let mut second = world.sandbox.start(exec(10)).await.expect("it attaches");
    assert_eq!(next(&mut second).await, stdout(0, "abc"));
    link.output(&id, 3, "late").await;
    link.exit(&id, 7).await;
    for running in [&mut first, &mut second] {
        assert_eq!(next(running).await, stdout(3, "late"));
    }
    assert_eq!(next(&mut second).await, OperationEvent::Ended(exited(7)));
    let token = second.events.end_token().expect("it asked last");
    world.store.keep_end(&exec(10), exited(7));
    token.spend();
    assert_eq!(next(&mut first).await, OperationEvent::Ended(exited(7)));
    assert!(first.events.end_token().is_none());
    assert_eq!(link.forgets().await, id, "it was asked for once");
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_under_an_older_epoch_than_another_is_refused() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    let newer = Operation {
        epoch: Epoch(2),
        ..exec(10)
    };
    let mut newer = world.sandbox.start(newer).await.expect("it attaches");
    let refused = world
        .sandbox
        .start(exec(10))
        .await
        .expect_err("it is older");
    assert_eq!(refused.code, RefusalCode::StaleEpoch);
    link.exit(&id, 0).await;
    assert_eq!(next(&mut newer).await, OperationEvent::Ended(exited(0)));
    drop(newer);
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    assert!(running.events.end_token().is_none());
}

#[tokio::test(start_paused = true)]
async fn output_that_is_not_what_was_written_is_told_as_such_unless_some_of_it_is_missing() {
    // CRC-32 of "abc".
    let written = 0x3524_41c2;
    for (number, checksum, gap, honest) in [
        (10, written, false, true),
        (11, written ^ 1, false, false),
        (12, written ^ 1, true, true),
    ] {
        let world = World::new();
        let runner = Runner::new(1, "one");
        let mut link = world.link(&runner).await;
        world.store.choose(&runner);
        let mut running = world.sandbox.start(exec(number)).await.expect("it starts");
        let id = link.operation().await.operation;
        link.accept(&id).await;
        link.output(&id, 0, "ab").await;
        assert_eq!(next(&mut running).await, stdout(0, "ab"));
        match gap {
            true => link.gap(&id, 2, 3).await,
            false => link.output(&id, 2, "c").await,
        }
        next(&mut running).await;
        link.exit_with(&id, 3, Some(checksum)).await;
        let OperationEvent::Ended(outcome) = next(&mut running).await else {
            panic!("it ends");
        };
        match outcome {
            Outcome::Exited(_) => assert!(honest),
            Outcome::Refused(refusal) => {
                assert!(!honest);
                assert_eq!(refusal.code, RefusalCode::Lost);
                assert!(refusal.message.contains("checksums"), "{refusal}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_recorded_and_answered_by_the_runner() {
    let (world, _runner, mut link) = World::chosen().await;
    let operation = exec(10);
    let unknown = world.sandbox.cancel(operation.id, Epoch(1)).await;
    let refused = unknown.expect_err("nothing is promised of what may be started later");
    assert_eq!(refused.code, RefusalCode::NotFound);
    let (mut running, id) = world.begin(&mut link, operation.clone()).await;
    let (sandbox, asked) = (world.sandbox.clone(), operation.id);
    let cancel = tokio::spawn(async move { sandbox.cancel(asked, Epoch(3)).await });
    let frame = link.cancel().await;
    assert_eq!((frame.operation.as_str(), frame.epoch), (id.as_str(), 3));
    assert_eq!(frame.owner, operation.owner.to_string());
    assert!(world.store.rows().intents[&operation.id].cancel_requested);
    link.answer_cancel(&id, v1::cancel_answer::Answer::Cancelled)
        .await;
    let answer = within(cancel).await.expect("it does not panic");
    assert_eq!(answer, Ok(CancelAnswer::Cancelled));
    link.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    world.store.keep_end(&operation, exited(0));
    let again = world.sandbox.cancel(operation.id, Epoch(3)).await;
    assert_eq!(again, Ok(CancelAnswer::AlreadyExited));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_the_runner_does_not_answer_counts_as_recorded() {
    let world = World::with(crate::links::LinkOptions {
        cancel_within: Duration::from_millis(20),
        ..Default::default()
    });
    let runner = Runner::new(1, "one");
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let _running = world.sandbox.start(exec(10)).await.expect("it starts");
    link.operation().await;
    let answer = world.sandbox.cancel(exec(10).id, Epoch(1)).await;
    assert_eq!(answer, Ok(CancelAnswer::Recorded));
}

#[tokio::test(start_paused = true)]
async fn a_stored_result_of_a_file_operation_needs_no_runner() {
    let (world, runner, mut link) = World::chosen().await;
    let mut operation = exec(10);
    operation.request = Request::Read(Read {
        path: "f".to_owned(),
        first_line: 1,
        max_lines: 10,
        max_bytes: 100,
    });
    let (mut running, id) = world.begin(&mut link, operation.clone()).await;
    let content = v1::ReadContent {
        content: b"text".to_vec(),
        first_line: 1,
        lines: 1,
        file_bytes: 4,
        more: false,
        digest: None,
    };
    link.end(&id, v1::ended::Outcome::Read(content)).await;
    let read = Outcome::Read(ReadContent {
        content: b"text".to_vec(),
        first_line: 1,
        lines: 1,
        file_bytes: 4,
        more: false,
        digest: None,
    });
    assert_eq!(
        next(&mut running).await,
        OperationEvent::Ended(read.clone())
    );
    drop(running);
    eventually(|| world.store.outcome(&operation).is_some()).await;
    world.lose(&runner, link).await;
    let mut again = world.sandbox.start(operation).await.expect("it is stored");
    assert_eq!(next(&mut again).await, OperationEvent::Ended(read));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_output_the_runner_has_forgotten_comes_with_a_gap() {
    let (world, _runner, mut link) = World::chosen().await;
    let operation = exec(10);
    drop(
        world
            .sandbox
            .start(operation.clone())
            .await
            .expect("it starts"),
    );
    let id = link.operation().await.operation;
    link.accept(&id).await;
    link.exit(&id, 0).await;
    assert_eq!(link.forgets().await, id);
    world.collects_nothing().await;
    // The outcome that is stored had output, which nobody read.
    let stored = Some(exited(9));
    world
        .store
        .rows()
        .intents
        .entry(operation.id)
        .and_modify(|intent| intent.outcome = stored);
    let mut again = world
        .sandbox
        .start(operation.clone())
        .await
        .expect("it is stored");
    let frame = link.operation().await;
    assert_eq!(frame.request, None, "it must not start a second time");
    assert_eq!(frame.start_within_ms, 0);
    link.refuse(&id, v1::refusal::Code::NotFound).await;
    let gap = OperationEvent::Gap {
        stream: OutputStream::Stdout,
        from: 0,
        to: 9,
    };
    assert_eq!(next(&mut again).await, gap);
    assert_eq!(next(&mut again).await, OperationEvent::Ended(exited(9)));
}

#[tokio::test(start_paused = true)]
async fn the_runner_may_forget_an_operation_once_its_end_is_stored_and_not_before() {
    let (world, _runner, mut link) = World::chosen().await;
    let (mut running, id) = world.begin(&mut link, exec(10)).await;
    link.exit(&id, 0).await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(exited(0)));
    let token = running
        .events
        .end_token()
        .expect("it is the one that asked");
    // Whatever was to be said of it would come before another operation.
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    assert_eq!(link.operation().await.operation, exec(11).id.to_string());
    drop(token);
    assert_eq!(link.forgets().await, id);
    assert_eq!(world.store.outcome(&exec(10)), Some(exited(0)));
}
