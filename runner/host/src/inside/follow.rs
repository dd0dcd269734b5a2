//! One request at the daemon's end, from its start to its end.

use std::{future::pending, sync::Arc, time::Duration};

use rustix::fd::OwnedFd;
use shared_sandbox::{ExitCause, Input, Outcome, Request};
use shared_types::{Refusal, RefusalCode};
use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{
    PIECES_WAITING,
    client::{ProgramLink, Release, SAID_WITHIN},
    received::{is_small, of_size, open_file, sound},
    table::{ProgramReport, Reported},
    words::DaemonFrame,
};
use crate::{
    Announced, HeldTurn, HostEvent, OpenFile,
    files::unheard,
    host::{HANGS_AT_MOST, lost},
    performing::Stopping,
};

/// The wait before a request that found no program is asked again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The facts about a request once it is on its way.
pub(super) struct FollowedRequest {
    pub(super) only_reads: bool,
    /// The path that it serves, as it was asked for.
    path: String,
}

/// A request that is followed.
pub(super) struct Following {
    link: Arc<ProgramLink>,
    id: u64,
    subject: FollowedRequest,
    events: mpsc::Sender<HostEvent>,
    stopping: Stopping,
    /// The change that waits for its answer.
    answered: Option<oneshot::Receiver<Result<(), Refusal>>>,
    /// True once the program has the answer to go ahead, so that it may have made its change.
    is_told_to_change: bool,
    /// The size of the file that was handed over.
    opened: Option<u64>,
    sent: UploadProgress,
}

/// The part of an upload that is on its way.
#[derive(Default)]
struct UploadProgress {
    bytes: u64,
    pieces: u64,
    /// The bytes that were reported as taken.
    told: u64,
}

impl FollowedRequest {
    pub(super) fn of(request: &Request) -> Self {
        let path = match request {
            Request::Download(download) => download.path.clone(),
            Request::Pack(pack) => pack.path.clone(),
            _ => String::new(),
        };
        Self {
            only_reads: request.only_reads(),
            path,
        }
    }
}

impl Following {
    pub(super) fn new(
        link: Arc<ProgramLink>,
        id: u64,
        subject: FollowedRequest,
        events: mpsc::Sender<HostEvent>,
        stopping: Stopping,
    ) -> Self {
        Self {
            link,
            id,
            subject,
            events,
            stopping,
            answered: None,
            is_told_to_change: false,
            opened: None,
            sent: UploadProgress::default(),
        }
    }

    /// Passes on what happens, and says the end.
    pub(super) async fn follow(
        mut self,
        reported: Reported,
        pieces: Option<mpsc::Receiver<Input>>,
        run_for: Duration,
    ) {
        let outcome = self.outcome(reported, pieces, run_for).await;
        self.link.forget(self.id);
        let held = match self.subject.only_reads {
            true => HeldTurn::default(),
            false => HeldTurn::inside(Release::new(Arc::clone(&self.link), self.id)),
        };
        // The receiver may be gone, and that changes nothing.
        let _ = self.events.send(HostEvent::Ended(outcome, held)).await;
    }

    async fn outcome(
        &mut self,
        reported: Reported,
        mut pieces: Option<mpsc::Receiver<Input>>,
        run_for: Duration,
    ) -> Outcome {
        let Reported {
            mut reports,
            mut progress,
        } = reported;
        let limit = run_for.saturating_add(HANGS_AT_MOST + SAID_WITHIN);
        let too_late = sleep(limit);
        tokio::pin!(too_late);
        let mut stopped = false;
        loop {
            let rooms = progress.borrow().rooms;
            tokio::select! {
                biased;
                cause = self.stopping.wanted(), if !stopped => {
                    stopped = true;
                    self.link.say(&DaemonFrame::Stop { id: self.id, cause }, &[]);
                }
                // Before what the program says, which may never cease.
                () = &mut too_late => return self.without_end("did not answer in time"),
                answer = answer(&mut self.answered) => self.answer(answer),
                report = reports.recv() => match report {
                    Some(ProgramReport::Changing(change)) if !is_small(&change) => {
                        self.answer(Err(too_large()));
                    }
                    Some(ProgramReport::Changing(change)) => {
                        let (announced, answered) = Announced::new(change);
                        self.answered = Some(answered);
                        self.tell(HostEvent::Changing(announced)).await;
                    }
                    Some(ProgramReport::Opened(descriptor, bytes)) => {
                        match looked_at(descriptor, bytes).await {
                            Ok(file) => {
                                self.opened = Some(file.bytes());
                                self.tell(HostEvent::Opened(file)).await;
                            }
                            Err(why) => return self.without_end(why),
                        }
                    }
                    Some(ProgramReport::Ended(outcome)) => return match sound(outcome) {
                        Some(outcome) => of_size(outcome, &self.subject.path, self.opened),
                        None => self.without_end("said what cannot be"),
                    },
                    Some(ProgramReport::Unfit) => return self.without_end("said what cannot be"),
                    None => return self.without_end("is gone"),
                },
                Ok(()) = progress.changed() => {
                    let taken = progress.borrow_and_update().taken.min(self.sent.bytes);
                    if taken > self.sent.told {
                        self.sent.told = taken;
                        self.tell(HostEvent::InputTaken(taken)).await;
                    }
                }
                piece = next(&mut pieces), if self.sent.has_room(rooms) => {
                    if self.pass_on(piece) {
                        pieces = None;
                    }
                }
            }
        }
    }

    async fn tell(&self, event: HostEvent) {
        // The receiver may be gone; an announcement that it does not get is refused.
        let _ = self.events.send(event).await;
    }

    /// Passes the answer to an announcement on.
    fn answer(&mut self, answer: Result<(), Refusal>) {
        self.is_told_to_change |= answer.is_ok();
        let (id, refusal) = (self.id, answer.err());
        self.link.say(&DaemonFrame::Answer { id, refusal }, &[]);
    }

    /// Passes a piece of input on; says whether it is the last.
    fn pass_on(&mut self, piece: Option<Input>) -> bool {
        let id = self.id;
        let Some(Input { offset, data, end }) = piece else {
            self.link.say(&DaemonFrame::NoMorePieces { id }, &[]);
            return true;
        };
        self.sent.pieces += 1;
        self.sent.bytes = self.sent.bytes.saturating_add(data.len() as u64);
        self.link
            .say(&DaemonFrame::Piece { id, offset, end }, &data);
        end
    }

    /// The end where the program says none that can be believed.
    fn without_end(&self, why: &str) -> Outcome {
        let (id, cause) = (self.id, ExitCause::Cancelled);
        self.link.say(&DaemonFrame::Stop { id, cause }, &[]);
        if self.is_told_to_change {
            let message = format!("the sandbox's file helper {why}; read the file to see");
            return lost(&message);
        }
        let message = match self.subject.only_reads {
            true => format!("the sandbox's file helper {why}; try again"),
            false => {
                format!("the sandbox's file helper {why}; nothing was changed, try again")
            }
        };
        let refusal = Refusal::new(RefusalCode::Unavailable, message);
        Outcome::Refused(refusal.retry_after(AGAIN_AFTER))
    }
}

impl UploadProgress {
    /// True if one more piece may be on its way, after so many reports of room.
    fn has_room(&self, rooms: u64) -> bool {
        let passed = rooms.min(self.pieces);
        self.pieces - passed < PIECES_WAITING as u64
    }
}

fn too_large() -> Refusal {
    let message = "the change names too much to be written down in advance, so it was not made; do it in parts";
    Refusal::new(RefusalCode::ResourceExhausted, message)
}

/// Waits for the answer to an announcement; for ever, where there is none to wait for.
async fn answer(
    answered: &mut Option<oneshot::Receiver<Result<(), Refusal>>>,
) -> Result<(), Refusal> {
    let Some(waiting) = answered else {
        return pending().await;
    };
    let answer = waiting.await;
    *answered = None;
    answer.unwrap_or_else(|_| Err(unheard()))
}

/// The file that was handed over. Its file system may be one that never answers.
async fn looked_at(descriptor: Option<OwnedFd>, bytes: u64) -> Result<OpenFile, &'static str> {
    let look = spawn_blocking(move || open_file(descriptor, bytes));
    match timeout(SAID_WITHIN, look).await {
        Ok(Ok(file)) => file,
        Ok(Err(_)) | Err(_) => Err("handed over a file that cannot be examined"),
    }
}

/// The next piece; for ever, where no more are to come.
async fn next(pieces: &mut Option<mpsc::Receiver<Input>>) -> Option<Input> {
    match pieces {
        Some(pieces) => pieces.recv().await,
        None => pending().await,
    }
}
