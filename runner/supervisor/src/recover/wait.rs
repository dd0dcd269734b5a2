//! The events of an operation for a daemon that can wait: also the result once the supervisor is
//! gone.

use std::time::Duration;

use super::{Recovered, settle};
use crate::{
    Cut, Directory, OperationEnd, OperationError, RecordError, SupervisedOperation, SupervisorEvent,
};

impl SupervisedOperation {
    /// The next event; waits at most this long for it.
    ///
    /// If the supervisor has died, this kills its tree and records that the operation is lost,
    /// which can take some seconds.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn event(&mut self, within: Duration) -> Result<Option<SupervisorEvent>, OperationError> {
        loop {
            match self.next_event() {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => match self.is_ready(within) {
                    Ok(true) => {}
                    Ok(false) => return Ok(None),
                    Err(_) => look_again(self)?,
                },
                Err(Cut) => look_again(self)?,
            }
        }
    }
}

/// The connection is gone: the records tell what holds.
fn look_again(operation: &mut SupervisedOperation) -> Result<(), RecordError> {
    match settle(Directory::open(operation.directory().path())?)? {
        Recovered::Running(attached) => operation.go_on_as(*attached),
        Recovered::Fenced(_) => operation.has_ended(OperationEnd::Fenced),
        Recovered::Ended(_, record) => operation.has_ended(OperationEnd::Exited(record)),
    }
    Ok(())
}
