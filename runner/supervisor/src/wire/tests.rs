use std::{io::Write, os::unix::net::UnixStream};

use super::*;
use crate::{FromSupervisor, SpoolStream, ToSupervisor, VERSION, agreed_version};

fn raw(head: &[u8], bytes: &[u8]) -> Vec<u8> {
    let number = |value: usize| u32::try_from(value).expect("a small number").to_le_bytes();
    [
        &number(4 + head.len() + bytes.len())[..],
        &number(head.len()),
        head,
        bytes,
    ]
    .concat()
}

fn received(bytes: &[u8]) -> WireInbox {
    let (mut near, far) = UnixStream::pair().expect("a pair");
    near.write_all(bytes).expect("written");
    let mut inbox = WireInbox::default();
    inbox.fill(&far);
    inbox
}

#[test]
fn frames_arrive_whole_however_they_are_cut() {
    let (near, far) = UnixStream::pair().expect("a pair");
    let mut outbox = Outbox::default();
    let input = ToSupervisor::Input {
        offset: 5,
        end: true,
    };
    outbox.push(&input, b"bytes").expect("it fits");
    outbox.push(&ToSupervisor::Cancel, b"").expect("it fits");
    let bytes = std::mem::take(&mut outbox.bytes);
    let (mut inbox, mut seen) = (WireInbox::default(), Vec::new());
    for byte in bytes {
        outbox.bytes.push(byte);
        outbox.flush(&near, None).expect("sent");
        inbox.fill(&far);
        if let Some(frame) = inbox.take::<ToSupervisor>().expect("well formed") {
            seen.push((frame.head, frame.bytes));
        }
    }
    assert_eq!(
        seen,
        [(input, b"bytes".to_vec()), (ToSupervisor::Cancel, vec![])]
    );
    drop(near);
    inbox.fill(&far);
    assert!(matches!(
        inbox.take::<ToSupervisor>(),
        Err(FrameError::Gone)
    ));
}

#[test]
fn a_descriptor_is_not_lost_to_an_earlier_frame() {
    let (near, far) = UnixStream::pair().expect("a pair");
    let file = tempfile::tempfile().expect("a file");
    let mut outbox = Outbox::default();
    outbox.push(&ToSupervisor::Cancel, b"").expect("it fits");
    outbox.flush(&near, None).expect("sent");
    outbox.push(&ToSupervisor::Unknown, b"").expect("it fits");
    outbox.flush(&near, Some(file.as_fd())).expect("sent");
    let mut inbox = WireInbox::default();
    inbox.fill(&far);
    for expected in [ToSupervisor::Cancel, ToSupervisor::Unknown] {
        let frame = inbox.take::<ToSupervisor>().expect("well formed");
        assert_eq!(frame.expect("whole").head, expected);
    }
    assert!(inbox.descriptor().is_some());
}

#[test]
fn a_frame_too_long_is_refused_before_it_is_held() {
    for length in [
        0,
        3,
        MAX_FRAME_BYTES + 1,
        usize::try_from(u32::MAX).expect("64 bits"),
    ] {
        let length = u32::try_from(length).expect("32 bits").to_le_bytes();
        let mut inbox = received(&length);
        assert!(matches!(
            inbox.take::<ToSupervisor>(),
            Err(FrameError::Malformed(_))
        ));
    }
    let mut long_head = raw(b"{}", b"");
    long_head[4] = 200;
    assert!(received(&long_head).take::<ToSupervisor>().is_err());
    assert!(
        received(&raw(b"nonsense", b""))
            .take::<ToSupervisor>()
            .is_err()
    );
}

#[test]
fn kinds_and_fields_of_a_later_version_are_known_as_such() {
    let later = raw(br#"{"kind":"teleport","where":[1,2]}"#, b"payload");
    let frame = received(&later)
        .take::<ToSupervisor>()
        .expect("well formed");
    assert_eq!(frame.expect("whole").head, ToSupervisor::Unknown);
    let frame = received(&later)
        .take::<FromSupervisor>()
        .expect("well formed");
    assert_eq!(frame.expect("whole").head, FromSupervisor::Unknown);
    let more = raw(
        br#"{"kind":"commit","stream":"err","offset":9,"reason":"new"}"#,
        b"",
    );
    let frame = received(&more).take::<ToSupervisor>().expect("well formed");
    let commit = ToSupervisor::Commit {
        stream: SpoolStream::Err,
        offset: 9,
    };
    assert_eq!(frame.expect("whole").head, commit);
}

#[test]
fn neighbours_agree_on_the_older_version_and_others_do_not_speak() {
    assert_eq!(agreed_version(VERSION), Some(VERSION));
    assert_eq!(agreed_version(VERSION + 1), Some(VERSION));
    assert_eq!(agreed_version(VERSION - 1), Some(VERSION - 1));
    assert_eq!(agreed_version(VERSION + 2), None);
}
