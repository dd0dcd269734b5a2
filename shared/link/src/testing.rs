//! Builders for the tests of both ends, here and in the runner.

use std::{collections::HashMap, time::Duration};

use proto::v1::{self, server_frame};
use shared_sandbox::{Command, Consent, Exec, OutputStream, Request};
use shared_types::{Epoch, Incarnation, JournalId, OperationId, Owner, SandboxId, SessionId};

use crate::{
    runner::{Incoming, Spool, SpoolPiece},
    wire,
};

/// Output in memory; of what is dropped only the length stays.
#[derive(Debug, Default)]
pub struct Memory {
    streams: HashMap<(OperationId, OutputStream), Vec<u8>>,
    dropped: HashMap<(OperationId, OutputStream), std::ops::Range<u64>>,
}

impl Memory {
    /// Adds to a stream; returns how far both can be read.
    pub fn write(&mut self, id: OperationId, stream: OutputStream, data: &[u8]) -> [u64; 2] {
        self.streams
            .entry((id, stream))
            .or_default()
            .extend_from_slice(data);
        [OutputStream::Stdout, OutputStream::Stderr]
            .map(|stream| self.streams.get(&(id, stream)).map_or(0, Vec::len) as u64)
    }

    /// These bytes are not kept any more.
    pub fn drop_range(&mut self, id: OperationId, range: std::ops::Range<u64>) {
        self.dropped.insert((id, OutputStream::Stdout), range);
    }
}

impl Spool for Memory {
    fn read(
        &mut self,
        operation: OperationId,
        stream: OutputStream,
        from: u64,
        max: usize,
    ) -> SpoolPiece {
        let at = from as usize;
        let mut up_to = at + max;
        if let Some(gap) = self.dropped.get(&(operation, stream)) {
            if gap.contains(&from) {
                return SpoolPiece::Gap(gap.end);
            }
            if from < gap.start {
                up_to = up_to.min(gap.start as usize);
            }
        }
        match self.streams.get(&(operation, stream)) {
            Some(bytes) => SpoolPiece::Bytes(bytes[at..up_to.min(bytes.len())].to_vec().into()),
            None => SpoolPiece::Nothing,
        }
    }
}

/// The spool of a host that has no descriptor left.
#[derive(Debug)]
pub struct Exhausted;

impl Spool for Exhausted {
    fn read(&mut self, _: OperationId, _: OutputStream, _: u64, _: usize) -> SpoolPiece {
        SpoolPiece::Later
    }
}

/// The incarnation of tests.
pub fn incarnation() -> Incarnation {
    Incarnation {
        journal: JournalId::from_u128(1),
        boot: "boot".to_owned(),
    }
}

/// The sandbox of tests.
pub const PLACE: SandboxId = SandboxId::from_u128(2);

/// The owner of tests.
pub const OWNER: Owner = Owner::Session(SessionId::from_u128(3));

/// A request to run this script.
pub fn shell(script: &str) -> Request {
    Request::Exec(Exec::new(Command::Shell(script.to_owned())))
}

/// An operation that is admitted everywhere, unless its test changes it.
pub fn incoming(id: u128, request: Request) -> Incoming {
    Incoming {
        id: OperationId::from_u128(id),
        digest: request.digest(),
        sandbox: PLACE,
        owner: OWNER,
        epoch: Epoch(1),
        incarnation: Some(incarnation()),
        start_within: Duration::from_secs(10),
        run_for: Duration::from_secs(60),
        from: [0, 0],
        request: Some(request),
        consent: Consent::Caller,
        forbidden: None,
        trace: None,
    }
}

/// The frame that asks for it.
pub fn operation_frame(incoming: &Incoming) -> server_frame::Kind {
    server_frame::Kind::Operation(Box::new(v1::Operation {
        operation: incoming.id.to_string(),
        digest: incoming.digest.as_bytes().to_vec(),
        sandbox: incoming.sandbox.to_string(),
        owner: incoming.owner.to_string(),
        epoch: incoming.epoch.0,
        incarnation: incoming.incarnation.as_ref().map(Into::into),
        start_within_ms: incoming.start_within.as_millis() as u64,
        run_for_ms: incoming.run_for.as_millis() as u64,
        stdout_from: incoming.from[0],
        stderr_from: incoming.from[1],
        request: incoming.request.as_ref().map(wire::request),
        traceparent: String::new(),
        consent: Some(wire::consent(incoming.consent)),
    }))
}
