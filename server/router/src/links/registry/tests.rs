use super::*;

fn runner(number: usize) -> RunnerId {
    RunnerId::from_u128(number as u128)
}

fn gate(registry: &mut Registry, runner: RunnerId) -> Gate {
    let (reply, mut answer) = oneshot::channel();
    registry.handle(Request::Gate { runner, reply });
    answer.try_recv().expect("it is answered at once")
}

#[test]
fn runners_that_were_removed_take_no_room_once_no_link_of_them_can_come() {
    let mut registry = Registry::new();
    let revoked = gate(&mut registry, runner(0));
    registry.handle(Request::Revoke { runner: runner(0) });
    for number in 1..10 * SWEEP_FROM {
        let (runner, (reply, _)) = (runner(number), oneshot::channel());
        registry.handle(Request::Bar { runner, reply });
        registry.handle(match number % 2 {
            0 => Request::Revoke { runner },
            _ => Request::Lock { runner },
        });
    }
    assert!(registry.entries.len() <= 2 * SWEEP_FROM);
    // A link that was let in before has its gate.
    assert!(registry.entry(runner(0)).is_revoked());
    drop(revoked);
    assert!(!registry.entry(runner(0)).is_needed());
}

#[test]
fn a_runner_that_is_about_to_be_removed_is_not_forgotten() {
    let mut registry = Registry::new();
    let (reply, _) = oneshot::channel();
    registry.handle(Request::Bar {
        runner: runner(0),
        reply,
    });
    for number in 1..10 * SWEEP_FROM {
        gate(&mut registry, runner(number));
    }
    assert!(!gate(&mut registry, runner(0)).is_open());
}
