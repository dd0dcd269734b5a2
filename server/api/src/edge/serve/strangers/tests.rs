use tokio::time::advance;

use super::*;
use crate::edge::serve::visit::Visit;

const KIB: usize = 1024;
/// What a connection holds from its beginning on.
const BASE: usize = 16 * KIB;

fn strangers(strangers: usize, per_address: usize, bytes: usize) -> Arc<Strangers> {
    Strangers::new(StrangerBounds {
        strangers,
        per_address,
        bytes,
    })
}

fn visits(strangers: &Arc<Strangers>, addresses: &[&str]) -> Vec<Arc<Visit>> {
    let visit = |address: &&str| {
        let address = address.parse().expect("an address");
        Visit::of_connection(strangers.clone(), Some(address))
    };
    addresses.iter().map(visit).collect()
}

fn cut_off(visits: &[Arc<Visit>]) -> Vec<bool> {
    visits.iter().map(|visit| visit.is_cut_off()).collect()
}

#[tokio::test(start_paused = true)]
async fn where_there_are_too_many_the_oldest_without_a_request_is_cut_off_first() {
    let strangers = strangers(2, 10, 100 * BASE);
    let first = visits(&strangers, &["192.0.2.1", "192.0.2.2"]);
    let under_way = first[0].asks(KIB);
    advance(ASKS_WITHIN).await;
    let second = visits(&strangers, &["192.0.2.3"]);
    assert_eq!(cut_off(&first), [false, true]);
    let also_under_way = second[0].asks(KIB);
    visits(&strangers, &["192.0.2.4"]);
    assert_eq!(
        cut_off(&first),
        [true, true],
        "all have requests: the oldest"
    );
    assert_eq!(cut_off(&second), [false]);
    drop((under_way, also_under_way));
}

#[tokio::test(start_paused = true)]
async fn one_that_has_just_come_is_not_cut_off_for_asking_nothing_yet() {
    let strangers = strangers(2, 10, 100 * BASE);
    let first = visits(&strangers, &["192.0.2.1"]);
    let _under_way = first[0].asks(KIB);
    advance(ASKS_WITHIN).await;
    let owner = visits(&strangers, &["192.0.2.2"]);
    visits(&strangers, &["192.0.2.3"]);
    assert_eq!(cut_off(&first), [true]);
    assert_eq!(cut_off(&owner), [false]);
}

#[test]
fn an_address_that_has_too_many_loses_one_of_its_own() {
    let strangers = strangers(100, 2, 100 * BASE);
    let others = visits(&strangers, &["198.51.100.1"]);
    let own = visits(&strangers, &["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"]);
    assert_eq!(cut_off(&others), [false]);
    assert_eq!(cut_off(&own), [true, false, false]);
    // A host has a whole network of IPv6.
    let six = [
        "2001:db8::1",
        "2001:db8::ffff:2",
        "2001:db8::3",
        "2001:db8:0:1::1",
    ];
    assert_eq!(
        cut_off(&visits(&strangers, &six)),
        [true, false, false, false]
    );
}

#[test]
fn a_peer_that_was_let_in_or_left_counts_no_more_and_is_never_cut_off() {
    let strangers = strangers(1, 1, 2 * BASE);
    let owner = visits(&strangers, &["192.0.2.1"]);
    owner[0].let_in();
    owner[0].heard(100 * BASE);
    for _ in 0..3 {
        let stranger = visits(&strangers, &["192.0.2.1"]);
        assert_eq!(cut_off(&stranger), [false]);
    }
    assert_eq!(cut_off(&owner), [false]);
}

#[tokio::test(start_paused = true)]
async fn together_they_hold_no_more_than_the_budget_and_give_back_what_is_answered() {
    let strangers = strangers(100, 100, 6 * BASE);
    let two = visits(&strangers, &["192.0.2.1", "192.0.2.2"]);
    for _ in 0..10 {
        let request = two[0].asks(KIB);
        two[0].heard(BASE);
        drop(request);
    }
    assert_eq!(
        cut_off(&two),
        [false, false],
        "what was answered is given back"
    );
    let _request = two[0].asks(BASE);
    advance(ASKS_WITHIN).await;
    two[1].heard(2 * BASE);
    assert_eq!(cut_off(&two), [false, true], "the one without a request");
}

#[tokio::test(start_paused = true)]
async fn a_request_counts_what_its_way_through_the_server_takes_until_it_is_answered() {
    let strangers = strangers(100, 100, 4 * BASE);
    let two = visits(&strangers, &["192.0.2.1", "192.0.2.2"]);
    for visit in &two {
        drop(visit.turn(false).await);
    }
    assert_eq!(cut_off(&two), [false, false], "one after the other");
    let _first = two[0].turn(false).await;
    let _second = two[1].turn(false).await;
    assert_eq!(cut_off(&two), [true, false], "both at the same time");
}
