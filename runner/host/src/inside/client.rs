//! The daemon's end: one connection to the program in a container.
//!
//! Two tasks serve it. One writes the frames that wait, until no sender is left; then it closes the
//! socket. The other reads, and passes each frame on to its request. It never waits for a request, so
//! that no reader of events holds the others up.

use std::{
    fmt, io,
    os::unix::net::UnixStream as StdUnixStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustix::net::{Shutdown, shutdown};
use shared_sandbox::{Download, Input, Outcome, Pack, Request, Unpack, Upload};
use shared_types::{
    Refusal, RefusalCode,
    limits::{FILE_OPERATION_WITHIN, HELLO_WITHIN},
};
use tokio::{
    net::UnixStream,
    sync::{mpsc, oneshot},
    time::timeout,
};
use tracing::Instrument as _;

use super::{
    Hello, PIECES_WAITING,
    follow::{FollowedRequest, Following},
    table::{FrameReceiver, ReportTable, Reporting, lock},
    wire::{Encoded, ProgramInbox, ProgramWireFrame, TooLarge, WireError},
    words::{ChangeVerdict, DaemonFrame, ProgramFrame},
};
use crate::{
    Change, HeldTurn, HostEvent, Performing, SettledChange, There, Uploading,
    host::HANGS_AT_MOST,
    performing::{EVENTS_WAITING, Stopping},
};

/// The time beyond its own limit in which an answer has to be sent and read.
pub(super) const SAID_WITHIN: Duration = Duration::from_secs(10);

/// Bytes that may wait to be written before nothing new is asked: a container that is paused takes none.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The reason why the program in a container cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The socket cannot be used.
    #[error("failed to use the socket to the sandbox's file helper")]
    Socket(#[from] io::Error),
    /// It says nothing.
    #[error("the sandbox's file helper said nothing within {} s", HELLO_WITHIN.as_secs())]
    Silent,
    /// It ended, or sent something else.
    #[error("the sandbox's file helper did not say hello: {0}")]
    NoHello(String),
    /// It is of another version.
    #[error(
        "the sandbox's file helper speaks version {0}, which this runner does not; create the sandbox again"
    )]
    Version(u32),
}

/// The files of a container. Asked like a [`crate::Host`]; cheap to clone.
///
/// The socket is closed once the last clone is dropped, no request is under way and nothing is
/// [`HeldTurn`].
#[derive(Clone)]
pub struct Inside {
    link: Arc<ProgramLink>,
}

/// The shared end of the connection, which keeps it up.
pub(super) struct ProgramLink {
    /// Bounded by [`MAX_WAITING_BYTES`] and by the little that requests which were begun have to say.
    outgoing: mpsc::UnboundedSender<Encoded>,
    /// Bytes that wait to be written.
    waiting_bytes: Arc<AtomicUsize>,
    table: Arc<Mutex<ReportTable>>,
}

/// Tells the program that changes may go on, once this is dropped.
pub(crate) struct Release {
    link: Arc<ProgramLink>,
    id: u64,
}

impl Inside {
    /// Speaks with the program at the other end of a connected stream socket, once it has said hello,
    /// for which it has [`HELLO_WITHIN`]. Needs the context of a tokio runtime with IO and time.
    ///
    /// # Errors
    /// When it does not say hello, or one of another version.
    pub async fn connect(socket: StdUnixStream) -> Result<(Self, Hello), ConnectError> {
        socket.set_nonblocking(true)?;
        let socket = Arc::new(UnixStream::from_std(socket)?);
        let mut inbox = ProgramInbox::new(Arc::clone(&socket));
        let said = timeout(HELLO_WITHIN, inbox.next::<ProgramFrame>()).await;
        let hello = match said.map_err(|_| ConnectError::Silent)? {
            Ok(ProgramWireFrame {
                head: ProgramFrame::Hello(hello),
                ..
            }) => hello,
            Ok(_) => return Err(ConnectError::NoHello("it said something else".to_owned())),
            Err(error) => return Err(ConnectError::NoHello(error.to_string())),
        };
        if !hello.is_understood() {
            return Err(ConnectError::Version(hello.version));
        }
        let (outgoing, waiting) = mpsc::unbounded_channel();
        let table = Arc::new(Mutex::new(ReportTable::default()));
        let reading = read(inbox, Arc::clone(&socket), Arc::clone(&table));
        tokio::spawn(reading.in_current_span());
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        tokio::spawn(write(socket, waiting, Arc::clone(&waiting_bytes)).in_current_span());
        let link = ProgramLink {
            outgoing,
            waiting_bytes,
            table,
        };
        let link = Arc::new(link);
        Ok((Self { link }, hello.believed()))
    }

    /// Performs a request, as [`crate::Host::perform`].
    pub fn perform(&self, request: Request, run_for: Duration) -> Performing {
        match request {
            Request::Exec(_)
            | Request::Download(_)
            | Request::Upload(_)
            | Request::Pack(_)
            | Request::Unpack(_) => ended(Refusal::new(
                RefusalCode::Unsupported,
                "this is not an operation on files that has its result at once",
            )),
            request => self.begin(request, run_for, None),
        }
    }

    /// Reads a file as output, as [`crate::Host::download`].
    pub fn download(&self, download: Download, run_for: Duration) -> Performing {
        self.begin(Request::Download(download), run_for, None)
    }

    /// Reads entries of a directory as output, as [`crate::Host::pack`].
    pub fn pack(&self, pack: Pack, run_for: Duration) -> Performing {
        self.begin(Request::Pack(pack), run_for, None)
    }

    /// Takes a file as input, as [`crate::Host::upload`].
    pub fn upload(&self, upload: Upload, run_for: Duration) -> Uploading {
        self.take(Request::Upload(upload), run_for)
    }

    /// Takes entries of a directory as input, as [`crate::Host::unpack`].
    pub fn unpack(&self, unpack: Unpack, run_for: Duration) -> Uploading {
        self.take(Request::Unpack(unpack), run_for)
    }

    /// Settles a change whose maker died, as [`crate::Host::settle`].
    pub async fn settle(&self, change: Change, later: Vec<Option<There>>) -> SettledChange {
        let done = SettledChange::Applied(change.done.clone());
        let (told, verdict) = oneshot::channel();
        let Some(id) = self.link.enter(FrameReceiver::Settle(told)) else {
            return SettledChange::Unclear;
        };
        let asked = Encoded::new(&DaemonFrame::Settle { id, change, later }, &[]);
        let limit = FILE_OPERATION_WITHIN + HANGS_AT_MOST + SAID_WITHIN;
        let verdict = match self.link.send(asked) {
            Ok(()) => timeout(limit, verdict).await,
            Err(_) => Ok(Ok(ChangeVerdict::Unclear)),
        };
        self.link.forget(id);
        match verdict {
            Ok(Ok(ChangeVerdict::Applied)) => done,
            Ok(Ok(ChangeVerdict::NotApplied)) => SettledChange::NotApplied,
            Ok(Ok(ChangeVerdict::Unclear) | Err(_)) | Err(_) => SettledChange::Unclear,
        }
    }

    fn take(&self, request: Request, run_for: Duration) -> Uploading {
        let (pieces, waiting) = mpsc::channel(PIECES_WAITING);
        let performing = self.begin(request, run_for, Some(waiting));
        Uploading { performing, pieces }
    }

    fn begin(
        &self,
        request: Request,
        run_for: Duration,
        pieces: Option<mpsc::Receiver<Input>>,
    ) -> Performing {
        let (reporting, reported) = Reporting::of(&request);
        let subject = FollowedRequest::of(&request);
        let Some(id) = self.link.enter(FrameReceiver::Request(reporting)) else {
            return ended(Refusal::new(
                RefusalCode::ResourceExhausted,
                "too many operations on the sandbox's files are under way; try again later",
            ));
        };
        let span = tracing::debug_span!("inside.perform", request.kind = request.kind());
        if self
            .link
            .send(DaemonFrame::perform(id, request, run_for))
            .is_err()
        {
            self.link.forget(id);
            return ended(Refusal::new(
                RefusalCode::Invalid,
                "the request is too large for the sandbox's file helper; do it in parts",
            ));
        }
        let (events, receiver) = mpsc::channel(EVENTS_WAITING);
        let (stop, stopping) = Stopping::pair();
        let link = Arc::clone(&self.link);
        let following = Following::new(link, id, subject, events, stopping);
        let following = following.follow(reported, pieces, run_for);
        tokio::spawn(following.instrument(span));
        Performing {
            events: receiver,
            stop,
        }
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Release").field("id", &self.id).finish()
    }
}

impl Release {
    pub(super) fn new(link: Arc<ProgramLink>, id: u64) -> Self {
        Self { link, id }
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        self.link.say(&DaemonFrame::Release { id: self.id }, &[]);
    }
}

impl ProgramLink {
    /// Sends a frame about a request that is under way. If the program is gone, the task that waits for
    /// the request notices it.
    pub(super) fn say(&self, ask: &DaemonFrame, bytes: &[u8]) {
        if let Err(error) = self.send(Encoded::new(ask, bytes)) {
            tracing::error!(%error, "failed to say something to a sandbox's file helper");
        }
    }

    /// Drops the request: frames about it are ignored from now on.
    pub(super) fn forget(&self, id: u64) {
        lock(&self.table).forget(id);
    }

    fn send(&self, frame: Result<Encoded, TooLarge>) -> Result<(), TooLarge> {
        let frame = frame?;
        self.waiting_bytes.fetch_add(frame.len(), Ordering::Relaxed);
        // A socket that is closed is noticed as the end of what it says.
        let _ = self.outgoing.send(frame);
        Ok(())
    }

    fn enter(&self, waiting: FrameReceiver) -> Option<u64> {
        let is_full = self.waiting_bytes.load(Ordering::Relaxed) >= MAX_WAITING_BYTES;
        lock(&self.table).enter(waiting, is_full)
    }
}

/// A request that ends before it begins.
fn ended(refusal: Refusal) -> Performing {
    let (events, receiver) = mpsc::channel(EVENTS_WAITING);
    let (stop, _) = Stopping::pair();
    let end = HostEvent::Ended(Outcome::Refused(refusal), HeldTurn::default());
    // There is room for it.
    let _ = events.try_send(end);
    Performing {
        events: receiver,
        stop,
    }
}

/// Reads until the program is gone; then no frame will come for the requests that wait.
async fn read(mut inbox: ProgramInbox, socket: Arc<UnixStream>, table: Arc<Mutex<ReportTable>>) {
    let error = loop {
        match inbox.next::<ProgramFrame>().await {
            Ok(frame) => {
                let opens = matches!(frame.head, ProgramFrame::Opened { .. });
                let descriptor = opens.then(|| inbox.descriptor()).flatten();
                lock(&table).heard(frame, descriptor);
            }
            Err(error) => break error,
        }
    };
    match error {
        WireError::Gone => tracing::debug!("a sandbox's file helper is gone"),
        error => tracing::warn!(%error, "a sandbox's file helper cannot be heard any more"),
    }
    // So that the program ends, and nothing more is written.
    let _ = shutdown(&*socket, Shutdown::Both);
    lock(&table).close();
}

/// Writes until no sender is left, or the other end is gone.
async fn write(
    socket: Arc<UnixStream>,
    mut waiting: mpsc::UnboundedReceiver<Encoded>,
    waiting_bytes: Arc<AtomicUsize>,
) {
    while let Some(frame) = waiting.recv().await {
        if frame.send(&socket).await.is_err() {
            break;
        }
        waiting_bytes.fetch_sub(frame.len(), Ordering::Relaxed);
    }
    let _ = shutdown(&*socket, Shutdown::Both);
}
