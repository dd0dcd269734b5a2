//! Hands a container the folder of its operations, where its commands may be root.
//!
//! In such a container that folder is not mounted: root could make links there that this daemon
//! would follow with the rights of the host's root. The entry process gets it through a socket,
//! before there is any command. It is a mount of that folder alone that has no place of its own, so
//! that no path leads to it, and none out of it.

use std::{
    fs, io,
    io::IoSlice,
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::{
            fs::MetadataExt as _,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    mount::{OpenTreeFlags, open_tree},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
};

use super::make_folder;

/// A door that one may go through. It is closed with this.
#[derive(Debug)]
pub(super) struct Door {
    listener: tokio::net::UnixListener,
    operations: OwnedFd,
}

impl Door {
    /// The socket, in its folder.
    pub(super) const NAME: &str = "door";

    /// The folder with the socket, which is mounted into the container, in that of a sandbox.
    pub(super) fn folder(sandbox: &Path) -> PathBuf {
        sandbox.join("door")
    }

    /// Opens one, to this folder of operations.
    ///
    /// # Errors
    /// Where this daemon may make no mounts, or a user other than root may change that folder.
    pub(super) fn open(sandbox: &Path, operations: &Path) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let operations = open_tree(CWD, operations, flags)?;
        let is = fs::metadata(format!("/proc/self/fd/{}", operations.as_raw_fd()))?;
        if !is.is_dir() || is.uid() != 0 || is.mode() & 0o077 != 0 {
            return Err(io::Error::other(
                "it must be root's alone: chown root and chmod 700 it",
            ));
        }
        let folder = Self::folder(sandbox);
        make_folder(&folder)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&folder, flags, Mode::empty())?;
        // Through `/proc`, because a socket's address has only 108 bytes.
        let path = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), Self::NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: tokio::net::UnixListener::from_std(listener)?,
            operations,
        })
    }

    /// Waits for the entry process, and hands it the folder.
    ///
    /// # Errors
    /// Where that does not take it.
    pub(super) async fn let_in(&self) -> io::Result<()> {
        let (socket, _) = self.listener.accept().await?;
        if socket.peer_cred()?.uid() != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let socket: UnixStream = socket.into_std()?;
        let descriptors = [self.operations.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(
            &socket,
            &[IoSlice::new(&[0])],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// Removes what is left of one.
    pub(super) fn remove(sandbox: &Path) {
        let folder = Self::folder(sandbox);
        let _ = fs::remove_file(folder.join(Self::NAME));
        let _ = fs::remove_dir(folder);
    }
}
