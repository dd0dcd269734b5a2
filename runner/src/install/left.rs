//! The commands that go on without a daemon, and end with the runner.

use std::{path::Path, thread::sleep, time::Duration};

use anyhow::Context as _;
use runner_supervisor::{
    Cause, Directory, RecordError, Recovered, SupervisedOperation, SupervisorEvent, end_by_force,
    recover,
};
use shared_program::say;
use shared_types::limits::KILL_GRACE;

use super::service::POLL;

/// The longest time for a command that was asked to end: the grace before it is killed, and a
/// little.
const ENDS_WITHIN: Duration = KILL_GRACE.saturating_add(Duration::from_secs(2));

/// Ends every command whose directory is in this folder, which the caller has to itself: politely,
/// then by force. The folder need not be there.
///
/// # Errors
/// The folder cannot be read, or a command cannot be ended.
pub(super) fn end(commands: &Path) -> anyhow::Result<()> {
    if !commands.is_dir() {
        return Ok(());
    }
    let unreadable = || format!("cannot tell what still runs: read {}", commands.display());
    let (mut running, mut silent) = (Vec::new(), Vec::new());
    for (path, settled) in recover(commands).with_context(unreadable)? {
        match settled {
            Ok(Recovered::Running(operation)) => running.push(operation),
            Ok(Recovered::Fenced(_) | Recovered::Ended(..)) => {}
            // Its supervisor is stopped.
            Err(RecordError::Io(error)) if error.kind() == std::io::ErrorKind::TimedOut => {
                silent.push(path);
            }
            Err(error) => say!(
                "note: what became of the command in {} is not known: {error}",
                path.display()
            )?,
        }
    }
    let count = running.len() + silent.len();
    if count > 0 {
        say!("ending the commands that run without the daemon: {count}")?;
    }
    for operation in &mut running {
        // One that does not hear it is ended by force.
        let _ = operation.renew(Duration::ZERO);
    }
    for _ in 0..ENDS_WITHIN.as_millis() / POLL.as_millis() {
        running.retain_mut(|operation| !is_over(operation));
        if running.is_empty() {
            break;
        }
        sleep(POLL);
    }
    let deaf = running
        .iter()
        .map(|left| left.directory().path().to_owned());
    for path in silent.into_iter().chain(deaf) {
        let ended = Directory::open(&path)
            .map_err(RecordError::from)
            .and_then(|directory| end_by_force(directory, Cause::Orphaned));
        ended.with_context(|| format!("cannot end the command in {}", path.display()))?;
    }
    Ok(())
}

fn is_over(operation: &mut SupervisedOperation) -> bool {
    loop {
        match operation.event(Duration::ZERO) {
            Ok(Some(SupervisorEvent::Ended(_))) => return true,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::v1::{self, runner_frame::Kind};
    use runner_supervisor::ExitRecord;
    use tokio::{sync::mpsc, time::timeout};

    use super::*;
    use crate::{
        operations::Order,
        testing::{SOON, incarnation, incoming, operations, shell},
    };

    async fn until_output(frames: &mut mpsc::Receiver<v1::RunnerFrame>) {
        while let Some(frame) = frames.recv().await {
            if let Some(Kind::Output(_)) = frame.kind {
                return;
            }
        }
        panic!("the table is gone");
    }

    fn records(commands: &Path) -> Vec<ExitRecord> {
        let all = std::fs::read_dir(commands).expect("the commands");
        let all = all.filter_map(|entry| Directory::open(&entry.ok()?.path()).ok()?.exit().ok()?);
        all.collect()
    }

    /// A daemon starts a command that does not end, and dies.
    fn daemon(folder: &Path) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async {
            let (handle, service) = operations(folder, &incarnation().boot).await;
            tokio::spawn(service.run());
            let (outgoing, mut frames) = mpsc::channel(8);
            let opened = handle.open_link(outgoing).await.expect("a link");
            let command = incoming(1, shell("echo up; sleep 600; touch late"));
            let order = Order::Operation(Box::new(command));
            handle.order(opened.link, order).await.expect("a table");
            let up = timeout(SOON, until_output(&mut frames));
            up.await.expect("in time");
        });
        runtime.shutdown_background();
    }

    #[test]
    fn what_a_daemon_has_left_running_ends_with_the_runner() {
        let folder = tempfile::tempdir().expect("a folder");
        daemon(folder.path());
        let commands = folder.path().join("commands");
        assert!(records(&commands).is_empty(), "it goes on");
        end(&commands).expect("it is ended");
        let records = records(&commands);
        let [record] = records.as_slice() else {
            panic!("{records:?}");
        };
        assert_eq!((record.cause, record.tree_gone), (Cause::Orphaned, true));
        end(&commands).expect("there is nothing left to do");
        end(&folder.path().join("missing")).expect("there is nothing to do");
    }
}
