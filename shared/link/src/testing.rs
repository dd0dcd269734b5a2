//! Builders for the tests of both ends.

use std::{collections::BTreeMap, time::Duration};

use proto::v1::{self, server_frame};
use shared_sandbox::{Command, Exec, Request};
use shared_types::{Epoch, Incarnation, JournalId, OperationId, Owner, SandboxId, SessionId};

use crate::{runner::Incoming, wire};

/// The incarnation of tests.
pub(crate) fn incarnation() -> Incarnation {
    Incarnation {
        journal: JournalId::from_u128(1),
        boot: "boot".to_owned(),
    }
}

/// The sandbox of tests.
pub(crate) const PLACE: SandboxId = SandboxId::from_u128(2);

/// The owner of tests.
pub(crate) const OWNER: Owner = Owner::Session(SessionId::from_u128(3));

/// A request to run this script.
pub(crate) fn shell(script: &str) -> Request {
    Request::Exec(Exec {
        command: Command::Shell(script.to_owned()),
        directory: String::new(),
        environment: BTreeMap::new(),
        merged: false,
    })
}

/// An operation that is admitted everywhere, unless its test changes it.
pub(crate) fn incoming(id: u128, request: Request) -> Incoming {
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
    }
}

/// The frame that asks for it.
pub(crate) fn operation_frame(incoming: &Incoming) -> server_frame::Kind {
    server_frame::Kind::Operation(v1::Operation {
        operation: incoming.id.to_string(),
        digest: incoming.digest.as_bytes().to_vec(),
        sandbox: incoming.sandbox.to_string(),
        owner: incoming.owner.to_string(),
        epoch: incoming.epoch.0,
        incarnation: incoming.incarnation.as_ref().map(Into::into),
        start_within_ms: incoming.start_within.as_millis() as u64,
        run_for_ms: incoming.run_for.as_millis() as u64,
        ticket: None,
        stdout_from: incoming.from[0],
        stderr_from: incoming.from[1],
        request: incoming.request.as_ref().map(wire::request),
    })
}
