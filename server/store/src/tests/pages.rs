//! Lists, page by page.

use shared_types::{CredentialId, SessionId, Timestamp};

use super::fixture::{Fixture, at, new_credential};
use crate::{CredentialKind, MAX_PAGE, Page, SessionFilter};

on_every_backend!(
    sessions_that_were_used_at_one_time_are_on_one_page_each,
    keys_of_one_time_are_on_one_page_each,
    a_search_finds_its_text_as_it_is_written_and_whatever_the_case_of_its_letters,
);

async fn sessions_that_were_used_at_one_time_are_on_one_page_each(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for _ in 0..4 {
        ours.session().await;
    }
    let later = ours.session().await;
    ours.send(later, "hello").await;
    let whole = db.list_sessions(ours.id, ours.owner, SessionFilter::default(), MAX_PAGE);
    let whole: Vec<SessionId> = whole
        .await
        .expect("it answers")
        .iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(whole.len(), 5);
    let mut paged = Vec::new();
    let mut after: Option<(Timestamp, SessionId)> = None;
    loop {
        let page = Page { after, limit: 2 };
        let rows = db
            .list_sessions(ours.id, ours.owner, SessionFilter::default(), page)
            .await;
        let rows = rows.expect("it answers");
        let Some(last) = rows.last() else { break };
        after = Some((last.updated_at, last.id));
        paged.extend(rows.iter().map(|row| row.id));
    }
    assert_eq!(paged, whole);
    let mut by_id = whole.clone();
    by_id.sort();
    let page = Page {
        after: Some(by_id[2]),
        limit: 9,
    };
    let behind = db
        .sessions_beginning(ours.id, ours.owner, "ses_", page)
        .await;
    let behind: Vec<_> = behind
        .expect("it answers")
        .iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(behind, by_id[3..]);
}

async fn keys_of_one_time_are_on_one_page_each(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for now in [at(5), at(5), at(6)] {
        let key = new_credential(CredentialKind::ApiKey);
        let made = db.insert_credential(ours.id, ours.owner, &key, now).await;
        made.expect("there is room");
    }
    let whole = db.list_credentials(ours.id, ours.owner, MAX_PAGE).await;
    let whole: Vec<CredentialId> = whole
        .expect("it answers")
        .iter()
        .map(|row| row.id)
        .collect();
    let mut paged = Vec::new();
    let mut after = None;
    for _ in 0..=whole.len() {
        let page = Page { after, limit: 1 };
        let rows = db.list_credentials(ours.id, ours.owner, page).await;
        let Some(row) = rows.expect("it answers").pop() else {
            break;
        };
        after = Some((row.created_at, row.id));
        paged.push(row.id);
    }
    assert_eq!((paged.len(), paged), (3, whole));
}

async fn a_search_finds_its_text_as_it_is_written_and_whatever_the_case_of_its_letters(
    fixture: Fixture,
) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    for title in ["100% Done", "100 done", r"a_b \ C", "aXb"] {
        let session = ours.session().await;
        let change = crate::SessionChange {
            title: Some(title.to_owned()),
            ..Default::default()
        };
        let changed = db.change_session(ours.id, session, &change, at(9));
        changed.await.expect("it is there");
    }
    for (search, found) in [
        ("DONE", 2),
        ("0% d", 1),
        ("a_B", 1),
        (r"\", 1),
        ("", 4),
        ("é", 0),
    ] {
        let filter = SessionFilter {
            title: search,
            ..Default::default()
        };
        let rows = db.list_sessions(ours.id, ours.owner, filter, 10).await;
        assert_eq!(rows.expect("it answers").len(), found, "{search}");
    }
    let names = async |search| {
        let people = db.people(ours.id, search, 10).await.expect("it answers");
        people.len()
    };
    let all = db.people(ours.id, "", 10).await.expect("it answers");
    let name = &all[0].user.name;
    let part = name[1..3].to_uppercase();
    assert_eq!(names(part.as_str()).await, 1, "{name}");
    assert_eq!(names("_").await, 0);
}
