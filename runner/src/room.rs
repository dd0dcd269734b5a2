//! The room that the runner takes on its disk, and the room that is left.
//!
//! A task looks from time to time, and heartbeats and metrics report what it saw last: a disk that
//! hangs holds up neither.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use shared_telemetry::runner::{DISK_FREE_BYTES, SPOOL_BYTES};
use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use crate::home::Home;

/// The time between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The unit of `st_blocks` (stat(2)), in bytes.
const BLOCK_BYTES: u64 = 512;

/// The room on the disk, as seen in one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskRoom {
    /// Output of commands that is kept until the server has it, in bytes.
    pub(crate) spool_bytes: u64,
    /// The bytes that the runner's user may still write.
    pub(crate) free_bytes: u64,
}

/// Looks until no receiver is left. There is nothing to tell before the first look is over.
pub(crate) fn watch(home: Home) -> watch::Receiver<Option<DiskRoom>> {
    let (tell, told) = watch::channel(None);
    tokio::spawn(async move {
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !tell.is_closed() {
            tick.tick().await;
            let home = home.clone();
            // Where the host does not say, what was seen before counts.
            if let Ok(Some(room)) = spawn_blocking(move || look(&home)).await {
                SPOOL_BYTES.set(&[], room.spool_bytes as f64);
                DISK_FREE_BYTES.set(&[], room.free_bytes as f64);
                tell.send_replace(Some(room));
            }
        }
    });
    told
}

fn look(home: &Home) -> Option<DiskRoom> {
    let disk = rustix::fs::statvfs(home.folder()).ok()?;
    Some(DiskRoom {
        spool_bytes: spooled(home),
        free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
    })
}

/// The bytes that the files of all commands take on the disk, those in sandboxes included.
fn spooled(home: &Home) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let sandboxes = entries(&home.sandboxes()).into_iter();
    let places = sandboxes.map(|sandbox| sandbox.join("operations"));
    let commands = places
        .chain([home.commands()])
        .flat_map(|place| entries(&place));
    let files = commands.flat_map(|command| entries(&command));
    let sizes = files.filter_map(|file| std::fs::symlink_metadata(file).ok());
    sizes
        .filter(|about| about.is_file())
        .map(|about| about.blocks() * BLOCK_BYTES)
        .sum()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}
