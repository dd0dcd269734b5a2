use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use super::*;

const MIB: u64 = 1024 * 1024;

fn key(stream: OutputStream) -> OutputKey {
    OutputKey {
        tenant: TenantId::from_u128(1),
        operation: OperationId::from_u128(2),
        stream,
    }
}

const OUT: OutputStream = OutputStream::Stdout;

/// What a stream of the tests has at an offset.
fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..).take(len).map(|at| (at % 251) as u8).collect()
}

async fn append(area: &Outputs, offset: u64, len: usize) {
    let data = bytes(offset, len);
    area.append(key(OUT), offset, data).await.expect("it runs");
}

/// What is kept: where each run begins and ends. Its bytes are checked.
async fn kept(area: &Outputs, page: usize) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut from = 0;
    while let Some(piece) = area.read(key(OUT), from, page).await.expect("it is read") {
        assert!(piece.offset >= from && piece.data.len() <= page);
        assert!(piece.data == bytes(piece.offset, piece.data.len()));
        from = piece.end();
        match runs.last_mut() {
            Some((_, end)) if *end == piece.offset => *end = from,
            _ => runs.push((piece.offset, from)),
        }
    }
    runs
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let tenant = folder.join(TenantId::from_u128(1).to_string());
    let found = fs::read_dir(tenant).expect("it is there");
    found
        .map(|file| file.expect("it is there").path())
        .collect()
}

#[tokio::test]
async fn what_was_appended_is_kept_over_a_restart_and_repeats_are_left_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    append(&area, 0, 10).await;
    append(&area, 5, 10).await;
    append(&area, 2, 3).await;
    assert_eq!(kept(&area, 4).await, [(0, 15)]);
    assert_eq!(area.synced(key(OUT)).await.expect("it is written"), 15);
    drop(area);
    let area = Outputs::start(folder.path()).expect("it is there");
    assert_eq!(area.end(key(OUT)).await.expect("it is read"), 15);
    append(&area, 10, 20).await;
    assert_eq!(area.synced(key(OUT)).await.expect("it is written"), 30);
    assert_eq!(kept(&area, 1000).await, [(0, 30)]);
    let stderr = area.read(key(OutputStream::Stderr), 0, 10).await;
    assert_eq!(stderr.expect("it is read"), None);
}

#[tokio::test]
async fn how_much_of_many_streams_is_durable_is_told_in_their_order_and_by_whoever_comes_next() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    let of = |number: u64| OutputKey {
        operation: OperationId::from_u128(number.into()),
        ..key(OUT)
    };
    let asked: Vec<_> = (0..3 * DURABLE_AT_ONCE as u64).map(of).collect();
    let expected: Vec<_> = (0..asked.len() as u64).map(|number| number % 5).collect();
    for (key, length) in asked.iter().zip(&expected) {
        let data = bytes(0, *length as usize);
        area.append(*key, 0, data).await.expect("it runs");
    }
    assert_eq!(area.durable(&asked).await.expect("it runs"), expected);
    drop(area);
    let area = Outputs::start(folder.path()).expect("it is there");
    assert_eq!(area.durable(&asked).await.expect("it runs"), expected);
}

#[tokio::test]
async fn the_head_and_the_tail_are_kept_and_the_gap_between_them_is_seen() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    let end = 9 * MIB + 12_345;
    for offset in (0..end).step_by(50_000) {
        append(&area, offset, (end - offset).min(50_000) as usize).await;
    }
    let runs = kept(&area, 100_000).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs[0].0 == 0 && runs[0].1 >= MIB, "{runs:?}");
    assert!(runs[1].0 <= end - MIB && runs[1].1 == end, "{runs:?}");
    area.synced(key(OUT)).await.expect("it is written");
    let on_disk: u64 = files(folder.path())
        .iter()
        .map(|path| fs::metadata(path).expect("it is there").len())
        .sum();
    assert!(on_disk < 7 * MIB / 2, "{on_disk} bytes");
    drop(area);
    let area = Outputs::start(folder.path()).expect("it is there");
    assert_eq!(kept(&area, 3 * MIB as usize).await, runs);
}

#[tokio::test]
async fn a_gap_that_came_stays_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    append(&area, 0, 10).await;
    append(&area, 500, 0).await;
    append(&area, 500, 10).await;
    append(&area, 100, 10).await;
    assert_eq!(kept(&area, 1000).await, [(0, 10), (500, 510)]);
    let tail = area.read(key(OUT), 505, 1000).await.expect("it is read");
    assert_eq!(tail.map(|piece| piece.offset), Some(505));
}

async fn whole_area(folder: &Path) -> Outputs {
    let area = Outputs::start(folder).expect("it is made");
    area.keep_all(&[key(OUT)]).await.expect("it is made");
    area
}

#[tokio::test]
async fn all_of_a_stream_is_kept_where_that_was_asked_for_and_stays_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let end = 13 * MIB + 12_345;
    drop(whole_area(folder.path()).await);
    // Nobody says again that all is to be kept.
    for (from, to) in [(0, 5 * MIB), (5 * MIB, end)] {
        let area = Outputs::start(folder.path()).expect("it is there");
        assert_eq!(area.end(key(OUT)).await.expect("it is read"), from);
        for offset in (from..to).step_by(50_000) {
            append(&area, offset, (to - offset).min(50_000) as usize).await;
        }
        assert_eq!(area.synced(key(OUT)).await.expect("it is written"), to);
        assert_eq!(kept(&area, 100_000).await, [(0, to)]);
        assert_eq!(kept(&area, 9 * MIB as usize).await, [(0, to)]);
    }
    let segments = files(folder.path()).pop().expect("their folder");
    let segments = fs::read_dir(segments).expect("it is there");
    let sizes = segments.map(|file| file.expect("a file").metadata().expect("its size").len());
    let sizes: Vec<_> = sizes.collect();
    assert!(
        sizes.len() == 4 && sizes.iter().all(|size| *size < 5 * MIB),
        "{sizes:?}"
    );
}

#[tokio::test]
async fn of_a_stream_that_has_begun_no_more_is_kept_than_before() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    append(&area, 0, 10).await;
    area.keep_all(&[key(OUT)])
        .await
        .expect("it changes nothing");
    append(&area, 10, 10).await;
    assert_eq!(kept(&area, 1000).await, [(0, 20)]);
}

#[tokio::test]
async fn of_segments_only_the_last_is_torn_by_a_crash_and_goes_on_where_it_stands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = whole_area(folder.path()).await;
    for offset in (0..5 * MIB).step_by(MIB as usize) {
        append(&area, offset, MIB as usize).await;
    }
    area.synced(key(OUT)).await.expect("it is written");
    drop(area);
    let segments = files(folder.path()).pop().expect("their folder");
    let last = segments.join(format!("{:016x}", 4 * MIB));
    let whole = fs::read(&last).expect("it is there");
    // In the middle of its first frame, of a later one, and as if nothing had come to the disk.
    for (torn, end) in [
        (100, 4 * MIB),
        (200_000, 4 * MIB + 3 * 65_536),
        (0, 4 * MIB),
    ] {
        let mut broken = whole[..torn].to_vec();
        broken.resize(whole.len(), 0);
        fs::write(&last, broken).expect("it is written");
        let area = Outputs::start(folder.path()).expect("it is there");
        assert_eq!(kept(&area, 1_000_000).await, [(0, end)]);
        append(&area, 4 * MIB, MIB as usize).await;
        assert_eq!(area.synced(key(OUT)).await.expect("it is written"), 5 * MIB);
        assert_eq!(kept(&area, 1_000_000).await, [(0, 5 * MIB)]);
    }
}

#[tokio::test]
async fn a_segment_that_is_damaged_later_is_seen_as_a_gap() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = whole_area(folder.path()).await;
    for offset in (0..9 * MIB).step_by(MIB as usize) {
        append(&area, offset, MIB as usize).await;
    }
    area.synced(key(OUT)).await.expect("it is written");
    drop(area);
    let segments = files(folder.path()).pop().expect("their folder");
    let first = segments.join(format!("{:016x}", 0));
    let file = fs::OpenOptions::new()
        .write(true)
        .open(first)
        .expect("it is there");
    std::os::unix::fs::FileExt::write_all_at(&file, b"damage", 100_000).expect("it is written");
    let area = Outputs::start(folder.path()).expect("it is there");
    assert_eq!(
        kept(&area, 1_000_000).await,
        [(0, 65_536), (4 * MIB, 9 * MIB)]
    );
}

#[tokio::test]
async fn a_torn_end_is_cut_off_and_goes_on_where_it_stands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    append(&area, 0, 10).await;
    area.synced(key(OUT)).await.expect("it is written");
    append(&area, 10, 10).await;
    area.synced(key(OUT)).await.expect("it is written");
    drop(area);
    let file = files(folder.path()).pop().expect("there is one");
    let whole = fs::read(&file).expect("it is there");
    for torn in [whole.len() - 1, 27] {
        let mut broken = whole.clone();
        broken.truncate(torn);
        broken.extend_from_slice(&[7; 40]);
        fs::write(&file, broken).expect("it is written");
        let area = Outputs::start(folder.path()).expect("it is there");
        assert_eq!(kept(&area, 1000).await, [(0, 10)]);
        append(&area, 10, 10).await;
        assert_eq!(area.synced(key(OUT)).await.expect("it is written"), 20);
        assert_eq!(kept(&area, 1000).await, [(0, 20)]);
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_said_and_what_was_written_stays() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    append(&area, 0, 10).await;
    assert_eq!(area.synced(key(OUT)).await.expect("it is written"), 10);
    // Where its tail would be is a folder, so that no file can be made.
    let tail = files(folder.path())[0].with_extension("tail0");
    fs::create_dir(&tail).expect("it is made");
    for offset in (10..2 * MIB).step_by(50_000) {
        append(&area, offset, 50_000).await;
    }
    let synced = area.synced(key(OUT)).await;
    assert!(matches!(synced, Err(StoreError::Unavailable(_))));
    let runs = kept(&area, 100_000).await;
    assert!(runs.len() == 1 && runs[0].1 >= MIB, "{runs:?}");
    let folder_mode = fs::metadata(files(folder.path())[0].parent().expect("it has one"));
    let mode = folder_mode.expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn what_comes_after_bytes_that_were_not_kept_is_not_kept_as_if_there_were_a_gap() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    // Where its segments would be is a file, so that the stream cannot be opened.
    let tenant = folder.path().join(TenantId::from_u128(1).to_string());
    fs::create_dir(&tenant).expect("it is made");
    let in_the_way = tenant.join(format!("{}.stdout.all", OperationId::from_u128(2)));
    fs::write(&in_the_way, "").expect("it is written");
    append(&area, 0, 10).await;
    // Whatever is asked of the area is done before its answer.
    assert!(area.end(key(OUT)).await.is_err());
    fs::remove_file(&in_the_way).expect("it is there");
    for (offset, len) in [(0, 0), (10, 10), (20, 10)] {
        append(&area, offset, len).await;
        let synced = area.synced(key(OUT)).await;
        assert!(matches!(synced, Err(StoreError::Unavailable(_))));
        assert_eq!(area.durable(&[key(OUT)]).await.expect("it runs"), [0]);
    }
    assert_eq!(kept(&area, 1000).await, []);
    // Nobody who begins anew commits what an earlier reader appends behind it.
    assert_eq!(area.resume(key(OUT)).await.expect("it is there"), 0);
    append(&area, 30, 10).await;
    assert!(area.synced(key(OUT)).await.is_err());
}

#[tokio::test]
async fn a_stream_that_could_not_be_written_goes_on_where_it_ends_once_there_is_room() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    append(&area, 0, 10).await;
    assert_eq!(area.synced(key(OUT)).await.expect("it is written"), 10);
    let tail = files(folder.path())[0].with_extension("tail0");
    fs::create_dir(&tail).expect("it is made");
    for offset in (10..2 * MIB).step_by(50_000) {
        append(&area, offset, 50_000).await;
    }
    assert!(area.synced(key(OUT)).await.is_err());
    assert!(area.resume(key(OUT)).await.is_err());
    fs::remove_dir(&tail).expect("it is there");
    let end = area.resume(key(OUT)).await.expect("there is room");
    assert_eq!(kept(&area, 100_000).await, [(0, end)]);
    assert!(end >= MIB);
    append(&area, end, 50_000).await;
    let synced = area.synced(key(OUT)).await.expect("it is written");
    assert_eq!(synced, end + 50_000);
    assert_eq!(kept(&area, 100_000).await, [(0, synced)]);
}

#[tokio::test]
async fn what_is_removed_leaves_no_file_and_nothing_to_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let area = Outputs::start(folder.path()).expect("it is made");
    let whole = key(OutputStream::Stderr);
    area.keep_all(&[whole]).await.expect("it is made");
    area.append(whole, 0, bytes(0, 100)).await.expect("it runs");
    append(&area, 0, 3 * MIB as usize).await;
    area.synced(key(OUT)).await.expect("it is written");
    area.synced(whole).await.expect("it is written");
    let remove = async || area.remove(whole.tenant, whole.operation).await;
    remove().await.expect("it is removed");
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
    assert_eq!(kept(&area, 1000).await, []);
    remove().await.expect("there is nothing to be removed");
}
