//! A disk that is nearly full, which only root can set up.

use super::*;
use crate::testing::SmallDisk;

fn code(outcome: &v1::ended::Outcome) -> Option<v1::refusal::Code> {
    match outcome {
        v1::ended::Outcome::Refused(refusal) => Some(refusal.code()),
        _ => None,
    }
}

#[tokio::test]
async fn on_a_small_disk_that_is_nearly_full_what_would_write_is_refused_as_without_room() {
    let disk = SmallDisk::mount("32m");
    let mut bench = Bench::in_folder(disk.path(), &incarnation().boot, None).await;
    disk.fill();
    bench.ask(1, shell("echo ran > effect"), 0).await;
    let v1::ended::Outcome::Refused(refusal) = bench.read_all().await.1 else {
        panic!("it is refused");
    };
    assert_eq!(refusal.code(), v1::refusal::Code::SpoolFull);
    assert_eq!(refusal.retry_after_ms, 0, "somebody has to free some");
    assert!(!bench.path("effect").exists());

    let list = Request::List(shared_sandbox::List {
        path: String::new(),
        max_entries: 9,
        tree: false,
        after: String::new(),
    });
    bench.ask(2, list, 0).await;
    assert_eq!(code(&bench.read_all().await.1), None, "it is still read");

    disk.free();
    bench.ask(3, shell("echo ran > effect"), 0).await;
    assert_eq!(code(&bench.read_all().await.1), None, "there is room again");
    assert!(bench.path("effect").exists());
}
