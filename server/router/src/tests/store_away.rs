//! The store is away for as long as it likes: what the runner has is collected once it answers again, without
//! a reader and over the same link.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use shared_sandbox::{OperationEvent, OutputStream, Sandbox as _};
use tokio::time::{Instant, sleep};

use super::double::*;
use server_records::PortError;

/// Longer than a few attempts last; by then a runner that says nothing still has its link.
const LONG: Duration = Duration::from_secs(20);

/// How soon everything is right once the store answers.
const SOON: Duration = Duration::from_secs(16);

/// A store that is away, or answers.
#[derive(Default)]
struct Away(AtomicBool);

impl Away {
    fn set(&self, is_away: bool) {
        self.0.store(is_away, Ordering::Relaxed);
    }

    fn answer(&self) -> Result<(), PortError> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(PortError::new("the database is stopped")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Weather for Away {
    async fn before(&self) -> Result<(), PortError> {
        self.answer()
    }

    async fn after(&self) -> Result<(), PortError> {
        self.answer()
    }

    fn loses(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

async fn on_a_store_that_may_be_away() -> (World, Arc<Away>, Runner) {
    let away = Arc::new(Away::default());
    let world = World::under(away.clone());
    let runner = Runner::new(1, "one");
    (world, away, runner)
}

async fn is_whole(world: &World) {
    let kept = world
        .store
        .area()
        .kept_of(exec(10).id, OutputStream::Stdout);
    let kept: Vec<u8> = kept
        .pieces
        .iter()
        .flat_map(|(_, data)| data.to_vec())
        .collect();
    assert_eq!(kept, b"hello world");
    assert_eq!(world.store.outcome(&exec(10)), Some(exited(11)));
    world.collects_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn what_ends_while_the_store_is_away_is_stored_and_kept_once_it_answers_though_nobody_reads()
{
    let (world, away, runner) = on_a_store_that_may_be_away().await;
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let (running, id) = world.begin(&mut link, exec(10)).await;
    link.output(&id, 0, "hello ").await;
    drop(running);
    away.set(true);
    link.output(&id, 6, "world").await;
    link.exit(&id, 11).await;
    sleep(LONG).await;
    assert_eq!(world.store.outcome(&exec(10)), None);
    away.set(false);
    let began = Instant::now();
    // What was lost on its way to the store is asked for again.
    let again = link.operation().await;
    assert!(again.stdout_from < 11);
    link.accept(&id).await;
    let from = again.stdout_from as usize;
    link.output(&id, from as u64, &b"hello world"[from..]).await;
    link.exit(&id, 11).await;
    assert_eq!(link.forgets().await, id);
    assert!(began.elapsed() < SOON, "after {:?}", began.elapsed());
    is_whole(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_for_output_that_only_the_runner_has_and_is_told_of_no_gap() {
    let (world, away, runner) = on_a_store_that_may_be_away().await;
    let mut link = world.link(&runner).await;
    world.store.choose(&runner);
    let (running, id) = world.begin(&mut link, exec(10)).await;
    drop(running);
    away.set(true);
    link.output(&id, 0, "hello world").await;
    sleep(LONG).await;
    away.set(false);
    let reading = world.sandbox.read(exec(10).id, [0, 0]).await;
    let mut late = reading.expect("it is collected");
    // It was lost, which is seen by what comes next.
    let again = link.operation().await;
    assert_eq!(again.stdout_from, 0);
    link.accept(&id).await;
    link.output(&id, 0, "hello world").await;
    link.exit(&id, 11).await;
    assert_eq!(next(&mut late).await, stdout(0, "hello world"));
    assert_eq!(next(&mut late).await, OperationEvent::Ended(exited(11)));
    assert_eq!(link.forgets().await, id);
}
