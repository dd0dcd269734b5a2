//! Sessions that are archived, shared and deleted.

use shared_types::{SessionId, event::TurnOutcome};

use super::fixture::{Fixture, Tenant, at, end_of, token_hash, turn_ended};
use crate::{
    LINKS_OF_SESSION_AT_MOST, NewSessionLink, OperationFilter, SessionChange, SessionRow,
    StoreError,
};

on_every_backend!(
    an_archived_session_is_on_another_list_until_its_next_message,
    a_deleted_session_is_nowhere_and_goes_whole_once_nothing_of_it_runs,
    a_link_leads_to_its_session_until_it_is_ended_or_expires,
    a_session_has_so_many_links_and_no_more,
);

async fn listed(ours: &Tenant, archived: bool) -> Vec<SessionRow> {
    let list = ours.db.list_sessions(
        ours.id,
        ours.owner,
        crate::SessionFilter {
            archived,
            ..Default::default()
        },
        10,
    );
    list.await.expect("it answers")
}

async fn an_archived_session_is_on_another_list_until_its_next_message(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let change = SessionChange {
        title: Some("the build".to_owned()),
        archived: Some(true),
    };
    for now in [at(5), at(6)] {
        let changed = db.change_session(ours.id, session, &change, now);
        changed.await.expect("it is there");
    }
    assert_eq!(listed(&ours, false).await, []);
    let archived = listed(&ours, true).await;
    let [row] = &archived[..] else {
        panic!("{archived:?}")
    };
    assert_eq!((&*row.title, row.archived_at), ("the build", Some(at(5))));
    ours.send(session, "go on").await;
    assert_eq!(listed(&ours, true).await, []);
    assert_eq!(listed(&ours, false).await[0].title, "the build");
}

async fn a_deleted_session_is_nowhere_and_goes_whole_once_nothing_of_it_runs(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let work = ours.at_work().await;
    let (session, by) = (work.session, ours.owner.into());
    db.place_operation(ours.id, work.epoch, &work.operation, at(4))
        .await
        .expect("the runner is linked");
    let other = ours.session().await;
    db.delete_session(ours.id, session, &by, at(5))
        .await
        .expect("it is there");

    let again = db.delete_session(ours.id, session, &by, at(5)).await;
    assert!(matches!(again, Err(StoreError::NotFound)));
    let ids: Vec<_> = listed(&ours, false)
        .await
        .iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(ids, [other]);
    let beginning = session.to_string();
    let found = db.sessions_beginning(ours.id, ours.owner, &beginning, 10);
    assert_eq!(found.await.expect("it answers"), []);
    let filter = OperationFilter {
        limit: 10,
        ..OperationFilter::default()
    };
    let operations = db.operations_of_user(ours.id, ours.owner, &filter).await;
    assert_eq!(operations.expect("it answers"), []);
    let late = ours.input("hello");
    let sent = db.send_input(ours.id, session, &late, at(6)).await;
    assert!(matches!(sent, Err(StoreError::NotFound)));

    let left = db.unended_of_session(ours.id, session).await;
    let left = left.expect("it answers");
    assert_eq!(left.turns, [work.turn]);
    assert_eq!(left.operations, [(work.turn, work.operation.id)]);
    let purged = db.purge_session(ours.id, session).await;
    assert!(!purged.expect("it answers"), "its command may still run");
    let end = end_of("lost");
    let settled = db.settle_operation(ours.id, work.operation.id, &end, at(7));
    settled.await.expect("it is there");
    let ended = turn_ended(work.turn, TurnOutcome::Cancelled);
    db.append(ours.id, session, work.epoch, &[ended], at(8))
        .await
        .expect("the worker is the newest");

    let deleted = db.deleted_sessions(None, 10).await.expect("it answers");
    let of_ours = deleted.iter().find(|deleted| deleted.tenant == ours.id);
    assert_eq!(of_ours.map(|deleted| deleted.id), Some(session));
    let after = db.deleted_sessions(of_ours, 10).await.expect("it answers");
    assert!(after.iter().all(|deleted| deleted.id != session));
    let purged = db.purge_session(ours.id, session).await;
    assert!(purged.expect("it answers"));
    let gone = db.session(ours.id, session).await;
    assert!(matches!(gone, Err(StoreError::NotFound)));
    let events = db.events_after(ours.id, session, 0, 10).await;
    assert!(matches!(events, Err(StoreError::NotFound)));
    let gone = db.operation(ours.id, work.operation.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound)));
    let refused = db.purge_session(ours.id, other).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "it is used");
}

async fn share(ours: &Tenant, session: SessionId, expires_at: Option<i64>) -> NewSessionLink {
    let link = NewSessionLink {
        hash: token_hash(),
        expires_at: expires_at.map(at),
    };
    let by = ours.owner.into();
    let shared = ours
        .db
        .share_session(ours.id, session, &link, &by, at(10))
        .await;
    shared.expect("it is there");
    link
}

async fn a_link_leads_to_its_session_until_it_is_ended_or_expires(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (session, by) = (ours.session().await, ours.owner.into());
    let leads = async |link: &NewSessionLink, now| {
        let found = db.session_by_link(&link.hash, at(now)).await;
        found
            .expect("it answers")
            .map(|(tenant, row)| (tenant, row.id))
    };
    let (short, long) = (
        share(&ours, session, Some(20)).await,
        share(&ours, session, None).await,
    );
    for link in [&short, &long] {
        assert_eq!(leads(link, 19).await, Some((ours.id, session)));
    }
    assert_eq!(leads(&short, 20).await, None);
    assert_eq!(listed(&ours, false).await[0].links, 2);
    let ended = db.unshare_session(ours.id, session, &by, at(21)).await;
    assert_eq!(ended.expect("it answers"), 2);
    assert_eq!(leads(&long, 22).await, None);
    let last = share(&ours, session, None).await;
    db.delete_session(ours.id, session, &by, at(23))
        .await
        .expect("it is there");
    assert_eq!(leads(&last, 24).await, None);
    let audit = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let kinds: Vec<_> = audit.iter().map(|row| &*row.kind).collect();
    let expected = [
        "session.shared",
        "session.shared",
        "session.unshared",
        "session.shared",
        "session.deleted",
    ];
    assert!(kinds.ends_with(&expected), "{kinds:?}");
}

async fn a_session_has_so_many_links_and_no_more(fixture: Fixture) {
    let ours = fixture.tenant().await;
    let (session, by) = (ours.session().await, ours.owner.into());
    share(&ours, session, Some(9)).await;
    for _ in 0..LINKS_OF_SESSION_AT_MOST {
        share(&ours, session, None).await;
    }
    let link = NewSessionLink {
        hash: token_hash(),
        expires_at: None,
    };
    let more = ours
        .db
        .share_session(ours.id, session, &link, &by, at(11))
        .await;
    assert!(matches!(more, Err(StoreError::Full(_))), "{more:?}");
}
