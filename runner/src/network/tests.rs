//! What counts as news, as a kernel tells it.

use tokio::time::timeout;

use super::*;
use crate::testing::{OwnNetwork, SOON};

#[tokio::test]
async fn another_address_or_route_is_news_on_a_network_of_its_own() {
    let network = OwnNetwork::enter();
    network.ip("link add cable type veth peer name other");
    network.ip("link set other up");
    network.ip("link set cable up");
    for change in [
        "addr add 10.7.0.2/24 dev cable",
        "route add default via 10.7.0.1",
        "addr add fd00:7::2/64 dev cable",
        "route add default via fd00:7::1",
        "route add 10.8.0.0/16 dev cable",
    ] {
        let mut news = NetworkNews::listen();
        network.ip(change);
        let heard = timeout(SOON, news.heard()).await;
        assert!(heard.is_ok(), "{change}");
    }
    network.ip("link set cable down");
    let mut news = NetworkNews::listen();
    network.ip("link set cable up");
    let heard = timeout(SOON, news.heard()).await;
    assert!(heard.is_ok(), "it has an address already");
}

#[tokio::test]
async fn what_leads_to_no_other_machine_is_no_news_on_a_network_of_its_own() {
    let network = OwnNetwork::enter();
    network.ip("link add container type veth peer name other");
    network.ip("addr add 10.7.0.2/24 dev container");
    let news = NetworkNews::listen();
    for change in [
        "link set other up",
        "addr add 169.254.7.7/32 scope link dev container",
        "addr add 127.0.0.7/8 scope host dev lo",
        "addr del 10.7.0.2/24 dev container",
        "route add blackhole 10.9.0.0/16",
        "link set container up",
        "route del blackhole 10.9.0.0/16",
        "link del container",
    ] {
        network.ip(change);
        // It is there to be read before what changed the network has ended.
        let socket = news.socket.as_ref().expect("the kernel tells").get_ref();
        let read = next_gain(socket).map_err(|error| error.kind());
        assert_eq!(read, Err(std::io::ErrorKind::WouldBlock), "{change}");
    }
}

#[tokio::test]
async fn more_than_the_kernel_keeps_is_news_on_a_network_of_its_own() {
    let network = OwnNetwork::enter();
    let mut news = NetworkNews::listen();
    // None of it alone.
    for _ in 0..100 {
        network.ip("route add blackhole 10.9.0.0/16");
        network.ip("route del blackhole 10.9.0.0/16");
    }
    let heard = timeout(SOON, news.heard()).await;
    assert!(heard.is_ok(), "what was lost may have been news");
}

#[test]
fn what_is_no_message_is_no_news() {
    let address = |length: u32, scope: u8| {
        let mut message = Vec::new();
        message.extend(length.to_ne_bytes());
        message.extend(libc::RTM_NEWADDR.to_ne_bytes());
        message.extend([0; 10]);
        message.extend([2, 24, 0, scope, 0, 0, 0, 0]);
        message
    };
    assert!(gains(&address(24, 0)));
    // The second one of two, and what is cut off.
    assert!(gains(&[address(24, 254), address(24, 0)].concat()));
    assert!(gains(&address(24, 0)[..20]));
    assert!(!gains(&address(24, libc::RT_SCOPE_LINK)));
    for length in [0, 1, 15, 16, 19] {
        assert!(!gains(&address(length, 0)), "{length}");
    }
    assert!(!gains(&[]) && !gains(&[255; 15]) && !gains(&[255; 40]));
    for end in 0..20 {
        assert!(!gains(&address(u32::MAX, 0)[..end]), "{end}");
    }
}
