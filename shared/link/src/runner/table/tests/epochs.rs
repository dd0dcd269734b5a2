//! Epochs of owners: what an older holder sends is refused, for as long as it could matter.

use shared_types::{Refusal, RefusalCode, SessionId};

use super::*;
use crate::runner::{
    memory::{KEEP_RECEIPTS_FOR, MAX_OWNERS},
    orders::Incoming,
};

#[test]
fn a_cancel_of_what_is_not_known_is_held_against_its_owners_epoch_and_raises_it() {
    let mut scene = linked();
    assert_eq!(cancel_under(&mut scene, 1, Epoch(5)), None);
    assert_eq!(cancel_under(&mut scene, 2, Epoch(4)), None);
    assert_eq!(
        told(&mut scene),
        ["1 NeverStarted", "2 not cancelled StaleEpoch"]
    );
    let started = |scene: &mut Scene, number, epoch| {
        let mut incoming = incoming(number, shell("true"));
        incoming.epoch = epoch;
        order(scene, Order::Operation(Box::new(incoming))).is_some()
    };
    assert!(
        started(&mut scene, 2, Epoch(5)),
        "an older holder left no tombstone"
    );
    restarted(&mut scene);
    assert!(
        !started(&mut scene, 3, Epoch(4)),
        "nor does it start anything"
    );
    assert_eq!(told(&mut scene), ["3 refused StaleEpoch"]);
    for over in [1, 2] {
        assert_eq!(cancel_under(&mut scene, over, Epoch(4)), None);
    }
    let refused = ["1 not cancelled StaleEpoch", "2 not cancelled StaleEpoch"];
    assert_eq!(
        told(&mut scene),
        refused,
        "nor is it told what became of anything"
    );
}

#[test]
fn an_owners_epoch_never_goes_back() {
    let mut table = linked();
    let mut newer = incoming(1, shell("true"));
    newer.epoch = Epoch(5);
    order(&mut table, Order::Operation(Box::new(newer)));
    assert_eq!(start(&mut table, 2, "true"), None);
    assert_eq!(told(&mut table), ["1 accepted", "2 refused StaleEpoch"]);
    assert_eq!(table.epochs.of(&OWNER), Epoch(5));
}

#[test]
fn an_epoch_outlives_the_daemon() {
    let mut table = linked();
    let mut newer = incoming(1, list());
    newer.epoch = Epoch(5);
    order(&mut table, Order::Operation(Box::new(newer)));
    restarted(&mut table);
    assert_eq!(start(&mut table, 2, "true"), None);
    assert_eq!(told(&mut table), ["2 refused StaleEpoch"]);
}

#[test]
fn a_full_table_of_owners_serves_no_other_and_forgets_no_epoch_that_may_still_matter() {
    let mut scene = linked();
    let asked = |scene: &mut Scene, number, owner, epoch, now| {
        let incoming = Incoming {
            owner,
            epoch,
            ..incoming(number, shell("sleep 9"))
        };
        let link = scene.table.link;
        scene.order(link, Order::Operation(Box::new(incoming)), now);
        told(scene).remove(0)
    };
    let session = |number| Owner::Session(SessionId::from_u128(number));
    let (now, tomorrow) = (Duration::ZERO, KEEP_RECEIPTS_FOR);
    asked(&mut scene, 1, OWNER, Epoch(5), now);
    for number in 1..MAX_OWNERS as u128 {
        scene.epochs.see(session(100 + number), Epoch(5), now);
    }
    let refused = "2 refused ResourceExhausted";
    assert_eq!(asked(&mut scene, 2, session(7), Epoch(1), now), refused);
    let cancel = Order::Cancel {
        operation: id(2),
        owner: session(7),
        epoch: Epoch(1),
        incarnation: Some(incarnation()),
    };
    order(&mut scene, cancel);
    assert_eq!(told(&mut scene), ["2 not cancelled ResourceExhausted"]);
    let older = asked(&mut scene, 3, session(101), Epoch(4), now);
    assert_eq!(older, "3 refused StaleEpoch");
    let known = asked(&mut scene, 4, session(101), Epoch(5), now);
    assert_eq!(known, "4 accepted");

    let new = asked(&mut scene, 2, session(7), Epoch(1), tomorrow);
    assert_eq!(new, "2 accepted");
    for owner in [OWNER, session(101)] {
        let older = asked(&mut scene, 5, owner, Epoch(4), tomorrow);
        assert_eq!(older, "5 refused StaleEpoch", "something of it still runs");
    }
    assert_eq!(scene.epochs.all().len(), 3, "the others are gone");
}

#[test]
fn an_epoch_is_written_down_although_the_journal_had_no_room_for_what_came_with_it() {
    for request in [shell("true"), list()] {
        let mut scene = linked();
        let mut newer = incoming(1, request);
        newer.epoch = Epoch(5);
        order(&mut scene, Order::Operation(Box::new(newer)));
        scene.take_records();
        let refusal = Refusal::new(RefusalCode::ResourceExhausted, "no room");
        scene.not_begun(id(1), Outcome::Refused(refusal));
        told(&mut scene);
        restarted(&mut scene);
        assert_eq!(start(&mut scene, 2, "true"), None);
        assert_eq!(told(&mut scene), ["2 refused StaleEpoch"]);
    }
}
