//! The writer of a command's output: stdout to standard output, stderr to standard error. It has its own thread,
//! because a write blocks for as long as a pager stands still.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Write as _},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::event::PollFlags;
use shared_api::StreamName;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{keyboard::wait_after, modes::Modes};

/// Pieces that may wait.
const QUEUE: usize = 4;

/// The longest wait for a terminal to show the rest of the output, if the person has left.
const ABANDONED_AFTER: Duration = Duration::from_secs(1);

type Piece = (StreamName, Box<dyn AsRef<[u8]> + Send>);

/// The thread that writes.
pub(super) struct Printer {
    pieces: mpsc::Sender<Piece>,
    /// True if the terminal gets its usual modes back at the end.
    restores: Arc<AtomicBool>,
    ended: oneshot::Receiver<io::Result<()>>,
}

/// Room for one piece.
pub(super) struct Room<'a>(mpsc::Permit<'a, Piece>);

impl Printer {
    /// `in_terminal`: the command runs in a terminal, whose modes are those of this one.
    pub(super) fn start(in_terminal: bool) -> io::Result<Self> {
        let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let (pieces, receiver) = mpsc::channel(QUEUE);
        let (end, ended) = oneshot::channel();
        let restores = Arc::new(AtomicBool::new(false));
        let modes = (in_terminal && stdout.is_terminal())
            .then(|| (Modes::default(), Arc::clone(&restores)));
        std::thread::spawn(move || end.send(write(receiver, stdout, stderr, modes)));
        Ok(Self {
            pieces,
            restores,
            ended,
        })
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

    /// After all that is written, the modes are switched off that the command left on in the terminal.
    pub(super) fn restore(&self) {
        self.restores.store(true, Ordering::Relaxed);
    }

    /// Restores the terminal, where it takes something still.
    pub(super) async fn abandon(self) {
        self.restore();
        let _ = timeout(ABANDONED_AFTER, self.finish()).await;
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// Fails once standard output can no longer be written.
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

fn write(
    mut pieces: mpsc::Receiver<Piece>,
    mut stdout: File,
    mut stderr: File,
    mut modes: Option<(Modes, Arc<AtomicBool>)>,
) -> io::Result<()> {
    while let Some((stream, data)) = pieces.blocking_recv() {
        let data = (*data).as_ref();
        match stream {
            StreamName::Stdout => {
                if let Some((modes, _)) = &mut modes {
                    modes.take(data);
                }
                write_all(&mut stdout, data)?;
            }
            // If standard error is closed, there is no reader to tell.
            StreamName::Stderr => drop(write_all(&mut stderr, data)),
        }
    }
    match modes {
        Some((modes, restores)) if restores.load(Ordering::Relaxed) => {
            write_all(&mut stdout, modes.undone().as_bytes())
        }
        _ => Ok(()),
    }
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
