mod cancels;
mod consents;
mod epochs;
mod let_go;
mod passing;
mod restarts;
mod sandboxes;
mod unread;

use proto::v1::runner_frame::Kind;
use shared_sandbox::{ExitRecord, ExitStatus, FileFailure, List, ReadContent, StreamEnd};

use super::*;
use crate::{
    runner::{Records, admission::Load, orders::Order},
    testing::{Memory, OWNER, PLACE, incarnation, incoming, shell},
};

/// A table, and where the output of its operations is.
struct Scene {
    table: OperationTable,
    spool: Memory,
}

impl std::ops::Deref for Scene {
    type Target = OperationTable;

    fn deref(&self) -> &OperationTable {
        &self.table
    }
}

impl std::ops::DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut OperationTable {
        &mut self.table
    }
}

impl Scene {
    /// Stdout grows.
    fn write(&mut self, id: OperationId, data: &[u8]) {
        let written = self.spool.write(id, OutputStream::Stdout, data);
        self.table.output(id, written);
    }

    /// The operation ends, with all that was written.
    fn exit(&mut self, id: OperationId, cause: ExitCause) {
        let [stdout, stderr] = self.spool.write(id, OutputStream::Stdout, b"");
        self.table
            .ended(id, exited_with(cause, [stdout, stderr]), stdout + stderr);
    }
}

fn linked() -> Scene {
    let mut table = OperationTable::new(incarnation(), PLACE);
    table.open_link();
    Scene {
        table,
        spool: Memory::default(),
    }
}

/// The same daemon started anew, from what the journal has of the one before.
fn restarted(scene: &mut Scene) -> Vec<OperationId> {
    let records = scene.table.take_records().into_iter().collect();
    restarted_at(scene, records, Duration::ZERO)
}

fn restarted_at(scene: &mut Scene, records: Records, now: Duration) -> Vec<OperationId> {
    let (table, mut open) = OperationTable::restore(incarnation(), PLACE, records, now);
    let shorter = table.all_records().into_iter().collect();
    let (again, mut open_again) = OperationTable::restore(incarnation(), PLACE, shorter, now);
    open.sort();
    open_again.sort();
    assert_eq!(open, open_again, "a shorter journal says something else");
    assert_eq!(table.journal_sequence(), again.journal_sequence());
    scene.table = again;
    scene.table.open_link();
    open
}

fn order(table: &mut OperationTable, order: Order) -> Option<Act> {
    table.order(table.link, order, Duration::ZERO)
}

fn id(number: u128) -> OperationId {
    OperationId::from_u128(number)
}

fn start(table: &mut OperationTable, number: u128, script: &str) -> Option<Act> {
    order(
        table,
        Order::Operation(Box::new(incoming(number, shell(script)))),
    )
}

fn cancel(table: &mut OperationTable, number: u128) -> Option<Act> {
    cancel_under(table, number, Epoch(1))
}

fn cancel_under(table: &mut OperationTable, number: u128, epoch: Epoch) -> Option<Act> {
    order(
        table,
        Order::Cancel {
            operation: id(number),
            owner: OWNER,
            epoch,
            incarnation: Some(incarnation()),
        },
    )
}

#[test]
fn only_the_word_that_operations_were_accepted_can_wait() {
    let mut scene = linked();
    assert!(!scene.can_wait(), "there is nothing to be told");
    start(&mut scene, 1, "true");
    assert!(scene.can_wait());
    scene.write(id(1), b"output");
    assert!(!scene.can_wait(), "output does not wait");
    told(&mut scene);

    start(&mut scene, 2, "true");
    assert!(scene.can_wait());
    cancel(&mut scene, 3);
    assert!(!scene.can_wait(), "the answer to a cancel does not wait");
    assert_eq!(told(&mut scene)[0], "2 accepted", "nothing overtakes it");

    for number in 10..10 + MAX_PATIENT_ANSWERS as u128 {
        start(&mut scene, number, "true");
        assert!(scene.can_wait());
    }
    start(&mut scene, 50, "true");
    assert!(!scene.can_wait(), "there are too many");
    told(&mut scene);

    start(&mut scene, 60, "true");
    scene.output(id(60), [0, 0]);
    assert!(!scene.can_wait(), "it has begun");
    assert_eq!(told(&mut scene), ["60 accepted"]);
}

#[test]
fn whoever_attaches_or_has_input_to_give_is_told_at_once() {
    let mut scene = linked();
    start(&mut scene, 1, "true");
    told(&mut scene);
    start(&mut scene, 1, "true");
    assert!(!scene.can_wait(), "an attached reader");
    told(&mut scene);
    let mut request = shell("cat");
    if let Request::Exec(exec) = &mut request {
        exec.input = true;
    }
    let asked = Order::Operation(Box::new(incoming(2, request)));
    order(&mut scene, asked);
    assert!(!scene.can_wait(), "its input is waited for");
    told(&mut scene);
    order(&mut scene, Order::Operation(Box::new(incoming(3, list()))));
    assert!(!scene.can_wait(), "it does not tell when it begins");
}

fn exited_with(cause: ExitCause, ends: [u64; 2]) -> Outcome {
    let [stdout, stderr] = ends.map(|offset| StreamEnd {
        offset,
        ..StreamEnd::default()
    });
    Outcome::Exited(ExitRecord {
        status: ExitStatus::Code(0),
        cause,
        stdout,
        stderr,
        wall_ms: 1,
        cpu_us: 0,
        max_rss_bytes: 0,
        tree_gone: true,
    })
}

fn list() -> Request {
    Request::List(List {
        path: String::new(),
        max_entries: 1,
        tree: false,
        after: String::new(),
    })
}

/// Every frame that there is, in short.
fn told(scene: &mut Scene) -> Vec<String> {
    let Scene { table, spool } = scene;
    let short = |operation: &str| {
        let id: OperationId = operation.parse().expect("an id");
        id.as_u128()
    };
    std::iter::from_fn(|| table.next_frame(spool))
        .map(|frame| match frame.kind.expect("a kind") {
            Kind::Accepted(f) => format!("{} accepted", short(&f.operation)),
            Kind::Output(f) => format!(
                "{} {} {}",
                short(&f.operation),
                f.offset,
                String::from_utf8_lossy(&f.data)
            ),
            Kind::Gap(f) => format!("{} gap {}..{}", short(&f.operation), f.from, f.to),
            Kind::Ended(f) => match f.outcome.expect("an outcome") {
                v1::ended::Outcome::Refused(refusal) => {
                    format!("{} refused {:?}", short(&f.operation), refusal.code())
                }
                _ => format!("{} ended", short(&f.operation)),
            },
            Kind::CancelAnswer(f) => match &f.refusal {
                Some(refusal) => {
                    format!("{} not cancelled {:?}", short(&f.operation), refusal.code())
                }
                None => format!("{} {:?}", short(&f.operation), f.answer()),
            },
            Kind::InputTaken(f) => match &f.refusal {
                Some(refusal) => format!("{} input {:?}", short(&f.operation), refusal.code()),
                None => format!("{} input {}", short(&f.operation), f.up_to),
            },
            Kind::Done(f) => match &f.refusal {
                Some(refusal) => {
                    format!(
                        "{} {} not done {:?}",
                        short(&f.operation),
                        f.id,
                        refusal.code()
                    )
                }
                None => format!("{} {} done", short(&f.operation), f.id),
            },
            other => panic!("unexpected {other:?}"),
        })
        .collect()
}

#[test]
fn an_operation_is_started_once_however_often_it_comes() {
    let mut table = linked();
    assert!(matches!(
        start(&mut table, 1, "true"),
        Some(Act::Start { .. })
    ));
    assert_eq!(start(&mut table, 1, "true"), None);
    table.open_link();
    assert_eq!(start(&mut table, 1, "true"), None);
    table.exit(id(1), ExitCause::Exited);
    assert_eq!(start(&mut table, 1, "true"), None);
    assert_eq!(told(&mut table), ["1 accepted", "1 accepted", "1 ended"]);
    assert_eq!(start(&mut table, 1, "false"), None);
    assert_eq!(told(&mut table), ["1 refused Conflict"]);
}

#[test]
fn a_new_link_hears_nothing_until_it_attaches_and_then_all_from_where_it_stands() {
    let mut table = linked();
    start(&mut table, 1, "true");
    table.write(id(1), b"one ");
    assert_eq!(told(&mut table), ["1 accepted", "1 0 one "]);
    let link = table.link;
    table.close_link(link);
    table.write(id(1), b"two");
    table.exit(id(1), ExitCause::Exited);

    let OpenedLink {
        journal_sequence,
        inventory,
        ..
    } = table.open_link();
    assert_eq!(journal_sequence, 1);
    assert_eq!(inventory.len(), 1);
    assert!(inventory[0].ended);
    assert_eq!(told(&mut table), [""; 0]);
    let mut attach = incoming(1, shell("true"));
    attach.from = [4, 0];
    attach.request = None;
    order(&mut table, Order::Operation(Box::new(attach)));
    assert_eq!(told(&mut table), ["1 accepted", "1 4 two", "1 ended"]);
}

#[test]
fn the_end_waits_for_the_last_byte_that_the_reader_has_room_for() {
    let mut table = linked();
    start(&mut table, 1, "true");
    let window = shared_types::limits::CREDIT_WINDOW_BYTES;
    let much = vec![b'x'; window as usize + 3];
    table.write(id(1), &much);
    table.exit(id(1), ExitCause::Exited);
    assert!(!told(&mut table).contains(&"1 ended".to_owned()));
    order(
        &mut table,
        Order::Credit {
            operation: id(1),
            stream: OutputStream::Stdout,
            up_to: 2 * window,
        },
    );
    assert_eq!(
        told(&mut table),
        [format!("1 {window} xxx"), "1 ended".into()]
    );
}

#[test]
fn a_loud_operation_does_not_keep_a_quiet_one_waiting() {
    let mut table = linked();
    start(&mut table, 1, "yes");
    start(&mut table, 2, "date");
    told(&mut table);
    table.write(id(1), &[b'x'; 600_000]);
    table.write(id(2), b"quiet");
    table.exit(id(2), ExitCause::Exited);
    let frames = told(&mut table);
    assert_eq!(frames[1], "2 0 quiet");
    assert_eq!(frames[3], "2 ended");
    assert!(frames[4].starts_with("1 "));
}

#[test]
fn answers_go_before_output() {
    let mut table = linked();
    start(&mut table, 1, "yes");
    told(&mut table);
    table.write(id(1), &[b'x'; 600_000]);
    cancel(&mut table, 2);
    assert_eq!(told(&mut table)[0], "2 NeverStarted");
}

#[test]
fn what_is_forgotten_frees_its_memory_and_is_never_run_again() {
    let mut table = linked();
    start(&mut table, 1, "true");
    order(&mut table, Order::Forget(id(1)));
    assert_eq!(table.load().remembered, 1, "what runs is not forgotten");
    table.write(id(1), b"output");
    table.exit(id(1), ExitCause::Exited);
    assert!(table.load().retained_bytes > 0);
    order(&mut table, Order::Forget(id(1)));
    assert_eq!(table.load(), Load::default());
    assert_eq!(start(&mut table, 1, "true"), None);
    assert_eq!(
        told(&mut table).last().expect("a refusal"),
        "1 refused Fenced"
    );
}

#[test]
fn a_read_is_dropped_once_its_end_was_told_and_may_come_again() {
    let mut table = linked();
    let content = || {
        Outcome::Read(ReadContent {
            content: vec![1; 1000],
            first_line: 1,
            lines: 1,
            file_bytes: 1000,
            more: false,
            digest: None,
        })
    };
    for _ in 0..2 {
        let act = order(&mut table, Order::Operation(Box::new(incoming(1, list()))));
        assert!(matches!(act, Some(Act::Start { .. })));
        table.ended(id(1), content(), 0);
        assert_eq!(told(&mut table), ["1 accepted", "1 ended"]);
        assert_eq!(table.load(), Load::default());
    }
}

#[test]
fn a_read_that_nobody_waits_for_any_more_leaves_nothing() {
    let mut table = linked();
    for number in [1, 2] {
        order(
            &mut table,
            Order::Operation(Box::new(incoming(number, list()))),
        );
    }
    let failure = || Outcome::Failed(FileFailure::NotFound { path: "a".into() });
    table.ended(id(1), failure(), 0);
    let inventory = table.open_link().inventory;
    assert!(inventory.is_empty());
    assert_eq!(table.load().remembered, 1);
    table.ended(id(2), failure(), 0);
    assert_eq!(table.load(), Load::default());
}

#[test]
fn orders_wait_while_too_many_answers_do() {
    let mut table = linked();
    for number in 0..MAX_WAITING_ANSWERS as u128 {
        assert!(table.takes_orders());
        cancel(&mut table, number);
    }
    assert!(!table.takes_orders());
    let Scene { table: bare, spool } = &mut table;
    bare.next_frame(spool);
    assert!(table.takes_orders());
}

#[test]
fn a_draining_table_takes_nothing_new_but_still_attaches() {
    let mut table = linked();
    start(&mut table, 1, "true");
    table.drain();
    start(&mut table, 2, "true");
    start(&mut table, 1, "true");
    assert_eq!(
        told(&mut table),
        ["1 accepted", "2 refused Draining", "1 accepted"]
    );
    assert_eq!(table.unfinished().running, 1);
    table.exit(id(1), ExitCause::Orphaned);
    let left = Unfinished {
        running: 0,
        unforgotten: 1,
    };
    assert_eq!(table.unfinished(), left);
    let link = table.link;
    table.close_link(link);
    assert_eq!(
        table.unfinished(),
        Unfinished::default(),
        "nobody can forget it"
    );
}

#[test]
fn a_new_daemon_remembers_what_the_old_one_promised() {
    let mut table = linked();
    start(&mut table, 1, "sleep 9");
    start(&mut table, 2, "true");
    table.exit(id(2), ExitCause::Exited);
    start(&mut table, 3, "true");
    table.exit(id(3), ExitCause::Exited);
    order(&mut table, Order::Forget(id(3)));
    cancel(&mut table, 4);

    assert_eq!(restarted(&mut table), [id(1)]);
    assert_eq!(table.journal_sequence(), 3);
    assert_eq!(table.unfinished().running, 1);
    for number in 1..=4 {
        assert_eq!(start(&mut table, number, &script(number)), None);
    }
    let expected = [
        "1 accepted",
        "2 accepted",
        "3 refused Fenced",
        "4 refused Fenced",
        "2 ended",
    ];
    assert_eq!(told(&mut table), expected);
    for number in 2..=4 {
        cancel(&mut table, number);
    }
    let answers = ["2 AlreadyExited", "3 AlreadyExited", "4 NeverStarted"];
    assert_eq!(told(&mut table), answers);
}

fn script(number: u128) -> String {
    match number {
        1 => "sleep 9".into(),
        4 => "touch x".into(),
        _ => "true".into(),
    }
}

#[test]
fn what_was_accepted_and_provably_never_ran_starts_when_it_comes_again() {
    let mut table = linked();
    start(&mut table, 1, "true");
    assert_eq!(restarted(&mut table), [id(1)]);
    table.release(id(1));
    assert_eq!(table.unfinished().running, 0);
    let act = start(&mut table, 1, "true");
    assert!(matches!(act, Some(Act::Start { .. })));
    assert_eq!(table.journal_sequence(), 2, "it was accepted twice");
}

#[test]
fn a_read_leaves_nothing_in_the_journal_but_its_owners_epoch() {
    let mut table = linked();
    order(&mut table, Order::Operation(Box::new(incoming(1, list()))));
    let records = table.take_records();
    assert!(matches!(records[..], [Record::Epoch { .. }]), "{records:?}");
    assert_eq!(table.journal_sequence(), 0);
}

#[test]
fn what_the_server_has_stored_is_dropped_and_nothing_else() {
    let mut table = linked();
    start(&mut table, 1, "true");
    let commit = |number| Order::Commit {
        operation: id(number),
        stream: OutputStream::Stderr,
        up_to: 7,
    };
    assert_eq!(order(&mut table, commit(9)), None);
    assert!(matches!(
        order(&mut table, commit(1)),
        Some(Act::Commit { up_to: 7, .. })
    ));
    assert_eq!(order(&mut table, Order::Forget(id(1))), None, "it runs");
    table.exit(id(1), ExitCause::Exited);
    assert_eq!(
        order(&mut table, Order::Forget(id(1))),
        Some(Act::Drop(id(1)))
    );
}
