use shared_types::JournalId;

use super::*;

#[test]
fn a_cancel_before_the_start_means_that_it_never_starts() {
    let mut table = linked();
    assert_eq!(cancel(&mut table, 1), None);
    assert_eq!(start(&mut table, 1, "touch x"), None);
    assert_eq!(told(&mut table), ["1 NeverStarted", "1 refused Fenced"]);
}

#[test]
fn a_cancel_of_what_ran_and_was_forgotten_does_not_say_that_it_never_started() {
    let mut table = linked();
    start(&mut table, 1, "true");
    table.exit(id(1), ExitCause::Exited);
    order(&mut table, Order::Forget(id(1)));
    told(&mut table);
    cancel(&mut table, 1);
    assert_eq!(told(&mut table), ["1 AlreadyExited"]);
}

#[test]
fn a_cancel_is_answered_when_what_ran_has_ended_and_the_same_again_later() {
    let mut table = linked();
    start(&mut table, 1, "sleep 9");
    assert_eq!(cancel(&mut table, 1), Some(Act::Stop(id(1))));
    assert_eq!(told(&mut table), ["1 accepted"]);
    table.exit(id(1), ExitCause::Cancelled);
    assert_eq!(told(&mut table), ["1 Cancelled", "1 ended"]);
    assert_eq!(cancel(&mut table, 1), None);
    assert_eq!(told(&mut table), ["1 Cancelled"]);
}

#[test]
fn a_cancel_that_came_too_late_does_not_claim_the_end() {
    let mut table = linked();
    start(&mut table, 1, "true");
    cancel(&mut table, 1);
    table.exit(id(1), ExitCause::Exited);
    start(&mut table, 2, "true");
    let failure = FileFailure::NotFound { path: "a".into() };
    table.ended(id(2), Outcome::Failed(failure), 0);
    cancel(&mut table, 2);
    let answers = told(&mut table);
    assert!(
        answers.contains(&"1 AlreadyExited".to_owned()),
        "{answers:?}"
    );
    assert!(
        answers.contains(&"2 AlreadyExited".to_owned()),
        "{answers:?}"
    );
}

#[test]
fn a_cancel_of_another_incarnation_or_an_older_epoch_stops_nothing() {
    let mut table = linked();
    let mut newer = incoming(1, shell("sleep 9"));
    newer.epoch = Epoch(5);
    order(&mut table, Order::Operation(Box::new(newer)));
    assert_eq!(cancel(&mut table, 1), None);
    let mut other = incarnation();
    other.journal = JournalId::from_u128(99);
    for incarnation in [None, Some(other)] {
        let act = order(
            &mut table,
            Order::Cancel {
                operation: id(1),
                owner: OWNER,
                epoch: Epoch(5),
                incarnation,
            },
        );
        assert_eq!(act, None);
    }
    let expected = [
        "1 accepted",
        "1 not cancelled StaleEpoch",
        "1 not cancelled Fenced",
        "1 not cancelled Fenced",
    ];
    assert_eq!(told(&mut table), expected);
}
