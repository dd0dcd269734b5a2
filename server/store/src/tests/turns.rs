use std::task::Poll;

use server_records::{IfRunning, NextTurn, TurnState, WaitsOver};
use shared_types::{
    Epoch, Event, ReplicaId, SessionId, TurnId,
    event::{CallOutcome, EventBody, Parts, TurnOutcome},
};

use super::fixture::{Fixture, REPLICA, Tenant, at, call_ended, turn_ended, usual};
use crate::{
    Cancel, QUEUED_TURNS_AT_MOST, SessionChange, SessionFilter, StoreError, database::query,
};

on_every_backend!(
    an_input_is_a_queued_turn_an_event_and_a_title,
    the_same_client_id_twice_is_one_turn_also_when_many_race,
    a_second_input_waits_and_turns_run_in_the_order_of_inputs,
    of_many_claims_that_race_one_wins_and_the_epoch_grows_by_one,
    a_take_over_fences_the_earlier_worker,
    a_turn_that_was_cut_off_by_a_restart_is_found_and_taken_over,
    an_append_is_all_or_nothing_and_leaves_no_gap,
    a_turn_ends_exactly_once,
    failures_are_counted_until_the_turn_goes_on,
    an_event_with_a_row_of_its_own_cannot_be_appended,
    a_cancel_is_recorded_once_and_not_after_the_end,
    inbox_writes_and_the_engine_share_one_sequence_without_gaps,
    the_log_is_read_in_pages_and_keeps_what_it_does_not_know,
    a_page_for_somebody_outside_is_bounded_in_bytes_and_brings_something,
    a_session_takes_a_bounded_number_of_turns_and_bounded_texts,
    sessions_are_listed_by_last_use_with_the_turn_that_runs,
    a_write_that_is_dropped_half_way_has_written_everything_or_nothing,
);

/// The kinds of the whole log, which must be numbered from 1 without gaps.
async fn kinds(ours: &Tenant, session: SessionId) -> Vec<&'static str> {
    let events = ours.db.events_after(ours.id, session, 0, 500).await;
    let events = events.expect("the session is there");
    assert!(
        events
            .iter()
            .map(|event| event.seq)
            .eq(1..=events.len() as u64)
    );
    let known = events
        .iter()
        .map(|event| event.known().expect("we wrote it"));
    known.map(Event::kind).collect()
}

async fn a_page_for_somebody_outside_is_bounded_in_bytes_and_brings_something(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let text = "x".repeat(200 * 1024);
    for _ in 0..50 {
        ours.send(session, &text).await;
    }
    let (mut after, mut lengths) = (0, Vec::new());
    loop {
        let page = db.page_of_events(ours.id, session, after, 500).await;
        let page = page.expect("the session is there");
        let Some(last) = page.last() else { break };
        assert!(page.iter().map(|event| event.seq).eq(after + 1..=last.seq));
        after = last.seq;
        lengths.push(page.len());
    }
    // The first event is that of the session.
    assert_eq!(lengths, [21, 20, 10]);
    let page = db.page_of_events(ours.id, session, 0, 7).await;
    assert_eq!(page.expect("the session is there").len(), 7);
}

async fn an_input_is_a_queued_turn_an_event_and_a_title(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let mut input = ours.input("  what is\n in this folder? ");
    input.client_id = Some("c1".to_owned());
    let sent = db.send_input(ours.id, session, &input, at(9)).await;
    let sent = sent.expect("the session is there");
    assert_eq!((sent.turn, sent.seq), (input.turn, 2));
    let last = db.events_after(ours.id, session, 1, 9).await;
    let last = last.expect("the session is there");
    assert_eq!(sent.event.as_slice(), last);
    let turn = db.turn(ours.id, sent.turn).await.expect("it is there");
    assert_eq!((turn.state, turn.input_seq), (TurnState::Queued, 2));
    let row = db.session(ours.id, session).await.expect("it is there");
    assert_eq!(row.title, "what is in this folder?");
    assert_eq!((row.last_seq, row.updated_at), (2, at(9)));
    let log = db.events_after(ours.id, session, 1, 10).await;
    let log = log.expect("the session is there");
    let accepted = Event::InputAccepted {
        turn: input.turn,
        by: ours.owner,
        client_id: input.client_id,
        parts: Parts::text(input.text),
        compacts: None,
        terms: shared_types::event::Terms::default(),
    };
    assert_eq!(log[0].body, EventBody::Known(accepted));
    ours.send(session, &"ä".repeat(100)).await;
    let row = db.session(ours.id, session).await.expect("it is there");
    assert_eq!(row.title, "what is in this folder?", "the first one stays");
}

async fn the_same_client_id_twice_is_one_turn_also_when_many_race(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (db, tenant, mut input) = (db.clone(), ours.id, ours.input("run it"));
        input.client_id = Some("c1".to_owned());
        tries.spawn(async move { db.send_input(tenant, session, &input, at(2)).await });
    }
    let sent = tries.join_all().await.into_iter();
    let sent: Vec<_> = sent.map(|sent| sent.expect("it is accepted")).collect();
    assert!(
        sent.iter()
            .all(|one| (one.turn, one.seq) == (sent[0].turn, 2))
    );
    assert_eq!(sent.iter().filter(|one| one.event.is_some()).count(), 1);
    assert_eq!(kinds(&ours, session).await.len(), 2);

    let mut elsewhere = ours.input("run it");
    elsewhere.client_id = Some("c1".to_owned());
    let other = ours.session().await;
    let sent = db.send_input(ours.id, other, &elsewhere, at(3)).await;
    assert!(
        sent.expect("it is accepted").event.is_some(),
        "of another session"
    );
}

async fn a_second_input_waits_and_turns_run_in_the_order_of_inputs(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let first = ours.send(session, "one").await;
    let claimed = ours.claim(session).await;
    assert_eq!((claimed.turn.id, claimed.epoch), (first, Epoch(1)));
    let second = ours.send(session, "two").await;
    let refused = db
        .claim_turn(ours.id, session, REPLICA, IfRunning::Refuse, usual(), at(4))
        .await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))));
    let left = db.claim_turn(ours.id, session, REPLICA, IfRunning::Leave, usual(), at(4));
    assert_eq!(left.await.expect("it is left alone"), None);
    // Another session's turn is none of this one's.
    ours.send(ours.session().await, "elsewhere").await;
    let end = [turn_ended(first, TurnOutcome::Completed)];
    let ended = db
        .append(ours.id, session, claimed.epoch, &end, at(5))
        .await;
    assert_eq!(ended.expect("it runs").turns_left, Some(1));
    let taken = db.claim_turn(ours.id, session, REPLICA, IfRunning::Leave, usual(), at(5));
    let claimed = taken.await.expect("none runs").expect("one waits");
    assert_eq!((claimed.turn.id, claimed.epoch), (second, Epoch(2)));
    let end = [turn_ended(second, TurnOutcome::Completed)];
    let ended = db
        .append(ours.id, session, claimed.epoch, &end, at(6))
        .await;
    assert_eq!(ended.expect("it runs").turns_left, Some(0));
    let none = db
        .claim_turn(ours.id, session, REPLICA, IfRunning::Refuse, usual(), at(7))
        .await;
    assert_eq!(none.expect("it answers"), None);
    assert_eq!(kinds(&ours, session).await.len(), 7);
    let over = WaitsOver {
        replica: REPLICA,
        at: at(7),
        of_others_at: at(7),
    };
    let next = async || db.next_turn(ours.id, session, over).await;
    assert_eq!(next().await.expect("it answers"), NextTurn::Nothing);
    ours.send(session, "three").await;
    assert_eq!(
        next().await.expect("it answers"),
        NextTurn::Claim { for_call: false }
    );
}

async fn of_many_claims_that_race_one_wins_and_the_epoch_grows_by_one(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    ours.send(session, "one").await;
    for (if_running, winners) in [(IfRunning::Refuse, 1), (IfRunning::TakeOver, 8)] {
        let mut claims = tokio::task::JoinSet::new();
        for replica in 0..8 {
            let (db, tenant) = (db.clone(), ours.id);
            let replica = ReplicaId::from_u128(replica);
            claims.spawn(async move {
                db.claim_turn(tenant, session, replica, if_running, usual(), at(3))
                    .await
            });
        }
        let claims = claims.join_all().await;
        let mut epochs: Vec<_> = claims
            .into_iter()
            .filter_map(Result::ok)
            .map(|claimed| claimed.expect("a turn is there").epoch)
            .collect();
        epochs.sort();
        assert_eq!(epochs.len(), winners);
        assert!(epochs.windows(2).all(|two| two[0].0 + 1 == two[1].0));
    }
    let row = db.session(ours.id, session).await.expect("it is there");
    assert_eq!(row.epoch, Epoch(9));
}

async fn a_take_over_fences_the_earlier_worker(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let newer = db
        .claim_turn(
            ours.id,
            work.session,
            REPLICA,
            IfRunning::TakeOver,
            usual(),
            at(4),
        )
        .await
        .expect("it answers")
        .expect("the turn runs");
    assert_eq!(newer.turn.id, work.turn);
    let before = kinds(&ours, work.session).await;
    let end = [turn_ended(work.turn, TurnOutcome::Completed)];
    let stale = db.append(ours.id, work.session, work.epoch, &end, at(5));
    let stale = stale.await.expect_err("its time is over");
    assert!(matches!(
        stale,
        StoreError::StaleEpoch { held, newest } if held == work.epoch && newest == newer.epoch
    ));
    let stale = db
        .place_operation(ours.id, work.epoch, &work.operation, at(5))
        .await;
    assert!(matches!(stale, Err(StoreError::StaleEpoch { .. })));
    let ahead = Epoch(newer.epoch.0 + 1);
    let ahead = db.append(ours.id, work.session, ahead, &end, at(5)).await;
    assert!(matches!(ahead, Err(StoreError::StaleEpoch { .. })));
    assert_eq!(kinds(&ours, work.session).await, before);
    db.append(ours.id, work.session, newer.epoch, &end, at(6))
        .await
        .expect("the newer one writes");
}

async fn a_turn_that_was_cut_off_by_a_restart_is_found_and_taken_over(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let work = ours.at_work().await;
    let waiting = ours.send(work.session, "next").await;
    let ended = ours.at_work().await;
    let end = [turn_ended(ended.turn, TurnOutcome::Completed)];
    fixture
        .db
        .append(ours.id, ended.session, ended.epoch, &end, at(5))
        .await
        .expect("it runs");
    let tenant = ours.id;
    drop(ours);
    let fixture = fixture.reopened().await;
    let db = &fixture.db;
    let first = db.unfinished_turns(None, 1).await.expect("it answers");
    let rest = db.unfinished_turns(Some(first[0].turn), 9).await;
    let found: Vec<_> = first
        .into_iter()
        .chain(rest.expect("it answers"))
        .map(|turn| (turn.tenant, turn.session, turn.turn, turn.running))
        .collect();
    assert_eq!(
        found,
        [
            (tenant, work.session, work.turn, true),
            (tenant, work.session, waiting, false),
        ]
    );
    let replica = ReplicaId::from_u128(2);
    let claimed = db
        .claim_turn(
            tenant,
            work.session,
            replica,
            IfRunning::TakeOver,
            usual(),
            at(9),
        )
        .await
        .expect("it answers")
        .expect("the turn runs");
    let state = TurnState::Running {
        replica,
        epoch: Epoch(2),
        since: at(9),
    };
    assert_eq!((claimed.turn.id, &claimed.turn.state), (work.turn, &state));
    let stored = db.turn(tenant, work.turn).await.expect("it is there");
    assert_eq!(stored, claimed.turn);
}

async fn an_append_is_all_or_nothing_and_leaves_no_gap(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let before = kinds(&ours, work.session).await;
    let elsewhere = ours.at_work().await.turn;
    for wrong in [TurnId::from_u128(1), elsewhere] {
        let bad = [
            call_ended(work.turn, CallOutcome::Completed),
            call_ended(wrong, CallOutcome::Completed),
        ];
        let failed = db.append(ours.id, work.session, work.epoch, &bad, at(5));
        assert!(matches!(failed.await, Err(StoreError::NotFound)));
        assert_eq!(kinds(&ours, work.session).await, before);
    }
    let good = [
        call_ended(work.turn, CallOutcome::Completed),
        turn_ended(work.turn, TurnOutcome::Completed),
    ];
    let appended = db.append(ours.id, work.session, work.epoch, &good, at(6));
    let appended = appended.await.expect("it runs").events;
    let stored = db.events_after(ours.id, work.session, before.len() as u64, 9);
    assert_eq!(stored.await.expect("it is there"), appended);
    assert_eq!(appended[0].seq, before.len() as u64 + 1);
    assert_eq!(kinds(&ours, work.session).await.len(), before.len() + 2);
}

async fn a_turn_ends_exactly_once(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let end = |outcome| Event::TurnEnded {
        turn: work.turn,
        outcome,
        reason: Some("the model is gone".to_owned()),
    };
    let append = async |event| {
        db.append(ours.id, work.session, work.epoch, &[event], at(5))
            .await
    };
    append(end(TurnOutcome::Failed)).await.expect("it runs");
    for late in [
        end(TurnOutcome::Completed),
        call_ended(work.turn, CallOutcome::Completed),
    ] {
        assert!(matches!(append(late).await, Err(StoreError::Conflict(_))));
    }
    let late = db
        .place_operation(ours.id, work.epoch, &work.operation, at(6))
        .await;
    assert!(matches!(late, Err(StoreError::Conflict(_))));
    let turn = db.turn(ours.id, work.turn).await.expect("it is there");
    let state = TurnState::Ended {
        outcome: TurnOutcome::Failed,
        reason: Some("the model is gone".to_owned()),
        at: at(5),
    };
    assert_eq!(turn.state, state);
}

async fn an_event_with_a_row_of_its_own_cannot_be_appended(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let claimed = [Event::TurnClaimed {
        turn: work.turn,
        epoch: work.epoch,
        replica: REPLICA,
        choice: None,
        settings: None,
    }];
    let refused = db.append(ours.id, work.session, work.epoch, &claimed, at(5));
    assert!(matches!(refused.await, Err(StoreError::Conflict(_))));
}

async fn a_cancel_is_recorded_once_and_not_after_the_end(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let cancel = async |now| {
        db.request_cancel(ours.id, work.session, work.turn, (ours.owner, None), now)
            .await
            .expect("the turn is there")
    };
    let requested = cancel(at(5)).await;
    assert!(matches!(requested, Cancel::Requested(event) if event.seq == 4));
    assert_eq!(cancel(at(6)).await, Cancel::Repeated);
    let turn = db.turn(ours.id, work.turn).await.expect("it is there");
    assert_eq!(turn.cancel_requested_at, Some(at(5)));
    let end = [turn_ended(work.turn, TurnOutcome::Cancelled)];
    db.append(ours.id, work.session, work.epoch, &end, at(7))
        .await
        .expect("it runs");
    assert_eq!(cancel(at(8)).await, Cancel::Ended);
    let told = kinds(&ours, work.session).await;
    assert_eq!(told[3..], ["cancel.requested", "turn.ended"]);

    let other = ours.session().await;
    let wrong = db.request_cancel(ours.id, other, work.turn, (ours.owner, None), at(9));
    assert!(matches!(wrong.await, Err(StoreError::NotFound)));
}

async fn inbox_writes_and_the_engine_share_one_sequence_without_gaps(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let mut writes = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (db, tenant, input) = (db.clone(), ours.id, ours.input("more"));
        let (session, epoch) = (work.session, work.epoch);
        let event = call_ended(work.turn, CallOutcome::Completed);
        writes.spawn(async move {
            if number % 2 == 0 {
                let sent = db.send_input(tenant, session, &input, at(4)).await;
                sent.expect("there is room").seq
            } else {
                let appended = db.append(tenant, session, epoch, &[event], at(4)).await;
                appended.expect("it runs").events[0].seq
            }
        });
    }
    let mut seqs = writes.join_all().await;
    seqs.sort_unstable();
    assert!(seqs.into_iter().eq(4..24));
    assert_eq!(kinds(&ours, work.session).await.len(), 23);
}

async fn the_log_is_read_in_pages_and_keeps_what_it_does_not_know(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    ours.send(session, "one").await;
    let newer = r#"{"type":"turn.teleported","v":7,"to":"mars"}"#;
    let mut tx = db.write_any("a test").await.expect("it answers");
    query("UPDATE events SET body = $1 WHERE session_id = $2 AND seq = 2")
        .bind(newer)
        .bind(session.to_string())
        .execute(&mut tx)
        .await
        .expect("the table is there");
    tx.commit().await.expect("the disk takes it");
    let page = async |after, limit| {
        let events = db.events_after(ours.id, session, after, limit).await;
        events.expect("the session is there")
    };
    assert_eq!(page(0, 1).await.len(), 1);
    assert_eq!(page(2, 9).await, vec![]);
    let rest = page(1, 9).await;
    assert_eq!((rest.len(), rest[0].seq), (1, 2));
    let EventBody::Unknown(fields) = &rest[0].body else {
        panic!("nobody knows it: {rest:?}");
    };
    assert_eq!(
        serde_json::to_string(fields).expect("it is JSON"),
        newer_sorted()
    );
    let none = db
        .events_after(ours.id, SessionId::from_u128(1), 0, 9)
        .await;
    assert!(matches!(none, Err(StoreError::NotFound)));
}

/// `serde_json` sorts the fields of a map.
fn newer_sorted() -> &'static str {
    r#"{"to":"mars","type":"turn.teleported","v":7}"#
}

async fn a_session_takes_a_bounded_number_of_turns_and_bounded_texts(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let send = async |input| db.send_input(ours.id, session, &input, at(2)).await;
    let long = send(ours.input(&"x".repeat(256 * 1024 + 1))).await;
    assert!(matches!(long, Err(StoreError::TooLarge { .. })));
    let mut long = ours.input("hi");
    long.client_id = Some("c".repeat(129));
    assert!(matches!(send(long).await, Err(StoreError::TooLarge { .. })));
    for _ in 0..QUEUED_TURNS_AT_MOST {
        send(ours.input("more")).await.expect("there is room");
    }
    let full = send(ours.input("one too many")).await;
    assert!(matches!(full, Err(StoreError::Full(_))));
    let row = db.session(ours.id, session).await.expect("it is there");
    assert_eq!(
        row.last_seq,
        QUEUED_TURNS_AT_MOST + 1,
        "nothing was written"
    );
}

async fn sessions_are_listed_by_last_use_with_the_turn_that_runs(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (quiet, busy) = (ours.session().await, ours.session().await);
    let turn = ours.send(busy, "hello").await;
    ours.claim(busy).await;
    let mut late = ours.input("hello");
    late.client_id = None;
    db.send_input(ours.id, quiet, &late, at(50))
        .await
        .expect("the session is there");
    let rows = db
        .list_sessions(ours.id, ours.owner, SessionFilter::default(), 10)
        .await;
    let rows: Vec<_> = rows
        .expect("it answers")
        .into_iter()
        .map(|row| (row.id, row.running_turn))
        .collect();
    assert_eq!(rows, [(quiet, None), (busy, Some(turn))]);
    let newest = db
        .list_sessions(ours.id, ours.owner, SessionFilter::default(), 1)
        .await;
    assert_eq!(newest.expect("it answers").len(), 1);
}

async fn a_write_that_is_dropped_half_way_has_written_everything_or_nothing(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    // Dropped after each number of polls that it can take, until it is done.
    for polls in 1.. {
        let before = kinds(&ours, session).await.len();
        let input = ours.input("hello");
        let mut sending = Box::pin(db.send_input(ours.id, session, &input, at(2)));
        let mut polled = 0;
        let sent = std::future::poll_fn(|context| {
            polled += 1;
            match sending.as_mut().poll(context) {
                Poll::Pending if polled == polls => Poll::Ready(None),
                other => other.map(Some),
            }
        });
        let sent = sent.await;
        drop(sending);
        // The next writer comes after whatever the dropped one leaves behind, and is committed with
        // it or after it.
        let nothing = SessionChange::default();
        let next = db.change_session(ours.id, session, &nothing, at(3)).await;
        next.expect("the dropped one is out of the way");
        let turn = db.turn(ours.id, input.turn).await;
        let added = kinds(&ours, session).await.len() - before;
        match &turn {
            Ok(turn) => assert_eq!((turn.input_seq, added), (before as u64 + 1, 1)),
            Err(error) => assert!(matches!(error, StoreError::NotFound) && added == 0),
        }
        if let Some(sent) = sent {
            assert_eq!(sent.expect("there is room").turn, input.turn);
            assert!(turn.is_ok(), "it said so");
            return;
        }
    }
}

async fn failures_are_counted_until_the_turn_goes_on(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let turn = ours.send(session, "go").await;
    let refused = db.count_failure(ours.id, session, turn, Epoch(1)).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict(_))),
        "nobody has it"
    );
    let mut counted = Vec::new();
    for round in 0..4 {
        let claim = db.claim_turn(
            ours.id,
            session,
            REPLICA,
            IfRunning::TakeOver,
            usual(),
            at(3),
        );
        let epoch = claim.await.expect("it is there").expect("it waits").epoch;
        if round == 2 {
            let answer = [call_ended(turn, CallOutcome::Completed)];
            let appended = db.append(ours.id, session, epoch, &answer, at(4)).await;
            appended.expect("it runs");
            let cancelled = db.request_cancel(ours.id, session, turn, (ours.owner, None), at(5));
            cancelled.await.expect("it runs");
        }
        let failures = db.count_failure(ours.id, session, turn, epoch).await;
        let failures = failures.expect("it runs");
        counted.push((failures.count, failures.cancel_requested));
        let stale = db
            .count_failure(ours.id, session, turn, Epoch(epoch.0 - 1))
            .await;
        assert!(
            matches!(stale, Err(StoreError::StaleEpoch { .. })),
            "{stale:?}"
        );
    }
    assert_eq!(counted, [(1, false), (2, false), (1, true), (2, true)]);
}
