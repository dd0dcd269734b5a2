//! Going back to before a message.

use server_records::ChatQuery;
use shared_types::{
    Event, SessionId, TurnId,
    event::{EventBody, Finish, Parts, TodoItem, TodoState, TurnOutcome, Usage},
};

use super::fixture::{Fixture, Tenant, at, turn_ended};
use crate::{StoreError, database::query};

on_every_backend!(
    a_conversation_goes_back_to_before_a_message_that_is_part_of_it,
    nothing_goes_back_while_a_turn_works_or_waits,
    the_words_of_turns_that_are_gone_are_not_found_any_more,
    the_to_do_list_of_a_folder_goes_back_unless_another_session_has_changed_it,
    a_session_in_which_an_earlier_release_may_work_on_is_left_alone,
);

/// Answers the oldest message that waits, with these messages sent meanwhile.
async fn answer(ours: &Tenant, session: SessionId, says: &str, meanwhile: &[&str]) -> TurnId {
    let claimed = ours.claim(session).await;
    for message in meanwhile {
        ours.send(session, message).await;
    }
    let turn = claimed.turn.id;
    let answered = Event::AnswerRecorded {
        turn,
        step: 1,
        model: "m".to_owned(),
        origin: None,
        parts: Parts::text(says),
        finish: Finish::Complete,
        usage: Usage::default(),
        estimated: 0,
        model_ms: 0,
        limit: None,
    };
    let events = [answered, turn_ended(turn, TurnOutcome::Completed)];
    let appended = (ours.db).append(ours.id, session, claimed.epoch, &events, at(4));
    appended.await.expect("the turn runs");
    turn
}

async fn talk(ours: &Tenant, session: SessionId, message: &str) -> TurnId {
    ours.send(session, message).await;
    answer(ours, session, "done", &[]).await
}

async fn back(ours: &Tenant, session: SessionId, turn: TurnId) -> Result<String, StoreError> {
    let back = (ours.db).rewind(ours.id, session, (turn, ours.owner), at(9));
    let rewound = back.await?;
    let EventBody::Known(Event::ConversationRewound {
        turn: first,
        by,
        before,
    }) = rewound.body
    else {
        panic!("it is known");
    };
    assert_eq!((first, by), (turn, ours.owner));
    Ok(before)
}

fn refused(outcome: Result<String, StoreError>, why: &str) {
    match outcome {
        Err(StoreError::Conflict(said)) => assert!(said.contains(why), "{said}"),
        other => panic!("{other:?}"),
    }
}

async fn a_conversation_goes_back_to_before_a_message_that_is_part_of_it(fixture: Fixture) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let (session, other) = (ours.session().await, ours.session().await);
    let [one, two, three] = [
        talk(&ours, session, "one").await,
        talk(&ours, session, "two").await,
        talk(&ours, session, "three").await,
    ];
    let elsewhere = talk(&ours, other, "elsewhere").await;
    for turn in [elsewhere, TurnId::from_u128(77)] {
        let foreign = back(&ours, session, turn).await;
        assert!(matches!(foreign, Err(StoreError::NotFound)), "{foreign:?}");
    }
    let foreign = (theirs.db).rewind(theirs.id, session, (one, theirs.owner), at(9));
    assert!(matches!(foreign.await, Err(StoreError::NotFound)));

    assert_eq!(back(&ours, session, two).await.expect("it goes"), "two");
    for gone in [two, three] {
        refused(
            back(&ours, session, gone).await,
            "no part of the conversation",
        );
    }
    let four = talk(&ours, session, "four").await;
    assert_eq!(back(&ours, session, four).await.expect("it goes"), "four");
    assert_eq!(back(&ours, session, one).await.expect("it goes"), "one");
    refused(
        back(&ours, session, four).await,
        "no part of the conversation",
    );
}

async fn nothing_goes_back_while_a_turn_works_or_waits(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let session = ours.session().await;
    let first = talk(&ours, session, "one").await;
    ours.send(session, "two").await;
    refused(back(&ours, session, first).await, "stop it first");
    let claimed = ours.claim(session).await;
    refused(back(&ours, session, first).await, "stop it first");
    let before = ours
        .db
        .session(ours.id, session)
        .await
        .expect("it is there");
    let ended = [turn_ended(claimed.turn.id, TurnOutcome::Cancelled)];
    let appended = (ours.db).append(ours.id, session, claimed.epoch, &ended, at(5));
    let appended = appended.await.expect("the turn runs");
    assert_eq!(
        appended.events[0].seq,
        before.last_seq + 1,
        "a refusal wrote nothing"
    );
    back(&ours, session, first).await.expect("it goes");
}

async fn the_words_of_turns_that_are_gone_are_not_found_any_more(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, here) = (ours.session().await, ours.session().await);
    ours.send(session, "amber").await;
    // These two wait while the first one works.
    answer(&ours, session, "birch", &["cedar", "dune"]).await;
    let second = answer(&ours, session, "ember", &[]).await;
    answer(&ours, session, "fjord", &[]).await;
    back(&ours, session, second).await.expect("it goes");
    for (word, is_found) in [
        ("amber", true),
        ("birch", true),
        ("cedar", false),
        ("dune", false),
        ("ember", false),
        ("fjord", false),
    ] {
        let asked = ChatQuery {
            words: word.to_owned(),
            at_most: 10,
            within: None,
        };
        let hits = ours.db.search_chats(ours.id, here, &asked).await;
        assert_eq!(!hits.expect("it answers").is_empty(), is_found, "{word}");
    }
}

const FOLDER: &str = "run_1//src";

/// A turn that finds a list in the folder, or writes one.
async fn lists(ours: &Tenant, session: SessionId, text: &str, found: bool) -> TurnId {
    ours.send(session, text).await;
    let claimed = ours.claim(session).await;
    let turn = claimed.turn.id;
    let changed = Event::TodoChanged {
        turn,
        items: vec![TodoItem {
            text: text.to_owned(),
            state: TodoState::Open,
        }],
        place: FOLDER.to_owned(),
        found,
    };
    let events = [changed, turn_ended(turn, TurnOutcome::Completed)];
    let appended = (ours.db).append(ours.id, session, claimed.epoch, &events, at(4));
    appended.await.expect("the turn runs");
    turn
}

async fn the_to_do_list_of_a_folder_goes_back_unless_another_session_has_changed_it(
    fixture: Fixture,
) {
    let ours = fixture.tenant().await;
    let (session, other) = (ours.session().await, ours.session().await);
    let kept = async || {
        let items = ours.db.todo_of_place(ours.id, other, FOLDER).await;
        let items = items.expect("it answers").into_iter();
        items.map(|item| item.text).collect::<Vec<_>>()
    };
    let first = lists(&ours, session, "one", false).await;
    let second = lists(&ours, session, "two", false).await;
    back(&ours, session, second).await.expect("it goes");
    assert_eq!(kept().await, ["one"]);
    lists(&ours, session, "three", false).await;
    back(&ours, session, first).await.expect("it goes");
    assert_eq!(kept().await, [""; 0], "there was none");

    lists(&ours, other, "of another", false).await;
    let found = lists(&ours, session, "of another", true).await;
    let changed = lists(&ours, session, "four", false).await;
    back(&ours, session, found).await.expect("it goes");
    assert_eq!(kept().await, ["of another"]);
    refused(
        back(&ours, session, changed).await,
        "no part of the conversation",
    );
    let last = lists(&ours, session, "five", false).await;
    lists(&ours, other, "six", false).await;
    back(&ours, session, last).await.expect("it goes");
    assert_eq!(kept().await, ["six"]);
}

async fn a_session_in_which_an_earlier_release_may_work_on_is_left_alone(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let session = ours.session().await;
    let turn = talk(&ours, session, "one").await;
    let mut tx = ours.db.write_any("a test").await.expect("it answers");
    let aged = query("UPDATE events SET version = 2 WHERE kind = 'turn.claimed'");
    aged.execute(&mut tx).await.expect("it is written");
    tx.commit().await.expect("the disk takes it");
    refused(back(&ours, session, turn).await, "earlier release");
}
