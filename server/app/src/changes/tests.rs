use std::time::Duration;

use futures_util::FutureExt as _;
use shared_types::{SessionId, TenantId, UserId};
use tokio::time::advance;

use super::{
    pending::{EVERY, FIGURES_EVERY},
    *,
};

const TENANT: TenantId = TenantId::from_u128(1);
const ALICE: UserId = UserId::from_u128(2);
const BOB: UserId = UserId::from_u128(3);

/// A person who watches these lists, and has heard the first hint.
fn watching(hub: &ChangeHub, user: UserId, topics: &[Topic]) -> Watch {
    let topics: BTreeSet<_> = topics.iter().copied().collect();
    let watcher = Watcher::of(topics.clone(), Instant::now());
    let mut watch = Watch {
        _place: hub.enter(TENANT, user, &watcher),
        watcher,
    };
    let first = watch.next().now_or_never().expect("it is told at once");
    assert_eq!(first.topics, topics.into_iter().collect::<Vec<_>>());
    assert_eq!(first.sessions, None);
    watch
}

fn change(topic: Topic, whose: Whose, pace: Pace) -> Vec<Change> {
    let tenant = Some(TENANT);
    vec![Change {
        tenant,
        topic,
        whose,
        pace,
    }]
}

fn prompt(topic: Topic) -> Vec<Change> {
    change(topic, Whose::Everyone, Pace::Prompt)
}

fn now(watch: &mut Watch) -> Option<Vec<Topic>> {
    Some(watch.next().now_or_never()?.topics)
}

#[tokio::test(start_paused = true)]
async fn hints_that_come_close_together_are_one_message() {
    let (hub, _waiting) = ChangeHub::new();
    let mut watch = watching(&hub, ALICE, &[Topic::Runners, Topic::People, Topic::Keys]);
    for _ in 0..1000 {
        hub.tell(prompt(Topic::People));
    }
    hub.tell(prompt(Topic::Runners));
    hub.tell(prompt(Topic::Models));
    assert_eq!(now(&mut watch), None, "the first message was just now");
    advance(EVERY).await;
    assert_eq!(now(&mut watch), Some(vec![Topic::Runners, Topic::People]));
    advance(EVERY).await;
    assert_eq!(now(&mut watch), None, "each is told once");
    hub.tell(prompt(Topic::Keys));
    assert_eq!(now(&mut watch), Some(vec![Topic::Keys]), "it was quiet");
}

#[tokio::test(start_paused = true)]
async fn a_figure_is_told_every_five_seconds_and_does_not_delay_what_is_more() {
    let (hub, _waiting) = ChangeHub::new();
    let mut watch = watching(&hub, ALICE, &[Topic::Runners, Topic::People]);
    let figure = || change(Topic::Runners, Whose::Everyone, Pace::Slow);
    advance(EVERY).await;
    hub.tell(figure());
    assert_eq!(now(&mut watch), None);
    hub.tell(prompt(Topic::People));
    assert_eq!(now(&mut watch), Some(vec![Topic::People]));
    advance(FIGURES_EVERY - 2 * EVERY).await;
    assert_eq!(now(&mut watch), None);
    advance(EVERY).await;
    assert_eq!(now(&mut watch), Some(vec![Topic::Runners]));
    advance(EVERY).await;
    hub.tell(figure());
    hub.tell(prompt(Topic::Runners));
    assert_eq!(now(&mut watch), Some(vec![Topic::Runners]), "it is more");
    advance(FIGURES_EVERY).await;
    assert_eq!(now(&mut watch), None, "the figure was told with it");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_hears_when_it_is_time() {
    let (hub, _waiting) = ChangeHub::new();
    let mut watch = watching(&hub, ALICE, &[Topic::Runners]);
    let began = Instant::now();
    hub.tell(change(Topic::Runners, Whose::Everyone, Pace::Slow));
    let told = watch.next().await;
    assert_eq!(told.topics, [Topic::Runners]);
    assert_eq!(began.elapsed(), FIGURES_EVERY);
    hub.tell(change(Topic::Runners, Whose::Everyone, Pace::Slow));
    let more = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        hub.tell(prompt(Topic::Runners));
    };
    let (_, ()) = tokio::join!(watch.next(), more);
    assert_eq!(began.elapsed(), FIGURES_EVERY + Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_hint_for_one_person_reaches_no_other_person_and_no_other_tenant() {
    let (hub, _waiting) = ChangeHub::new();
    let mut alice = watching(&hub, ALICE, &[Topic::Settings]);
    let mut bob = watching(&hub, BOB, &[Topic::Settings]);
    advance(EVERY).await;
    hub.tell(change(Topic::Settings, Whose::User(ALICE), Pace::Prompt));
    assert_eq!(now(&mut alice), Some(vec![Topic::Settings]));
    assert_eq!(now(&mut bob), None);
    advance(EVERY).await;
    let mut elsewhere = prompt(Topic::Settings);
    elsewhere[0].tenant = Some(TenantId::from_u128(9));
    hub.tell(elsewhere.clone());
    assert_eq!(now(&mut bob), None);
    elsewhere[0].tenant = None;
    hub.tell(elsewhere);
    assert_eq!(
        now(&mut bob),
        Some(vec![Topic::Settings]),
        "it may be any tenant"
    );
    drop(alice);
    drop(bob);
    assert!(hub.is_empty(), "they have left");
}

#[test]
fn a_hint_names_few_sessions_or_none() {
    let start = Instant::now();
    let topics = BTreeSet::from([Topic::Sessions, Topic::Approvals, Topic::Keys]);
    let mut pending = pending::Pending::of(&topics, start);
    let mut after = 0;
    let mut told = |pending: &mut pending::Pending| {
        after += 1;
        let hint = pending.take(start + after * EVERY).expect("there is one");
        hint.sessions.map(|sessions| sessions.len())
    };
    assert_eq!(told(&mut pending), None, "the first is about all");
    let session = |id| Some(SessionId::from_u128(id));
    pending.add(Topic::Sessions, Pace::Prompt, session(1));
    pending.add(Topic::Approvals, Pace::Prompt, session(2));
    pending.add(Topic::Keys, Pace::Prompt, None);
    assert_eq!(told(&mut pending), Some(2));
    for id in 0..17 {
        pending.add(Topic::Sessions, Pace::Prompt, session(id));
    }
    assert_eq!(told(&mut pending), None, "there are too many");
    pending.add(Topic::Approvals, Pace::Prompt, session(1));
    pending.add(Topic::Sessions, Pace::Prompt, None);
    assert_eq!(told(&mut pending), None, "one is about any");
}

#[test]
fn an_empty_watch_is_told_once() {
    let start = Instant::now();
    let mut pending = pending::Pending::of(&BTreeSet::new(), start);
    assert_eq!(pending.take(start).expect("the first").topics, []);
    assert_eq!(pending.take(start + EVERY), Err(None));
}
