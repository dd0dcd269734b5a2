//! The to-do lists of folders.

use shared_types::{
    Event,
    event::{TodoItem, TodoState},
};

use super::fixture::{Fixture, at};

on_every_backend!(a_list_is_kept_for_its_user_and_folder_alone);

const PLACE: &str = "run_1//src";

async fn a_list_is_kept_for_its_user_and_folder_alone(fixture: Fixture) {
    let (db, ours, theirs) = (&fixture.db, fixture.tenant().await, fixture.tenant().await);
    let (session, later) = (ours.session().await, ours.session().await);
    ours.send(session, "hello").await;
    let claimed = ours.claim(session).await;
    let list = |text: &str| {
        vec![TodoItem {
            text: text.to_owned(),
            state: TodoState::Doing,
        }]
    };
    let changed = |text, place: &str, found| Event::TodoChanged {
        turn: claimed.turn.id,
        items: list(text),
        place: place.to_owned(),
        found,
    };
    let events = [
        changed("first", PLACE, false),
        changed("second", PLACE, false),
        changed("only found", PLACE, true),
        changed("nowhere", "", false),
        changed("elsewhere", "run_1//", false),
    ];
    let appended = db.append(ours.id, session, claimed.epoch, &events, at(4));
    appended.await.expect("the turn runs");
    let found = db.todo_of_place(ours.id, later, PLACE).await;
    assert_eq!(found.expect("it answers"), list("second"));
    for (tenant, session, place) in [
        (ours.id, later, "run_2//src"),
        (theirs.id, theirs.session().await, PLACE),
    ] {
        let none = db.todo_of_place(tenant, session, place).await;
        assert_eq!(none.expect("it answers"), []);
    }
    let foreign = db.todo_of_place(theirs.id, later, PLACE).await;
    assert!(foreign.is_err(), "{foreign:?}");
}
