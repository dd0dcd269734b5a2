//! Helpers of programs that read and replace files: the part of a read file that counts, the place of new content, and
//! the attributes that a file keeps.

use std::{
    fs::{self, File, Metadata},
    io::{self, ErrorKind, Seek, SeekFrom, Write},
    os::unix::fs::{FileExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use rustix::{buffer::spare_capacity, fd::AsFd, fs::XattrFlags, io::Errno};

/// The most symbolic links in a chain, as in the kernel.
const MAX_LINKS: usize = 40;

/// The size of a hole: a block of this many zeros is not written.
const BLOCK_BYTES: usize = 4096;

/// The prefix of attributes that people and programs give to files; all others belong to the system.
const ATTRIBUTES: &[u8] = b"user.";

/// The size limit of all attribute names and of one value, in bytes, which is the kernel's own.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// A file's size and modification time at one moment of a read.
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

/// The bytes that count, of `read` bytes that were read from a file's beginning to its end. A file that grew counts up
/// to its earlier end. `None` after any other write, because the bytes may never have been in the file together.
pub fn settled(before: State, after: State, read: u64) -> Option<u64> {
    match before == after {
        // The count can differ from the size: files in /proc and /sys claim 0 bytes or a page, whatever they hold.
        true => Some(read),
        false if after.bytes > before.bytes && read >= before.bytes => Some(before.bytes),
        false => None,
    }
}

/// Tells if a file ends elsewhere than its size says although no process writes to it.
///
/// # Errors
/// Fails when the file cannot be read.
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

/// The path of the file to replace. It follows symbolic links, even if their target does not exist yet.
///
/// # Errors
/// Fails when the path leads to a folder, device, pipe or socket: only regular files are replaced.
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

/// Appends to a new file and leaves holes for whole blocks of zeros. The caller has to set the file's size at the end.
///
/// # Errors
/// Fails when the file cannot be written.
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

/// Copies the attributes that people and programs gave to a file to another file.
///
/// # Errors
/// Fails when an attribute cannot be copied.
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
