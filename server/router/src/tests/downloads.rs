//! Downloads, of which nothing is kept: when their reader leaves, their runner lets go of them.

use std::time::Duration;

use proto::v1::{self, refusal::Code, server_frame};
use shared_sandbox::{
    Download, Downloaded, Operation, OperationEvent, Outcome, Request, Running, Sandbox as _,
};
use shared_types::{
    Digest, FileDigest,
    limits::{CREDIT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};

use super::double::*;

fn download(number: u128) -> Operation {
    Operation {
        request: Request::Download(Download {
            path: "large".to_owned(),
            algorithm: Default::default(),
            max_bytes: 0,
        }),
        ..exec(number)
    }
}

/// The operation that the runner is to let go of next.
async fn let_go(link: &mut Link) -> String {
    loop {
        match link.next().await {
            server_frame::Kind::LetGo(let_go) => return let_go.operation,
            server_frame::Kind::Credit(_) => {}
            other => panic!("expected that it lets go of something, got {other:?}"),
        }
    }
}

/// A download of which a whole window was sent and one piece was read.
async fn begun(world: &World, link: &mut Link, number: u128) -> (Running, String) {
    let (mut running, id) = world.begin(link, download(number)).await;
    for at in (0..CREDIT_WINDOW_BYTES).step_by(OUTPUT_CHUNK_BYTES) {
        link.output(&id, at, vec![b'x'; OUTPUT_CHUNK_BYTES]).await;
    }
    let event = next(&mut running).await;
    assert!(
        matches!(event, OperationEvent::Output { offset: 0, .. }),
        "{event:?}"
    );
    (running, id)
}

/// Ends with the digest of what was sent.
async fn end(link: &Link, id: &str, content: &'static str) -> Outcome {
    let downloaded = Downloaded {
        bytes: content.len() as u64,
        digest: FileDigest::from(Digest::of(content.as_bytes())),
    };
    let outcome = Outcome::Downloaded(downloaded);
    let operation = id.parse().expect("an id");
    let frame = shared_link::wire::ended(operation, outcome.clone());
    link.send(frame.kind.expect("a kind")).await;
    outcome
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_leaves_is_let_go_and_begun_anew_for_the_next_one_also_after_its_time_to_start()
 {
    let (world, _runner, mut link) = World::chosen().await;
    let (running, id) = begun(&world, &mut link, 10).await;
    drop(running);
    assert_eq!(let_go(&mut link).await, id);
    assert_eq!(world.store.outcome(&download(10)), None);

    world.clock.advance(Duration::from_secs(120));
    let mut running = world
        .sandbox
        .start(download(10))
        .await
        .expect("it is placed");
    let frame = link.operation().await;
    assert_eq!((&frame.operation, frame.stdout_from), (&id, 0));
    assert!(frame.request.is_some(), "it begins anew");
    // What was on the way is not for this reader.
    link.output(&id, CREDIT_WINDOW_BYTES, "old").await;
    link.refuse(&id, Code::Fenced).await;
    link.accept(&id).await;
    link.output(&id, 0, "new").await;
    assert_eq!(next(&mut running).await, stdout(0, "new"));
    let outcome = end(&link, &id, "new").await;
    assert_eq!(next(&mut running).await, OperationEvent::Ended(outcome));
}

#[tokio::test(start_paused = true)]
async fn what_another_reader_has_taken_over_is_not_let_go_when_the_first_one_leaves() {
    let (world, _runner, mut link) = World::chosen().await;
    let (first, id) = begun(&world, &mut link, 10).await;
    let mut second = world.sandbox.start(download(10)).await.expect("it runs");
    assert_eq!(link.operation().await.operation, id);
    drop(first);
    link.accept(&id).await;
    link.output(&id, 0, "new").await;
    assert_eq!(next(&mut second).await, stdout(0, "new"));
    let outcome = end(&link, &id, "new").await;
    assert_eq!(next(&mut second).await, OperationEvent::Ended(outcome));
    // The next thing that the runner hears is another operation.
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    assert_eq!(link.operation().await.operation, exec(11).id.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_output_is_kept_nowhere_goes_on_without_its_reader() {
    let (world, _runner, mut link) = World::chosen().await;
    let mut operation = exec(10);
    if let Request::Exec(exec) = &mut operation.request {
        exec.retention = shared_sandbox::Retention::None;
    }
    let (running, _) = world.begin(&mut link, operation).await;
    drop(running);
    let _another = world.sandbox.start(exec(11)).await.expect("it starts");
    assert_eq!(link.operation().await.operation, exec(11).id.to_string());
}

#[tokio::test(start_paused = true)]
async fn what_a_runner_says_last_of_what_it_let_go_breaks_no_link() {
    let (world, _runner, mut link) = World::chosen().await;
    for number in 10..14 {
        let (running, id) = begun(&world, &mut link, number).await;
        drop(running);
        assert_eq!(let_go(&mut link).await, id);
        // It ended just before, or it is told its end because it was let go.
        match number % 2 {
            0 => drop(end(&link, &id, "").await),
            _ => link.refuse(&id, v1::refusal::Code::Fenced).await,
        }
    }
    let (mut running, id) = world.begin(&mut link, exec(20)).await;
    link.output(&id, 0, "hello").await;
    assert_eq!(next(&mut running).await, stdout(0, "hello"));
}
