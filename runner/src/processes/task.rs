//! The task of one command: listens to its supervisor, and passes wishes on.
//!
//! It ends with the command. Where the supervisor is gone without a word, the records are settled
//! off the async threads, and the task goes on with what they say.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use runner_supervisor::{
    Cut, Directory, Ended, Event, Operation, OperationError, Recovered, Stream, settle,
};
use shared_sandbox::Outcome;
use shared_types::{Refusal, RefusalCode};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{mpsc, watch},
    time::sleep,
};
use tracing::Instrument as _;

use super::{
    Control, EVENTS_WAITING, Process, ProcessEnd, ProcessEvent, Spool, control::Wishes, outcome,
    run_blocking,
};

/// How often records that cannot be settled are tried again: a supervisor that is about to end can
/// be kept by the host.
const SETTLE_ATTEMPTS: u32 = 10;

/// Between these attempts.
const SETTLE_EVERY: Duration = Duration::from_secs(1);

/// Begins to listen to a command that was started, or that was meant to.
pub(super) fn spawn(
    path: PathBuf,
    started: Result<Operation, (Directory, OperationError)>,
) -> Process {
    let (control, wishes) = Control::new();
    let (events, receiver) = mpsc::channel(EVENTS_WAITING);
    let spool = Spool::new(path.clone());
    let span = tracing::debug_span!("process", process.directory = spool.name());
    let task = Task {
        path,
        started: false,
        wishes: Some(wishes),
        obeyed: Wishes::default(),
        events,
        readable: [0; 2],
        told: [0; 2],
    };
    tokio::spawn(task.run(started).instrument(span));
    Process {
        control,
        events: receiver,
        spool,
    }
}

struct Task {
    path: PathBuf,
    started: bool,
    /// `None` once nobody is left who could wish.
    wishes: Option<watch::Receiver<Wishes>>,
    /// What the supervisor was told of them.
    obeyed: Wishes,
    events: mpsc::Sender<ProcessEvent>,
    /// How far the streams can be read.
    readable: [u64; 2],
    /// What was said of that.
    told: [u64; 2],
}

/// What a task waits for.
enum Step {
    Heard(Result<Event, Cut>),
    Wished,
    NobodyWishes,
    Told,
}

impl Task {
    async fn run(mut self, started: Result<Operation, (Directory, OperationError)>) {
        let end = match started {
            Ok(operation) => self.follow(operation).await,
            Err((_, OperationError::Request(error))) => {
                let refusal = Refusal::new(RefusalCode::Invalid, error.to_string());
                ProcessEnd::Outcome(Outcome::Refused(refusal))
            }
            Err((_, error)) => {
                tracing::debug!(%error, "failed to hand a command over");
                match settled(&self.path).await {
                    Ok(operation) => self.follow(operation).await,
                    Err(end) => end,
                }
            }
        };
        // Nobody may be listening any more, and that changes nothing.
        let _ = self.events.send(ProcessEvent::Ended(end)).await;
    }

    /// Follows it to its end, over as many connections as that takes.
    async fn follow(&mut self, mut operation: Operation) -> ProcessEnd {
        loop {
            if let Ok(socket) = observe(operation)
                && let Ok(end) = self.listen(socket).await
            {
                return end;
            }
            match settled(&self.path).await {
                Ok(attached) => operation = attached,
                Err(end) => return end,
            }
            // Whoever listens now may have heard nothing of it.
            self.obeyed = Wishes::default();
            self.started = true;
        }
    }

    /// Listens until the end, or until the connection is gone.
    async fn listen(&mut self, mut socket: AsyncFd<Operation>) -> Result<ProcessEnd, Cut> {
        loop {
            self.obey(socket.get_mut());
            match self.step(&mut socket).await {
                Step::Heard(heard) => match heard? {
                    Event::Started(_) => self.started = true,
                    Event::Output { out, err } => self.readable = [out, err],
                    Event::Refused(reason) => {
                        tracing::warn!(reason, "a supervisor refused what it was told");
                        // The request: then it still waits, and is not to wait for ever.
                        if !self.started {
                            return Err(Cut);
                        }
                    }
                    Event::InputTaken(_) | Event::Done(_) => {}
                    Event::Ended(Ended::Exited(record)) => {
                        return Ok(ProcessEnd::Outcome(outcome::of(record)));
                    }
                    Event::Ended(Ended::Fenced) => return Ok(ProcessEnd::Fenced),
                },
                Step::NobodyWishes => self.wishes = None,
                Step::Wished | Step::Told => {}
            }
        }
    }

    async fn step(&mut self, socket: &mut AsyncFd<Operation>) -> Step {
        let free = !socket.get_ref().is_behind();
        tokio::select! {
            biased;
            heard = heard(socket) => Step::Heard(heard),
            wished = wished(self.wishes.as_mut()), if free => match wished {
                Ok(()) => Step::Wished,
                Err(_) => Step::NobodyWishes,
            },
            room = self.events.reserve(), if self.told != self.readable => {
                self.told = self.readable;
                if let Ok(room) = room {
                    room.send(ProcessEvent::Output(self.told));
                }
                Step::Told
            }
        }
    }

    /// Tells the supervisor what is new, unless it is still busy with what it was told before. That
    /// it is gone is heard, not noticed here.
    fn obey(&mut self, operation: &mut Operation) {
        let Some(wishes) = self.wishes.as_mut().filter(|_| !operation.is_behind()) else {
            return;
        };
        let wished = *wishes.borrow_and_update();
        if wished.cancel && !self.obeyed.cancel {
            let _ = operation.cancel();
        }
        if wished.orphan && !self.obeyed.orphan {
            let _ = operation.renew(Duration::ZERO);
        }
        if wished.renewed != self.obeyed.renewed && !wished.orphan {
            let _ = operation.renew(wished.renewed.1);
        }
        for stream in Stream::ALL {
            let offset = wished.committed[stream.index()];
            if offset > self.obeyed.committed[stream.index()] {
                let _ = operation.commit(stream, offset);
            }
        }
        self.obeyed = wished;
    }
}

/// The next thing that the supervisor says; sends meanwhile what is left to be sent.
async fn heard(socket: &mut AsyncFd<Operation>) -> Result<Event, Cut> {
    loop {
        let interest = if socket.get_ref().is_behind() {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        // Only a runtime that shuts down makes this fail.
        let mut guard = socket.ready_mut(interest).await.map_err(|_| Cut)?;
        if guard.ready().is_writable() {
            guard.get_inner_mut().flush()?;
            if guard.get_inner().is_behind() {
                guard.clear_ready_matching(tokio::io::Ready::WRITABLE);
            }
        }
        if guard.ready().is_readable() {
            match guard.get_inner_mut().next_event()? {
                Some(event) => return Ok(event),
                None => guard.clear_ready_matching(tokio::io::Ready::READABLE),
            }
        }
    }
}

async fn wished(
    wishes: Option<&mut watch::Receiver<Wishes>>,
) -> Result<(), watch::error::RecvError> {
    match wishes {
        Some(wishes) => wishes.changed().await,
        None => std::future::pending().await,
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for those who close a registered descriptor; an owned one stays open"
)]
fn observe(operation: Operation) -> io::Result<AsyncFd<Operation>> {
    AsyncFd::with_interest(operation, Interest::READABLE | Interest::WRITABLE)
}

/// What the records say once the supervisor is gone: another connection to it, or the end.
async fn settled(path: &Path) -> Result<Operation, ProcessEnd> {
    let mut attempts = 1..=SETTLE_ATTEMPTS;
    loop {
        let path = path.to_owned();
        let error = match run_blocking(move || settle(Directory::open(&path)?)).await {
            Ok(Recovered::Running(operation)) => return Ok(*operation),
            Ok(Recovered::Fenced(_)) => return Err(ProcessEnd::Fenced),
            Ok(Recovered::Ended(_, record)) => {
                return Err(ProcessEnd::Outcome(outcome::of(record)));
            }
            Err(error) => error,
        };
        tracing::warn!(%error, "failed to settle a command");
        if attempts.next().is_none() {
            return Err(ProcessEnd::Outcome(outcome::lost(&error.to_string())));
        }
        sleep(SETTLE_EVERY).await;
    }
}
