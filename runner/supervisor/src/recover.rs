//! After a restart of the daemon, or where a supervisor is gone or silent: what became of each
//! operation.

mod force;
mod remains;
mod wait;

use std::{fs, io, path::Path, time::Duration};

use crate::{
    Cause, Directory, ExitRecord, Fate, KillMethod, RecordError, ReportedEnd, SpoolEnd,
    SpoolReader, SpoolStream, StartRecord, SupervisedOperation,
    operation::SupervisorLine,
    process::{boot_id, cause_of_death},
    spool::restore,
};
pub use force::{ask_to_end, end_by_force};
pub use remains::remove;
pub(crate) use remains::{ENDS_WITHIN, clear};
use remains::{kill_tree, wait_until};

/// The longest time that a living supervisor may take to accept a connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Bytes that are read at once for a checksum.
const READ_BYTES: usize = 256 * 1024;

/// The state of an operation after recovery.
#[derive(Debug)]
pub enum Recovered {
    /// It never ran and never will.
    Fenced(Directory),
    /// It runs, and is attached.
    Running(Box<SupervisedOperation>),
    /// It has ended, or is lost.
    Ended(Directory, ExitRecord),
}

/// Settles every operation below `root`. Only for a daemon that holds `root` alone and has no
/// pool there yet: supervisors that wait would be fenced.
///
/// # Errors
/// When `root` cannot be read. What cannot be settled comes with its own reason.
pub fn recover(
    root: &Path,
) -> io::Result<Vec<(std::path::PathBuf, Result<Recovered, RecordError>)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let path = entry.path();
            let settled = Directory::open(&path)
                .map_err(RecordError::from)
                .and_then(settle);
            all.push((path, settled));
        }
    }
    Ok(all)
}

/// Settles one operation; it has a fate afterwards, and an end or a supervisor. As for [`recover`],
/// its directory must be no pool's. The exception is an operation whose supervisor was handed a
/// request and says nothing: it has started, or never will. Can take some seconds.
///
/// # Errors
/// When the records cannot be read, or its supervisor neither answers nor ends; it can be tried
/// again.
pub fn settle(directory: Directory) -> Result<Recovered, RecordError> {
    if let Some(record) = directory.exit()? {
        return Ok(ended(directory, record));
    }
    let fate = match directory.fate() {
        Ok(Some(fate)) => fate,
        Ok(None) => directory.fence("its daemon found it without a fate")?,
        // The host died while it was written; that it was linked says that it may have run.
        Err(RecordError::Damaged { .. }) => return lost_without_start(directory),
        Err(error) => return Err(error),
    };
    match fate {
        Fate::Started(start) => started(directory, &start),
        Fate::Fenced { .. } => {
            // Whatever its supervisor still does is in vain; one that is stopped must not be left.
            clear(&directory, Duration::ZERO);
            Ok(Recovered::Fenced(directory))
        }
    }
}

/// The same where every process that it may have had is dead, and `cause` is why; unless the host died
/// as well.
pub(crate) fn settle_dead(directory: Directory, cause: Cause) -> Result<Recovered, RecordError> {
    if let Some(record) = directory.exit()? {
        return Ok(Recovered::Ended(directory, record));
    }
    let fate = match directory.fate() {
        Ok(Some(fate)) => fate,
        Ok(None) => directory.fence("its container stopped before it had a fate")?,
        Err(RecordError::Damaged { .. }) => {
            return lost(directory, None, KillMethod::Sweep, Cause::HostReboot, true);
        }
        Err(error) => return Err(error),
    };
    match fate {
        Fate::Started(start) => {
            let identity = &start.identity;
            let cause = cause_of_death(&identity.supervisor.boot_id, cause);
            lost(directory, Some(&start), identity.kill, cause, true)
        }
        Fate::Fenced { .. } => Ok(Recovered::Fenced(directory)),
    }
}

fn started(directory: Directory, start: &StartRecord) -> Result<Recovered, RecordError> {
    let boot = boot_id()?;
    let supervisor = &start.identity.supervisor;
    let mut line = None;
    wait_until(ANSWERS_WITHIN, || {
        if !supervisor.is_alive(&boot) {
            return true;
        }
        // One that is about to end closes its socket before it is gone.
        let socket = directory.connect().ok();
        line = socket.and_then(|socket| SupervisorLine::new(socket).ok());
        line.is_some()
    });
    if let Some(line) = line {
        let operation = SupervisedOperation::attached(directory, line);
        return Ok(Recovered::Running(Box::new(operation)));
    }
    if let Some(record) = directory.exit()? {
        return Ok(ended(directory, record));
    }
    if supervisor.is_alive(&boot) {
        return Err(io::Error::from(io::ErrorKind::TimedOut).into());
    }
    let same_host = supervisor.boot_id == boot;
    let tree_gone = !same_host || kill_tree(&start.identity, start.child.as_ref(), &boot);
    let cause = if same_host {
        Cause::SupervisorLost
    } else {
        cause_of_death(&supervisor.boot_id, Cause::SandboxStopped)
    };
    lost(
        directory,
        Some(start),
        start.identity.kill,
        cause,
        tree_gone,
    )
}

/// It is over. Its supervisor may be about to end, or to be asked to serve another command by a
/// daemon that is no more.
fn ended(directory: Directory, record: ExitRecord) -> Recovered {
    clear(&directory, ENDS_WITHIN);
    Recovered::Ended(directory, record)
}

/// Records an unknown end. Another end that came first holds.
fn lost(
    directory: Directory,
    start: Option<&StartRecord>,
    kill: KillMethod,
    cause: Cause,
    tree_gone: bool,
) -> Result<Recovered, RecordError> {
    // After the host's death the tail may say more than the disk has of it.
    if cause != Cause::HostReboot {
        for stream in SpoolStream::ALL {
            // Output that cannot be put there is missing, and the end does not claim to have it.
            let _ = restore(&directory, stream);
        }
    }
    let end = |stream| stream_end(&directory, stream);
    let record = ExitRecord {
        operation: start.map(|start| start.operation),
        end: ReportedEnd::Unknown,
        cause,
        out: end(SpoolStream::Out)?,
        err: end(SpoolStream::Err)?,
        cpu_us: 0,
        max_rss_bytes: 0,
        wall_us: 0,
        kill,
        tree_gone,
    };
    let ours = directory.publish("exit", &record)?;
    let record = if ours {
        record
    } else {
        directory.exit()?.unwrap_or(record)
    };
    clear(&directory, Duration::ZERO);
    Ok(Recovered::Ended(directory, record))
}

fn lost_without_start(directory: Directory) -> Result<Recovered, RecordError> {
    let identity = directory.identity().ok().flatten();
    let boot = boot_id()?;
    let alive = identity
        .as_ref()
        .is_some_and(|identity| identity.supervisor.is_alive(&boot));
    if alive {
        return Err(RecordError::Damaged {
            name: "fate".to_owned(),
        });
    }
    let kill = identity.as_ref().map_or(KillMethod::Sweep, |one| one.kill);
    let tree_gone = identity.is_some_and(|identity| {
        identity.supervisor.boot_id != boot || kill_tree(&identity, None, &boot)
    });
    lost(directory, None, kill, Cause::HostReboot, tree_gone)
}

/// The end of a stream on disk, where its supervisor has not reported it.
fn stream_end(directory: &Directory, stream: SpoolStream) -> io::Result<SpoolEnd> {
    let reader = match SpoolReader::open(directory, stream) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SpoolEnd::default()),
        Err(error) => return Err(error),
    };
    let offset = reader.length()?;
    if !reader.is_whole()? {
        return Ok(SpoolEnd {
            offset,
            checksum: None,
        });
    }
    let (mut checksum, mut at) = (crc32fast::Hasher::new(), 0);
    let mut bytes = vec![0; READ_BYTES];
    while let crate::SpoolPiece::Bytes(length) = reader.read(at, &mut bytes)? {
        checksum.update(&bytes[..length]);
        at += length as u64;
    }
    Ok(SpoolEnd {
        offset,
        checksum: Some(checksum.finalize()),
    })
}
