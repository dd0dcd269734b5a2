//! After a restart of the daemon: what became of each operation.

use std::{fs, io, path::Path, thread::sleep, time::Duration};

use rustix::process::{Signal, kill_process};

use crate::{
    Cause, Directory, End, ExitRecord, Fate, Identity, KillMethod, Leaf, Operation, ProcessId,
    RecordError, SpoolReader, StartRecord, Stream, StreamEnd, members_of_session, operation::Link,
    process::boot_id,
};

/// How long a supervisor that lives may take to let us in, or one that ends to be gone.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// How long a killed tree may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// How often either is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Bytes that are read at once for a checksum.
const READ_BYTES: usize = 256 * 1024;

/// What an operation has become.
#[derive(Debug)]
pub enum Recovered {
    /// It never ran and never will.
    Fenced(Directory),
    /// It runs, and is attached.
    Running(Box<Operation>),
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

/// What one operation has become; it has a fate afterwards, and an end or a supervisor. As for
/// [`recover`], its directory must be no pool's. Can take some seconds.
///
/// # Errors
/// When the records cannot be read, or its supervisor neither answers nor ends; it can be tried
/// again.
pub fn settle(directory: Directory) -> Result<Recovered, RecordError> {
    if let Some(record) = directory.exit()? {
        clear_leaf(&directory);
        return Ok(Recovered::Ended(directory, record));
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
            clear_leaf(&directory);
            Ok(Recovered::Fenced(directory))
        }
    }
}

fn started(directory: Directory, start: &StartRecord) -> Result<Recovered, RecordError> {
    let boot = boot_id()?;
    let supervisor = &start.identity.supervisor;
    let mut waited = Duration::ZERO;
    while supervisor.is_alive(&boot) && waited < ANSWERS_WITHIN {
        let link = directory
            .connect()
            .ok()
            .and_then(|socket| Link::new(socket).ok());
        if let Some(link) = link {
            let operation = Operation::attached(directory, link);
            return Ok(Recovered::Running(Box::new(operation)));
        }
        // It is about to end: the socket closes before the process does.
        sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
    if let Some(record) = directory.exit()? {
        clear_leaf(&directory);
        return Ok(Recovered::Ended(directory, record));
    }
    if supervisor.is_alive(&boot) {
        return Err(io::Error::from(io::ErrorKind::TimedOut).into());
    }
    let same_host = supervisor.boot_id == boot;
    let tree_gone = !same_host || kill_tree(&start.identity, start.child.as_ref(), &boot);
    let cause = if same_host {
        Cause::SupervisorLost
    } else {
        Cause::HostReboot
    };
    lost(
        directory,
        Some(start),
        start.identity.kill,
        cause,
        tree_gone,
    )
}

/// Writes down that nobody knows how it ended. Another end that came first holds.
fn lost(
    directory: Directory,
    start: Option<&StartRecord>,
    kill: KillMethod,
    cause: Cause,
    tree_gone: bool,
) -> Result<Recovered, RecordError> {
    let end = |stream| stream_end(&directory, stream);
    let record = ExitRecord {
        operation: start.map(|start| start.operation),
        end: End::Unknown,
        cause,
        out: end(Stream::Out)?,
        err: end(Stream::Err)?,
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
    clear_leaf(&directory);
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

/// Kills what a dead supervisor has left; whether that is proven to be all of it.
fn kill_tree(identity: &Identity, child: Option<&ProcessId>, boot: &str) -> bool {
    match Leaf::reopen(identity.kill, identity.cgroup.as_deref()) {
        Ok(Some(leaf)) => {
            let mut waited = Duration::ZERO;
            while !leaf.is_empty() && waited < GONE_WITHIN {
                leaf.kill();
                sleep(LOOK_EVERY);
                waited += LOOK_EVERY;
            }
            // Removed once the end is written down.
            leaf.is_empty()
        }
        // It was removed, which is possible only once it was empty.
        Ok(None) if identity.cgroup.is_some() => true,
        Ok(None) | Err(_) => {
            // With a terminal the command leads a session, else it is in its supervisor's.
            for leader in child.into_iter().chain([&identity.supervisor]) {
                kill_session(leader, boot);
            }
            false
        }
    }
}

/// Kills a session, as far as it can be seen. Nothing is proven by that. While any of a session
/// lives the kernel gives its number to nobody, so where another process has it, none is left.
fn kill_session(leader: &ProcessId, boot: &str) {
    // Session 0 is all that a pid namespace sees of those from outside.
    if leader.boot_id != boot || leader.pid <= 0 {
        return;
    }
    let mut waited = Duration::ZERO;
    while waited < ANSWERS_WITHIN && !leader.is_reused() {
        let members = members_of_session(leader.pid).unwrap_or_default();
        if members.is_empty() {
            return;
        }
        for member in members {
            // One that is gone needs no signal.
            let _ = kill_process(member, Signal::KILL);
        }
        sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
}

/// Removes the cgroup that a supervisor had no time to remove. It has nothing left to do but end,
/// and whoever killed it may be faster than its death.
pub(crate) fn clear_leaf(directory: &Directory) {
    let (Ok(Some(identity)), Ok(boot)) = (directory.identity(), boot_id()) else {
        return;
    };
    if identity.supervisor.boot_id != boot {
        // It went with its host; one of that name would be somebody else's.
        return;
    }
    let mut waited = Duration::ZERO;
    while waited < ANSWERS_WITHIN {
        let Ok(Some(leaf)) = Leaf::reopen(identity.kill, identity.cgroup.as_deref()) else {
            return;
        };
        // A child behind its gate sees that nobody opens it; until then it is not removed.
        if !identity.supervisor.is_alive(&boot) && leaf.remove().is_ok() {
            return;
        }
        sleep(LOOK_EVERY);
        waited += LOOK_EVERY;
    }
}

/// What is on disk of a stream whose supervisor has not said.
fn stream_end(directory: &Directory, stream: Stream) -> io::Result<StreamEnd> {
    let reader = match SpoolReader::open(directory, stream) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StreamEnd::default()),
        Err(error) => return Err(error),
    };
    let offset = reader.length()?;
    if !reader.is_whole()? {
        return Ok(StreamEnd {
            offset,
            checksum: None,
        });
    }
    let (mut checksum, mut at) = (crc32fast::Hasher::new(), 0);
    let mut bytes = vec![0; READ_BYTES];
    while let crate::Found::Bytes(length) = reader.read(at, &mut bytes)? {
        checksum.update(&bytes[..length]);
        at += length as u64;
    }
    Ok(StreamEnd {
        offset,
        checksum: Some(checksum.finalize()),
    })
}
