use super::*;

fn runner(number: usize) -> RunnerId {
    RunnerId::from_u128(number as u128)
}

fn gate(registry: &mut Registry, runner: RunnerId) -> Gate {
    let (reply, mut answer) = oneshot::channel();
    registry.handle(RegistryRequest::Gate { runner, reply });
    answer.try_recv().expect("it is answered at once")
}

#[test]
fn runners_that_were_removed_take_no_room_once_no_link_of_them_can_come() {
    let mut registry = Registry::new();
    let revoked = gate(&mut registry, runner(0));
    registry.handle(RegistryRequest::Revoke { runner: runner(0) });
    for number in 1..10 * SWEEP_FROM {
        let (runner, (reply, _)) = (runner(number), oneshot::channel());
        registry.handle(RegistryRequest::Bar { runner, reply });
        registry.handle(match number % 2 {
            0 => RegistryRequest::Revoke { runner },
            _ => RegistryRequest::Lock { runner },
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
    registry.handle(RegistryRequest::Bar {
        runner: runner(0),
        reply,
    });
    for number in 1..10 * SWEEP_FROM {
        gate(&mut registry, runner(number));
    }
    assert!(!gate(&mut registry, runner(0)).is_open());
}

#[test]
fn runners_whose_links_have_ended_take_no_room_once_their_links_have_let_go() {
    let mut registry = Registry::new();
    let many = 100 * SWEEP_FROM;
    let mut gates: Vec<_> = (0..many)
        .map(|number| gate(&mut registry, runner(number)))
        .collect();
    assert!(registry.sweep(), "all of them are held");
    assert_eq!(registry.entries.len(), many);
    let held = gates.split_off(many - 1);
    drop(gates);
    assert!(registry.sweep(), "one is held");
    assert_eq!(registry.entries.len(), 1);
    assert!(registry.entries.capacity() < 4 * SWEEP_FROM);
    drop(held);
    assert!(!registry.sweep());
    assert!(registry.entries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_room_of_a_link_that_ended_is_given_back_without_another_link() {
    let registry = start();
    let gate = registry.gate(runner(0)).await;
    let (generation, since) = (Generation(1), Timestamp::from_micros(0));
    registry
        .unregister(runner(0), generation, since, false)
        .await;
    registry.revoke(runner(0)).await;
    tokio::time::sleep(2 * SWEEP_AFTER).await;
    // What is forgotten is not known to be revoked any more: the store turns it away.
    let is_revoked = async || {
        matches!(
            *registry.watch(runner(0), false).await.0.borrow(),
            RunnerConnection::Revoked
        )
    };
    assert!(is_revoked().await, "its link holds the gate");
    drop(gate);
    tokio::time::sleep(2 * SWEEP_AFTER).await;
    assert!(!is_revoked().await);
}
