//! Cgroups: where they are, and what is done in one.
//!
//! Ours lie in `gantry` at a hierarchy's root, where the host lets us: outside the daemon's own
//! cgroup, so that what stops the daemon's service stops no command. Else (an unprivileged daemon
//! with a delegated cgroup) they lie below the daemon's own.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{Dir, DirEntry, FileType, Mode, OFlags},
    process::Pid,
};

/// Our folder in a hierarchy.
const FOLDER: &str = "gantry";

/// The folder of supervisors, beside the cgroups of their commands.
const SUPERVISORS: &str = "supervisors";

/// More than `cgroup.events` has, in bytes.
const EVENTS_BYTES: usize = 256;

/// Cgroups that are looked into below a command's own; of more the members get no polite signal.
const CGROUPS_BELOW: usize = 128;

/// Names that are tried where one is taken by a tree of an earlier namespace.
const NAMES: usize = 16;

/// True if a leaf of ours can be there: a leaf that is killed must never be another program's.
pub(crate) fn is_ours(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    let name = path.file_name();
    parent.is_some_and(|parent| parent == FOLDER) && name.is_some_and(|name| name != SUPERVISORS)
}

/// The hierarchies of this host.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    v2: Vec<PathBuf>,
    own: PathBuf,
}

impl Mounts {
    /// The hierarchies by `/proc`; none where it cannot be read.
    pub(crate) fn read() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::parse(&mounts, &own)
    }

    /// The possible places of our folder, best first.
    pub(crate) fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.v2
            .iter()
            .flat_map(|mount| [mount.join(FOLDER), mount.join(&self.own).join(FOLDER)])
    }

    fn parse(mounts: &str, own: &str) -> Self {
        let mut found = Self::default();
        for line in mounts.lines() {
            let mut fields = line.split(' ').skip(1);
            if let (Some(at), Some("cgroup2")) = (fields.next(), fields.next()) {
                found.v2.push(PathBuf::from(at));
            }
        }
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        found.own = PathBuf::from(own.unwrap_or_default());
        found
    }
}

/// A leaf of version 2.
#[derive(Debug)]
pub(crate) struct V2 {
    path: PathBuf,
    directory: OwnedFd,
    kill: File,
    events: File,
}

impl V2 {
    pub(crate) fn create(mounts: &Mounts, name: &str) -> io::Result<Self> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in mounts.folders() {
            match make_folder(&parent).and_then(|()| Self::make(&parent, name)) {
                Ok(leaf) => return Ok(leaf),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let kill = open_at(&directory, "cgroup.kill", OFlags::WRONLY)?;
        let events = open_at(&directory, "cgroup.events", OFlags::RDONLY)?;
        Ok(Self {
            path: path.to_owned(),
            directory,
            kill,
            events,
        })
    }

    fn make(parent: &Path, name: &str) -> io::Result<Self> {
        let path = make_leaf(parent, name)?;
        Self::open(&path).inspect_err(|_| {
            // It is of no use without its files.
            let _ = fs::remove_dir(&path);
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn adopt(&self, child: Pid) -> io::Result<()> {
        adopt(&self.directory, child)
    }

    pub(crate) fn members(&self) -> io::Result<Vec<Pid>> {
        read_members(&self.directory)
    }

    pub(crate) fn kill(&self) {
        // A failure shows when the leaf does not become empty.
        let _ = (&self.kill).write_all(b"1");
    }

    pub(crate) fn is_empty(&self) -> bool {
        let mut text = [0; EVENTS_BYTES];
        let length = self.events.read_at(&mut text, 0).unwrap_or(0);
        text[..length]
            .split(|byte| *byte == b'\n')
            .any(|line| line == b"populated 0")
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn make_leaf(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..NAMES {
        let path = parent.join(format!("{name}-{number}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Moves this process out of the cgroup that the daemon was started in, if the host lets it.
pub(crate) fn step_aside(mounts: &Mounts) {
    for parent in mounts.folders() {
        let place = parent.join(SUPERVISORS);
        let moved = make_folder(&parent)
            .and_then(|()| make_folder(&place))
            .and_then(|()| fs::write(place.join("cgroup.procs"), "0"));
        if moved.is_ok() {
            return;
        }
    }
}

fn open_at(directory: &OwnedFd, name: &str, access: OFlags) -> io::Result<File> {
    Ok(rustix::fs::openat(directory, name, access | OFlags::CLOEXEC, Mode::empty())?.into())
}

fn adopt(directory: &OwnedFd, child: Pid) -> io::Result<()> {
    let pid = child.as_raw_nonzero().to_string();
    open_at(directory, "cgroup.procs", OFlags::WRONLY)?.write_all(pid.as_bytes())
}

/// The processes in a cgroup and in those below it, which a command may have made.
fn read_members(directory: &OwnedFd) -> io::Result<Vec<Pid>> {
    let mut members = read_pids(directory)?;
    let mut left = CGROUPS_BELOW;
    let mut below = children(directory, left);
    while let Some(next) = below.pop() {
        left -= 1;
        // A cgroup that is gone by now has no members.
        members.extend(read_pids(&next).unwrap_or_default());
        below.extend(children(&next, left - below.len()));
    }
    Ok(members)
}

/// The cgroups in one, so many at most.
fn children(directory: &OwnedFd, most: usize) -> Vec<OwnedFd> {
    let Ok(entries) = Dir::read_from(directory) else {
        return Vec::new();
    };
    let is_child = |entry: &DirEntry| {
        let is_itself = matches!(entry.file_name().to_bytes(), b"." | b"..");
        entry.file_type() == FileType::Directory && !is_itself
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |entry: DirEntry| {
        rustix::fs::openat(directory, entry.file_name(), flags, Mode::empty()).ok()
    };
    let children = entries.flatten().filter(is_child);
    children.take(most).filter_map(open).collect()
}

fn read_pids(directory: &OwnedFd) -> io::Result<Vec<Pid>> {
    let mut text = String::new();
    open_at(directory, "cgroup.procs", OFlags::RDONLY)?.read_to_string(&mut text)?;
    // A member of another pid namespace is shown as 0 and cannot be named.
    Ok(text
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter_map(Pid::from_raw)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_version_2_are_found_among_others() {
        let mounts = "proc /proc proc rw 0 0\n\
            cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n\
            cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n\
            cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let found = Mounts::parse(mounts, "3:pids:/x\n0::/user.slice/a\n");
        assert_eq!(found.v2, [Path::new("/sys/fs/cgroup/unified")]);
        assert_eq!(found.own, Path::new("user.slice/a"));
    }
}
