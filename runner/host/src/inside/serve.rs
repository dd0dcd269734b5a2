//! The end in the container: one host, driven by what a daemon asks.
//!
//! One task owns what is under way and hears both sides. It writes before it reads on: the daemon
//! always reads.

use std::{collections::HashMap, os::unix::net::UnixStream as StdUnixStream, sync::Arc};
use std::{io, time::Duration};

use shared_sandbox::{ExitCause, Input, Outcome, Request};
use shared_types::{Refusal, RefusalCode};
use tokio::{net::UnixStream, sync::mpsc};

use super::{
    Hello, MAX_UNDER_WAY, PIECES_WAITING,
    wire::{Encoded, ProgramInbox, ProgramWireFrame, TooLarge, WireError},
    words::{ChangeVerdict, DaemonFrame, ProgramFrame, with_content},
};
use crate::{
    Announced, Change, HeldTurn, Host, HostEvent, Performing, StopRequest, There, Uploading,
};

/// The most events that wait to be sent; beyond it the sender waits.
const HAPPENINGS: usize = 16;

/// The most requests of the daemon. A request whose end is sent and not written down yet counts as
/// well.
const MAX_KNOWN: usize = 2 * MAX_UNDER_WAY;

/// Serves a daemon at the other end of this socket until it closes it. A change that waits for its
/// answer then is not made. Needs the context of a tokio runtime with IO and time.
///
/// # Errors
/// When the socket cannot be used, or something else than a daemon is at its other end.
pub async fn serve(socket: StdUnixStream, host: Host, hello: Hello) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let socket = Arc::new(UnixStream::from_std(socket)?);
    let mut inbox = ProgramInbox::new(Arc::clone(&socket));
    let (happenings, mut happened) = mpsc::channel(HAPPENINGS);
    let mut serving = RequestServer {
        socket,
        host,
        happenings,
        known: HashMap::new(),
    };
    serving
        .say(&ProgramFrame::Hello(hello))
        .await
        .or_else(gone)?;
    loop {
        let done = tokio::select! {
            frame = inbox.next::<DaemonFrame>() => match frame {
                Ok(frame) => serving.asked(frame).await,
                Err(error) => return gone(error),
            },
            Some((id, happening)) = happened.recv() => serving.happened(id, happening).await,
        };
        if let Err(error) = done {
            return gone(error);
        }
    }
}

/// That the daemon closed the socket is no error.
fn gone(error: WireError) -> io::Result<()> {
    match error {
        WireError::Gone => Ok(()),
        WireError::Malformed(_) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        WireError::Socket(error) => match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
            _ => Err(error),
        },
    }
}

struct RequestServer {
    socket: Arc<UnixStream>,
    host: Host,
    happenings: mpsc::Sender<(u64, Happening)>,
    /// Until they have ended and what they hold is released.
    known: HashMap<u64, ServedRequest>,
}

/// A request, as far as the daemon can still say something of it.
struct ServedRequest {
    stop: StopRequest,
    announced: Option<Announced>,
    pieces: Option<mpsc::Sender<Input>>,
    /// True if it only reads: then it needs no release.
    only_reads: bool,
    is_released: bool,
    /// Held until it is released: it has ended.
    held: Option<HeldTurn>,
}

/// An event of a request.
enum Happening {
    Event(Box<HostEvent>),
    /// A piece of its input went to the host.
    Room,
    Settled(ChangeVerdict),
}

impl RequestServer {
    async fn asked(
        &mut self,
        ProgramWireFrame { head, bytes }: ProgramWireFrame<DaemonFrame>,
    ) -> Result<(), WireError> {
        match head {
            DaemonFrame::Perform { id, .. } if self.known.len() >= MAX_KNOWN => {
                let message = "too many operations on the sandbox's files are under way";
                let refusal = Refusal::new(RefusalCode::ResourceExhausted, message);
                return self.say_end(id, Outcome::Refused(refusal)).await;
            }
            DaemonFrame::Perform {
                id,
                request,
                run_for_ms,
            } => {
                let run_for = Duration::from_millis(run_for_ms);
                self.begin(id, with_content(request, bytes), run_for);
            }
            DaemonFrame::Settle { id, change, later } => self.settle(id, change, later),
            DaemonFrame::Piece { id, offset, end } => {
                let data = bytes.into();
                let piece = Input { offset, data, end };
                if let Some(pieces) = self.known.get(&id).and_then(|one| one.pieces.as_ref()) {
                    // The daemon sends no more than there is room for, unless the upload has ended.
                    let _ = pieces.try_send(piece);
                }
            }
            DaemonFrame::NoMorePieces { id } => {
                self.known.entry(id).and_modify(|one| one.pieces = None);
            }
            DaemonFrame::Answer { id, refusal } => {
                let one = self.known.get_mut(&id);
                match (one.and_then(|one| one.announced.take()), refusal) {
                    (Some(announced), None) => announced.go_ahead(),
                    (Some(announced), Some(refusal)) => announced.refuse(refusal),
                    (None, _) => {}
                }
            }
            DaemonFrame::Stop { id, cause } => match (self.known.get(&id), cause) {
                (Some(one), ExitCause::Orphaned) => one.stop.orphan(),
                (Some(one), _) => one.stop.cancel(),
                (None, _) => {}
            },
            DaemonFrame::Release { id } => match self.known.get_mut(&id) {
                Some(one) if one.held.is_none() => one.is_released = true,
                Some(_) => drop(self.known.remove(&id)),
                None => {}
            },
        }
        Ok(())
    }

    async fn happened(&mut self, id: u64, happening: Happening) -> Result<(), WireError> {
        match happening {
            Happening::Room => self.say(&ProgramFrame::Room { id }).await,
            Happening::Settled(verdict) => self.say(&ProgramFrame::Settled { id, verdict }).await,
            Happening::Event(event) => self.heard(id, *event).await,
        }
    }

    async fn heard(&mut self, id: u64, event: HostEvent) -> Result<(), WireError> {
        match event {
            HostEvent::Changing(announced) => self.announce(id, announced).await,
            HostEvent::Opened(file) => {
                let bytes = file.bytes();
                match Encoded::new(&ProgramFrame::Opened { id, bytes }, &[]) {
                    Ok(frame) => frame.with(file).send(&self.socket).await,
                    Err(TooLarge) => Ok(()),
                }
            }
            HostEvent::InputTaken(up_to) => self.say(&ProgramFrame::InputTaken { id, up_to }).await,
            HostEvent::Ended(outcome, held) => {
                self.say_end(id, outcome).await?;
                match self.known.get_mut(&id) {
                    Some(one) if !one.only_reads && !one.is_released => {
                        one.held = Some(held);
                        one.pieces = None;
                    }
                    _ => drop(self.known.remove(&id)),
                }
                Ok(())
            }
        }
    }

    async fn announce(&mut self, id: u64, announced: Announced) -> Result<(), WireError> {
        let change = announced.change.clone();
        let Ok(frame) = Encoded::new(&ProgramFrame::Changing { id, change }, &[]) else {
            announced.refuse(Refusal::new(
                RefusalCode::Invalid,
                "the change has too many parts to be written down; do it in parts",
            ));
            return Ok(());
        };
        if let Some(one) = self.known.get_mut(&id) {
            one.announced = Some(announced);
        }
        frame.send(&self.socket).await
    }

    fn begin(&mut self, id: u64, request: Request, run_for: Duration) {
        let only_reads = request.only_reads();
        let (performing, pieces) = match request {
            Request::Download(download) => (self.host.download(download, run_for), None),
            Request::Pack(pack) => (self.host.pack(pack, run_for), None),
            Request::Upload(upload) => self.take(id, self.host.upload(upload, run_for)),
            Request::Unpack(unpack) => self.take(id, self.host.unpack(unpack, run_for)),
            request => (self.host.perform(request, run_for), None),
        };
        let known = ServedRequest {
            stop: performing.stop,
            announced: None,
            pieces,
            only_reads,
            is_released: false,
            held: None,
        };
        self.known.insert(id, known);
        let (mut events, happenings) = (performing.events, self.happenings.clone());
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if happenings
                    .send((id, Happening::Event(Box::new(event))))
                    .await
                    .is_err()
                {
                    return;
                }
            }
        });
    }

    /// Hands the pieces of an upload on, and says when there is room for another.
    fn take(&self, id: u64, uploading: Uploading) -> (Performing, Option<mpsc::Sender<Input>>) {
        let (pieces, mut waiting) = mpsc::channel(PIECES_WAITING);
        let happenings = self.happenings.clone();
        tokio::spawn(async move {
            while let Some(piece) = waiting.recv().await {
                let handed_on = uploading.pieces.send(piece).await.is_ok();
                if !handed_on || happenings.send((id, Happening::Room)).await.is_err() {
                    return;
                }
            }
        });
        (uploading.performing, Some(pieces))
    }

    fn settle(&self, id: u64, change: Change, later: Vec<Option<There>>) {
        let (host, happenings) = (self.host.clone(), self.happenings.clone());
        tokio::spawn(async move {
            let verdict = host.settle(change, later).await.into();
            // The receiver is gone once the socket is closed.
            let _ = happenings.send((id, Happening::Settled(verdict))).await;
        });
    }

    async fn say(&self, said: &ProgramFrame) -> Result<(), WireError> {
        match Encoded::new(said, &[]) {
            Ok(frame) => frame.send(&self.socket).await,
            // Only an end and a change can be large, and these are looked after.
            Err(TooLarge) => Ok(()),
        }
    }

    async fn say_end(&self, id: u64, outcome: Outcome) -> Result<(), WireError> {
        let frame = ProgramFrame::ended(id, outcome).or_else(|error| {
            let message = format!("the result is too large, {error}; ask for less of it");
            let refusal = Refusal::new(RefusalCode::ResourceExhausted, message);
            ProgramFrame::ended(id, Outcome::Refused(refusal))
        });
        match frame {
            Ok(frame) => frame.send(&self.socket).await,
            Err(TooLarge) => Ok(()),
        }
    }
}
