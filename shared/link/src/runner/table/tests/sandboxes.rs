//! A runner with several sandboxes.

use shared_types::{Refusal, RefusalCode, SandboxState};

use super::*;
use crate::{
    runner::{admission::MAX_RUNNING, orders::Incoming},
    wire::SandboxReport,
};

const OTHER: SandboxId = SandboxId::from_u128(20);

fn start_in(table: &mut OperationTable, sandbox: SandboxId, number: u128) -> Option<Act> {
    let incoming = Incoming {
        sandbox,
        ..incoming(number, shell("true"))
    };
    order(table, Order::Operation(Box::new(incoming)))
}

/// The code with which the only answer that waits refuses the operation.
fn refusal(scene: &mut Scene) -> Option<RefusalCode> {
    let answer = scene.table.answers.pop_front()?;
    match answer.kind? {
        runner_frame::Kind::Ended(ended) => match ended.outcome? {
            v1::ended::Outcome::Refused(refusal) => Some(Refusal::from(refusal).code),
            _ => None,
        },
        _ => None,
    }
}

#[test]
fn an_operation_starts_in_the_sandbox_that_it_names_and_only_where_the_runner_has_it() {
    let mut scene = linked();
    assert_eq!(start_in(&mut scene.table, OTHER, 1), None);
    assert_eq!(refusal(&mut scene), Some(RefusalCode::NotFound));
    scene.table.add_sandbox(OTHER);
    let started = start_in(&mut scene.table, OTHER, 1);
    assert!(matches!(started, Some(Act::Start { sandbox: OTHER, .. })));
    assert!(
        start(&mut scene.table, 2, "true").is_some(),
        "the first one stays"
    );
}

#[test]
fn what_was_begun_in_a_sandbox_that_is_gone_is_attached_to_and_nothing_new_starts_there() {
    let mut scene = linked();
    scene.table.add_sandbox(OTHER);
    start_in(&mut scene.table, OTHER, 1);
    scene.table.answers.clear();
    scene.table.remove_sandbox(OTHER);
    assert_eq!(start_in(&mut scene.table, OTHER, 2), None);
    assert_eq!(refusal(&mut scene), Some(RefusalCode::NotFound));
    start_in(&mut scene.table, OTHER, 1);
    assert_eq!(refusal(&mut scene), None, "it is accepted again");
    scene.exit(id(1), ExitCause::Exited);
    assert!(!scene.table.is_open(id(1)));
}

#[test]
fn one_sandbox_leaves_places_for_the_others_and_may_have_them_all_where_it_is_alone() {
    let started = |scene: &mut Scene, sandbox, numbers: std::ops::Range<u128>| {
        numbers
            .filter(|number| {
                scene.table.answers.clear();
                start_in(&mut scene.table, sandbox, *number).is_some()
            })
            .count()
    };
    let mut alone = linked();
    assert_eq!(started(&mut alone, PLACE, 0..100), MAX_RUNNING);

    let mut scene = linked();
    scene.table.add_sandbox(OTHER);
    assert_eq!(started(&mut scene, PLACE, 0..100), MAX_RUNNING / 2);
    assert_eq!(refusal(&mut scene), Some(RefusalCode::ResourceExhausted));
    assert_eq!(started(&mut scene, OTHER, 100..110), 10);
    scene.exit(id(0), ExitCause::Exited);
    scene.exit(id(1), ExitCause::Exited);
    assert_eq!(
        started(&mut scene, PLACE, 200..210),
        0,
        "the other one took what was left"
    );
    for number in 2..12 {
        scene.exit(id(number), ExitCause::Exited);
    }
    assert_eq!(
        started(&mut scene, PLACE, 300..310),
        7,
        "27 of 64, and 27 are free"
    );
}

#[test]
fn an_id_that_is_known_under_another_sandbox_is_a_conflict() {
    let mut scene = linked();
    scene.table.add_sandbox(OTHER);
    start(&mut scene.table, 1, "true");
    scene.table.answers.clear();
    assert_eq!(start_in(&mut scene.table, OTHER, 1), None);
    assert_eq!(refusal(&mut scene), Some(RefusalCode::Conflict));
}

#[test]
fn a_restarted_runner_knows_the_sandbox_of_each_operation() {
    let mut scene = linked();
    scene.table.add_sandbox(OTHER);
    start(&mut scene.table, 1, "true");
    start_in(&mut scene.table, OTHER, 2);
    let mut open = restarted(&mut scene);
    open.sort();
    assert_eq!(open, [id(1), id(2)]);
    assert_eq!(scene.table.sandbox_of(id(1)), Some(PLACE));
    assert_eq!(scene.table.sandbox_of(id(2)), Some(OTHER));
}

#[test]
fn a_record_of_a_runner_with_one_sandbox_is_read_as_of_its_first() {
    let mut scene = linked();
    start(&mut scene.table, 1, "true");
    let records = scene.table.take_records().into_iter();
    let older: Records = records
        .map(|record| match record {
            Record::Accepted(accepted) => Record::Accepted(Accepted {
                sandbox: None,
                ..accepted
            }),
            other => other,
        })
        .collect();
    restarted_at(&mut scene, older, Duration::ZERO);
    assert_eq!(scene.table.sandbox_of(id(1)), Some(PLACE));
}

#[test]
fn a_new_journal_keeps_the_sandboxes() {
    let mut scene = linked();
    scene.table.add_sandbox(OTHER);
    scene.table.begin_journal(JournalId::from_u128(9));
    assert!(scene.table.has_sandbox(OTHER) && scene.table.has_sandbox(PLACE));
}

#[test]
fn how_sandboxes_are_is_told_to_each_link_once_the_server_has_welcomed_it_and_not_before() {
    let mut scene = linked();
    let report = SandboxReport {
        sandbox: OTHER,
        state: SandboxState::Running,
        reason: String::new(),
        privilege: shared_types::SandboxPrivilege::Strict,
    };
    scene.table.report(report);
    assert!(
        !scene.table.has_frames(),
        "before the proof there is no key to seal it with"
    );
    let mut told = |table: &mut OperationTable| {
        table.welcomed(table.link);
        let frame = table.next_frame(&mut scene.spool);
        assert!(!table.has_frames());
        matches!(
            frame.and_then(|frame| frame.kind),
            Some(Kind::SandboxReport(_))
        )
    };
    assert!(told(&mut scene.table));
    let before = scene.table.link;
    scene.table.open_link();
    scene.table.welcomed(before);
    assert!(!scene.table.has_frames(), "that was another link's welcome");
    assert!(told(&mut scene.table));
}
