use std::sync::atomic::AtomicU64;

use server_agent::SessionLog as _;
use server_store::{By, Input, NewSession, NewTenant, NewUser};
use shared_types::{
    Epoch, Event, TurnId, UserId,
    clock::ManualClock,
    event::{EventBody, Parts},
};
use tempfile::TempDir;

use super::*;

use crate::{measured::Counted, session_log::StoredLog};

const OWNER: UserId = UserId::from_u128(2);
const KEY: Key = (TenantId::from_u128(1), SessionId::from_u128(3));

/// A database with one session.
struct Database {
    store: Store,
    _folder: TempDir,
}

impl Database {
    async fn begun_at(second: i64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(&folder.path().join("gantry.db")).await;
        let store = store.expect("a database");
        let (tenant, name) = (KEY.0, "owner".to_owned());
        let new = NewTenant {
            id: tenant,
            name: name.clone(),
        };
        let owner = NewUser { id: OWNER, name };
        let made = store.bootstrap(&new, &owner, at(0)).await;
        made.expect("it is empty");
        let session = NewSession {
            id: KEY.1,
            user: OWNER,
            title: String::new(),
            model: "practice".to_owned(),
            pin: None,
            directory: String::new(),
        };
        let begun = store.create_session(tenant, &session, u64::MAX, at(second));
        begun.await.expect("it is stored");
        Self {
            store,
            _folder: folder,
        }
    }

    async fn say(&self, number: u128) {
        let input = Input {
            turn: TurnId::from_u128(number),
            by: OWNER,
            credential: None,
            client_id: None,
            text: format!("message {number}"),
            trace: None,
        };
        let second = i64::try_from(number).expect("a small number");
        let said = self.store.send_input(KEY.0, KEY.1, &input, at(second));
        said.await.expect("it is stored");
    }

    async fn stored(&self) -> Vec<SessionEvent> {
        let log = self.store.events_after(KEY.0, KEY.1, 0, 500).await;
        log.expect("the session is there")
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

async fn load(logs: &LogCache, database: &Database) -> Vec<SessionEvent> {
    let log = logs.load(&database.store, KEY, None, at(0)).await;
    log.expect("the session is there").to_vec()
}

#[tokio::test]
async fn a_log_is_whole_however_often_it_grows_between_two_loads() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    for number in 10..13 {
        assert_eq!(load(&logs, &database).await, database.stored().await);
        database.say(number).await;
        database.say(number * 10).await;
    }
    assert_eq!(load(&logs, &database).await, database.stored().await);
    assert_eq!(load(&logs, &database).await.len(), 7);
}

#[tokio::test]
async fn what_was_read_of_a_log_is_not_read_again() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    let similar = Database::begun_at(2).await;
    for database in [&database, &similar] {
        database.say(10).await;
    }
    let mut known = load(&logs, &database).await;
    similar.say(11).await;
    // The other database differs in its first event, which shows which one was read.
    let read = load(&logs, &similar).await;
    known.push(similar.stored().await.pop().expect("three events"));
    assert_eq!(read, known);
}

#[tokio::test]
async fn what_this_server_appends_to_a_known_log_is_not_read() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    load(&logs, &database).await;
    database.say(10).await;
    logs.appended(KEY, &database.stored().await[1..]);
    let (stored, (_, bytes)) = (database.stored().await, kept(&logs));
    database.store.close().await;

    let log = logs.load(&database.store, KEY, Some(2), at(0)).await;
    assert_eq!(*log.expect("it is known"), stored);
    assert_eq!(kept(&logs), (1, bytes));
    // Of a later event it is not known whether it is the next one.
    let log = logs.load(&database.store, KEY, Some(3), at(0)).await;
    log.expect_err("the database is closed");
    assert_eq!(kept(&logs), (0, 0));
}

#[tokio::test]
async fn a_log_that_grows_beyond_what_is_kept_is_forgotten() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    load(&logs, &database).await;
    let begun = database.stored().await.pop().expect("an event");
    let long = SessionEvent {
        seq: 2,
        body: EventBody::Known(Event::InputAccepted {
            turn: TurnId::from_u128(10),
            by: OWNER,
            client_id: None,
            parts: Parts::text("x".repeat(KEPT_BYTES)),
        }),
        ..begun
    };
    logs.appended(KEY, &[long]);
    assert_eq!(kept(&logs), (0, 0));
}

#[tokio::test]
async fn what_another_server_has_appended_in_between_is_read() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    load(&logs, &database).await;
    database.say(10).await;
    database.say(11).await;
    let stored = database.stored().await;
    logs.appended(KEY, &stored[2..]);

    let log = logs.load(&database.store, KEY, Some(3), at(0)).await;
    assert_eq!(*log.expect("it is there"), stored);
}

#[tokio::test]
async fn a_turn_begins_with_what_was_known_at_its_claim_and_is_given_up_with_all_that_there_is() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    load(&logs, &database).await;
    // By another server.
    database.say(10).await;
    let log = |claimed_at| StoredLog {
        store: database.store.clone(),
        logs: logs.clone(),
        clock: Arc::new(ManualClock::at(at(0))),
        tenant: KEY.0,
        session: KEY.1,
        epoch: Epoch(1),
        claimed_at: AtomicU64::new(claimed_at),
        counted: Counted::new(None),
        was_last: Arc::default(),
    };

    let turn = log(1);
    assert_eq!(turn.load().await.expect("it is there").len(), 1);
    let whole = database.stored().await;
    assert_eq!(*turn.load().await.expect("it is there"), whole);
    database.say(11).await;
    // What gives a turn up has no claim of its own.
    let whole = database.stored().await;
    assert_eq!(*log(0).load().await.expect("it is there"), whole);
}

#[tokio::test]
async fn an_event_in_the_place_of_a_known_one_has_the_log_read_anew() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    let older = Database::begun_at(1).await;
    database.say(10).await;
    database.say(11).await;
    load(&logs, &database).await;
    older.say(20).await;
    logs.appended(KEY, &older.stored().await[1..]);

    let log = logs.load(&older.store, KEY, Some(2), at(0)).await;
    assert_eq!(*log.expect("it is there"), older.stored().await);
}

#[tokio::test]
async fn a_log_that_was_put_back_is_read_as_it_is_now() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    let older = Database::begun_at(1).await;
    database.say(10).await;
    load(&logs, &database).await;

    assert_eq!(load(&logs, &older).await, older.stored().await);
    load(&logs, &database).await;
    older.say(20).await;
    older.say(21).await;
    assert_eq!(load(&logs, &older).await, older.stored().await);
}

#[tokio::test]
async fn of_a_deleted_session_nothing_is_known() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1).await);
    load(&logs, &database).await;
    let by = By::from(OWNER);
    let deleted = database.store.delete_session(KEY.0, KEY.1, &by, at(5));
    deleted.await.expect("it is stored");
    let purged = database.store.purge_session(KEY.0, KEY.1).await;
    assert!(purged.expect("it is stored"));

    let log = logs.load(&database.store, KEY, None, at(6)).await;
    assert!(matches!(log, Err(StoreError::NotFound)), "{log:?}");
    logs.forget(KEY);
    assert_eq!(kept(&logs), (0, 0));
}

/// How many logs are kept, and their bytes.
fn kept(logs: &LogCache) -> (usize, usize) {
    logs.with(|kept| (kept.logs.len(), kept.bytes))
}

#[test]
fn the_logs_that_were_used_least_lately_make_room() {
    let logs = LogCache::new();
    let key = |number| (KEY.0, SessionId::from_u128(number));
    let put = |number, bytes, now| {
        let known = Known {
            log: Arc::default(),
            bytes,
            used_at: at(0),
        };
        logs.with(|kept| kept.put(key(number), known, now));
    };
    let half = KEPT_BYTES / 2;
    put(1, half, at(1));
    put(2, half, at(2));
    put(1, half, at(3));
    put(3, 1, at(4));
    let has = |number| logs.with(|kept| kept.logs.contains_key(&key(number)));
    assert!(has(1) && !has(2) && has(3));
    assert_eq!(kept(&logs), (2, half + 1));

    let long_after = at(4 + 1 + KEPT_FOR.as_secs() as i64);
    put(4, 1, long_after);
    assert_eq!(kept(&logs), (1, 1), "nothing happened in the others");
    put(5, KEPT_BYTES + 1, long_after);
    assert_eq!(
        kept(&logs),
        (1, 1),
        "a log that is too large is not kept, and takes no other's place"
    );
}
