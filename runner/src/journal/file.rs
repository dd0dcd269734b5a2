//! The journal's folder: files that come into place whole, room in advance, damaged ones kept.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, BufWriter, ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::FallocateFlags, io::Errno};
use serde::Serialize;

use super::{
    Header, JournalError, MAX_DAMAGED, MAX_JOURNAL_BYTES, RESERVE_BYTES, line::JournalEnd,
};

/// The journal in use.
pub(super) const NAME: &str = "journal";

/// One that is being written and does not count yet.
pub(super) const UNFINISHED: &str = "journal.new";

/// Makes the folder where it is missing, for its owner alone.
pub(super) fn make_folder(folder: &Path) -> Result<(), JournalError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)))
        .map_err(failed("create", folder))
}

/// Writes a whole journal, with its reserve, through to the disk, beside the one in use. Returns
/// it with its end.
pub(super) fn write_beside<R: Serialize>(
    folder: &Path,
    header: &Header,
    records: impl Iterator<Item = R>,
) -> Result<(File, JournalEnd), JournalError> {
    let path = folder.join(UNFINISHED);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(failed("remove", &path)(error));
        }
        _ => {}
    }
    let written = write_new(&path, header, records);
    if written.is_err() {
        // On a full disk its room is needed; the next one removes what is left of it.
        let _ = fs::remove_file(&path);
    }
    written
}

/// Gives the one beside the name of the one in use.
pub(super) fn put_in_place(folder: &Path) -> io::Result<()> {
    fs::rename(folder.join(UNFINISHED), folder.join(NAME))?;
    File::open(folder)?.sync_all()
}

/// Keeps a damaged journal under a second name; the next [`put_in_place`] takes the first one
/// away from it, so that no death in between hides that there was one.
pub(super) fn set_aside(folder: &Path) -> Result<PathBuf, JournalError> {
    let journal = folder.join(NAME);
    for number in 1..=MAX_DAMAGED {
        let kept = folder.join(format!("journal.damaged-{number}"));
        match fs::hard_link(&journal, &kept) {
            Ok(()) => return Ok(kept),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("set aside", &journal)(error)),
        }
    }
    Err(JournalError::TooManyDamaged(folder.to_owned()))
}

/// Allocates the file's room from one place to another without making it longer. Returns how far
/// there is room.
pub(super) fn allocate(file: &File, from: u64, until: u64) -> io::Result<u64> {
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, until - from) {
            Ok(()) => return Ok(until),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(u64::MAX),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The error of an action on this file.
pub(super) fn failed(action: &'static str, path: &Path) -> impl Fn(io::Error) -> JournalError {
    let path = path.to_owned();
    move |source| match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => JournalError::DiskFull(path.clone()),
        _ => JournalError::File {
            action,
            path: path.clone(),
            source,
        },
    }
}

fn write_new<R: Serialize>(
    path: &Path,
    header: &Header,
    records: impl Iterator<Item = R>,
) -> Result<(File, JournalEnd), JournalError> {
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(failed("create", path))?;
    let mut writer = BufWriter::new(&file);
    let mut end = JournalEnd::default();
    let mut write = |line: Vec<u8>| writer.write_all(&line).map_err(failed("write", path));
    write(end.write(header)?)?;
    for record in records {
        write(end.write(&record)?)?;
    }
    writer.flush().map_err(failed("write", path))?;
    drop(writer);
    let reserved = end.bytes + RESERVE_BYTES;
    if reserved > MAX_JOURNAL_BYTES {
        return Err(JournalError::TooLarge);
    }
    allocate(&file, end.bytes, reserved).map_err(failed("write", path))?;
    file.sync_all().map_err(failed("sync", path))?;
    Ok((file, end))
}
