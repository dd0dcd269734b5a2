use super::*;

fn read(table: &mut OperationTable, number: u128) -> Option<Act> {
    order(table, Order::Operation(Box::new(incoming(number, list()))))
}

fn is_started(act: Option<Act>) -> bool {
    matches!(act, Some(Act::Start { .. }))
}

fn is_let_go(act: Option<Act>, number: u128) -> bool {
    matches!(act, Some(Act::LetGo(gone, _)) if gone == id(number))
}

#[test]
fn what_only_reads_and_lost_its_reader_leaves_nothing_and_may_begin_anew() {
    let mut scene = linked();
    for has_ended in [false, true] {
        assert!(is_started(read(&mut scene, 1)));
        scene.take_records();
        // More than there is credit for, so that its end waits.
        let window = shared_types::limits::CREDIT_WINDOW_BYTES as usize;
        scene.write(id(1), &vec![b'x'; 2 * window]);
        if has_ended {
            let failure = FileFailure::NotFound { path: "a".into() };
            scene.ended(id(1), Outcome::Failed(failure), 7);
        }
        told(&mut scene);
        assert!(is_let_go(order(&mut scene, Order::LetGo(id(1))), 1));
        assert_eq!(scene.load(), Load::default());
        assert_eq!(scene.take_dropped(), [id(1)]);
        assert_eq!(scene.take_records(), [], "no receipt");
        assert_eq!(told(&mut scene), ["1 refused Fenced"]);
        assert_eq!(order(&mut scene, Order::LetGo(id(1))), None, "it is gone");
    }
    assert!(is_started(read(&mut scene, 1)));
    assert_eq!(told(&mut scene)[0], "1 accepted");
}

#[test]
fn the_end_of_what_was_let_go_is_told_before_the_next_reader_is_answered() {
    let mut scene = linked();
    read(&mut scene, 1);
    order(&mut scene, Order::LetGo(id(1)));
    assert!(is_started(read(&mut scene, 1)));
    let expected = ["1 accepted", "1 refused Fenced", "1 accepted"];
    assert_eq!(told(&mut scene), expected);
}

#[test]
fn a_link_that_has_not_asked_for_what_is_let_go_hears_nothing_of_it() {
    let mut scene = linked();
    read(&mut scene, 1);
    scene.open_link();
    assert!(is_let_go(order(&mut scene, Order::LetGo(id(1))), 1));
    assert_eq!(scene.load(), Load::default());
    assert_eq!(told(&mut scene), [""; 0]);
}

#[test]
fn a_cancel_of_what_is_let_go_is_answered() {
    let mut scene = linked();
    read(&mut scene, 1);
    cancel(&mut scene, 1);
    order(&mut scene, Order::LetGo(id(1)));
    let expected = ["1 accepted", "1 Cancelled", "1 refused Fenced"];
    assert_eq!(told(&mut scene), expected);
}

#[test]
fn a_command_is_not_let_go() {
    let mut scene = linked();
    start(&mut scene, 1, "true");
    assert_eq!(order(&mut scene, Order::LetGo(id(1))), None);
    scene.exit(id(1), ExitCause::Exited);
    assert_eq!(order(&mut scene, Order::LetGo(id(1))), None);
    assert_eq!(told(&mut scene), ["1 accepted", "1 ended"]);
}
