use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use async_trait::async_trait;
use bytes::Bytes;
use server_records::{
    Appended, CallEnd, ChatHit, ChatQuery, ModelCall, NewAgent, NewChat, PortError,
    StandingExtensions, StandingRules, TrustedFile, WholeSkill,
};
use shared_types::{
    Digest, Epoch, Event, RunnerId, SessionId, TenantId, TurnId, UserId,
    clock::ManualClock,
    event::{EventBody, Layer, Parts, TodoItem},
};

use super::*;
use crate::{
    log::{Counted, StoredLog},
    session::SessionLog as _,
};

const OWNER: UserId = UserId::from_u128(2);
const KEY: SessionKey = SessionKey {
    tenant: TenantId::from_u128(1),
    session: SessionId::from_u128(3),
};

/// A database with one session. Clones are the same one.
#[derive(Clone)]
struct Database {
    /// The log; none once the session is deleted.
    log: Arc<Mutex<Option<Vec<SessionEvent>>>>,
    is_closed: Arc<AtomicBool>,
}

impl Database {
    fn begun_at(second: i64) -> Self {
        let database = Self {
            log: Arc::new(Mutex::new(Some(Vec::new()))),
            is_closed: Arc::default(),
        };
        let begun = Event::SessionCreated {
            title: String::new(),
            model: "practice".to_owned(),
            directory: String::new(),
        };
        database.add(begun, second);
        database
    }

    fn say(&self, number: u128) {
        let said = Event::InputAccepted {
            turn: TurnId::from_u128(number),
            by: OWNER,
            client_id: None,
            parts: Parts::text(format!("message {number}")),
            compacts: None,
            terms: crate::testing::full(),
        };
        self.add(said, i64::try_from(number).expect("a small number"));
    }

    fn add(&self, event: Event, second: i64) {
        let mut log = self.log.lock().expect("no test panics with it");
        let log = log.as_mut().expect("the session is there");
        log.push(SessionEvent {
            seq: log.len() as u64 + 1,
            at: at(second),
            body: EventBody::Known(event),
        });
    }

    fn stored(&self) -> Vec<SessionEvent> {
        let log = self.log.lock().expect("no test panics with it");
        log.clone().expect("the session is there")
    }

    fn close(&self) {
        self.is_closed.store(true, Relaxed);
    }

    fn delete(&self) {
        *self.log.lock().expect("no test panics with it") = None;
    }
}

#[async_trait]
impl LogRows for Database {
    async fn read_from(&self, seq: u64) -> Result<Vec<StoredEvent>, SessionError> {
        if self.is_closed.load(Relaxed) {
            return Err(PortError::new("the database is closed").into());
        }
        let log = self.log.lock().expect("no test panics with it").clone();
        let log = log.ok_or(SessionError::NotFound)?.into_iter();
        let rows = log.filter(|event| event.seq >= seq);
        let rows = rows.map(|event| StoredEvent {
            bytes: serde_json::to_vec(&event.body).expect("JSON").len(),
            event,
        });
        Ok(rows.collect())
    }

    async fn steers(&self, _: TurnId, _: u32) -> Result<Vec<SessionEvent>, SessionError> {
        panic!("no steers are asked for")
    }

    async fn append(
        &self,
        _: Epoch,
        _: &[Event],
        _: &[ModelCall],
        _: Timestamp,
    ) -> Result<Appended, SessionError> {
        Err(SessionError::StaleEpoch)
    }

    async fn images(&self, _: &[Digest]) -> Result<Vec<(Digest, Bytes)>, SessionError> {
        Ok(Vec::new())
    }

    async fn text(&self, _: Digest) -> Result<Option<Bytes>, SessionError> {
        panic!("no text is asked for")
    }

    async fn keep_text(&self, _: Bytes, _: Timestamp) -> Result<Digest, SessionError> {
        panic!("no text is kept")
    }

    async fn todo_of_place(&self, _: &str) -> Result<Vec<TodoItem>, SessionError> {
        panic!("no list is asked for")
    }

    async fn trusted_files(&self, _: RunnerId) -> Result<Vec<TrustedFile>, SessionError> {
        panic!("no trust is asked for")
    }

    async fn rules(&self) -> Result<StandingRules, SessionError> {
        Ok(StandingRules::default())
    }

    async fn extensions(&self) -> Result<StandingExtensions, SessionError> {
        panic!("no extension is asked for")
    }

    async fn skill(&self, _: Layer, _: &str) -> Result<Option<WholeSkill>, SessionError> {
        panic!("no skill is asked for")
    }

    async fn search_chats(&self, _: &ChatQuery) -> Result<Vec<ChatHit>, SessionError> {
        panic!("no search is asked for")
    }

    async fn keep_image(&self, _: &str, _: Bytes, _: Timestamp) -> Result<Digest, SessionError> {
        Err(SessionError::NotFound)
    }

    async fn start_chat(
        &self,
        _: Epoch,
        _: &NewChat,
        _: Timestamp,
    ) -> Result<SessionEvent, SessionError> {
        unreachable!("not asked")
    }

    async fn start_agent(
        &self,
        _: Epoch,
        _: &NewAgent,
        _: Timestamp,
    ) -> Result<SessionEvent, SessionError> {
        Err(SessionError::StaleEpoch)
    }

    async fn stop_agent(&self, _: SessionId, _: TurnId, _: Timestamp) -> Result<(), SessionError> {
        Err(SessionError::NotFound)
    }

    async fn append_end(
        &self,
        _: Epoch,
        _: &CallEnd<'_>,
        _: Timestamp,
    ) -> Result<(), SessionError> {
        Err(SessionError::StaleEpoch)
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

async fn load(logs: &LogCache, database: &Database) -> Vec<SessionEvent> {
    let log = logs.load(database, KEY, None, at(0)).await;
    log.expect("the session is there").to_vec()
}

#[tokio::test]
async fn a_log_is_whole_however_often_it_grows_between_two_loads() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    for number in 10..13 {
        assert_eq!(load(&logs, &database).await, database.stored());
        database.say(number);
        database.say(number * 10);
    }
    assert_eq!(load(&logs, &database).await, database.stored());
    assert_eq!(load(&logs, &database).await.len(), 7);
}

#[tokio::test]
async fn what_was_read_of_a_log_is_not_read_again() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    let similar = Database::begun_at(2);
    for database in [&database, &similar] {
        database.say(10);
    }
    let mut known = load(&logs, &database).await;
    similar.say(11);
    // The other database differs in its first event, which shows which one was read.
    let read = load(&logs, &similar).await;
    known.push(similar.stored().pop().expect("three events"));
    assert_eq!(read, known);
}

#[tokio::test]
async fn what_this_server_appends_to_a_known_log_is_not_read() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    load(&logs, &database).await;
    database.say(10);
    logs.appended(KEY, &database.stored()[1..]);
    let (stored, (_, bytes)) = (database.stored(), kept(&logs));
    database.close();

    let log = logs.load(&database, KEY, Some(2), at(0)).await;
    assert_eq!(*log.expect("it is known"), stored);
    assert_eq!(kept(&logs), (1, bytes));
    // Of a later event it is not known whether it is the next one.
    let log = logs.load(&database, KEY, Some(3), at(0)).await;
    log.expect_err("the database is closed");
    assert_eq!(kept(&logs), (0, 0));
}

#[tokio::test]
async fn a_log_that_grows_beyond_what_is_kept_is_forgotten() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    load(&logs, &database).await;
    let begun = database.stored().pop().expect("an event");
    let long = SessionEvent {
        seq: 2,
        body: EventBody::Known(Event::InputAccepted {
            turn: TurnId::from_u128(10),
            by: OWNER,
            client_id: None,
            parts: Parts::text("x".repeat(KEPT_BYTES)),
            compacts: None,
            terms: crate::testing::full(),
        }),
        ..begun
    };
    logs.appended(KEY, &[long]);
    assert_eq!(kept(&logs), (0, 0));
}

#[tokio::test]
async fn what_another_server_has_appended_in_between_is_read() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    load(&logs, &database).await;
    database.say(10);
    database.say(11);
    let stored = database.stored();
    logs.appended(KEY, &stored[2..]);

    let log = logs.load(&database, KEY, Some(3), at(0)).await;
    assert_eq!(*log.expect("it is there"), stored);
}

#[tokio::test]
async fn a_turn_begins_with_what_was_known_at_its_claim_and_is_given_up_with_all_that_there_is() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    load(&logs, &database).await;
    // By another server.
    database.say(10);
    let log = |claimed_at| StoredLog {
        wake: None,
        rows: Arc::new(database.clone()),
        logs: logs.clone(),
        clock: Arc::new(ManualClock::at(at(0))),
        of: KEY,
        epoch: Epoch(1),
        claimed_at: AtomicU64::new(claimed_at),
        counted: Counted::new(None),
        was_last: Arc::default(),
    };

    let turn = log(1);
    assert_eq!(turn.load().await.expect("it is there").len(), 1);
    let whole = database.stored();
    assert_eq!(*turn.load().await.expect("it is there"), whole);
    database.say(11);
    // What gives a turn up has no claim of its own.
    let whole = database.stored();
    assert_eq!(*log(0).load().await.expect("it is there"), whole);
}

#[tokio::test]
async fn an_event_in_the_place_of_a_known_one_has_the_log_read_anew() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    let older = Database::begun_at(1);
    database.say(10);
    database.say(11);
    load(&logs, &database).await;
    older.say(20);
    logs.appended(KEY, &older.stored()[1..]);

    let log = logs.load(&older, KEY, Some(2), at(0)).await;
    assert_eq!(*log.expect("it is there"), older.stored());
}

#[tokio::test]
async fn a_log_that_was_put_back_is_read_as_it_is_now() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    let older = Database::begun_at(1);
    database.say(10);
    load(&logs, &database).await;

    assert_eq!(load(&logs, &older).await, older.stored());
    load(&logs, &database).await;
    older.say(20);
    older.say(21);
    assert_eq!(load(&logs, &older).await, older.stored());
}

#[tokio::test]
async fn of_a_deleted_session_nothing_is_known() {
    let (logs, database) = (LogCache::new(), Database::begun_at(1));
    load(&logs, &database).await;
    database.delete();

    let log = logs.load(&database, KEY, None, at(6)).await;
    assert!(matches!(log, Err(SessionError::NotFound)), "{log:?}");
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
    let key = |number| SessionKey {
        session: SessionId::from_u128(number),
        ..KEY
    };
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
