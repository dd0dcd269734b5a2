//! What comes over a supervisor's socket, at both ends.

use std::{
    ffi::CString,
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use runner_supervisor::{
    Cause, CommandRequest, CommandTerms, ExitRecord, FromSupervisor, KillMethod, MAX_FRAME_BYTES,
    Outbox, ProcessId, ProcessIdentity, ReportedEnd, SpoolBounds, SpoolEnd, SpoolStream, Streams,
    Sync, ToSupervisor, VERSION, WhenFull, WireFrame, WireInbox, WorkingDirectory,
};
use serde::{Serialize, de::DeserializeOwned};
use shared_fuzz::{Dice, fuzz, peak_of, stored};
use shared_types::OperationId;

use super::{corpus, store};

/// Seeds of a run without any wish.
const SEEDS: u64 = 2000;

/// Most that is written to the socket at once, in bytes.
const CHUNK_BYTES: usize = 4096;

/// Most that an input may take: a frame that arrives, the same frame taken, and its head parsed.
const HELD_BYTES: usize = 3 * MAX_FRAME_BYTES;

#[test]
fn a_supervisor_survives_whatever_a_daemon_sends() {
    fuzz(&corpus("to-supervisor"), SEEDS, |input, dice| {
        received(input, dice, |frame: WireFrame<ToSupervisor>| {
            if let ToSupervisor::Start {
                operation,
                words,
                variables,
                terms,
            } = frame.head
            {
                let read =
                    CommandRequest::from_parts(operation, words, variables, terms, &frame.bytes);
                // A request that was understood is one that could have been sent.
                if let Ok(request) = read {
                    request.check().expect("it makes sense");
                }
            }
        });
    });
}

#[test]
fn a_daemon_survives_whatever_a_supervisor_sends() {
    fuzz(&corpus("from-supervisor"), SEEDS, |input, dice| {
        received(input, dice, |_: WireFrame<FromSupervisor>| {});
    });
}

/// Sends the input in pieces and takes every frame, until there never will be another.
fn received<T: DeserializeOwned>(input: &[u8], dice: &mut Dice, with: impl Fn(WireFrame<T>)) {
    let (mut near, far) = UnixStream::pair().expect("a pair");
    let ((), peak) = peak_of(|| {
        let mut inbox = WireInbox::default();
        let mut rest = input;
        loop {
            let (piece, later) = rest.split_at(rest.len().min(1 + dice.up_to(CHUNK_BYTES)));
            near.write_all(piece).expect("there is room");
            rest = later;
            if rest.is_empty() {
                near.shutdown(std::net::Shutdown::Write).expect("a socket");
            }
            inbox.fill(&far);
            loop {
                match inbox.take() {
                    Ok(Some(frame)) => with(frame),
                    Ok(None) => break,
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        return;
                    }
                }
            }
        }
    });
    assert!(peak <= HELD_BYTES, "{peak} bytes for {}", input.len());
}

fn operation() -> OperationId {
    OperationId::from_u128(7)
}

fn terms() -> CommandTerms {
    CommandTerms {
        user: None,
        place: WorkingDirectory::Path("/work".into()),
        streams: Streams::Separate,
        stdin: true,
        run_for: Some(Duration::from_secs(60)),
        idle_for: None,
        orphan_for: Some(Duration::from_secs(900)),
        kill_grace: Duration::from_secs(10),
        spool: SpoolBounds {
            bytes: 1 << 26,
            when_full: WhenFull::Gap { tail: 1 << 20 },
        },
        sync: Sync::Nothing,
        claim: Some("{}".to_owned()),
    }
}

fn to_supervisor() -> Vec<(ToSupervisor, &'static [u8])> {
    let start = ToSupervisor::Start {
        operation: operation(),
        words: 3,
        variables: 1,
        terms: terms(),
    };
    let input = |offset, end| ToSupervisor::Input { offset, end };
    vec![
        (ToSupervisor::Hello { version: VERSION }, b""),
        (start, b"sh\0-c\0true\0PATH=/bin\0"),
        (input(0, false), b"some input"),
        (input(10, true), b""),
        (
            ToSupervisor::Commit {
                stream: SpoolStream::Out,
                offset: 5,
            },
            b"",
        ),
        (
            ToSupervisor::Resize {
                id: 1,
                rows: 24,
                columns: 80,
            },
            b"",
        ),
        (ToSupervisor::Signal { id: 2, signal: 15 }, b""),
        (
            ToSupervisor::Renew {
                orphan_for: Duration::from_secs(900),
            },
            b"",
        ),
        (ToSupervisor::Cancel, b""),
    ]
}

fn from_supervisor() -> Vec<(FromSupervisor, &'static [u8])> {
    let identity = ProcessIdentity {
        supervisor: ProcessId {
            pid: 12,
            start_ticks: 34,
            boot_id: "boot".to_owned(),
        },
        kill: KillMethod::CgroupKill,
        cgroup: Some("/sys/fs/cgroup/gantry/12-34-0".into()),
    };
    let hello = FromSupervisor::Hello {
        version: VERSION,
        identity: identity.clone(),
        input: 0,
        last_id: 0,
    };
    let started = runner_supervisor::StartRecord {
        operation: operation(),
        child: Some(identity.supervisor.clone()),
        identity,
        times: None,
        claim: None,
    };
    let refused = FromSupervisor::Refused {
        reason: "no".to_owned(),
    };
    vec![
        (hello, b""),
        (FromSupervisor::Started(started), b""),
        (FromSupervisor::Output { out: 5, err: 0 }, b""),
        (FromSupervisor::InputTaken { offset: 10 }, b""),
        (FromSupervisor::Done { id: 1 }, b""),
        (refused, b""),
        (FromSupervisor::Exited(exit_record()), b""),
    ]
}

/// An end as they usually are.
pub(crate) fn exit_record() -> ExitRecord {
    let end = |offset| SpoolEnd {
        offset,
        checksum: Some(7),
    };
    ExitRecord {
        operation: Some(operation()),
        end: ReportedEnd::Code(0),
        cause: Cause::Exited,
        out: end(5),
        err: end(0),
        cpu_us: 1,
        max_rss_bytes: 4096,
        wall_us: 2,
        kill: KillMethod::Sweep,
        tree_gone: true,
    }
}

fn to_bytes<T: Serialize>(frames: &[(T, &[u8])]) -> Vec<u8> {
    let (near, mut far) = UnixStream::pair().expect("a pair");
    let mut outbox = Outbox::default();
    for (head, bytes) in frames {
        outbox.push(head, bytes).expect("it fits");
    }
    outbox.flush(&near, None).expect("there is room");
    drop(near);
    let mut bytes = Vec::new();
    far.read_to_end(&mut bytes).expect("it was sent");
    bytes
}

#[test]
fn the_stored_frames_are_those_of_this_protocol() {
    for (target, frames) in [
        ("to-supervisor", to_bytes(&to_supervisor())),
        ("from-supervisor", to_bytes(&from_supervisor())),
    ] {
        let stored = stored(&corpus(target));
        let found = stored.iter().any(|(_, stored)| *stored == frames);
        assert!(found, "{target}: run the ignored test that makes them");
    }
    let word = CString::new("true").expect("no NUL");
    let request = CommandRequest {
        operation: operation(),
        argv: vec![word],
        environment: Vec::new(),
        terms: terms(),
    };
    request.check().expect("the stored request makes sense");
}

#[test]
#[ignore = "writes the corpus anew, after a change of the protocol"]
fn write_the_frames() {
    store("to-supervisor", "every-kind", &to_bytes(&to_supervisor()));
    store(
        "from-supervisor",
        "every-kind",
        &to_bytes(&from_supervisor()),
    );
}
