//! Downloads whose reader has left.

use shared_sandbox::Download;

use super::*;

/// More than a reader has credit for at first.
const BYTES: usize = 4 * 1024 * 1024;

fn download() -> Request {
    Request::Download(Download {
        path: "large".to_owned(),
        algorithm: Default::default(),
        max_bytes: 0,
    })
}

/// How often this process has the file open.
fn open(file: &Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("the descriptors");
    let named = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    named.filter(|name| name == file).count()
}

#[tokio::test]
async fn a_download_that_is_let_go_is_closed_and_may_be_read_anew() {
    let mut bench = Bench::new().await;
    let file = bench.path("large");
    std::fs::write(&file, vec![b'x'; BYTES]).expect("a file");
    let file = file.canonicalize().expect("its path");
    for _ in 0..2 {
        bench.ask(1, download(), 0).await;
        bench.output_of(1024 * 1024).await;
        assert_ne!(open(&file), 0);
        let id = OperationId::from_u128(1);
        let taken = bench.operations.order(bench.link, Order::LetGo(id)).await;
        taken.expect("a table");
        let Kind::Ended(ended) = bench.next().await else {
            panic!("expected its end");
        };
        let refused = matches!(ended.outcome, Some(v1::ended::Outcome::Refused(_)));
        assert!(refused, "{ended:?}");
        let mut unfinished = bench.operations.unfinished();
        let gone = unfinished.wait_for(|left| *left == Unfinished::default());
        timeout(SOON, gone)
            .await
            .expect("in time")
            .expect("a table");
        until(|| open(&file) == 0).await;
    }
}
