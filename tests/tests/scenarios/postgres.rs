//! A server on PostgreSQL that stops answering. The scenarios of kills and links run on PostgreSQL as well:
//! `GANTRY_TEST_DATABASE=postgres tests/postgres run cargo nextest run -p tests -E 'test(/kills::/)'`.

mod borrowed;
mod chaos;
mod peers;
mod replicas;
mod two_servers;

use tests::{
    gantry::{Gantry, Setup, eventually},
    postgres::Postgres,
    work::{Job, Work},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_once_the_database_that_stopped_in_its_middle_is_back() {
    let postgres = Postgres::start();
    let gantry = Gantry::with(Setup {
        database: Some(postgres.database()),
        ..Setup::default()
    })
    .await;
    let runner = gantry.runner("laptop").await;
    let job = Job::begin(&gantry, &runner, Work(71)).await;
    is_ready(&gantry, true).await;
    postgres.stop();
    is_ready(&gantry, false).await;
    // The command ends while nobody can store that it did.
    job.work.is_enough(&runner.workspace());
    job.work.lines(&runner).await;
    let refused = gantry.client().sessions(1).await;
    assert!(refused.is_err(), "{refused:?}");
    postgres.start_again();
    is_ready(&gantry, true).await;
    gantry.until_online("laptop", true).await;
    job.finish(&runner).await;
    let log = gantry.log();
    assert!(!log.contains("gantry-test-secret"), "{log}");
}

async fn is_ready(gantry: &Gantry, ready: bool) {
    let what = format!("/readyz says {ready}");
    eventually(&what, || async {
        let url = format!("{}/readyz", gantry.url());
        let answer = reqwest::get(url).await.ok()?;
        (answer.status().is_success() == ready).then_some(())
    })
    .await;
}
