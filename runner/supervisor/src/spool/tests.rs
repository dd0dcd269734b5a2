use super::*;

fn scene() -> (tempfile::TempDir, Directory) {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = Directory::create(&folder.path().join("op")).expect("a directory");
    (folder, directory)
}

#[test]
fn a_reader_never_takes_a_hole_for_output() {
    let (_folder, directory) = scene();
    let out = directory.create_file("out").expect("a file");
    let mut gaps = GapLog::create(&directory).expect("a log");
    out.write_all_at(b"head", 0).expect("written");
    let gap = Gap {
        stream: SpoolStream::Out,
        offset: 4,
        length: 96,
    };
    gaps.add(gap).expect("recorded");
    let reader = SpoolReader::open(&directory, SpoolStream::Out).expect("a reader");
    let mut bytes = [0; 200];
    assert_eq!(
        reader.read(0, &mut bytes).expect("read"),
        SpoolPiece::Bytes(4)
    );
    // The bytes behind it are not there yet, but the gap is known.
    let gap = SpoolPiece::Gap { until: 100 };
    assert_eq!(reader.read(4, &mut bytes).expect("read"), gap);
    assert_eq!(
        reader.read(100, &mut bytes).expect("read"),
        SpoolPiece::Nothing
    );
    out.write_all_at(b"tail", 100).expect("written");
    assert_eq!(
        reader.read(0, &mut bytes).expect("read"),
        SpoolPiece::Bytes(4)
    );
    assert_eq!(reader.read(50, &mut bytes).expect("read"), gap);
    assert_eq!(
        reader.read(100, &mut bytes).expect("read"),
        SpoolPiece::Bytes(4)
    );
    assert_eq!(&bytes[..4], b"tail");
    let mut more = b"so far: ".to_vec();
    more.reserve_exact(100);
    let found = reader.append_to(&mut more, 0).expect("read");
    assert_eq!(
        (found, &*more),
        (SpoolPiece::Bytes(4), b"so far: head".as_slice())
    );
    assert_eq!(reader.append_to(&mut more, 50).expect("read"), gap);
    assert_eq!(more, b"so far: head", "a hole adds nothing");
    assert!(!reader.is_whole().expect("known"));
}

#[test]
fn a_gap_of_one_stream_is_none_of_the_other() {
    let (_folder, directory) = scene();
    let err = directory.create_file("err").expect("a file");
    err.write_all_at(b"whole", 0).expect("written");
    let mut gaps = GapLog::create(&directory).expect("a log");
    for offset in [0, 10, 20] {
        let gap = Gap {
            stream: SpoolStream::Out,
            offset,
            length: 5,
        };
        gaps.add(gap).expect("recorded");
    }
    gaps.evict(SpoolStream::Out, 7).expect("recorded");
    let reader = SpoolReader::open(&directory, SpoolStream::Err).expect("a reader");
    let mut bytes = [0; 9];
    assert_eq!(
        reader.read(0, &mut bytes).expect("read"),
        SpoolPiece::Bytes(5)
    );
    assert!(reader.is_whole().expect("known"));
    assert_eq!(gaps.gaps(SpoolStream::Out).expect("read").len(), 3);
}

#[test]
fn what_was_evicted_says_where_to_go_on() {
    let (_folder, directory) = scene();
    let out = directory.create_file("out").expect("a file");
    out.write_all_at(&[1; 100], 0).expect("written");
    let mut gaps = GapLog::create(&directory).expect("a log");
    gaps.evict(SpoolStream::Out, 1_000_000_000)
        .expect("recorded");
    gaps.evict(SpoolStream::Out, 60).expect("recorded");
    let reader = SpoolReader::open(&directory, SpoolStream::Out).expect("a reader");
    let mut bytes = [0; 100];
    let evicted = SpoolPiece::Evicted { until: 60 };
    assert_eq!(reader.read(59, &mut bytes).expect("read"), evicted);
    assert_eq!(
        reader.read(60, &mut bytes).expect("read"),
        SpoolPiece::Bytes(40)
    );
}

#[test]
fn a_torn_gap_is_no_gap() {
    let (_folder, directory) = scene();
    directory.create_file("out").expect("a file");
    let gaps = GapLog::create(&directory).expect("a log");
    let line = record::to_line(
        "gap",
        &Gap {
            stream: SpoolStream::Out,
            offset: 0,
            length: 5,
        },
    )
    .expect("a line");
    let half = &line[..line.len() / 2];
    gaps.file.write_all_at(half, GAPS_AT).expect("written");
    assert!(gaps.gaps(SpoolStream::Out).expect("read").is_empty());
}
