//! The end of an operation: written down, linked, reported.

use std::time::Duration;

use runner_supervisor::{ExitRecord, FaultPoint, FromSupervisor, Sync};

use crate::{client::ControlClient, faults::Faults, prepare::Prepared};

/// The time that the daemon has to hear the last words.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// Writes the end down and reports it; returns `true` if it is written down.
pub(crate) fn ended(
    prepared: &Prepared,
    record: &ExitRecord,
    client: &mut Option<ControlClient>,
    sync: Sync,
    faults: Faults,
) -> bool {
    // An end that cannot be written is reported all the same. A later daemon finds the operation
    // without an end and without a supervisor, and calls it lost.
    let mut written = prepared.records.exit.write(record);
    if sync == Sync::All {
        written = written.and_then(|()| prepared.records.exit.sync());
    }
    faults.at(FaultPoint::ExitWritten, client.as_ref());
    if written.is_ok() {
        // Where a daemon has settled it before, that is its end.
        let _ = prepared.records.exit.link(&prepared.directory);
        if sync == Sync::All {
            let _ = rustix::fs::fsync(&prepared.directory);
        }
    }
    faults.at(FaultPoint::ExitLinked, client.as_ref());
    if let Some(client) = client {
        client.say(&FromSupervisor::Exited(record.clone()));
        client.finish(HEARD_WITHIN);
    }
    faults.at(FaultPoint::ExitTold, client.as_ref());
    written.is_ok()
}

/// It never ran, because another process settled that before.
pub(crate) fn fenced(prepared: Prepared, client: Option<ControlClient>) {
    if let Some(mut client) = client {
        client.say(&FromSupervisor::Fenced);
        client.finish(HEARD_WITHIN);
    }
    // A leaf that is left is removed by the daemon that recovers.
    let _ = prepared.leaf.remove();
}
