//! The directory of one operation (mode 0700, format [`VERSION`](crate::VERSION)).
//!
//! | file | content |
//! |---|---|
//! | `ready` | the supervisor ([`ProcessIdentity`]), linked when it waits |
//! | `fate` | [`Fate`], linked once |
//! | `exit` | [`ExitRecord`], linked once |
//! | `out`, `err` | the streams; a file offset is a stream offset |
//! | `gaps` | the output that is missing in them ([`GapLog`](crate::GapLog)) |
//! | `sock` | the socket at which the supervisor listens |
//! | `*.new` | a record that is being written |
//!
//! `link(2)` fails where the name exists: that is what makes a fate and an end single. Where
//! another command is to use the same files, fate and end are removed and the streams are made
//! empty. Only then the directory gets another name: a directory of that name never holds older
//! files.

use std::{
    fs::{self, File},
    io,
    os::unix::{fs::DirBuilderExt, net::UnixStream},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    ExitRecord, Fate, ProcessIdentity, RecordError, SpoolStream, Tail,
    record::{self},
};

/// The socket's name.
pub(crate) const SOCKET: &str = "sock";

/// An open directory of an operation; it stays open where it is renamed.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Makes it, for this user only.
    ///
    /// # Errors
    /// When it is there already, or the host refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(path)?;
        Self::open(path)
    }

    /// Opens one that is there.
    ///
    /// # Errors
    /// When it is not.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            fd,
            path: path.to_owned(),
        })
    }

    /// The path at the time when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The fate of the operation; `None` while it has none.
    ///
    /// # Errors
    /// When the record is damaged or of a version too far away.
    pub fn fate(&self) -> Result<Option<Fate>, RecordError> {
        self.record("fate")
    }

    /// The end of the operation; `None` while it has none.
    ///
    /// # Errors
    /// When the record is damaged or of a version too far away.
    pub fn exit(&self) -> Result<Option<ExitRecord>, RecordError> {
        self.record("exit")
    }

    /// The supervisor; `None` while none is ready.
    ///
    /// # Errors
    /// When the record is damaged or of a version too far away.
    pub fn identity(&self) -> Result<Option<ProcessIdentity>, RecordError> {
        self.record("ready")
    }

    /// Decides that the operation never runs, unless it was decided otherwise before: what this
    /// returns is what holds.
    ///
    /// # Errors
    /// When neither can be found out.
    pub fn fence(&self, reason: &str) -> Result<Fate, RecordError> {
        let fate = Fate::Fenced {
            reason: record::reason(&reason),
        };
        if self.publish("fate", &fate)? {
            return Ok(fate);
        }
        self.fate()?.ok_or(RecordError::Damaged {
            name: "fate".to_owned(),
        })
    }

    /// Links a record under its name; `false` where that is taken. It is written to a file of
    /// this attempt first, because a supervisor, or another thread of this process, can do the same
    /// at the same moment.
    pub(crate) fn publish<T: Serialize>(&self, name: &str, record: &T) -> io::Result<bool> {
        static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
        let pid = rustix::process::getpid().as_raw_nonzero();
        let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        let new = format!("{name}-{pid}-{attempt}.new");
        // A file of that name may be a linked record already: it is left alone, never written to.
        self.unlink(&new)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = File::from(rustix::fs::openat(&self.fd, &new, flags, mode)?);
        io::Write::write_all(&mut &file, &record::to_line(name, record)?)?;
        let ours = self.link(&new, name)?;
        self.unlink(&new)?;
        Ok(ours)
    }

    /// Clears fate, end and what is left of a tail away, so that there can be another command. Only
    /// for a supervisor whose daemon has asked for that.
    ///
    /// # Errors
    /// When the host refuses; then there must not be another one.
    pub fn clear(&self) -> io::Result<()> {
        // An end without a fate is still an end, but a fate without an end looks like a command
        // that runs.
        self.unlink("fate")?;
        self.unlink("exit")?;
        // Else a process that finds the next command's supervisor dead would take the tail for that
        // command's.
        SpoolStream::ALL
            .into_iter()
            .try_for_each(|stream| self.unlink(Tail::file_name(stream)))
    }

    /// Gives it another name, beside its own.
    pub(crate) fn rename(&mut self, name: &str) -> io::Result<()> {
        let path = self.path.with_file_name(name);
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a written file its final name; `false` where that is taken.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn link(&self, new: &str, name: &str) -> io::Result<bool> {
        match rustix::fs::linkat(&self.fd, new, &self.fd, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A file, empty, to be read and written.
    ///
    /// # Errors
    /// When the host refuses.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(&self.fd, name, flags, mode)?.into())
    }

    /// A file that is there, to be read.
    ///
    /// # Errors
    /// When it is not there.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        self.open_with(name, OFlags::RDONLY)
    }

    /// A file that is there, to be read and written.
    pub(crate) fn open_to_write(&self, name: &str) -> io::Result<File> {
        self.open_with(name, OFlags::RDWR)
    }

    fn open_with(&self, name: &str, access: OFlags) -> io::Result<File> {
        // A file that is no ordinary file must not block the open.
        let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.fd, name, flags, Mode::empty())?.into())
    }

    /// Connects to the supervisor. Through `/proc`, because a socket's address has only 108 bytes.
    /// Never waits: a supervisor that accepts no connection for now has no room for another one.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}/{SOCKET}", self.fd.as_raw_fd());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket.into())
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// When the host refuses; it can be tried again.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }

    fn record<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RecordError> {
        match self.open_file(name) {
            Ok(file) => record::read(name, &file, name).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fate_is_decided_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = Directory::create(&folder.path().join("op")).expect("a directory");
        assert!(directory.fate().expect("readable").is_none());
        let first = directory.fence("first").expect("a fate");
        let second = directory.fence("second").expect("a fate");
        assert_eq!(first, second);
        assert_eq!(directory.fate().expect("readable"), Some(first));
    }

    #[test]
    fn threads_that_decide_at_once_agree_and_none_of_them_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..200 {
            let path = folder.path().join(round.to_string());
            Directory::create(&path).expect("a directory");
            let start = std::sync::Barrier::new(4);
            let fence = |thread: usize| {
                let directory = Directory::open(&path).expect("a directory");
                start.wait();
                directory.fence(&thread.to_string()).expect("a fate")
            };
            let fates: Vec<_> = std::thread::scope(|scope| {
                let fence = &fence;
                let threads: Vec<_> = (0..4)
                    .map(|thread| scope.spawn(move || fence(thread)))
                    .collect();
                let joined = threads.into_iter().map(|thread| thread.join());
                joined.map(|fate| fate.expect("a thread")).collect()
            });
            assert!(fates.iter().all(|fate| *fate == fates[0]), "{fates:?}");
        }
    }
}
