//! From the request to a command that runs: start record, fate, release.
//!
//! The order is the promise. The child exists but waits (`gate`); its start is written down; the
//! record becomes the fate by a link that only one process can make; then the gate is opened. If
//! any of them dies before the link, the gate is never opened, and the child ends when it sees
//! that.

use std::io;

use runner_supervisor::{
    Cause, CommandRequest, CommandTimes, ExitRecord, Fate, FaultPoint, NotStarted, ProcessId,
    ReportedEnd, SpoolEnd, StartRecord, Sync, unrenewed_for,
};
use rustix::fd::OwnedFd;

use crate::{
    client::ControlClient,
    clock,
    faults::Faults,
    last_words::{ended, fenced},
    layout::{Layout, lay_out},
    prepare::Prepared,
    supervise::{Child, Supervision},
};

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Launched {
    /// The command runs.
    Running(Box<Supervision>),
    /// It never will, and every process that can know this does.
    Over,
}

/// Starts what was asked for.
pub(crate) fn launch(
    mut prepared: Prepared,
    request: &CommandRequest,
    inherited: Option<OwnedFd>,
    client: Option<ControlClient>,
    faults: Faults,
) -> Launched {
    let now = clock::monotonic();
    if let Some(orphan_for) = request.terms.orphan_for {
        // A timer on a descriptor that is open takes any time.
        let after = unrenewed_for(orphan_for, request.terms.run_for);
        let _ = prepared.orphan.set(after);
    }
    let Some(child) = prepared.child.take() else {
        never_started(prepared, request, NotStarted::NoProcess, client);
        return Launched::Over;
    };
    let layout = match lay_out(&mut prepared, request, inherited) {
        Ok(layout) => layout,
        Err(reason) => {
            child.close();
            never_started(prepared, request, reason, client);
            return Launched::Over;
        }
    };
    let id = Some(child.id().clone());
    let start = match settle(&prepared, request, id, client.as_ref(), faults) {
        Ok(Some(start)) => start,
        Ok(None) => {
            child.close();
            fenced(prepared, client);
            return Launched::Over;
        }
        Err(error) => {
            child.close();
            let _ = prepared.directory.fence(&error.to_string());
            fenced(prepared, client);
            return Launched::Over;
        }
    };
    let opened = clock::monotonic();
    let child = child.open(&layout.plan(request));
    faults.at(FaultPoint::GateOpened, client.as_ref());
    // The command's ends are its alone from here on: else its output would never end.
    let Layout { ends, .. } = layout;
    let child = Child::new(child, opened, start);
    Launched::Running(Box::new(Supervision::new(
        prepared, request, client, faults, child, ends, now,
    )))
}

/// Makes the start the operation's fate; `None` if it has another one.
fn settle(
    prepared: &Prepared,
    request: &CommandRequest,
    child: Option<ProcessId>,
    client: Option<&ControlClient>,
    faults: Faults,
) -> io::Result<Option<StartRecord>> {
    let terms = &request.terms;
    let start = StartRecord {
        operation: request.operation,
        identity: prepared.identity.clone(),
        child,
        times: Some(CommandTimes {
            began_ms: u64::try_from(clock::monotonic().as_millis()).unwrap_or(u64::MAX),
            run_for: terms.run_for,
            orphan_for: terms.orphan_for,
            kill_grace: terms.kill_grace,
        }),
        claim: terms.claim.clone(),
    };
    prepared.records.fate.write(&Fate::Started(start.clone()))?;
    if terms.sync != Sync::Nothing {
        prepared.records.fate.sync()?;
    }
    faults.at(FaultPoint::StartWritten, client);
    let ours = prepared.records.fate.link(&prepared.directory)?;
    if terms.sync != Sync::Nothing {
        rustix::fs::fsync(&prepared.directory)?;
    }
    faults.at(FaultPoint::FateLinked, client);
    Ok(ours.then_some(start))
}

/// It was clear before the gate was opened that there is nothing to run: that is a fate and an end as well.
fn never_started(
    prepared: Prepared,
    request: &CommandRequest,
    reason: NotStarted,
    mut client: Option<ControlClient>,
) {
    let no_faults = Faults::none();
    let settled = settle(&prepared, request, None, None, no_faults);
    if !matches!(settled, Ok(Some(_))) {
        fenced(prepared, client);
        return;
    }
    let nothing = SpoolEnd {
        offset: 0,
        checksum: Some(0),
    };
    let record = ExitRecord {
        operation: Some(request.operation),
        end: ReportedEnd::NotStarted(reason),
        cause: Cause::Exited,
        out: nothing,
        err: nothing,
        cpu_us: 0,
        max_rss_bytes: 0,
        wall_us: 0,
        kill: prepared.identity.kill,
        tree_gone: true,
    };
    ended(
        &prepared,
        &record,
        &mut client,
        request.terms.sync,
        no_faults,
    );
    let _ = prepared.leaf.remove();
}
