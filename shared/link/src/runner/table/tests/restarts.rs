//! A day is a day, however often the daemon was started anew in it, and ends with the host's boot.

use shared_types::SessionId;

use super::*;
use crate::runner::memory::{KEEP_RECEIPTS_FOR, MAX_OWNERS};

const SOON: Duration = Duration::from_secs(1);

/// Cancels what is not known, of the session of this number; returns what is told.
fn cancel_at(scene: &mut Scene, number: u128, now: Duration) -> String {
    let cancel = Order::Cancel {
        operation: id(number),
        owner: Owner::Session(SessionId::from_u128(number)),
        epoch: Epoch(5),
        incarnation: Some(incarnation()),
    };
    let link = scene.table.link;
    scene.order(link, cancel, now);
    told(scene).remove(0)
}

/// Asks for it, under an owner of whom something is remembered; returns what is told.
fn start_at(scene: &mut Scene, number: u128, now: Duration) -> String {
    let incoming = incoming(number, shell("sleep 9"));
    let link = scene.table.link;
    scene.order(link, Order::Operation(Box::new(incoming)), now);
    told(scene).remove(0)
}

/// What its journal has, with what is new.
fn journal(scene: &mut Scene) -> Records {
    scene.take_records();
    scene.all_records().into_iter().collect()
}

#[test]
fn a_full_table_empties_on_a_runner_that_is_restarted_within_every_day() {
    let mut scene = linked();
    for number in 0..MAX_OWNERS as u128 {
        assert_eq!(
            cancel_at(&mut scene, number, SOON),
            format!("{number} NeverStarted")
        );
    }
    let written = scene.take_records().into_iter().collect();
    restarted_at(&mut scene, written, KEEP_RECEIPTS_FOR / 2);
    let written = journal(&mut scene);
    restarted_at(&mut scene, written, KEEP_RECEIPTS_FOR);
    let other = MAX_OWNERS as u128;
    let refused = format!("{other} not cancelled ResourceExhausted");
    assert_eq!(cancel_at(&mut scene, other, KEEP_RECEIPTS_FOR), refused);

    let tomorrow = KEEP_RECEIPTS_FOR + SOON;
    let kept = format!("{other} NeverStarted");
    assert_eq!(cancel_at(&mut scene, other, tomorrow), kept);
    assert_eq!(scene.epochs.all().len(), 1, "the others are gone");
    assert_eq!(scene.receipts.count(), 1);
}

#[test]
fn what_was_cancelled_or_forgotten_is_kept_from_starting_for_a_day_across_restarts() {
    let mut scene = linked();
    cancel(&mut scene, 1);
    start(&mut scene, 2, "true");
    scene.exit(id(2), ExitCause::Exited);
    let link = scene.table.link;
    scene.order(link, Order::Forget(id(2)), SOON);
    told(&mut scene);
    let written = scene.take_records().into_iter().collect();
    restarted_at(&mut scene, written, KEEP_RECEIPTS_FOR / 2);
    let before = KEEP_RECEIPTS_FOR - Duration::from_nanos(1);
    for number in [1, 2] {
        let told = start_at(&mut scene, number, before);
        assert_eq!(told, format!("{number} refused Fenced"));
    }
    assert_eq!(start_at(&mut scene, 1, KEEP_RECEIPTS_FOR), "1 accepted");
    let told = start_at(&mut scene, 2, KEEP_RECEIPTS_FOR);
    assert_eq!(told, "2 refused Fenced", "it was forgotten later");
}

#[test]
fn a_record_without_a_time_counts_from_the_restart() {
    let mut scene = linked();
    cancel(&mut scene, 1);
    let mut records = scene.take_records();
    for record in &mut records {
        match record {
            Record::Receipt(receipt) => receipt.at = None,
            Record::Epoch { at, .. } => *at = None,
            _ => {}
        }
    }
    let now = KEEP_RECEIPTS_FOR;
    restarted_at(&mut scene, records.into_iter().collect(), now);
    assert_eq!(start_at(&mut scene, 1, now), "1 refused Fenced");
    assert_eq!(scene.epochs.all(), [(OWNER, Epoch(1), now)]);
}

#[test]
fn another_boot_ends_what_can_no_longer_come_and_keeps_the_epochs_of_what_is_remembered() {
    let mut scene = linked();
    cancel_at(&mut scene, 1, KEEP_RECEIPTS_FOR);
    cancel_under(&mut scene, 2, Epoch(4));
    let mut newer = incoming(3, shell("sleep 9"));
    newer.epoch = Epoch(5);
    order(&mut scene, Order::Operation(Box::new(newer)));
    told(&mut scene);
    let mut written = journal(&mut scene);
    written.begin_boot();
    restarted_at(&mut scene, written, SOON);
    assert_eq!(scene.receipts.count(), 0);
    let known = scene.epochs.all();
    assert_eq!(known, [(OWNER, Epoch(5), Duration::ZERO)]);
    let told = start_at(&mut scene, 4, SOON);
    assert_eq!(
        told, "4 refused StaleEpoch",
        "of its owner something is remembered"
    );
}
