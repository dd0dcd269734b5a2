//! The files of a folder, read while a server may be writing them: for backups.
//!
//! Most files only grow, and are whole up to the last byte that was read: a frame that was cut off is left out when the
//! file is opened. The exception are the two tails of a bounded stream ([`super::ends`]): the older one is emptied when
//! the newer one is full. A reader of one after the other could miss the bytes that were written in between. So the
//! tails are read together, and again if one was emptied during the read.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// The number of reads of a stream's files before they are taken as they are. Then output may be missing in the middle
/// of it; readers see a gap.
const TRIES: u32 = 20;

/// The largest file that a server makes in its folders is below this.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes at the beginning of a tail that differ once it was emptied: the offset of its first frame.
const MARK_BYTES: usize = 8;

/// Files or a folder that were found. Paths are below the folder.
pub(crate) enum KeptFiles {
    /// A folder; what is in it comes later.
    Folder(PathBuf),
    /// Files that belong together, with their content.
    Files(Contents),
}

/// Everything in a folder, itself first; nothing if there is no folder. Files and folders that are removed during the
/// read are left out, as is everything that is neither.
pub(crate) fn in_folder(folder: &Path) -> impl Iterator<Item = io::Result<KeptFiles>> {
    let mut folders = vec![PathBuf::new()];
    let mut groups = Vec::<Vec<PathBuf>>::new();
    std::iter::from_fn(move || {
        loop {
            if let Some(group) = groups.pop() {
                match read_together(folder, &group, |root, path| read(&root.join(path))) {
                    Ok(files) if files.is_empty() => continue,
                    files => return Some(files.map(KeptFiles::Files)),
                }
            }
            let next = folders.pop()?;
            match entries(folder, &next) {
                Ok(None) => {}
                Ok(Some((below, found))) => {
                    folders.extend(below);
                    groups = found;
                    return Some(Ok(KeptFiles::Folder(next)));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

/// The folders in a folder, and its files: those of a bounded stream together.
#[expect(clippy::type_complexity, reason = "two lists")]
fn entries(root: &Path, below: &Path) -> io::Result<Option<(Vec<PathBuf>, Vec<Vec<PathBuf>>)>> {
    let Some(entries) = unless_gone(fs::read_dir(root.join(below)))? else {
        return Ok(None);
    };
    let mut folders = Vec::new();
    let mut groups = BTreeMap::<String, Vec<PathBuf>>::new();
    for entry in entries {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let Some(kind) = unless_gone(entry.file_type())? else {
            continue;
        };
        // A key may be a link to the file that holds it.
        let is_file = || fs::metadata(root.join(&path)).is_ok_and(|about| about.is_file());
        if kind.is_dir() {
            folders.push(path);
        } else if is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let group = match stream(&name) {
                Some(stream) => (stream.to_owned(), parts(below, stream)),
                None => (name, vec![path]),
            };
            groups.insert(group.0, group.1);
        }
    }
    // Both are taken from their ends.
    folders.sort_by(|one, other| other.cmp(one));
    Ok(Some((folders, groups.into_values().rev().collect())))
}

const PARTS: [&str; 3] = ["head", "tail0", "tail1"];

/// The bounded stream that a file is part of.
fn stream(name: &str) -> Option<&str> {
    let (stream, part) = name.rsplit_once('.')?;
    PARTS.contains(&part).then_some(stream)
}

/// All files that a bounded stream may have: some may come while it is read.
fn parts(below: &Path, stream: &str) -> Vec<PathBuf> {
    PARTS
        .map(|part| below.join(format!("{stream}.{part}")))
        .into()
}

/// Files that belong together, with their content.
type Contents = Vec<(PathBuf, Vec<u8>)>;

/// Reads files by `read`, which takes the folder and the path of each below it. Reads again until none of them was
/// emptied during the read.
fn read_together(
    root: &Path,
    group: &[PathBuf],
    mut read: impl FnMut(&Path, &Path) -> io::Result<Vec<u8>>,
) -> io::Result<Contents> {
    let mut tries = 0;
    loop {
        let before = marks(root, group)?;
        let mut files = Vec::with_capacity(group.len());
        for path in group {
            if let Some(content) = unless_gone(read(root, path))? {
                files.push((path.clone(), content));
            }
        }
        tries += 1;
        if before == marks(root, group)? || tries == TRIES {
            return Ok(files);
        }
    }
}

/// The first bytes of each of the files. A file that stands alone is never emptied.
fn marks(root: &Path, group: &[PathBuf]) -> io::Result<Vec<Vec<u8>>> {
    if group.len() == 1 {
        return Ok(Vec::new());
    }
    let mark = |path: &PathBuf| {
        let mut mark = Vec::with_capacity(MARK_BYTES);
        if let Some(file) = unless_gone(File::open(root.join(path)))? {
            file.take(MARK_BYTES as u64).read_to_end(&mut mark)?;
        }
        Ok(mark)
    };
    group.iter().map(mark).collect()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = File::open(path)?
        .take(FILE_BYTES + 1)
        .read_to_end(&mut content)?;
    match read as u64 > FILE_BYTES {
        true => Err(io::Error::other(format!(
            "{} has more than {FILE_BYTES} bytes, so it is no file of the server's; move it away",
            path.display()
        ))),
        false => Ok(content),
    }
}

/// None if it was removed.
fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

#[cfg(test)]
mod tests;
