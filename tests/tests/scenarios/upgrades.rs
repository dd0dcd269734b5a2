//! Servers that take each other's place on one PostgreSQL, as `helm upgrade` and `helm rollback` do it, while
//! people work. `ROLLS=20` takes more of them.

use std::{fs::File, process::Stdio};

use serde_json::json;
use shared_client::PING_EVERY;
use shared_types::event::{CallOutcome, TurnOutcome};
use tests::{
    gantry::{Gantry, Setup, eventually},
    postgres::Postgres,
    proxy::Proxy,
    report::report,
    work::Work,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

async fn on_postgres(settings: &str) -> (Postgres, Gantry, Proxy) {
    let postgres = Postgres::start();
    let setup = Setup {
        database: Some(postgres.database()),
        settings: settings.to_owned(),
        ..Setup::default()
    };
    let gantry = Gantry::with(setup).await;
    let front = Proxy::before(gantry.url()).await;
    (postgres, gantry, front)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the number of servers of a longer run"
)]
fn rolls() -> u32 {
    let rolls = std::env::var("ROLLS");
    rolls.map_or(3, |rolls| rolls.parse().expect("ROLLS is a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_take_each_others_place_under_load_lose_nothing() {
    let rolls = rolls();
    let (_postgres, mut gantry, front) = on_postgres("").await;
    let runner = gantry.runner_by_way_of(front.url(), "laptop").await;
    // One command runs through all of it; others begin and end before and after each.
    let long = Work(83);
    let mut talk = gantry.talk_by_way_of(front.url(), PING_EVERY).await;
    let turn = talk.send(&format!("run {}", long.until_enough())).await;
    eventually("the work begins", || async { long.effects(&runner) }).await;
    let mut other = gantry.talk_by_way_of(front.url(), PING_EVERY).await;
    for roll in 0..rolls {
        let under_way = Work(100 + roll);
        let begun = other
            .send(&format!("run {}", under_way.until_enough()))
            .await;
        eventually("it begins", || async { under_way.effects(&runner) }).await;
        gantry.roll(&front).await;
        under_way.is_enough(&runner.workspace());
        let told = other.ended(begun).await;
        assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
        let [(CallOutcome::Completed, text)] = told.calls()[..] else {
            panic!("roll {roll}: {:?}", told.calls());
        };
        under_way.is_done(&runner, text).await;
        let answer = other.say(&format!("run echo {roll} >> rolls")).await;
        assert_eq!(answer.calls()[0].0, CallOutcome::Completed);
    }
    long.is_enough(&runner.workspace());
    let told = talk.ended(turn).await;
    assert_eq!(told.outcome, TurnOutcome::Completed, "{:?}", told.reason);
    let lines = long.lines(&runner).await;
    long.had_one_effect(&runner);
    // The servers that kept the output are all gone but the last.
    let operation = told.operations()[0].to_string();
    let whole = gantry.cli(&["output", &operation]).await;
    assert!(whole.status.success(), "{whole:?}");
    long.is_whole(lines, &whole.stdout);
    let rolled = runner.file("rolls").expect("it is there");
    assert_eq!(rolled.lines().count(), rolls as usize, "{rolled}");
    report(&format!(
        "{rolls} servers took each other's place; {lines} lines whole"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_a_command_reads_on_whichever_way_the_server_before_ends() {
    let rolls = rolls() + 1;
    let (_postgres, mut gantry, front) = on_postgres("").await;
    let runner = gantry.runner_by_way_of(front.url(), "laptop").await;
    let script = "n=0; until [ -e enough ]; do n=$((n+1)); echo $n; sleep 0.02; done";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let seen = folder.path().join("seen");
    let reader = gantry
        .terminal_by_way_of(
            front.url(),
            &["exec", "-r", "laptop", "--", "sh", "-c", script],
        )
        .stdout(File::create(&seen).expect("it is made"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = || {
        let seen = std::fs::read_to_string(&seen).expect("it can be read");
        seen.lines().count()
    };
    for roll in 0..rolls {
        let before = lines();
        eventually("it reads on", || async {
            (lines() > before + 5).then_some(())
        })
        .await;
        match roll % 2 {
            0 => gantry.roll(&front).await,
            _ => gantry.roll_by_kill(&front).await,
        }
    }
    let before = lines();
    eventually("it reads on", || async {
        (lines() > before + 5).then_some(())
    })
    .await;
    std::fs::write(runner.workspace().join("enough"), "").expect("it is written");
    let ended = reader.wait_with_output().await.expect("it is ours");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{told}");
    let seen = std::fs::read_to_string(&seen).expect("it can be read");
    let numbers = seen
        .lines()
        .map(|line| line.parse::<usize>().expect("a number"));
    assert!(numbers.eq(1..=lines()), "{told}\n{seen}");
    report(&format!(
        "{rolls} servers were followed by the next; {} lines were read once each",
        lines()
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_command_that_the_old_server_has_started_is_told_by_the_new_one() {
    let (_postgres, mut gantry, front) = on_postgres("").await;
    let runner = gantry.runner_by_way_of(front.url(), "laptop").await;
    let script = "until [ -e go ]; do sleep 0.05; done; echo done";
    let start = reqwest::Client::new()
        .post(format!("{}/api/v1/operations", front.url()))
        .bearer_auth(gantry.token())
        .json(&json!({ "runner": "laptop", "exec": { "argv": ["sh", "-c", script] } }))
        .send();
    let started = gantry.roll_behind(&front, start).await;
    let started: shared_api::Operation = started
        .expect("an answer")
        .json()
        .await
        .expect("an operation");
    std::fs::write(runner.workspace().join("go"), "").expect("it is written");
    // Only rows are read: nobody attaches, which would have it collected as well.
    eventually("its end is known", || async {
        let operation = gantry.client().operation(started.id).await;
        operation.expect("it is there").end
    })
    .await;
    let output = gantry.cli(&["output", &started.id.to_string()]).await;
    assert_eq!(output.stdout, b"done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_asked_to_stop_says_so_for_a_while_and_serves_on_until_then() {
    let (_postgres, gantry, _) = on_postgres("[server]\ndrain_ms = 300000\n").await;
    let ready = async || {
        let answer = reqwest::get(format!("{}/readyz", gantry.url())).await;
        answer.expect("it answers").status().as_u16()
    };
    assert_eq!(ready().await, 200);
    gantry.signal_server("TERM");
    eventually("it says that it stops", || async {
        (ready().await == 503).then_some(())
    })
    .await;
    gantry.client().sessions(1).await.expect("it serves on");
    // A second signal ends the wait.
    gantry.signal_server("TERM");
    eventually("it is gone", || async {
        let gone = reqwest::get(format!("{}/livez", gantry.url())).await;
        gone.is_err().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_waits_for_a_request_as_it_stops_ends_at_once_when_it_is_asked_again() {
    let mut gantry = Gantry::practice().await;
    let host = gantry.url().trim_start_matches("http://").to_owned();
    let mut asking = TcpStream::connect(&host).await.expect("it listens");
    let request = format!(
        "POST /api/v1/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        gantry.token()
    );
    let sent = asking.write_all(request.as_bytes()).await;
    sent.expect("the server reads it");
    let mut answer = [0; 12];
    asking.read_exact(&mut answer).await.expect("it answers");
    assert_eq!(&answer, b"HTTP/1.1 100", "it waits for the body");
    eventually("it ends at once", || async {
        gantry.signal_server("TERM");
        gantry.log().contains("ending at once").then_some(())
    })
    .await;
    assert_eq!(gantry.stop_server().await, Some(1));
}
