//! A server that is reached at several addresses.

use tests::{
    gantry::{Gantry, Runner, Setup},
    proxy::Proxy,
    work::{Job, Work},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_lost_at_one_address_comes_back_at_another_and_nothing_is_lost() {
    let gantry = Gantry::with(Setup::with_short_links()).await;
    let first = Proxy::before(gantry.url()).await;
    let second = Proxy::before(gantry.url()).await;
    let token = gantry.join_token("laptop").await;
    let mut runner = Runner::enrol(first.url(), &token, "laptop").await;
    let changed = runner.try_servers(&[first.url(), second.url()]).await;
    let said = String::from_utf8_lossy(&changed.stdout);
    assert!(changed.status.success(), "{changed:?}");
    assert!(
        said.contains(first.url()) && said.contains(second.url()),
        "{said}"
    );

    runner.start();
    gantry.until_online("laptop", true).await;
    assert_eq!(second.passed().connections, 0, "the first comes first");
    let refused = runner.try_servers(&[second.url()]).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    assert!(
        said.contains("is used by a running gantry-runner"),
        "{said}"
    );

    let status = || async {
        let said = runner.status().await;
        String::from_utf8(said.stdout).expect("text")
    };
    let shown = format!("linked to {}", first.url());
    assert!(status().await.contains(&shown), "{}", status().await);

    let job = Job::begin(&gantry, &runner, Work(61)).await;
    for (lost, left) in [(&first, &second), (&second, &first)] {
        left.clear();
        let made = left.passed().connections;
        lost.set(|weather| weather.refuses = true);
        lost.cut();
        left.until(|passed| passed.connections > made).await;
        gantry.until_online("laptop", true).await;
    }
    job.finish(&runner).await;
}
