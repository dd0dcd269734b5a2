//! The long texts of sessions.

use shared_types::Digest;

use super::fixture::{Fixture, at};
use crate::{StoreError, TEXT_OF_SESSION_BYTES};

on_every_backend!(
    a_text_is_stored_once_and_found_in_its_session_alone,
    a_session_has_so_many_bytes_of_texts,
);

async fn a_text_is_stored_once_and_found_in_its_session_alone(fixture: Fixture) {
    let (db, ours, theirs) = (&fixture.db, fixture.tenant().await, fixture.tenant().await);
    let (session, other) = (ours.session().await, ours.session().await);
    let foreign = theirs.session().await;
    for _ in 0..2 {
        let put = db.put_text(ours.id, session, b"a page\x00\xff", at(5));
        let digest = put.await.expect("there is room");
        assert_eq!(digest, Digest::of(b"a page\x00\xff"));
    }
    let digest = Digest::of(b"a page\x00\xff");
    let found = db.text(ours.id, session, digest).await;
    assert_eq!(
        found.expect("it answers").as_deref(),
        Some(&b"a page\x00\xff"[..])
    );
    for (tenant, session) in [(ours.id, other), (theirs.id, session), (theirs.id, foreign)] {
        let found = db.text(tenant, session, digest).await;
        assert_eq!(found.expect("it answers"), None);
    }
    let put = db.put_text(theirs.id, session, b"mine", at(5)).await;
    assert!(matches!(put, Err(StoreError::NotFound)), "{put:?}");
}

async fn a_session_has_so_many_bytes_of_texts(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let mut text = vec![b'x'; TEXT_OF_SESSION_BYTES + 1];
    let large = db.put_text(ours.id, session, &text, at(5)).await;
    assert!(
        matches!(large, Err(StoreError::TooLarge { .. })),
        "{large:?}"
    );
    text.pop();
    for number in 0..12 {
        text[0] = number;
        let put = db.put_text(ours.id, session, &text, at(5));
        put.await.expect("there is room");
    }
    text[0] = 99;
    let full = db.put_text(ours.id, session, &text, at(5)).await;
    let full = full.expect_err("it is full").to_string();
    assert!(full.contains("65 of 64 MiB of texts"), "{full}");
}
