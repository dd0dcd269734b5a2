//! Two servers in one process, on one database of `tests/postgres`.

use std::{collections::BTreeSet, path::Path, process::Command, sync::Arc, time::Duration};

use server_llm::Practice;
use server_store::{Input, PostgresUrl, Store};
use shared_types::{
    Clock as _, Entropy as _, Event, OsEntropy, SessionId, SystemClock, Topic, TurnId,
    WhileWorking, event::Terms,
};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{App, Followed, NewMessage, OpContext, SessionTerms, Subscription, testing};

/// Above the pause of a look: only a failure reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

struct Two {
    here: App,
    there: App,
    ctx: OpContext,
    url: PostgresUrl,
    _folder: TempDir,
    _stop: DropGuard,
}

async fn two() -> Two {
    let (folder, url) = (tempfile::tempdir().expect("a folder"), database());
    let stop = CancellationToken::new();
    let start = async |place: &str| {
        let store = opened(&url).await;
        testing::start_on(store, folder.path(), place, Arc::new(Practice), &stop).await
    };
    let (here, there) = (start("here").await, start("there").await);
    Two {
        ctx: testing::sign_in(&here).await,
        here,
        there,
        url,
        _folder: folder,
        _stop: stop.drop_guard(),
    }
}

async fn opened(url: &PostgresUrl) -> Store {
    let store = Store::open_postgres(url).await;
    store.expect("the database is there")
}

/// An empty database.
fn database() -> PostgresUrl {
    let mut random = [0; 8];
    OsEntropy.fill(&mut random);
    let random = u64::from_be_bytes(random);
    let name = format!("scenario_{}_{random:016x}", std::process::id());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/postgres");
    let made = Command::new(script).args(["create", &name]).output();
    let made = made.expect("it is there");
    let told = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "tests/postgres run …: {told}");
    let url = String::from_utf8_lossy(&made.stdout);
    url.trim().parse().expect("a URL")
}

impl Two {
    async fn session(&self) -> SessionId {
        let terms = SessionTerms::default();
        let made = self.here.sessions.create(&self.ctx, &terms);
        made.await.expect("it is made").id
    }

    /// A follower at the other server that has caught up.
    async fn follower(&self, session: SessionId) -> Subscription {
        let following = self.there.sessions.follow(&self.ctx, session, 0).await;
        let mut following = following.expect("it is there");
        while !matches!(next(&mut following).await, Followed::CaughtUp(_)) {}
        following
    }
}

async fn next(following: &mut Subscription) -> Followed {
    let next = timeout(PATIENCE, following.next()).await;
    next.expect("it is heard").expect("the store answers")
}

/// The numbers of the events until the turn has ended.
async fn until_ended(following: &mut Subscription) -> Vec<u64> {
    let mut seqs = Vec::new();
    loop {
        if let Followed::Event(event) = next(following).await {
            seqs.push(event.seq);
            if matches!(event.known(), Some(Event::TurnEnded { .. })) {
                return seqs;
            }
        }
    }
}

fn input(by: &OpContext, text: &str) -> Input {
    Input {
        turn: TurnId::from_u128(77),
        by: by.user,
        credential: None,
        client_id: None,
        text: text.to_owned(),
        images: Vec::new(),
        compacts: None,
        terms: Terms::default(),
        while_working: WhileWorking::Queue,
        trace: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_at_another_server_sees_the_events_of_a_turn_in_order() {
    let two = two().await;
    let session = two.session().await;
    let mut following = two.follower(session).await;
    let message = NewMessage::of("hello");
    let sent = two.here.sessions.send(&two.ctx, session, message).await;
    let first = sent.expect("it is accepted").seq;
    let seqs = until_ended(&mut following).await;
    let last = *seqs.last().expect("it has ended");
    assert_eq!(seqs, (first..=last).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_hint_tells_is_found_by_a_look() {
    let two = two().await;
    let session = two.session().await;
    let mut following = two.follower(session).await;
    // A store without a listener tells nothing of its commits.
    let silent = opened(&two.url).await;
    let message = input(&two.ctx, "hello");
    // Of a message of the future no worker thinks that it waits.
    let later = SystemClock::new().now().after(Duration::from_secs(3600));
    let sent = silent.send_input(two.ctx.tenant, session, &message, later);
    let seq = sent.await.expect("the session is there").seq;
    match next(&mut following).await {
        Followed::Event(event) => assert_eq!(event.seq, seq),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_rights_that_change_at_one_server_are_told_at_the_other() {
    let two = two().await;
    let topics = BTreeSet::from([Topic::Keys]);
    let mut lists = two.there.changes.watch(&two.ctx, &topics);
    let told = timeout(PATIENCE, lists.next()).await;
    assert_eq!(told.expect("the first names all").topics, [Topic::Keys]);
    let mut rights = two.there.access.watch_rights(&two.ctx);
    let ended = two
        .here
        .access
        .revoke_key(&two.ctx, two.ctx.credential)
        .await;
    ended.expect("it is the caller's own");
    let told = timeout(PATIENCE, rights.changed()).await;
    told.expect("it is told");
    let told = timeout(PATIENCE, lists.next()).await;
    assert_eq!(told.expect("it is told").topics, [Topic::Keys]);
}
