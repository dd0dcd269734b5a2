//! Fetches the outcome of an operation for which nobody waits any more: the truth is stored
//! although the turn that asked is long over (contract A15). Its output is thrown away.

use proto::v1;
use shared_sandbox::{Outcome, OutputStream};
use shared_types::Incarnation;

use super::{Mail, Unsettled};

/// What is to be done about a mail.
#[derive(Debug, PartialEq)]
pub enum Fetched {
    /// The inbox is told that this was taken.
    Taken(OutputStream, u64),
    /// Store it; then the runner may forget the operation, if it is abandoned.
    Store(Outcome),
    /// The next inventory's verdict says it again.
    GivenUp,
}

/// The frame that attaches and can start nothing.
pub fn frame(operation: &Unsettled, incarnation: &Incarnation) -> v1::Operation {
    let attachment = &operation.attachment;
    v1::Operation {
        operation: operation.id.to_string(),
        digest: attachment.digest.as_bytes().to_vec(),
        sandbox: attachment.sandbox.to_string(),
        owner: attachment.owner.to_string(),
        epoch: attachment.epoch.0,
        incarnation: Some(incarnation.into()),
        ..v1::Operation::default()
    }
}

/// Something came.
pub fn mail(mail: Mail) -> Fetched {
    match mail {
        Mail::Output {
            stream,
            offset,
            data,
        } => Fetched::Taken(stream, offset + data.len() as u64),
        Mail::Gap { stream, to, .. } => Fetched::Taken(stream, to),
        Mail::Ended(outcome) => Fetched::Store(outcome),
        Mail::Refused(_) | Mail::Detached | Mail::Superseded => Fetched::GivenUp,
    }
}
