//! Files here: read as they are sent, and written beside their targets until they are whole.

use std::{
    convert::Infallible,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use rustix::fs::OFlags;
use shared_client::{Controls, Piece};
use shared_types::{DigestAlgorithm, FileDigest, FileHasher};
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

/// How the names of unfinished files begin. The rest is random, so that no other
/// process can have a file or a link of that name ready.
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
    /// What the runner has taken.
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
        Ok(Self {
            copying: copying.clone(),
            path: path.to_owned(),
            file,
            bytes: before.len(),
            before,
            at: 0,
            is_ended: false,
            taken: 0,
        })
    }

    pub(super) fn mode(&self) -> u32 {
        self.before.mode() & MODE
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
            loop {
                match file.read(&mut piece)? {
                    0 => return io::Result::Ok(hasher.finish()),
                    read => {
                        hasher.update(&piece[..read]);
                        read_more(read as u64);
                    }
                }
            }
        });
        let digest = hashing.await.context("failed to hash the file")?;
        self.go_to(0)?;
        digest.with_context(|| format!("failed to read {}", self.path.display()))
    }

    /// Whether it was written to since it was opened.
    pub(super) fn is_changed(&self) -> bool {
        let now = self.file.metadata();
        now.is_ok_and(|now| is_changed(&self.before, &now))
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
                    bail!("it was changed while it was copied; copy it again");
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

/// Opens what is there to be read; a pipe does not make it wait.
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

pub(super) fn is_changed(before: &Metadata, now: &Metadata) -> bool {
    let state = |file: &Metadata| (file.len(), file.mtime(), file.mtime_nsec());
    state(before) != state(now)
}

/// A file as far as it came; removed when it is dropped before it is whole.
pub(super) struct Part {
    file: NamedTempFile,
    target: PathBuf,
    hasher: FileHasher,
    pub(super) bytes: u64,
}

impl Part {
    /// Beside its target, with the permissions of the file that is replaced, or those that are given
    /// less the umask.
    pub(super) fn create(target: &Path, mode: u32) -> anyhow::Result<Self> {
        let before = fs::metadata(target).ok();
        match &before {
            Some(before) if before.is_dir() => bail!("{} is a folder", target.display()),
            Some(before) if !before.is_file() => bail!("{} is no regular file", target.display()),
            _ => {}
        }
        let failed = || format!("failed to write {}", target.display());
        let folder = target.parent().filter(|folder| *folder != Path::new(""));
        let file = tempfile::Builder::new()
            .prefix(PART)
            .permissions(fs::Permissions::from_mode(mode & MODE))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .with_context(failed)?;
        if let Some(before) = before {
            let kept = fs::Permissions::from_mode(before.mode() & MODE);
            file.as_file().set_permissions(kept).with_context(failed)?;
        }
        Ok(Self {
            file,
            target: target.to_owned(),
            hasher: FileHasher::new(ALGORITHM),
            bytes: 0,
        })
    }

    pub(super) fn write(&mut self, data: &[u8]) -> anyhow::Result<()> {
        self.file
            .write_all(data)
            .with_context(|| format!("failed to write {}", self.target.display()))?;
        self.hasher.update(data);
        self.bytes += data.len() as u64;
        Ok(())
    }

    /// Nothing of it is right.
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

    /// It is whole, and takes its place.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let kept = self.file.persist(&self.target);
        kept.map(drop)
            .map_err(|error| error.error)
            .with_context(|| format!("failed to write {}", self.target.display()))
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
    fn what_is_no_regular_file_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let null = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).expect("a link");
        for (target, why) in [
            (null.as_path(), "no regular file"),
            (folder.path(), "a folder"),
        ] {
            let error = Part::create(target, 0o600).err().expect("it is refused");
            assert!(error.to_string().contains(why), "{error:#}");
        }
    }
}
