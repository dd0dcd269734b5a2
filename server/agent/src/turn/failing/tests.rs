use server_records::{PortError, SessionError};

use super::*;

#[test]
fn a_turn_is_given_up_at_the_third_failure_or_at_once_where_it_is_to_stop() {
    let given_up = |count, cancel_requested| {
        given_up(&TurnFailures {
            count,
            cancel_requested,
        })
    };
    assert_eq!(given_up(2, false), None);
    assert_eq!(given_up(3, false), Some(TurnOutcome::Failed));
    assert_eq!(given_up(1, true), Some(TurnOutcome::Cancelled));
}

#[test]
fn a_store_that_does_not_answer_is_no_fault_of_the_turn() {
    let busy = || SessionError::from(PortError::new("the disk is slow"));
    assert!(!Obstacle::Store(busy()).is_the_turns_own());
    let unavailable = TurnError::LogUnavailable(busy().to_string());
    assert!(!Obstacle::Turn(unavailable).is_the_turns_own());
    let refused = TurnError::LogRefused("it is too large".to_owned());
    assert!(Obstacle::Turn(refused).is_the_turns_own());
}
