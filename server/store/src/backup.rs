//! Backups: one file with everything that a server needs to go on elsewhere.
//!
//! A backup is a tar archive, compressed with gzip, whose entries come in this order:
//!
//! 1. `backup.json`: the format, the schema, and the version and the time that made it.
//! 2. `rows/TABLE/NNNNNN.jsonl`: the rows of each table, one JSON array a line, in the order of the
//!    primary key. A table has as many entries as it takes, so that neither end holds a table in memory.
//! 3. `keys/…` and `output/…`: the folders of the server, without the master key of the stored secrets.
//! 4. `manifest.json`: of each table the columns, the number of rows and their digest; of each file the
//!    size and the digest. It comes last, so an archive without it was cut off.
//!
//! The rows are those of one moment, and the output is read after that moment. An operation whose end is in the rows
//! had its whole output on disk before, so it is in the backup. Of an operation that ran on, the backup may have more
//! output than the rows know. A restored server continues where the kept output ends, like any server after a restart.
//! Output of operations that the rows do not know is left out.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use shared_types::{Digest, Timestamp};

use crate::{CopyError, database::CopiedTable};

mod reading;
mod writing;

pub use reading::Backup;
pub use writing::write_backup;

/// The format that this program writes, and the newest that it reads.
const FORMAT: u32 = 1;

/// The folders of a server that a backup has, below the server's folder.
const FOLDERS: [&str; 2] = ["keys", "output"];

/// Files of the folder of keys that no backup has: the server's own master key, also while it is written. With it the
/// backup would open its own secrets.
const LEFT_OUT: [&str; 2] = ["keys/master", "keys/master.new"];

const ABOUT: &str = "backup.json";
const MANIFEST: &str = "manifest.json";
const ROWS: &str = "rows";

/// Rows are written to an entry until it has so many bytes.
const ROWS_BYTES: usize = 1024 * 1024;

/// The largest entry: far above the largest row and the largest file of an operation's output.
const ENTRY_BYTES: u64 = 64 * 1024 * 1024;

/// The largest manifest. It has about 200 bytes for each file.
const MANIFEST_BYTES: u64 = 1024 * 1024 * 1024;

/// The server that made a backup, and the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupMade {
    /// The version of the program.
    pub version: String,
    /// When it began.
    pub at: Timestamp,
}

/// The content that was written to a backup, or read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupContent {
    /// The schema of the database.
    pub schema: i64,
    /// The tables, in the order of their names.
    pub tables: Vec<CopiedTable>,
    /// The number of files of keys and output.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// The reason why a backup was not written, or not restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file of this name.
    #[error("write the backup {}: there is such a file already; choose another name", .0.display())]
    Exists(PathBuf),
    /// The backup cannot be written.
    #[error("write the backup {}: {why}; choose a folder that this user may write to, with room for it", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// The backup cannot be read.
    #[error("read the backup {}: {why}; name a file that this user may read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// It is some other file.
    #[error("read {}: it is no backup of gantry-server; name a file that \"gantry-server backup\" made", .0.display())]
    NotABackup(PathBuf),
    /// It is not as it was written.
    #[error("read the backup {}: {why}; the file is damaged or was cut off, so take another backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first fault.
        why: String,
    },
    /// A newer program made it.
    #[error("read the backup {}: version {version} made it, which is newer than this one; restore it with that version", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version that made it.
        version: String,
    },
    /// A file of the server's cannot be read or written.
    #[error("use {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// The database.
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// The first entry.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    format: u32,
    schema: i64,
    #[serde(flatten)]
    made: BackupMade,
}

/// The last entry.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    tables: BTreeMap<String, TableEntry>,
    files: BTreeMap<String, FileEntry>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableEntry {
    columns: Vec<String>,
    rows: u64,
    sha256: Digest,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    bytes: u64,
    sha256: Digest,
}

impl FileEntry {
    fn of(content: &[u8]) -> Self {
        Self {
            bytes: content.len() as u64,
            sha256: Digest::of(content),
        }
    }
}

fn of_file(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |why| BackupError::File { path, why }
}
