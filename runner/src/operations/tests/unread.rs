//! Room that the server makes where nobody reads: it says what is durable with it as soon as there is
//! a link.

use std::os::unix::fs::MetadataExt as _;

use shared_sandbox::{Exec, OutputStream, Retention};

use super::*;

const MIB: u64 = 1024 * 1024;

/// More than is kept of a stream that nobody has committed.
const WRITTEN: u64 = SPOOL_BYTES_PER_STREAM + 4 * MIB;

/// What the server has of it.
const DURABLE: u64 = 5 * MIB;

fn loud() -> Request {
    let Request::Exec(exec) = shell(&format!("head -c {WRITTEN} /dev/zero; touch through")) else {
        panic!("no command");
    };
    Request::Exec(Exec {
        retention: Retention::All,
        ..exec
    })
}

impl Bench {
    async fn commit(&self, up_to: u64) {
        let commit = Order::Commit {
            operation: OperationId::from_u128(1),
            stream: OutputStream::Stdout,
            up_to,
        };
        let taken = self.operations.order(self.link, commit).await;
        taken.expect("a table");
    }

    /// What is there of the command's stdout: how long it is, and how many blocks it takes.
    fn spooled(&self) -> (u64, u64) {
        let all = std::fs::read_dir(self.folder.join("commands")).expect("the commands");
        let all = all.filter_map(|entry| Some(entry.ok()?.path()));
        let begun = all.filter(|path| path.join("fate").exists());
        let spools = begun.filter_map(|path| std::fs::metadata(path.join("out")).ok());
        let (mut length, mut blocks) = (0, 0);
        for spool in spools {
            length += spool.size();
            blocks += spool.blocks();
        }
        (length, blocks)
    }
}

#[tokio::test]
async fn a_command_that_waits_for_room_goes_on_once_a_server_says_what_it_has_though_nobody_reads()
{
    let mut bench = Bench::new().await;
    bench.ask(1, loud(), 0).await;
    assert!(matches!(bench.next().await, Kind::Accepted(_)));
    until(|| bench.spooled().0 == SPOOL_BYTES_PER_STREAM).await;
    bench.relink().await;
    let mut bench = bench.kill(&incarnation().boot).await;
    assert!(!bench.path("through").exists());

    bench.commit(DURABLE).await;
    until(|| bench.path("through").exists()).await;
    // Whoever reads at last goes on behind that, and misses nothing.
    bench.ask(1, loud(), DURABLE).await;
    let mut at = DURABLE;
    while at < WRITTEN {
        match bench.next().await {
            Kind::Output(output) => {
                assert_eq!(output.offset, at);
                at += output.data.len() as u64;
                let credit = Order::Credit {
                    operation: OperationId::from_u128(1),
                    stream: OutputStream::Stdout,
                    up_to: at + MIB,
                };
                let taken = bench.operations.order(bench.link, credit).await;
                taken.expect("a table");
            }
            Kind::Accepted(_) => {}
            other => panic!("expected output, got {other:?}"),
        }
    }
    assert_eq!(code(&bench.read_all().await.1), Some(0));
}

#[tokio::test]
async fn what_a_server_has_leaves_the_disk_though_nobody_reads() {
    let mut bench = Bench::new().await;
    bench.ask(1, loud(), 0).await;
    until(|| bench.spooled().0 == SPOOL_BYTES_PER_STREAM).await;
    let full = bench.spooled().1;
    bench.relink().await;
    bench.commit(SPOOL_BYTES_PER_STREAM).await;
    until(|| bench.path("through").exists()).await;
    let (_, left) = bench.spooled();
    assert!(left < full, "{left} of {full} blocks");
}
