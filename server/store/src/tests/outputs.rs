//! Output in the rows of a database that several servers share.

use std::path::Path;

use shared_sandbox::OutputStream;
use shared_types::OperationId;

use super::fixture::{Fixture, Tenant};
use crate::{
    OutputKey, Outputs, Store, StoreError, copy,
    database::{Row, query},
};

const MIB: u64 = 1024 * 1024;

/// One server's view of one stream.
struct Stream {
    outputs: Outputs,
    key: OutputKey,
}

impl Stream {
    /// As a server sees it that starts now over this folder.
    async fn seen_over(folder: &Path, store: &Store, tenant: &Tenant) -> Self {
        let outputs = Outputs::open(folder, store).await;
        let key = OutputKey {
            tenant: tenant.id,
            operation: OperationId::from_u128(2),
            stream: OutputStream::Stdout,
        };
        Self {
            outputs: outputs.expect("it is opened"),
            key,
        }
    }

    /// As a server sees it that has an empty folder, as in a new pod.
    async fn seen(store: &Store, tenant: &Tenant) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::seen_over(folder.path(), store, tenant).await
    }

    async fn append(&self, offset: u64, len: u64) {
        let data = bytes(offset, len);
        let appended = self.outputs.append(self.key, offset, data).await;
        appended.expect("it runs");
    }

    async fn append_all(&self, from: u64, to: u64) {
        for offset in (from..to).step_by(50_000) {
            self.append(offset, (to - offset).min(50_000)).await;
        }
    }

    async fn synced(&self) -> Result<u64, StoreError> {
        self.outputs.synced(self.key).await
    }

    async fn resumed(&self) -> u64 {
        let resumed = self.outputs.resume(self.key).await;
        resumed.expect("it answers")
    }

    /// Where each run of kept bytes begins and ends. The bytes are checked.
    async fn kept(&self, page: usize) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut from = 0;
        while let Some(piece) = self.read(from, page).await {
            assert!(piece.0 >= from && piece.1.len() <= page);
            assert!(piece.1 == bytes(piece.0, piece.1.len() as u64));
            from = piece.0 + piece.1.len() as u64;
            match runs.last_mut() {
                Some((_, end)) if *end == piece.0 => *end = from,
                _ => runs.push((piece.0, from)),
            }
        }
        runs
    }

    async fn read(&self, from: u64, max_bytes: usize) -> Option<(u64, Vec<u8>)> {
        let read = self.outputs.read(self.key, from, max_bytes).await;
        read.expect("it is read")
            .map(|piece| (piece.offset, piece.data))
    }
}

/// What a stream of the tests has at an offset.
fn bytes(offset: u64, len: u64) -> Vec<u8> {
    (offset..offset + len).map(|at| (at % 251) as u8).collect()
}

async fn run(db: &Store, statement: &'static str) -> Vec<Row> {
    let mut tx = db.write_any("a test").await.expect("it answers");
    let rows = query(statement).fetch_all(&mut tx).await.expect("it runs");
    tx.commit().await.expect("it answers");
    rows
}

async fn rows_in_all(db: &Store) -> (i64, i64) {
    let counted = run(
        db,
        "SELECT (SELECT COUNT(*) FROM outputs) AS streams, (SELECT COUNT(*) FROM output_frames) AS frames",
    )
    .await;
    let of = |name| counted[0].get_integer(name).expect("a number").unwrap_or(0);
    (of("streams"), of("frames"))
}

#[tokio::test]
async fn another_server_goes_on_where_the_one_before_it_ended_and_repeats_are_left_out() {
    let ours = Fixture::postgres().await.tenant().await;
    let old = Stream::seen(&ours.db, &ours).await;
    old.append(0, 10).await;
    old.append(5, 10).await;
    old.append(2, 3).await;
    assert_eq!(old.kept(4).await, [(0, 15)]);
    assert_eq!(old.synced().await.expect("it is written"), 15);
    let new = Stream::seen(&ours.db, &ours).await;
    assert_eq!(new.outputs.end(new.key).await.expect("it is read"), 15);
    assert_eq!(new.resumed().await, 15);
    new.append(10, 20).await;
    assert_eq!(new.synced().await.expect("it is written"), 30);
    assert_eq!(old.kept(1000).await, [(0, 30)]);
    assert_eq!(old.outputs.end(old.key).await.expect("it is read"), 30);
}

#[tokio::test]
async fn of_two_servers_that_append_the_second_goes_on_behind_what_the_first_has_written() {
    let ours = Fixture::postgres().await.tenant().await;
    let one = Stream::seen(&ours.db, &ours).await;
    let other = Stream::seen(&ours.db, &ours).await;
    assert_eq!((one.resumed().await, other.resumed().await), (0, 0));
    for (begin, first, second) in [(0, &one, &other), (27, &other, &one)] {
        assert_eq!(first.resumed().await, begin);
        first.append(begin, 10).await;
        assert_eq!(first.synced().await.expect("it is first"), begin + 10);
        second.append(begin, 7).await;
        second.append(begin + 7, 20).await;
        assert_eq!(second.synced().await.expect("it goes on"), begin + 27);
        let durable = second.outputs.durable(&[second.key]).await;
        assert_eq!(durable.expect("it runs"), [begin + 27]);
        // All that it has was written by the other one already.
        first.append(begin + 10, 5).await;
        assert_eq!(first.synced().await.expect("it is there"), begin + 27);
    }
    assert_eq!(one.kept(1000).await, [(0, 54)]);
}

#[tokio::test]
async fn the_head_and_the_tail_are_kept_and_the_gap_between_them_is_seen() {
    let ours = Fixture::postgres().await.tenant().await;
    let stream = Stream::seen(&ours.db, &ours).await;
    let end = 9 * MIB + 12_345;
    stream.append_all(0, end).await;
    let runs = stream.kept(100_000).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs[0].0 == 0 && runs[0].1 >= MIB, "{runs:?}");
    assert!(runs[1].0 <= end - MIB && runs[1].1 == end, "{runs:?}");
    assert_eq!(stream.synced().await.expect("it is written"), end);
    let kept: u64 = runs.iter().map(|(begin, end)| end - begin).sum();
    assert!(kept < 9 * MIB / 2, "{kept} bytes");
    assert_eq!(stream.kept(3 * MIB as usize).await, runs);
    // Also by a server that does not know what was removed before.
    let next = Stream::seen(&ours.db, &ours).await;
    assert_eq!(next.resumed().await, end);
    next.append_all(end, end + 5 * MIB).await;
    let runs = next.kept(100_000).await;
    assert!(runs[1].0 > end && runs[1].1 == end + 5 * MIB, "{runs:?}");
}

#[tokio::test]
async fn all_of_a_stream_is_kept_where_that_was_asked_for_and_stays_asked_for() {
    let ours = Fixture::postgres().await.tenant().await;
    let asking = Stream::seen(&ours.db, &ours).await;
    let asked = asking.outputs.keep_all(&[asking.key]).await;
    asked.expect("it answers");
    for (from, to) in [(0, 5 * MIB), (5 * MIB, 9 * MIB)] {
        let next = Stream::seen(&ours.db, &ours).await;
        assert_eq!(next.resumed().await, from);
        next.append_all(from, to).await;
        assert_eq!(next.synced().await.expect("it is written"), to);
        assert_eq!(next.kept(100_000).await, [(0, to)]);
    }
    // Of one that has begun no more is kept than before.
    let begun = OutputKey {
        stream: OutputStream::Stderr,
        ..asking.key
    };
    let begun = Stream {
        outputs: asking.outputs.clone(),
        key: begun,
    };
    begun.append(0, 10).await;
    begun
        .outputs
        .keep_all(&[begun.key])
        .await
        .expect("it answers");
    begun.append_all(10, 5 * MIB).await;
    assert_eq!(begun.kept(100_000).await.len(), 2);
}

#[tokio::test]
async fn a_gap_that_came_stays_one() {
    let ours = Fixture::postgres().await.tenant().await;
    let stream = Stream::seen(&ours.db, &ours).await;
    stream.append(0, 10).await;
    stream.append(500, 0).await;
    assert_eq!(stream.synced().await.expect("it is written"), 500);
    let next = Stream::seen(&ours.db, &ours).await;
    assert_eq!(next.resumed().await, 500);
    next.append(500, 10).await;
    next.append(100, 10).await;
    assert_eq!(next.kept(1000).await, [(0, 10), (500, 510)]);
    assert_eq!(
        next.read(505, 1000).await.map(|(offset, _)| offset),
        Some(505)
    );
    // Without that word it is not taken for one.
    next.append(600, 10).await;
    assert!(next.synced().await.is_err());
    assert_eq!(next.resumed().await, 510);
}

#[tokio::test]
async fn what_cannot_be_written_is_said_and_the_stream_goes_on_where_it_ends() {
    let ours = Fixture::postgres().await.tenant().await;
    let stream = Stream::seen(&ours.db, &ours).await;
    stream.append(0, 10).await;
    assert_eq!(stream.synced().await.expect("it is written"), 10);
    run(&ours.db, "ALTER TABLE output_frames RENAME TO away").await;
    stream.append(10, 10).await;
    assert!(stream.synced().await.is_err());
    // What comes behind it is not kept as if there were a gap.
    run(&ours.db, "ALTER TABLE away RENAME TO output_frames").await;
    stream.append(20, 10).await;
    assert!(stream.synced().await.is_err());
    assert_eq!(stream.resumed().await, 10);
    stream.append(10, 20).await;
    assert_eq!(stream.synced().await.expect("it is written"), 30);
    assert_eq!(stream.kept(1000).await, [(0, 30)]);
}

#[tokio::test]
async fn how_much_of_many_streams_is_durable_is_told_in_their_order_by_any_server() {
    let ours = Fixture::postgres().await.tenant().await;
    let one = Stream::seen(&ours.db, &ours).await;
    let of = |number: u64| OutputKey {
        operation: OperationId::from_u128(number.into()),
        ..one.key
    };
    let asked: Vec<_> = (0..150).map(of).collect();
    let expected: Vec<_> = (0..150).map(|number| number % 5).collect();
    for (key, length) in asked.iter().zip(&expected) {
        let appended = one.outputs.append(*key, 0, bytes(0, *length)).await;
        appended.expect("it runs");
    }
    let durable = one.outputs.durable(&asked).await;
    assert_eq!(durable.expect("it runs"), expected);
    let other = Stream::seen(&ours.db, &ours).await;
    let durable = other.outputs.durable(&asked).await;
    assert_eq!(durable.expect("it runs"), expected);
}

#[tokio::test]
async fn a_stream_that_began_in_files_goes_on_there() {
    let ours = Fixture::postgres().await.tenant().await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = Outputs::start(folder.path()).expect("it is made");
    let stream = Stream::seen(&ours.db, &ours).await;
    let (key, whole) = (
        stream.key,
        OutputKey {
            stream: OutputStream::Stderr,
            ..stream.key
        },
    );
    files.append(key, 0, bytes(0, 10)).await.expect("it runs");
    files.synced(key).await.expect("it is written");
    files.keep_all(&[whole]).await.expect("it is made");
    drop(files);
    let stream = Stream::seen_over(folder.path(), &ours.db, &ours).await;
    assert_eq!(stream.resumed().await, 10);
    stream.append(10, 10).await;
    assert_eq!(stream.synced().await.expect("it is written"), 20);
    assert_eq!(stream.kept(7).await, [(0, 20)]);
    let other = OutputKey {
        operation: OperationId::from_u128(3),
        ..key
    };
    for key in [whole, other] {
        let appended = stream.outputs.append(key, 0, bytes(0, 5)).await;
        appended.expect("it runs");
    }
    let durable = stream.outputs.durable(&[key, whole, other]).await;
    assert_eq!(durable.expect("it runs"), [20, 5, 5]);
    assert_eq!(rows_in_all(&ours.db).await, (1, 1), "the new one alone");
}

#[tokio::test]
async fn what_is_removed_leaves_no_row_and_nothing_to_read() {
    let ours = Fixture::postgres().await.tenant().await;
    let stream = Stream::seen(&ours.db, &ours).await;
    stream.append_all(0, 3 * MIB).await;
    stream.synced().await.expect("it is written");
    assert_ne!(rows_in_all(&ours.db).await, (0, 0));
    let remove = async || {
        let OutputKey { operation, .. } = stream.key;
        stream.outputs.remove(ours.id, operation).await
    };
    remove().await.expect("it is removed");
    assert_eq!(rows_in_all(&ours.db).await, (0, 0));
    assert_eq!(stream.kept(1000).await, []);
    remove().await.expect("there is nothing to be removed");
}

#[tokio::test]
async fn rows_that_were_moved_to_a_file_go_on_there_and_new_streams_lie_in_files() {
    let ours = Fixture::postgres().await.tenant().await;
    let stream = Stream::seen(&ours.db, &ours).await;
    stream.append(0, 10).await;
    stream.synced().await.expect("it is written");
    let moved = Fixture::sqlite().await;
    copy(&ours.db, &moved.db).await.expect("it is empty");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stream = Stream::seen_over(folder.path(), &moved.db, &ours).await;
    assert_eq!(stream.resumed().await, 10);
    stream.append(10, 10).await;
    assert_eq!(stream.synced().await.expect("it is written"), 20);
    assert_eq!(stream.kept(1000).await, [(0, 20)]);
    let stderr = OutputKey {
        stream: OutputStream::Stderr,
        ..stream.key
    };
    let appended = stream.outputs.append(stderr, 0, bytes(0, 5)).await;
    appended.expect("it runs");
    assert_eq!(stream.outputs.synced(stderr).await.expect("it runs"), 5);
    assert_eq!(rows_in_all(&moved.db).await.0, 1);
}
