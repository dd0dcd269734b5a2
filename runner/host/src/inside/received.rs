//! The checks of the daemon on what a container's program hands it.

use rustix::{
    fd::OwnedFd,
    fs::{FileType, OFlags, fcntl_getfl, fstat, fstatfs},
};
use serde::Serialize;
use shared_sandbox::{FileFailure, Outcome};
use shared_types::{
    RefusalCode,
    clean::clean_line,
    limits::{MAX_INLINE_FILE_BYTES, MAX_PEER_TEXT},
};

use crate::{
    Change, OpenFile,
    files::{MAX_RESULTS, MAX_SKIPPED_BYTES},
};

/// Most that an outcome without a list or content takes as JSON, in bytes: a failure names a path.
const MAX_PLAIN_BYTES: usize = 64 * 1024;

/// Most that an outcome of an archive takes as JSON, in bytes: twice what the program keeps to.
const MAX_OF_ARCHIVE_BYTES: usize = 2 * MAX_SKIPPED_BYTES;

/// Most that an announced change takes as JSON, in bytes: it names two paths and two links at most.
const MAX_CHANGE_BYTES: usize = 32 * 1024;

/// The same of one that unpacks an archive, whose entries it names. It has to fit into one line of the journal.
const MAX_UNPACK_BYTES: usize = 768 * 1024;

/// File systems whose files are doors to the kernel (statfs(2)). A read of one can wait for ever, or
/// tell the daemon of itself.
const KERNELS: [(&str, u64); 11] = [
    ("proc", 0x9fa0),
    ("sysfs", 0x6265_6572),
    ("debugfs", 0x6462_6720),
    ("tracefs", 0x7472_6163),
    ("securityfs", 0x7363_6673),
    ("configfs", 0x6265_6570),
    ("cgroup", 0x0027_e0eb),
    ("cgroup2", 0x6367_7270),
    ("bpf", 0xcafe_4a11),
    ("fusectl", 0x6573_5543),
    ("mqueue", 0x1980_0202),
];

/// The reasons for which a host refuses a request for files, or passes a refusal of the daemon on.
const OF_FILES: [RefusalCode; 6] = [
    RefusalCode::Fenced,
    RefusalCode::Invalid,
    RefusalCode::Unsupported,
    RefusalCode::Lost,
    RefusalCode::ResourceExhausted,
    RefusalCode::SpoolFull,
];

/// The open file behind a descriptor that came, with the size that the sender reports. May block.
///
/// # Errors
/// The reason why it is not read; completes "the sandbox's file helper ...".
pub(super) fn open_file(descriptor: Option<OwnedFd>, said: u64) -> Result<OpenFile, &'static str> {
    let descriptor = descriptor.ok_or("opened a file without handing it over")?;
    let unknown = |_| "handed over a descriptor that cannot be examined";
    let flags = fcntl_getfl(&descriptor).map_err(unknown)?;
    let mode = flags & OFlags::RWMODE;
    if flags.contains(OFlags::PATH) || (mode != OFlags::RDONLY && mode != OFlags::RDWR) {
        return Err("handed over a descriptor that is not open for reading");
    }
    let stat = fstat(&descriptor).map_err(unknown)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("handed over a descriptor that is not of an ordinary file");
    }
    let system = fstatfs(&descriptor).map_err(unknown)?;
    // The kernel compares 32 bits.
    let magic = system.f_type as u64 & u64::from(u32::MAX);
    if KERNELS.iter().any(|(_, kernels)| *kernels == magic) {
        return Err("handed over a file of the kernel");
    }
    let bytes = u64::try_from(stat.st_size).unwrap_or(0);
    Ok(OpenFile::new(descriptor.into(), said.min(bytes)))
}

/// True if an announced change is small enough to be written down.
pub(super) fn is_small(change: &Change) -> bool {
    let most = match change.done {
        Outcome::Unpacked(_) => MAX_UNPACK_BYTES,
        _ => MAX_CHANGE_BYTES,
    };
    takes_at_most(most, change)
}

/// An outcome that fits into what comes after the daemon, or `None`.
pub(super) fn sound(outcome: Outcome) -> Option<Outcome> {
    let fits = match &outcome {
        Outcome::Read(read) => read.content.len() <= MAX_INLINE_FILE_BYTES,
        Outcome::Listed(listed) => listed.entries.len() <= MAX_RESULTS,
        Outcome::Globbed(globbed) => globbed.paths.len() <= MAX_RESULTS,
        Outcome::Grepped(grepped) => grepped.matches.len() <= MAX_RESULTS,
        // JSON takes six bytes for some characters.
        Outcome::Packed(_) | Outcome::Unpacked(_) => takes_at_most(MAX_OF_ARCHIVE_BYTES, &outcome),
        Outcome::Refused(refusal) => OF_FILES.contains(&refusal.code),
        // JSON takes six bytes for some characters.
        Outcome::Surveyed(_) => takes_at_most(MAX_INLINE_FILE_BYTES, &outcome),
        Outcome::Exited(_) => false,
        Outcome::Written(_)
        | Outcome::Edited(_)
        | Outcome::Downloaded(_)
        | Outcome::Found(_)
        | Outcome::MadeDirectory(_)
        | Outcome::Moved(_)
        | Outcome::Removed(_)
        | Outcome::Failed(_) => takes_at_most(MAX_PLAIN_BYTES, &outcome),
    };
    fits.then(|| match outcome {
        Outcome::Refused(mut refusal) => {
            refusal.message = clean_line(&refusal.message, MAX_PEER_TEXT);
            refusal.retry_after_ms = None;
            Outcome::Refused(refusal)
        }
        outcome => outcome,
    })
}

/// The end of a request whose output has this size, as far as the file that was handed over goes.
pub(super) fn of_size(outcome: Outcome, path: &str, opened: Option<u64>) -> Outcome {
    let said = match &outcome {
        Outcome::Downloaded(downloaded) => downloaded.bytes,
        Outcome::Packed(packed) => packed.bytes,
        _ => return outcome,
    };
    match opened == Some(said) {
        true => outcome,
        false => Outcome::Failed(FileFailure::Changed {
            path: path.to_owned(),
            since_read: false,
        }),
    }
}

fn takes_at_most(bytes: usize, what: &impl Serialize) -> bool {
    serde_json::to_vec(what).is_ok_and(|json| json.len() <= bytes)
}
