//! Tells when a file of a folder is replaced, so that a daemon takes a change up without being asked.

use std::{ffi::OsString, io, mem::MaybeUninit, os::unix::ffi::OsStrExt as _, path::Path};

use rustix::{
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, WatchFlags},
    io::Errno,
};
use tokio::io::{Interest, unix::AsyncFd};

/// Room for what the kernel tells at once, in bytes: at least one name of the longest kind.
const NEWS_BYTES: usize = 4096;

/// A file that is watched. The folder must stay where it is.
#[derive(Debug)]
pub(crate) struct FileWatch {
    news: AsyncFd<OwnedFd>,
    file: OsString,
}

impl FileWatch {
    #[expect(
        deprecated,
        reason = "its successor is unsafe for those who close a registered descriptor; an owned one stays open"
    )]
    /// Watches from now on. Needs the context of a tokio runtime with IO.
    pub(super) fn begin(folder: &Path, file: &str) -> io::Result<Self> {
        let news = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // A person who edits it by hand may write it in place.
        inotify::add_watch(
            &news,
            folder,
            WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE,
        )?;
        Ok(Self {
            news: AsyncFd::with_interest(news, Interest::READABLE)?,
            file: file.into(),
        })
    }

    /// Waits until the file may have been replaced.
    ///
    /// # Errors
    /// The kernel tells no more.
    pub(crate) async fn changed(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.news.readable().await?;
            match is_named(ready.get_inner(), &self.file) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// True if some of the news that waits is about this file.
fn is_named(news: &OwnedFd, file: &OsString) -> Result<bool, Errno> {
    let mut room = [MaybeUninit::uninit(); NEWS_BYTES];
    let mut reader = inotify::Reader::new(news, &mut room);
    let mut is_named = false;
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::AGAIN) if is_named => return Ok(true),
            Err(errno) => return Err(errno),
        };
        let name = event.file_name().map(|name| name.to_bytes());
        is_named |= name == Some(file.as_bytes());
        if reader.is_buffer_empty() {
            return Ok(is_named);
        }
    }
}
