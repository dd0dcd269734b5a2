//! Fetches the outcome of an operation for which nobody waits any more: the truth is stored
//! although the turn that asked is long over (docs/internals/contracts.md#a15). Its output is kept
//! like any other.

use bytes::Bytes;
use proto::v1::{self, server_frame};
use shared_sandbox::{Outcome, OutputStream};
use shared_types::{Incarnation, RefusalCode};

use super::{Mail, Unsettled};
use crate::wire;

/// What is to be done about a mail.
#[derive(Debug, PartialEq)]
pub enum Fetched {
    /// The bytes that end at this offset are to be kept, none where they are missing; then the
    /// inbox is told that this was taken.
    Taken(OutputStream, u64, Bytes),
    /// Store it; then the runner may forget the operation, if it is abandoned.
    Store(Outcome),
    /// The runner does not know it: it is to be told that it never starts it. If it says so, that is
    /// the outcome ([`never_started`](super::never_started)).
    Fence,
    /// The owner has a newer epoch: the verdict is to be asked for again, and says which.
    Stale,
    /// The next inventory's verdict says it again.
    GivenUp,
}

/// The frame that attaches, from these offsets on, and can start nothing.
pub fn frame(operation: &Unsettled, incarnation: &Incarnation, from: [u64; 2]) -> v1::Operation {
    let attachment = &operation.attachment;
    v1::Operation {
        operation: operation.id.to_string(),
        digest: attachment.digest.as_bytes().to_vec(),
        sandbox: attachment.sandbox.to_string(),
        owner: attachment.owner.to_string(),
        epoch: attachment.epoch.0,
        incarnation: Some(incarnation.into()),
        stdout_from: from[0],
        stderr_from: from[1],
        ..v1::Operation::default()
    }
}

/// The frame that tells the runner that output below this offset is durable here: a command of
/// which all is kept waits for that.
pub fn commit(operation: &Unsettled, stream: OutputStream, up_to: u64) -> server_frame::Kind {
    wire::commit(operation.id, stream, up_to)
}

/// Something came.
pub fn mail(mail: Mail) -> Fetched {
    match mail {
        Mail::Output {
            stream,
            offset,
            data,
        } => Fetched::Taken(stream, offset.saturating_add(data.len() as u64), data),
        Mail::Gap { stream, to, .. } => Fetched::Taken(stream, to, Bytes::new()),
        Mail::Ended(outcome) => Fetched::Store(outcome),
        Mail::Refused(refusal) if refusal.code == RefusalCode::NotFound => Fetched::Fence,
        Mail::Refused(refusal) if refusal.code == RefusalCode::StaleEpoch => Fetched::Stale,
        Mail::Refused(_) | Mail::Detached | Mail::Superseded => Fetched::GivenUp,
    }
}
