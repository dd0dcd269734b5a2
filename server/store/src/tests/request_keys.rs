//! Requests with an idempotency key.

use shared_types::Digest;
use tokio::task::JoinSet;

use super::fixture::{Fixture, Tenant, at};
use crate::{
    KnownRequest, MAX_ANSWER_BYTES, REQUEST_KEYS_KEPT_FOR, RequestAnswer, RequestKey, StoreError,
};

on_every_backend!(
    a_key_is_taken_once_and_its_answer_is_known_until_a_day_is_over,
    a_key_is_one_persons_and_one_requests,
    of_two_who_take_one_key_at_once_one_carries_the_request_out,
    what_was_answered_about_a_session_goes_with_it,
);

fn request(ours: &Tenant, key: &str, body: &str) -> RequestKey {
    RequestKey {
        user: ours.owner,
        key: key.to_owned(),
        digest: Digest::of(body.as_bytes()),
    }
}

fn answer(made: &str) -> RequestAnswer {
    RequestAnswer {
        status: 201,
        made: Some(made.to_owned()),
        text: Some("{}".to_owned()),
    }
}

async fn a_key_is_taken_once_and_its_answer_is_known_until_a_day_is_over(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (one, day) = (request(&ours, "one", "a"), REQUEST_KEYS_KEPT_FOR);
    let take = async |now| {
        db.take_request_key(ours.id, &one, now)
            .await
            .expect("it answers")
    };
    assert_eq!(take(at(1)).await, KnownRequest::New);
    assert_eq!(take(at(2)).await, KnownRequest::Begun(at(1)));
    let mut long = answer("ses_1");
    long.text = Some("x".repeat(MAX_ANSWER_BYTES + 1));
    let refused = db.answer_request(ours.id, &one, &long).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    let first = answer("ses_1");
    let stored = db.answer_request(ours.id, &one, &first).await;
    stored.expect("the key was taken");
    let again = db.answer_request(ours.id, &one, &answer("ses_2")).await;
    assert!(
        matches!(again, Err(StoreError::NotFound)),
        "it is stored once"
    );
    assert_eq!(take(at(1).after(day)).await, KnownRequest::Answered(first));
    assert_eq!(take(at(2).after(day)).await, KnownRequest::New);
    db.forget_request_key(ours.id, &one)
        .await
        .expect("it answers");
    assert_eq!(take(at(3).after(day)).await, KnownRequest::New);
}

async fn a_key_is_one_persons_and_one_requests(fixture: Fixture) {
    let (db, ours, theirs) = (&fixture.db, fixture.tenant().await, fixture.tenant().await);
    let take = async |tenant: &Tenant, body: &str| {
        let one = request(tenant, "one", body);
        let known = db.take_request_key(tenant.id, &one, at(1)).await;
        known.expect("it answers")
    };
    assert_eq!(take(&ours, "a").await, KnownRequest::New);
    assert_eq!(take(&ours, "b").await, KnownRequest::Other);
    assert_eq!(take(&theirs, "b").await, KnownRequest::New);
    let strange = request(&ours, "one", "a");
    let refused = db.take_request_key(theirs.id, &strange, at(1)).await;
    assert!(matches!(refused, Err(StoreError::NotFound)));
}

async fn of_two_who_take_one_key_at_once_one_carries_the_request_out(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let one = request(&ours, "one", "a");
    let mut taking = JoinSet::new();
    for _ in 0..8 {
        let (db, tenant, one) = (db.clone(), ours.id, one.clone());
        taking.spawn(async move { db.take_request_key(tenant, &one, at(1)).await });
    }
    let all = taking.join_all().await;
    let new = all
        .iter()
        .filter(|known| matches!(known, Ok(KnownRequest::New)));
    assert_eq!(new.count(), 1, "{all:?}");
    assert!(all.iter().all(Result::is_ok), "{all:?}");
}

async fn what_was_answered_about_a_session_goes_with_it(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (session, one) = (ours.session().await, request(&ours, "one", "a"));
    let taken = db.take_request_key(ours.id, &one, at(1)).await;
    assert_eq!(taken.expect("it answers"), KnownRequest::New);
    let told = answer(&session.to_string());
    db.answer_request(ours.id, &one, &told)
        .await
        .expect("the key was taken");
    let by = ours.owner.into();
    let deleted = db.delete_session(ours.id, session, &by, at(2)).await;
    deleted.expect("it is there");
    let gone = RequestAnswer { text: None, ..told };
    let known = db.take_request_key(ours.id, &one, at(3)).await;
    assert_eq!(known.expect("it answers"), KnownRequest::Answered(gone));
}
