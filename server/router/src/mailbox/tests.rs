use shared_sandbox::OutputStream::{Stderr, Stdout};
use shared_types::RefusalCode;

use super::*;

fn refusal() -> Refusal {
    Refusal::new(RefusalCode::NotFound, "unknown")
}

#[tokio::test]
async fn single_bytes_are_joined_and_the_end_comes_after_them() {
    let mut mailbox = Mailbox::new();
    let (post, _) = mailbox.attach();
    for offset in 0..1000 {
        let data = Bytes::from_static(b"x");
        post.output(Stdout, offset, data.clone()).expect("in order");
        post.output(Stderr, offset, data).expect("in order");
    }
    post.refused(refusal());
    for expected in [Stdout, Stderr] {
        let Mail::Output { stream, data, .. } = mailbox.next().await else {
            panic!("the output comes first");
        };
        assert_eq!((stream, data.len()), (expected, 1000));
    }
    assert_eq!(mailbox.next().await, Mail::Refused(refusal()));
}

#[tokio::test]
async fn what_an_earlier_attachment_still_says_is_dropped() {
    let mut mailbox = Mailbox::new();
    let (old, _) = mailbox.attach();
    old.output(Stdout, 0, Bytes::from_static(b"abc"))
        .expect("in order");
    let (new, offsets) = mailbox.attach();
    assert_eq!(offsets.stdout, 0, "nothing was taken yet");
    old.output(Stdout, 99, Bytes::from_static(b"late"))
        .expect("nobody looks at it");
    drop(old);
    new.output(Stdout, 0, Bytes::from_static(b"abcdef"))
        .expect("a repeat and more");
    drop(new);
    let Mail::Output { data, .. } = mailbox.next().await else {
        panic!("there is output");
    };
    assert_eq!(data, "abcdef");
    assert_eq!(mailbox.next().await, Mail::Detached);
}

#[test]
fn a_runner_that_sends_gap_after_gap_is_stopped() {
    let mut mailbox = Mailbox::new();
    let (post, _) = mailbox.attach();
    let mut offset = 0;
    let stopped = loop {
        let sent = post
            .output(Stdout, offset, Bytes::from_static(b"x"))
            .and_then(|()| post.gap(Stdout, offset + 1, offset + 2));
        match sent {
            Ok(()) => offset += 2,
            Err(error) => break error,
        }
    };
    assert_eq!(stopped, PostError::TooManyGaps);
    assert!(offset <= MAX_PIECES as u64);
}
