//! What programs that read and replace files share: how much of a file that is read counts, where new
//! content goes, and what a file keeps besides its content.

use std::{
    fs::{self, File, Metadata},
    io::{self, ErrorKind, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::{buffer::spare_capacity, fd::AsFd, fs::XattrFlags, io::Errno};

/// Symbolic links that are followed one after another, as the kernel follows them.
const MAX_LINKS: usize = 40;

/// Zeros that are left out of a file where they fill a whole block of it.
const BLOCK_BYTES: usize = 4096;

/// The attributes that people and programs give to files begin like this; all others belong to the system.
const ATTRIBUTES: &[u8] = b"user.";

/// Names of attributes, and the value of one, are kept up to this size in bytes, which is the kernel's own.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// A file's size and when it was written to, while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// In bytes, as the file system says.
    pub bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

impl From<&Metadata> for State {
    fn from(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// How much counts of `read` bytes, which are a file from its beginning to its end. A file that grew counts as
/// far as it reached before. `None` where it was written to in another way, so that the bytes may never have been in it together.
pub fn settled(before: State, after: State, read: u64) -> Option<u64> {
    match before == after {
        // It need not be the size: those of /proc and /sys say 0 or a page, whatever is in them.
        true => Some(read),
        false if after.bytes > before.bytes && read >= before.bytes => Some(before.bytes),
        false => None,
    }
}

/// Whether a file ends elsewhere than its size says, though it is not written to.
///
/// # Errors
/// When the host refuses.
pub fn lies_about_its_size(file: &File, before: State) -> io::Result<bool> {
    let reaches = |offset| loop {
        match file.read_at(&mut [0], offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.map(|read| read > 0),
        }
    };
    let is_shorter = before.bytes > 0 && !reaches(before.bytes - 1)?;
    let ends_elsewhere = is_shorter || reaches(before.bytes)?;
    Ok(ends_elsewhere && State::from(&file.metadata()?) == before)
}

/// Where a file is that is replaced by way of this path: symbolic links are written through, whether what
/// they lead to is there yet or not.
///
/// # Errors
/// What is there is no regular file, which is never replaced: a folder, device, pipe or socket.
pub fn replaced(path: &Path) -> io::Result<PathBuf> {
    // The kernel follows links that are no paths as well, such as those of /proc.
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => return Err(no_regular_file()),
        _ => {}
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_symlink() => {
                let to = fs::read_link(&path)?;
                path.pop();
                path.push(to);
            }
            Ok(there) if !there.is_file() => return Err(no_regular_file()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

fn no_regular_file() -> io::Error {
    io::Error::other("it is no regular file, and nothing else is replaced")
}

/// Writes on in a new file and leaves holes where whole blocks are zeros; its size has to be set in the end.
///
/// # Errors
/// When the host refuses.
pub fn write_with_holes(mut file: impl Write + Seek, data: &[u8]) -> io::Result<()> {
    let is_hole = |block: &[u8]| block.len() == BLOCK_BYTES && block.iter().all(|byte| *byte == 0);
    let blocks: Vec<&[u8]> = data.chunks(BLOCK_BYTES).collect();
    let mut rest = data;
    for run in blocks.chunk_by(|one, next| is_hole(one) == is_hole(next)) {
        let (written, after) = rest.split_at(run.iter().map(|block| block.len()).sum());
        match is_hole(run[0]) {
            true => drop(file.seek(SeekFrom::Current(written.len().cast_signed() as i64))?),
            false => file.write_all(written)?,
        }
        rest = after;
    }
    Ok(())
}

/// Gives one file the attributes that people and programs gave to another.
///
/// # Errors
/// Some of them cannot be kept.
pub fn keep_attributes(from: impl AsFd, to: impl AsFd) -> Result<(), Errno> {
    let mut names = Vec::with_capacity(MAX_ATTRIBUTE_BYTES);
    match rustix::fs::flistxattr(&from, spare_capacity(&mut names)) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        listed => listed?,
    };
    let names = names.split(|byte| *byte == 0);
    for name in names.filter(|name| name.starts_with(ATTRIBUTES)) {
        let mut value = Vec::with_capacity(MAX_ATTRIBUTE_BYTES);
        rustix::fs::fgetxattr(&from, name, spare_capacity(&mut value))?;
        rustix::fs::fsetxattr(&to, name, &value, XattrFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
