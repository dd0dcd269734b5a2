//! The real supervisor, and commands under it.

mod scene;

use scene::*;

#[tokio::test]
async fn output_is_told_and_then_the_end() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let mut process = scene
        .start(&processes, shell("echo one; echo two >&2; exit 3"))
        .await;
    let outcome = outcome(end(&mut process).await);
    let record = exited(&outcome);
    assert_eq!(record.status, ExitStatus::Code(3));
    assert_eq!(record.cause, ExitCause::Exited);
    assert!(record.tree_gone);
    assert_eq!(record.stdout, whole(b"one\n"));
    assert_eq!(record.stderr, whole(b"two\n"));
    assert_eq!(read(&mut process.spool, OutputStream::Stdout), "one\n");
    assert_eq!(read(&mut process.spool, OutputStream::Stderr), "two\n");
    assert_eq!(process.events.recv().await, None);
}
