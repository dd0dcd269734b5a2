//! One command: what it reports, what it writes, what it gets.

use runner_supervisor::{Cause, ReportedEnd, Streams};

use crate::scene::Scene;

#[test]
fn a_command_ends_with_its_code_and_all_of_its_output() {
    let scene = Scene::new();
    let ended = scene.run(&scene.shell("echo out; echo err >&2; exit 3"));
    assert_eq!(ended.record.end, ReportedEnd::Code(3));
    assert_eq!(ended.record.cause, Cause::Exited);
    assert_eq!(
        (ended.out, ended.err),
        (b"out\n".to_vec(), b"err\n".to_vec())
    );
    assert_eq!(ended.record.out.offset, 4);
    assert_eq!(ended.record.out.checksum, Some(crc32fast::hash(b"out\n")));
    assert_eq!(ended.record.err.checksum, Some(crc32fast::hash(b"err\n")));
    assert!(ended.record.tree_gone, "{:?}", ended.record);
    assert!(ended.record.max_rss_bytes > 0);
}

#[test]
fn a_command_that_a_signal_ends_says_which() {
    let scene = Scene::new();
    let ended = scene.run(&scene.shell("kill -KILL $$"));
    assert_eq!(ended.record.end, ReportedEnd::Signal(9));
    assert_eq!(ended.record.cause, Cause::Exited);
}

#[test]
fn merged_streams_keep_their_exact_order() {
    let scene = Scene::new();
    let mut request = scene.shell("for i in $(seq 500); do echo o$i; echo e$i >&2; done");
    request.terms.streams = Streams::Merged;
    let ended = scene.run(&request);
    let expected: String = (1..=500).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(ended.text(), expected);
    assert_eq!(ended.record.err.offset, 0);
}
