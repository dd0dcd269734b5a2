//! What ends the wait before the next attempt.

use tokio::net::TcpListener;

use super::*;

over_both! {
    a_long_wait_ends_where_the_host_gets_another_route_on_a_network_of_its_own,
    an_attempt_that_hangs_is_given_up_where_the_host_gets_another_route_on_a_network_of_its_own,
}

/// Longer than any test: what ends such a wait is no time.
const HOUR: Duration = Duration::from_secs(3600);

/// Failures after which waits are as long as they may be.
const MANY: u32 = 20;

async fn a_long_wait_ends_where_the_host_gets_another_route_on_a_network_of_its_own(
    over: Transport,
) {
    let network = OwnNetwork::enter();
    let mut server = FakeServer::over(over, 1).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let first = format!("http://{}", nobody.local_addr().expect("an address"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &server, None).await;
    link.endpoints = endpoints(&[&first, &server.url]);
    link.backoff = Backoff::after(MANY, HOUR);
    let runner = tokio::spawn(link.run());
    let _ = nobody.accept().await.expect("an attempt");
    drop(nobody);
    network.ip("route add 10.8.0.0/16 dev lo");
    welcomed(&mut server).await;
    runner.abort();
}

async fn an_attempt_that_hangs_is_given_up_where_the_host_gets_another_route_on_a_network_of_its_own(
    over: Transport,
) {
    let network = OwnNetwork::enter();
    let mut server = FakeServer::over(over, 1).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let first = format!("http://{}", silent.local_addr().expect("an address"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &server, None).await;
    link.endpoints = endpoints(&[&first, &server.url]);
    let (mut progress, mut news) = (LinkProgress::default(), NetworkNews::listen());
    let changes = async {
        let asked = silent.accept().await.expect("an attempt");
        network.ip("route add 10.8.0.0/16 dev lo");
        asked
    };
    let (ended, _asked) = tokio::join!(link.once(&mut progress, &mut news), changes);
    assert!(matches!(ended, Err(LinkError::Overtaken)), "{ended:?}");
    let waited = timeout(SOON, link.pause(HOUR, &mut news)).await;
    assert!(waited.is_ok(), "what was heard counts for the wait as well");
    let runner = tokio::spawn(link.run());
    welcomed(&mut server).await;
    runner.abort();
}
