//! Files here: read as they are sent, and written beside their targets until they are whole.
//!
//! A file takes the place of the former one at once. The content is written into the former file instead where
//! that has other names (hard links), or an owner that a new one could not have.

use std::{
    convert::Infallible,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context as _, bail};
use rustix::fs::OFlags;
use shared_client::{Controls, Piece};
use shared_program::files::{self, State};
use shared_types::{
    DigestAlgorithm, FileDigest, FileHasher, Timestamp, limits::MAX_TRANSFER_BYTES,
};
use tempfile::NamedTempFile;

use super::copying::{Copying, Data};

/// The fastest of those that are known, see `docs/figures.md`.
pub(super) const ALGORITHM: DigestAlgorithm = DigestAlgorithm::Blake3;

/// Bytes that are read from a file at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes that are hashed at once.
const HASHED_BYTES: usize = 1024 * 1024;

/// The permissions of files that are copied.
pub(super) const MODE: u32 = 0o777;

/// The reason for leaving out a file that changes. A file that only grows is copied up to its earlier end.
pub(super) const CHANGED: &str = "it was changed while it was copied; copy it again";

/// The prefix of unfinished files' names. The rest is random, so that no other process can prepare a file or a link of
/// that name.
const PART: &str = ".gantry-part-";

/// A file that is sent.
pub(super) struct Source {
    copying: Copying,
    path: PathBuf,
    file: File,
    before: Metadata,
    pub(super) bytes: u64,
    at: u64,
    is_ended: bool,
    /// The offset up to which the runner has taken the content.
    taken: u64,
}

impl Source {
    /// The file that a person named.
    pub(super) fn open(copying: &Copying, path: &Path) -> anyhow::Result<Self> {
        Self::of(copying, path, open(path))
    }

    /// A file that was found in a folder, unless it is a symbolic link by now.
    pub(super) fn open_itself(copying: &Copying, path: &Path) -> anyhow::Result<Self> {
        Self::of(copying, path, open_itself(path))
    }

    fn of(
        copying: &Copying,
        path: &Path,
        opened: io::Result<(File, Metadata)>,
    ) -> anyhow::Result<Self> {
        let (file, before) =
            opened.with_context(|| format!("failed to read {}", path.display()))?;
        if !before.is_file() {
            bail!("{} is no regular file", path.display());
        }
        let whole = match files::lies_about_its_size(&file, State::from(&before)) {
            Ok(true) => read_to_end(&file).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error.into()),
        };
        let whole = whole.with_context(|| format!("failed to read {}", path.display()))?;
        let (file, bytes) = whole.unwrap_or((file, before.len()));
        Ok(Self {
            copying: copying.clone(),
            path: path.to_owned(),
            file,
            bytes,
            before,
            at: 0,
            is_ended: false,
            taken: 0,
        })
    }

    pub(super) fn mode(&self) -> u32 {
        self.before.mode() & MODE
    }

    pub(super) fn modified_at(&self) -> Timestamp {
        let micros = self.before.mtime().saturating_mul(1_000_000);
        Timestamp::from_micros(micros.saturating_add(self.before.mtime_nsec() / 1000))
    }

    /// The digest of the whole file, which is read from its beginning afterwards. Tells how many more bytes
    /// were read.
    pub(super) async fn digest(
        &mut self,
        read_more: impl Fn(u64) + Send + 'static,
    ) -> anyhow::Result<FileDigest> {
        let (file, bytes) = (self.file.try_clone(), self.bytes);
        let mut file = file.context("failed to read the file")?.take(bytes);
        let hashing = tokio::task::spawn_blocking(move || {
            let (mut hasher, mut piece) = (FileHasher::new(ALGORITHM), vec![0; HASHED_BYTES]);
            let mut bytes = 0;
            loop {
                match file.read(&mut piece)? {
                    0 => return io::Result::Ok((hasher.finish(), bytes)),
                    read => {
                        hasher.update(&piece[..read]);
                        read_more(read as u64);
                        bytes += read as u64;
                    }
                }
            }
        });
        let (digest, read) = hashing
            .await
            .context("failed to hash the file")?
            .with_context(|| format!("failed to read {}", self.path.display()))?;
        self.go_to(0)?;
        if read < self.bytes {
            bail!(CHANGED);
        }
        Ok(digest)
    }
}

impl Data for Source {
    fn begin(&mut self) -> anyhow::Result<()> {
        self.copying
            .progress(|progress| progress.take_back(self.taken));
        self.taken = 0;
        self.go_to(0)
    }

    fn taken(&mut self, offset: u64) {
        let taken = std::mem::replace(&mut self.taken, offset);
        self.copying.progress(|progress| {
            progress.take_back(taken);
            progress.bytes(offset);
        });
    }

    fn go_to(&mut self, offset: u64) -> anyhow::Result<()> {
        let found = self.file.seek(SeekFrom::Start(offset));
        found.with_context(|| format!("failed to read {}", self.path.display()))?;
        (self.at, self.is_ended) = (offset, false);
        Ok(())
    }

    async fn send(&mut self, controls: &Controls) -> anyhow::Result<Infallible> {
        while !self.is_ended {
            let Some(room) = controls.room().await else {
                break;
            };
            let left = usize::try_from(self.bytes - self.at).unwrap_or(usize::MAX);
            let mut data = vec![0; left.min(PIECE_BYTES)];
            if let Err(error) = self.file.read_exact(&mut data) {
                if error.kind() == io::ErrorKind::UnexpectedEof {
                    bail!(CHANGED);
                }
                return Err(error)
                    .with_context(|| format!("failed to read {}", self.path.display()));
            }
            let at = self.at;
            self.at += data.len() as u64;
            self.is_ended = self.at == self.bytes;
            room.fill(Piece {
                at: Some(at),
                data: data.into(),
                end: self.is_ended,
            });
        }
        std::future::pending().await
    }
}

/// Opens the entry at a path to read it; a pipe does not block it.
pub(super) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    open_with(path, OFlags::empty())
}

/// The same, unless it is a symbolic link.
pub(super) fn open_itself(path: &Path) -> io::Result<(File, Metadata)> {
    open_with(path, OFlags::NOFOLLOW)
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<(File, Metadata)> {
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

/// Copies a file without a true size into a temporary file, which has one.
fn read_to_end(file: &File) -> anyhow::Result<(File, u64)> {
    let mut whole = tempfile::tempfile()?;
    let bytes = io::copy(&mut file.take(MAX_TRANSFER_BYTES + 1), &mut whole)?;
    if bytes > MAX_TRANSFER_BYTES {
        bail!("it does not end within {MAX_TRANSFER_BYTES} bytes");
    }
    whole.rewind()?;
    Ok((whole, bytes))
}

/// A file that is being received; removed if it is dropped unfinished.
pub(super) struct Part {
    file: NamedTempFile,
    /// The path of the finished file: the named path, or the end of a chain of links there.
    target: PathBuf,
    before: Option<Before>,
    hasher: FileHasher,
    pub(super) bytes: u64,
    /// Set at the end, also where it replaces a file.
    preserved: Option<Preserved>,
}

/// Permissions and modification time of the file that is copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preserved {
    pub(super) mode: u32,
    pub(super) modified_at: SystemTime,
}

/// The file that is replaced.
struct Before {
    metadata: Metadata,
    /// Absent where it may not be read.
    file: Option<File>,
}

impl Part {
    /// Beside its target, with the permissions of the file that is replaced, or those that are given
    /// less the umask. Links are written through.
    pub(super) fn create(target: &Path, mode: u32) -> anyhow::Result<Self> {
        let failed = || format!("failed to write {}", target.display());
        let target = files::replaced(target).with_context(failed)?;
        let before = match open_itself(&target) {
            Ok((file, metadata)) => Some((Some(file), metadata)),
            Err(_) => target.symlink_metadata().ok().map(|found| (None, found)),
        };
        let before = before.map(|(file, metadata)| Before { metadata, file });
        let folder = target.parent().filter(|folder| *folder != Path::new(""));
        let file = tempfile::Builder::new()
            .prefix(PART)
            .permissions(fs::Permissions::from_mode(mode & MODE))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .with_context(failed)?;
        Ok(Self {
            file,
            target,
            before,
            hasher: FileHasher::new(ALGORITHM),
            bytes: 0,
            preserved: None,
        })
    }

    /// It is to have this in the end.
    pub(super) fn preserving(self, preserved: Option<Preserved>) -> Self {
        Self { preserved, ..self }
    }

    /// Makes the same for a file in a copied folder. The runner chooses these names, so no link may lead the file out
    /// of the folder.
    pub(super) fn create_in(folder: &Path, below: &str, mode: u32) -> anyhow::Result<Self> {
        let target = folder.join(below);
        let part = Self::create(&target, mode)?;
        let is_inside = |part: &Self| {
            let above = part.file.path().parent()?.canonicalize().ok()?;
            Some(above.starts_with(folder.canonicalize().ok()?))
        };
        match is_inside(&part) {
            Some(true) => Ok(part),
            _ => bail!(
                "there is a link here that leads out of the folder, to {}",
                part.target.display()
            ),
        }
    }

    pub(super) fn write(&mut self, data: &[u8]) -> anyhow::Result<()> {
        files::write_with_holes(self.file.as_file_mut(), data)
            .with_context(|| format!("failed to write {}", self.target.display()))?;
        self.hasher.update(data);
        self.bytes += data.len() as u64;
        Ok(())
    }

    /// Begins again with an empty file.
    pub(super) fn begin_again(&mut self) -> anyhow::Result<()> {
        let file = self.file.as_file_mut();
        let emptied = file.set_len(0).and_then(|()| file.rewind());
        emptied.with_context(|| format!("failed to write {}", self.target.display()))?;
        (self.hasher, self.bytes) = (FileHasher::new(ALGORITHM), 0);
        Ok(())
    }

    pub(super) fn digest(&self) -> FileDigest {
        self.hasher.clone().finish()
    }

    /// Moves the finished file to its place. Returns, in words, the attributes of the replaced file that the new one
    /// could not keep.
    pub(super) fn finish(self) -> anyhow::Result<Option<String>> {
        let shown = self.target.clone();
        let failed = || format!("failed to write {}", shown.display());
        self.file
            .as_file()
            .set_len(self.bytes)
            .with_context(failed)?;
        let Some(before) = &self.before else {
            self.preserve(self.file.as_file()).with_context(failed)?;
            self.rename().with_context(failed)?;
            return Ok(None);
        };
        let has_owner = keep_owner(self.file.as_file(), &before.metadata);
        if (before.metadata.nlink() > 1 || !has_owner)
            && let Some(into) = writable(&self.target, before).with_context(failed)?
        {
            self.write_into(into).with_context(failed)?;
            return Ok(None);
        }
        let kept = fs::Permissions::from_mode(before.metadata.mode() & MODE);
        self.file
            .as_file()
            .set_permissions(kept)
            .with_context(failed)?;
        let attributes = before
            .file
            .as_ref()
            .map_or(Err(rustix::io::Errno::ACCESS), |from| {
                files::keep_attributes(from, self.file.as_file())
            });
        let mut lost = Vec::new();
        if !has_owner {
            lost.push("owner");
        }
        if before.metadata.nlink() > 1 {
            lost.push("other names");
        }
        if attributes.is_err() {
            lost.push("attributes");
        }
        self.preserve(self.file.as_file()).with_context(failed)?;
        self.rename().with_context(failed)?;
        let lost = (!lost.is_empty()).then(|| lost.join(" and "));
        Ok(lost.map(|lost| format!("{}: replaced, without its {lost}", shown.display())))
    }

    fn preserve(&self, file: &File) -> io::Result<()> {
        let Some(Preserved { mode, modified_at }) = self.preserved else {
            return Ok(());
        };
        file.set_permissions(fs::Permissions::from_mode(mode & MODE))?;
        file.set_modified(modified_at)
    }

    fn rename(self) -> anyhow::Result<()> {
        if files::replaced(&self.target)? != self.target {
            bail!(CHANGED);
        }
        self.file.persist(&self.target)?;
        Ok(())
    }

    /// Writes the content into the file that is there, which keeps all that it has.
    fn write_into(mut self, mut into: File) -> anyhow::Result<()> {
        let mut copy = || {
            self.file.as_file_mut().rewind()?;
            into.set_len(0)?;
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                match self.file.as_file_mut().read(&mut piece)? {
                    0 => return into.set_len(self.bytes),
                    read => files::write_with_holes(&mut into, &piece[..read])?,
                }
            }
        };
        if let Err(error) = copy() {
            let (_, kept) = self.file.keep()?;
            return Err(error).with_context(|| format!("what came is in {}", kept.display()));
        }
        Ok(self.preserve(&into)?)
    }
}

/// Gives a new file the owner of the former one, or the group at least; whether it has both.
fn keep_owner(file: &File, before: &Metadata) -> bool {
    let Ok(now) = file.metadata() else {
        return false;
    };
    let group = Some(before.gid());
    (now.uid(), now.gid()) == (before.uid(), before.gid())
        || std::os::unix::fs::fchown(file, Some(before.uid()), group).is_ok()
        || (std::os::unix::fs::fchown(file, None, group).is_ok() && now.uid() == before.uid())
}

/// The former file, where it may be written to and is still there.
fn writable(target: &Path, before: &Before) -> io::Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(target)
    {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        opened => opened?,
    };
    let now = file.metadata()?;
    let is_it = (now.dev(), now.ino()) == (before.metadata.dev(), before.metadata.ino());
    match is_it {
        true => Ok(Some(file)),
        false => Err(io::Error::other(CHANGED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_its_place_whole_with_the_permissions_of_the_one_before_or_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("file");
        let written = |data: &[u8]| {
            let mut part = Part::create(&target, 0o600).expect("it can be written");
            part.write(data).expect("there is room");
            part
        };
        drop(written(b"half"));
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 0);
        written(b"first").finish().expect("it takes its place");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("it is ours");
        written(b"second").finish().expect("it takes its place");
        assert_eq!(fs::read(&target).expect("it is there"), b"second");
        let mode = fs::metadata(&target).expect("it is there").mode();
        assert_eq!(mode & MODE, 0o640);
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1);
    }

    #[test]
    fn links_are_written_through_and_what_is_no_regular_file_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("/dev/null", path("null")).expect("a link");
        for target in [path("null").as_path(), folder.path()] {
            assert!(Part::create(target, 0o600).is_err(), "{target:?}");
        }
        fs::create_dir(path("in")).expect("a folder");
        fs::write(path("in/file"), "old").expect("a file");
        std::os::unix::fs::symlink("file", path("in/link")).expect("a link");
        std::os::unix::fs::symlink("../file", path("in/out")).expect("a link");
        let mut part = Part::create_in(&path("in"), "link", 0o600).expect("it is written through");
        part.write(b"new").expect("there is room");
        part.finish().expect("it takes its place");
        assert!(path("in/link").is_symlink());
        assert_eq!(fs::read(path("in/file")).expect("it is there"), b"new");
        let refused = Part::create_in(&path("in"), "out", 0o600)
            .err()
            .expect("it leads out");
        assert!(
            refused.to_string().contains("out of the folder"),
            "{refused:#}"
        );
        assert!(!path("file").exists());
    }

    #[test]
    fn a_file_keeps_its_other_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("one"), "a longer text than the new one").expect("a file");
        fs::hard_link(path("one"), path("two")).expect("a link");
        let mut part = Part::create(&path("one"), 0o600).expect("it can be written");
        part.write(b"new").expect("there is room");
        assert_eq!(part.finish().expect("it takes its place"), None);
        assert_eq!(fs::read(path("two")).expect("it is there"), b"new");
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 2);
    }
}
