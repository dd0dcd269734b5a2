use shared_sandbox::Consent;
use shared_types::{Mode, RefusalCode};

use super::*;

/// The order to run the script 1, with a change.
fn asked(change: impl FnOnce(&mut crate::runner::Incoming)) -> Order {
    let mut incoming = incoming(1, shell("true"));
    change(&mut incoming);
    Order::Operation(Box::new(incoming))
}

fn approved(script: &str) -> Consent {
    Consent::Approved {
        mode: Mode::Ask,
        plan: shell(script).digest(),
    }
}

#[test]
fn only_the_request_that_was_approved_starts_and_nothing_is_written_down_of_another() {
    let mut table = linked();
    table.take_records();
    let other = asked(|incoming| incoming.consent = approved("false"));
    assert_eq!(order(&mut table, other), None);
    assert_eq!(told(&mut table), ["1 refused ForbiddenByRunnerPolicy"]);
    assert!(!table.remembers(id(1)));
    assert!(table.take_records().is_empty());
    let same = asked(|incoming| incoming.consent = approved("true"));
    assert!(matches!(order(&mut table, same), Some(Act::Start { .. })));
}

#[test]
fn what_the_machine_forbids_never_starts_and_what_runs_goes_on() {
    let mut table = linked();
    let forbidden = || {
        let mut order = asked(|_| {});
        order.forbid(Refusal::new(
            RefusalCode::ForbiddenByRunnerPolicy,
            "not here",
        ));
        order
    };
    assert_eq!(order(&mut table, forbidden()), None);
    assert!(!table.remembers(id(1)));
    start(&mut table, 1, "true");
    assert_eq!(order(&mut table, forbidden()), None);
    assert_eq!(
        told(&mut table),
        [
            "1 refused ForbiddenByRunnerPolicy",
            "1 accepted",
            "1 accepted"
        ]
    );
}
