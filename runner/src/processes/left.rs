//! The remains of earlier daemons. Each directory is settled, a command that runs is attached to, and its
//! time goes on to be counted.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use futures_util::{StreamExt as _, future, stream};
use runner_supervisor::{
    CommandTimes, Directory, Fate, OperationError, Realm, RecordError, Recovered,
    SupervisedOperation, remove_abandoned,
};
use shared_sandbox::Outcome;
use shared_types::{Clock, OperationId, limits::KILL_GRACE};

use super::{
    PassingControls, Process, Spool, name, outcome,
    overdue::Overdue,
    run_blocking,
    task::{self, Supervised},
};

/// Operations of earlier daemons that are settled at once.
const SETTLED_AT_ONCE: usize = 16;

/// The beginning of the names of directories that are kept for a person, and that no daemon looks at. No name
/// of a pool begins so.
const SET_ASIDE: &str = "unreadable-";

/// The remains of an earlier daemon in one directory.
#[derive(Debug)]
pub(crate) enum LeftOperation {
    /// Nothing ran in it, and nothing ever will: the operation may be started again.
    Fenced(Spool),
    /// It runs, and is attached; its output is reported from the beginning.
    Running(Process),
    /// It has ended.
    Ended {
        /// The operation, where the record names it. A record of another operation may be left from before
        /// the host died: it had to be written over, and was not.
        operation: Option<OperationId>,
        /// The outcome.
        outcome: Outcome,
        /// Its output.
        files: Spool,
    },
    /// Its records cannot be read, and what became of it is not known. It stays for a person.
    Unreadable(String),
}

/// The remains below the root, settled, with the directories.
pub(super) async fn left_behind(
    root: &Path,
    realm: Realm,
    clock: &Arc<dyn Clock>,
) -> io::Result<Vec<(PathBuf, LeftOperation)>> {
    let root: Arc<Path> = Arc::from(root);
    let of_root = Arc::clone(&root);
    let directories = run_blocking(move || directories(&of_root)).await?;
    let settling = directories
        .into_iter()
        .map(|path| left_in(path, realm, clock));
    let left = stream::iter(settling)
        .buffer_unordered(SETTLED_AT_ONCE)
        .filter_map(future::ready)
        .collect()
        .await;
    if realm == Realm::Container {
        return Ok(left);
    }
    match run_blocking(move || remove_abandoned(&root)).await? {
        0 => {}
        count => tracing::info!(count, "removed cgroups of supervisors that died early"),
    }
    Ok(left)
}

/// The remains in one directory; nothing where the directory is gone by now. Then the daemon before this one
/// died while it was removing the directory. A daemon removes a directory only once its records are not
/// needed.
async fn left_in(
    path: PathBuf,
    realm: Realm,
    clock: &Arc<dyn Clock>,
) -> Option<(PathBuf, LeftOperation)> {
    let settling = path.clone();
    let settled = run_blocking(move || {
        let settled = Directory::open(&settling).map_err(RecordError::from);
        let settled = settled.and_then(|directory| realm.settle(directory));
        let is_gone = settled.is_err() && settling.try_exists().is_ok_and(|exists| !exists);
        (!is_gone).then_some(settled)
    });
    let settled = settled.await?;
    Some((path.clone(), left(path, realm, settled, clock)))
}

fn left(
    path: PathBuf,
    realm: Realm,
    settled: Result<Recovered, RecordError>,
    clock: &Arc<dyn Clock>,
) -> LeftOperation {
    let attend = |path, attached| attend(path, realm, attached, clock);
    match settled {
        Ok(Recovered::Fenced(_)) => LeftOperation::Fenced(Spool::new(path, realm, Weak::new())),
        Ok(Recovered::Running(operation)) => LeftOperation::Running(attend(path, Ok(*operation))),
        Ok(Recovered::Ended(_, record)) => LeftOperation::Ended {
            operation: record.operation,
            outcome: outcome::of(record),
            files: Spool::new(path, realm, Weak::new()),
        },
        // Its supervisor lives and accepts no connection for now: it is stopped, or was for long.
        Err(RecordError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
            LeftOperation::Running(attend(path, Err(error.into())))
        }
        Err(error) => LeftOperation::Unreadable(outcome::in_words(&error)),
    }
}

/// Listens to a command of an earlier daemon.
fn attend(
    path: PathBuf,
    realm: Realm,
    attached: Result<SupervisedOperation, OperationError>,
    clock: &Arc<dyn Clock>,
) -> Process {
    // One without times is of an earlier program: only its supervisor counts.
    let times = times(&path);
    let run_left = times.as_ref().and_then(CommandTimes::run_left);
    let orphan_for = times.as_ref().and_then(|times| times.orphan_for);
    let overdue = Overdue::new(Arc::clone(clock), run_left, orphan_for);
    let kill_grace = times.map_or(KILL_GRACE, |times| times.kill_grace);
    let of = Supervised {
        path,
        realm,
        pool: None,
    };
    task::spawn(of, attached, PassingControls::new(), overdue, kill_grace)
}

/// The times that a command of an earlier daemon was given.
fn times(path: &Path) -> Option<CommandTimes> {
    match Directory::open(path).ok()?.fate().ok()?? {
        Fate::Started(start) => start.times,
        Fate::Fenced { .. } => None,
    }
}

/// The directories below the root, which is made where it is missing.
fn directories(root: &Path) -> io::Result<Vec<PathBuf>> {
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let mut directories = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        let set_aside = entry.file_name().to_string_lossy().starts_with(SET_ASIDE);
        if entry.file_type()?.is_dir() && !set_aside {
            directories.push(entry.path());
        }
    }
    Ok(directories)
}

/// The new place of a directory that is kept for a person.
pub(super) fn set_aside(path: &Path) -> PathBuf {
    path.with_file_name(format!("{SET_ASIDE}{}", name(path)))
}

#[cfg(test)]
mod tests {
    use shared_types::SystemClock;

    use super::*;

    /// A directory that is being removed is gone for a reader that has just listed it.
    #[tokio::test]
    async fn a_directory_that_is_gone_is_nothing_and_one_that_cannot_be_read_is_left_for_a_person()
    {
        let folder = tempfile::tempdir().expect("a folder");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let left = async |name: &str| left_in(folder.path().join(name), Realm::Host, &clock).await;
        assert!(left("gone").await.is_none());

        std::fs::write(folder.path().join("odd"), "").expect("a file");
        let odd = left("odd").await;
        assert!(
            matches!(odd, Some((_, LeftOperation::Unreadable(_)))),
            "{odd:?}"
        );
    }
}
