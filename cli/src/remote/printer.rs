//! What the command writes, written here: stdout to standard output, stderr to standard error, by a
//! thread of its own, because a write may wait for as long as a pager stands still.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::AsFd,
};

use rustix::event::PollFlags;
use shared_api::StreamName;
use tokio::sync::{mpsc, oneshot};

use super::keyboard::wait_after;

/// Pieces that may wait.
const QUEUE: usize = 4;

type Piece = (StreamName, Box<dyn AsRef<[u8]> + Send>);

/// The thread that writes.
pub(super) struct Printer {
    pieces: mpsc::Sender<Piece>,
    ended: oneshot::Receiver<io::Result<()>>,
}

/// Room for one piece.
pub(super) struct Room<'a>(mpsc::Permit<'a, Piece>);

impl Printer {
    pub(super) fn start() -> io::Result<Self> {
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let (pieces, receiver) = mpsc::channel(QUEUE);
        let (end, ended) = oneshot::channel();
        std::thread::spawn(move || end.send(write(receiver, stdout, stderr)));
        Ok(Self { pieces, ended })
    }

    /// Waits until there is room for a piece; `None` where standard output takes nothing any more.
    /// Safe to abandon while it waits.
    pub(super) async fn room(&self) -> Option<Room<'_>> {
        self.pieces.reserve().await.ok().map(Room)
    }

    /// Waits until standard output takes nothing any more.
    pub(super) async fn closed(&self) {
        self.pieces.closed().await;
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// Standard output takes nothing any more.
    pub(super) async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        let gone = || Err(io::Error::other("the thread that writes is gone"));
        self.ended.await.unwrap_or_else(|_| gone())
    }
}

impl Room<'_> {
    pub(super) fn fill(self, stream: StreamName, data: impl AsRef<[u8]> + Send + 'static) {
        self.0.send((stream, Box::new(data)));
    }
}

fn write(mut pieces: mpsc::Receiver<Piece>, mut stdout: File, mut stderr: File) -> io::Result<()> {
    while let Some((stream, data)) = pieces.blocking_recv() {
        let data = (*data).as_ref();
        match stream {
            StreamName::Stdout => write_all(&mut stdout, data)?,
            // Nobody is left to be told where standard error is closed.
            StreamName::Stderr => drop(write_all(&mut stderr, data)),
        }
    }
    Ok(())
}

fn write_all(file: &mut File, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        match file.write(data) {
            Ok(written) => data = &data[written..],
            Err(error) => wait_after(error, file, PollFlags::OUT)?,
        }
    }
    Ok(())
}
