//! Two servers on one database: what one does, people see at the other.

use shared_types::event::TurnOutcome;
use tests::{
    gantry::{Gantry, Runner, Setup, Told},
    postgres::Postgres,
    socket::{Heard, Socket},
    work::Work,
};
use tokio::time::{Duration, Instant};

/// The time in which a look finds what no hint told is 4 s at least: below it the hint was heard.
const BY_HINT: Duration = Duration::from_millis(3500);

/// A server with a runner, and another server beside it.
async fn two(postgres: &Postgres) -> (Gantry, Runner, Gantry) {
    let one = Gantry::with(Setup {
        database: Some(postgres.database()),
        ..Setup::default()
    })
    .await;
    let runner = one.runner("laptop").await;
    let other = one.another().await;
    (one, runner, other)
}

fn seqs(told: &Told) -> Vec<u64> {
    told.events.iter().map(|event| event.seq).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_seen_and_stopped_at_the_other_server_than_its_own() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let turn = talk.send("hello").await;
    let (near, seen) = (talk.ended(turn).await, far.ended(turn).await);
    assert_eq!(seqs(&near), seqs(&seen));

    let turn = talk.send(&format!("run {}", Work(5).until_enough())).await;
    far.until_placed().await;
    let asked = Instant::now();
    far.cancel().await;
    let near = talk.ended(turn).await;
    assert_eq!(near.outcome, TurnOutcome::Cancelled);
    assert!(asked.elapsed() < BY_HINT, "{:?}", asked.elapsed());
    assert_eq!(seqs(&near), seqs(&far.ended(turn).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_at_one_server_loses_its_stream_at_the_other() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    let key = here.client().create_key("k").await.expect("a key");
    let mut stream = Socket::open_as(&there, &key.key, "/api/v1/stream", "ServerMessage").await;
    let asked = Instant::now();
    let revoked = here.client().remove_key(key.entry.id).await;
    revoked.expect("it is there");
    loop {
        if let Heard::Closed(code) = stream.next().await {
            assert_eq!(code, Some(1008));
            break;
        }
    }
    assert!(asked.elapsed() < BY_HINT, "{:?}", asked.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_after_the_database_was_away_is_seen_at_the_other_server() {
    let postgres = Postgres::start();
    let (here, _runner, there) = two(&postgres).await;
    let mut talk = here.talk().await;
    let mut far = talk.through(&there);
    let told = talk.say("hello").await;
    assert_eq!(told.outcome, TurnOutcome::Completed);
    postgres.stop();
    postgres.start_again();
    let turn = talk.send("hello again").await;
    assert_eq!(seqs(&talk.ended(turn).await), seqs(&far.ended(turn).await));
}
