use shared_sandbox::{Consent, Read, Request};
use shared_types::{JournalId, Mode};

use super::*;
use crate::testing::{PLACE, incarnation, incoming, shell};

/// A view that admits, unless its test changes it.
fn view(incarnation: &Incarnation) -> RunnerView<'_> {
    RunnerView {
        incarnation,
        has_sandbox: true,
        epoch: Epoch(1),
        has_room_for_owner: true,
        known: None,
        over: false,
        draining: false,
        load: Load::default(),
    }
}

fn decide(
    change_view: impl FnOnce(&mut RunnerView<'_>),
    change: impl FnOnce(&mut Incoming),
) -> Admission {
    let incarnation = incarnation();
    let mut view = view(&incarnation);
    let mut operation = incoming(1, shell("true"));
    change_view(&mut view);
    change(&mut operation);
    admit(&view, &operation)
}

fn code(admission: &Admission) -> Option<RefusalCode> {
    match admission {
        Admission::Refuse(refusal) => Some(refusal.code),
        _ => None,
    }
}

#[test]
fn an_operation_that_nothing_speaks_against_starts() {
    assert_eq!(decide(|_| {}, |_| {}), Admission::Start);
}

#[test]
fn each_rule_refuses_with_its_own_code() {
    use RefusalCode::*;
    type Change = (fn(&mut RunnerView<'_>), fn(&mut Incoming), RefusalCode);
    let rules: [Change; 20] = [
        (|v| v.load.disk_short = true, |_| {}, SpoolFull),
        (|_| {}, |o| o.incarnation = None, Fenced),
        (
            |_| {},
            |o| {
                let other = o.incarnation.as_mut().expect("one");
                other.journal = JournalId::from_u128(99);
            },
            Fenced,
        ),
        (|v| v.has_sandbox = false, |_| {}, NotFound),
        (|v| v.epoch = Epoch(2), |_| {}, StaleEpoch),
        (|v| v.has_room_for_owner = false, |_| {}, ResourceExhausted),
        (
            |v| v.known = Some((PLACE, Digest::of(b"other"))),
            |_| {},
            Conflict,
        ),
        (
            |v| v.known = Some((SandboxId::from_u128(99), incoming(1, shell("true")).digest)),
            |_| {},
            Conflict,
        ),
        (|v| v.over = true, |_| {}, Fenced),
        (|_| {}, |o| o.request = None, NotFound),
        (
            |_| {},
            |o| {
                let (mode, plan) = (Mode::Ask, Digest::of(b"other"));
                o.consent = Consent::Approved { mode, plan };
            },
            ForbiddenByRunnerPolicy,
        ),
        (
            |_| {},
            |o| o.forbidden = Some(Refusal::new(ForbiddenByRunnerPolicy, "not here")),
            ForbiddenByRunnerPolicy,
        ),
        (|_| {}, |o| o.start_within = Duration::ZERO, Expired),
        (|v| v.draining = true, |_| {}, Draining),
        (|v| v.load.running = MAX_RUNNING, |_| {}, ResourceExhausted),
        (|v| v.load.receipts_full = true, |_| {}, ResourceExhausted),
        (
            |v| v.load.remembered = MAX_REMEMBERED,
            |_| {},
            ResourceExhausted,
        ),
        (
            |v| {
                v.load.running = MAX_RUNNING / 2;
                v.load.of_sandbox.running = MAX_RUNNING / 2;
            },
            |_| {},
            ResourceExhausted,
        ),
        (
            |v| {
                v.load.remembered = MAX_REMEMBERED / 2;
                v.load.of_sandbox.remembered = MAX_REMEMBERED / 2;
            },
            |_| {},
            ResourceExhausted,
        ),
        (
            |v| v.load.retained_bytes = MAX_RETAINED_BYTES - RESERVED_BYTES + 1,
            |_| {},
            SpoolFull,
        ),
    ];
    for (number, (view, operation, expected)) in rules.into_iter().enumerate() {
        let admission = decide(view, operation);
        assert_eq!(code(&admission), Some(expected), "rule {number}");
        if let Admission::Refuse(refusal) = admission {
            // What waits for a person has no time after which it is worth trying again.
            let retry = matches!(expected, Draining | ResourceExhausted | SpoolFull) && number > 0;
            assert_eq!(refusal.retry_after_ms.is_some(), retry, "rule {number}");
        }
    }
}

#[test]
fn what_is_known_is_attached_to_even_when_nothing_new_would_start() {
    let admission = decide(
        |v| {
            v.known = Some((PLACE, shell("true").digest()));
            v.draining = true;
            v.load.running = MAX_RUNNING;
        },
        |o| {
            o.forbidden = Some(Refusal::new(RefusalCode::ForbiddenByRunnerPolicy, "no"));
            o.start_within = Duration::ZERO;
            o.request = None;
        },
    );
    assert_eq!(admission, Admission::Attach);
}

#[test]
fn an_older_epoch_is_refused_even_for_what_is_known() {
    let admission = decide(
        |v| {
            v.known = Some((PLACE, shell("true").digest()));
            v.epoch = Epoch(2);
        },
        |_| {},
    );
    assert_eq!(code(&admission), Some(RefusalCode::StaleEpoch));
}

#[test]
fn all_that_may_run_at_once_fits_into_the_memory_that_may_be_kept() {
    const { assert!(MAX_RUNNING as u64 * RESERVED_BYTES <= MAX_RETAINED_BYTES) };
    let read = Request::Read(Read {
        path: "a".into(),
        first_line: 1,
        max_lines: 1,
        max_bytes: 1,
    });
    let incarnation = incarnation();
    let mut full = view(&incarnation);
    full.load.retained_bytes = (MAX_RUNNING as u64 - 1) * RESERVED_BYTES;
    assert_eq!(admit(&full, &incoming(1, read)), Admission::Start);
}

#[test]
fn a_disk_that_is_nearly_full_is_still_read() {
    let read = Request::Read(Read {
        path: "a".into(),
        first_line: 1,
        max_lines: 1,
        max_bytes: 1,
    });
    let admission = decide(
        |view| view.load.disk_short = true,
        |operation| operation.request = Some(read),
    );
    assert_eq!(admission, Admission::Start);
}
