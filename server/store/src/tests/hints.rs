//! The way of hints between servers, and the look that finds what they did not tell.

use std::{sync::Arc, time::Duration};

use server_records::{HintNews, HintWire, MAX_HINT_TEXT_BYTES, SessionKey};
use shared_types::{SessionId, TenantId};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use super::{fixture::Fixture, postgres::cluster};
use crate::Store;

on_every_backend!(the_newest_events_of_sessions_of_all_tenants_are_found_at_once);

/// Far above what is needed: only a failure reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

fn wire(store: &Store) -> Arc<dyn HintWire> {
    store.hints().expect("there may be other servers")
}

/// Listens as another server does.
fn listen(store: Store) -> (mpsc::Receiver<HintNews>, JoinHandle<()>) {
    let (to, news) = mpsc::channel(8);
    let listening = tokio::spawn(async move { wire(&store).listen(to).await });
    (news, listening)
}

async fn next(news: &mut mpsc::Receiver<HintNews>) -> HintNews {
    let next = timeout(PATIENCE, news.recv()).await;
    next.expect("it is heard").expect("it listens")
}

async fn another(fixture: &Fixture) -> Store {
    let store = Store::open_postgres(fixture.url()).await;
    store.expect("the database is there")
}

async fn the_newest_events_of_sessions_of_all_tenants_are_found_at_once(fixture: Fixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    let (quiet, busy) = (one.session().await, other.session().await);
    other.send(busy, "go").await;
    let key = |tenant, session| SessionKey { tenant, session };
    let mut asked = vec![key(one.id, quiet), key(other.id, busy)];
    // Neither is there.
    asked.push(key(one.id, busy));
    asked.push(key(TenantId::from_u128(1), SessionId::from_u128(1)));
    let found = fixture.db.last_events(asked.clone()).await;
    let mut found = found.expect("it answers");
    found.sort_unstable();
    let mut expected = Vec::new();
    for of in &asked[..2] {
        let events = fixture.db.events_after(of.tenant, of.session, 0, 9).await;
        expected.push((*of, events.expect("it is there").len() as u64));
    }
    expected.sort_unstable();
    assert_ne!(expected[0].1, expected[1].1);
    assert_eq!(found, expected);
    let none = fixture.db.last_events([]).await;
    assert_eq!(none.expect("it answers"), []);
}

#[tokio::test]
async fn servers_hear_the_texts_that_another_one_sends_in_order() {
    let fixture = Fixture::postgres().await;
    let (mut news, listening) = listen(another(&fixture).await);
    assert_eq!(next(&mut news).await, HintNews::Listens);
    let longest = "x".repeat(MAX_HINT_TEXT_BYTES);
    let texts = vec!["1 short".to_owned(), longest];
    let sent = wire(&fixture.db).send(texts.clone()).await;
    sent.expect("it answers");
    for text in texts {
        assert_eq!(next(&mut news).await, HintNews::Heard(text));
    }
    drop(news);
    timeout(PATIENCE, listening)
        .await
        .expect("it ends with its receiver")
        .expect("no panic");
}

#[tokio::test]
async fn a_server_whose_listening_connection_was_ended_says_that_hints_may_be_lost_and_listens_again()
 {
    let fixture = Fixture::postgres().await;
    let (mut news, _listening) = listen(another(&fixture).await);
    assert_eq!(next(&mut news).await, HintNews::Listens);
    let mut admin = cluster::admin(&cluster::name(fixture.url())).await;
    let ended = sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    )
    .fetch_all(&mut admin)
    .await;
    assert_eq!(ended.expect("it answers").len(), 1);
    assert_eq!(next(&mut news).await, HintNews::Listens);
    let sent = wire(&fixture.db).send(vec!["1 later".to_owned()]).await;
    sent.expect("it answers");
    let heard = HintNews::Heard("1 later".to_owned());
    assert_eq!(next(&mut news).await, heard);
}

#[tokio::test]
async fn a_database_that_is_a_file_has_no_way_to_other_servers() {
    let fixture = Fixture::sqlite().await;
    assert!(fixture.db.hints().is_none());
}
