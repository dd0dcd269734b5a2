//! A client that watches lists: it hears of those that changed, and of nobody else's, and reads them again.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared_api::{ChangeSession, RoleName, ScopeName};
use shared_client::Client;
use shared_types::{SessionId, Topic, event::Answer};
use tests::{
    gantry::{Gantry, Setup},
    socket::Socket,
};
use tokio_tungstenite::tungstenite::Message;

/// A client that watches.
struct Watching(Socket);

impl Watching {
    /// Watches these lists, and has heard the first hint.
    async fn begin(gantry: &Gantry, token: &str, topics: &[Topic]) -> Self {
        let socket = Socket::open_as(gantry, token, "/api/v1/stream", "ServerMessage").await;
        let mut watching = Self(socket);
        let first = watching.again(topics).await;
        assert_eq!(first, topics.iter().copied().collect());
        watching
    }

    /// Watches these lists in place of earlier ones; returns those that the first hint names.
    async fn again(&mut self, topics: &[Topic]) -> BTreeSet<Topic> {
        let watch = json!({ "type": "watch", "topics": topics });
        self.0.say(Message::text(watch.to_string())).await;
        let first = self.0.hears().await;
        assert_eq!(first["type"], "changed", "{first}");
        assert_eq!(first["sessions"], Value::Null, "{first}");
        topics_of(&first)
    }

    /// The sessions of the next hint, which is about this list; `None` for any.
    async fn hears(&mut self, topic: Topic) -> Option<Vec<SessionId>> {
        let said = self.0.hears().await;
        assert_eq!(said["type"], "changed", "{said}");
        assert!(topics_of(&said).contains(&topic), "{said}");
        serde_json::from_value(said["sessions"].clone()).expect("ids")
    }

    /// Reads again after each hint about this list until it is so.
    async fn until(&mut self, topic: Topic, is_so: impl AsyncFn() -> bool) {
        loop {
            let said = self.0.hears().await;
            if topics_of(&said).contains(&topic) && is_so().await {
                return;
            }
        }
    }
}

fn topics_of(said: &Value) -> BTreeSet<Topic> {
    serde_json::from_value(said["topics"].clone()).unwrap_or_default()
}

async fn rename(client: &Client, session: SessionId, title: &str) {
    let change = ChangeSession {
        title: Some(title.to_owned()),
        archived: None,
    };
    let changed = client.change_session(session, &change).await;
    changed.expect("it is the person's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_person_hears_of_their_own_sessions_and_not_of_anothers() {
    let gantry = Gantry::practice().await;
    let bobs = gantry.person("bob", RoleName::Member).await;
    let (alice, bob) = (gantry.client(), gantry.client_with(Some(bobs.clone())));
    let mut alice_hears = Watching::begin(&gantry, gantry.token(), &[Topic::Sessions]).await;
    let mut bob_hears = Watching::begin(&gantry, &bobs, &[Topic::Sessions]).await;
    let of_bob = bob.create_session("").await.expect("a session").id;
    assert_eq!(bob_hears.hears(Topic::Sessions).await, Some(vec![of_bob]));
    rename(&bob, of_bob, "pumps").await;
    assert_eq!(bob_hears.hears(Topic::Sessions).await, Some(vec![of_bob]));
    // Alice hears nothing before her own.
    let of_alice = alice.create_session("").await.expect("a session").id;
    let heard = alice_hears.hears(Topic::Sessions).await;
    assert_eq!(heard, Some(vec![of_alice]));
    bob.delete_session(of_bob).await.expect("it is his");
    assert_eq!(bob_hears.hears(Topic::Sessions).await, Some(vec![of_bob]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_goes_away_and_comes_back_is_told_both_times() {
    let gantry = Gantry::practice().await;
    let client = gantry.client();
    let topics = [Topic::Runners, Topic::JoinTokens];
    let mut watching = Watching::begin(&gantry, gantry.token(), &topics).await;
    let mut runner = gantry.runner("laptop").await;
    let is_online = async || match &client.runners().await.expect("a list")[..] {
        [laptop] => laptop.online,
        _ => false,
    };
    watching.until(Topic::JoinTokens, async || true).await;
    watching.until(Topic::Runners, is_online).await;
    runner.kill().await;
    watching
        .until(Topic::Runners, async || !is_online().await)
        .await;
    runner.start();
    watching.until(Topic::Runners, is_online).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_and_its_answer_are_told_to_the_one_who_is_asked() {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let client = gantry.client();
    client.use_runner("laptop").await.expect("it is there");
    let session = client.create_session("").await.expect("a session").id;
    let mut watching = Watching::begin(&gantry, gantry.token(), &[Topic::Approvals]).await;
    let asked = tests::asked::about(&client, session, "touch asked").await;
    assert_eq!(watching.hears(Topic::Approvals).await, Some(vec![session]));
    let denied = Answer::Denied { words: None };
    let answered = client.answer(asked.id, asked.digest, denied).await;
    answered.expect("it is open");
    assert_eq!(watching.hears(Topic::Approvals).await, Some(vec![session]));
    let open = client.approvals(false, 10).await.expect("a list");
    assert_eq!(open, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_is_first_told_all_that_it_watches_and_may_read() {
    let mut gantry = Gantry::practice().await;
    let mut watching = Watching::begin(&gantry, gantry.token(), &Topic::ALL).await;
    assert_eq!(watching.again(&[]).await, BTreeSet::new());
    let client = gantry.client();
    let session = client.create_session("").await.expect("a session").id;
    rename(&client, session, "pumps").await;
    let all: BTreeSet<_> = Topic::ALL.into();
    assert_eq!(watching.again(&Topic::ALL).await, all, "nothing before it");
    gantry.kill_server().await;
    gantry.start_server().await;
    Watching::begin(&gantry, gantry.token(), &Topic::ALL).await;

    let key = gantry.key("reader", &[ScopeName::Chat]).await.key;
    let socket = Socket::open_as(&gantry, &key, "/api/v1/stream", "ServerMessage").await;
    let readable = Watching(socket).again(&Topic::ALL).await;
    let unreadable: Vec<_> = all.difference(&readable).collect();
    assert_eq!(unreadable, [&Topic::JoinTokens, &Topic::Keys]);
}

/// Bytes of messages that a client does not read: more than its connection and the server hold for it.
const UNREAD: usize = 12 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_slowly_misses_no_list() {
    let gantry = Gantry::with(Setup {
        settings: "[limits]\nmessage_kib_per_minute = 100000\n".to_owned(),
        ..Setup::default()
    })
    .await;
    let client = gantry.client();
    let session = client.create_session("").await.expect("a session").id;
    let long = "x".repeat(250 * 1024);
    for number in 0..UNREAD / long.len() {
        let sent = client.send(session, &long, &number.to_string()).await;
        sent.expect("there is room");
    }
    let topics = [Topic::People, Topic::Keys, Topic::Permissions];
    let mut slow = Watching::begin(&gantry, gantry.token(), &topics).await;
    let subscribe = json!({ "type": "subscribe", "session": session, "after": 0 });
    slow.0.say(Message::text(subscribe.to_string())).await;
    for number in 0..20 {
        let name = format!("person-{number}");
        let invited = client.invite(&name, RoleName::Viewer).await;
        invited.expect("the owner invites");
    }
    client.create_key("k").await.expect("a key");
    let mut told = BTreeSet::new();
    while !told.is_superset(&[Topic::People, Topic::Keys].into()) {
        told.extend(topics_of(&slow.0.hears().await));
    }
    assert!(!told.contains(&Topic::Permissions), "no rule has changed");
}
