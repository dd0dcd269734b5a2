//! The task of one command: listens to its supervisor, and passes wishes on.
//!
//! It ends with the command. Where the supervisor is gone without a word, the records are settled
//! off the async threads, and the task goes on with what they say.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use runner_supervisor::{
    Cut, Directory, Ended, Event, Operation, OperationError, Pool, Recovered, Stream, settle,
};
use shared_sandbox::Outcome;
use shared_types::{Refusal, RefusalCode};
use tokio::{
    io::{Interest, Ready, unix::AsyncFd},
    sync::{
        mpsc::{self, error::TrySendError},
        watch,
    },
    time::sleep,
};
use tracing::Instrument as _;

use super::{
    Control, EVENTS_WAITING, Passing, Process, ProcessEnd, ProcessEvent, Spool, control::Wishes,
    outcome, passing::Sent, run_blocking,
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
    passing: Passing,
    pool: Option<Arc<Pool>>,
) -> Process {
    let (control, wishes) = Control::new(passing.clone());
    let (events, receiver) = mpsc::channel(EVENTS_WAITING);
    let spool = Spool::new(path.clone());
    let span = tracing::debug_span!("process", process.directory = spool.name());
    let task = Task {
        path,
        pool,
        started: false,
        wishes,
        obeyed: Wishes::default(),
        nobody_wishes: false,
        events,
        readable: [0; 2],
        told: [0; 2],
        passing,
        sent: Sent::default(),
        taken: None,
        done: VecDeque::new(),
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
    /// Where its supervisor goes afterwards.
    pool: Option<Arc<Pool>>,
    started: bool,
    wishes: watch::Receiver<Wishes>,
    /// What the supervisor was told of them.
    obeyed: Wishes,
    /// Nobody is left who could wish.
    nobody_wishes: bool,
    events: mpsc::Sender<ProcessEvent>,
    /// How far the streams can be read.
    readable: [u64; 2],
    /// What was said of that.
    told: [u64; 2],
    passing: Passing,
    sent: Sent,
    /// How much input was taken, while that is yet to be said.
    taken: Option<u64>,
    /// What was done, while that is yet to be said; the table of operations bounds it.
    done: VecDeque<(u64, Result<(), Refusal>)>,
}

/// What a task waits for.
enum Step {
    Heard(Event),
    /// What was left to be sent is sent.
    Sent,
    Cut,
    Wished,
    NobodyWishes,
    Passed,
    Room,
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
        // One that was attached to says so first; a new one has taken nothing.
        let taken = socket.get_ref().identity().map(|_| 0);
        self.passing.connected(&mut self.sent, taken);
        loop {
            // Before each wait, so that a supervisor that always has something to say keeps nobody
            // from wishing or hearing.
            self.obey(socket.get_mut());
            self.passing.pass_on(&mut self.sent, socket.get_mut());
            self.tell();
            match self.step(&mut socket).await {
                Step::Heard(event) => match event {
                    Event::Started(_) => self.started = true,
                    Event::Output { out, err } => self.readable = [out, err],
                    Event::Refused(reason) => {
                        tracing::warn!(reason, "a supervisor refused what it was told");
                        // The request: then it still waits, and is not to wait for ever.
                        if !self.started {
                            return Err(Cut);
                        }
                    }
                    Event::InputTaken(up_to) => {
                        self.passing.taken(&mut self.sent, up_to);
                        self.taken = Some(up_to);
                    }
                    Event::Done(id) => {
                        self.passing.done(&mut self.sent, id);
                        self.done.push_back((id, Ok(())));
                    }
                    Event::NotDone(id, reason) => {
                        self.passing.done(&mut self.sent, id);
                        let refusal = Refusal::new(RefusalCode::Invalid, reason);
                        self.done.push_back((id, Err(refusal)));
                    }
                    Event::Ended(Ended::Exited(record)) => {
                        let spent = socket.into_inner().into_spent();
                        if let Some((spent, pool)) = spent.zip(self.pool.as_ref()) {
                            pool.keep(spent);
                        }
                        return Ok(ProcessEnd::Outcome(outcome::of(record)));
                    }
                    Event::Ended(Ended::Fenced) => return Ok(ProcessEnd::Fenced),
                },
                Step::Cut => return Err(Cut),
                Step::NobodyWishes => self.nobody_wishes = true,
                Step::Sent | Step::Wished | Step::Passed | Step::Room => {}
            }
        }
    }

    async fn step(&mut self, socket: &mut AsyncFd<Operation>) -> Step {
        let hears_wishes = !self.nobody_wishes && !socket.get_ref().is_behind();
        tokio::select! {
            biased;
            step = heard(socket) => step.unwrap_or(Step::Cut),
            wished = self.wishes.changed(), if hears_wishes => {
                wished.map_or(Step::NobodyWishes, |()| Step::Wished)
            }
            () = self.passing.changed(), if !socket.get_ref().is_behind() => Step::Passed,
            _ = self.events.reserve(), if self.untold().is_some() => Step::Room,
        }
    }

    /// Says what is new, if there is room for that; else it is said later, with what is new until
    /// then.
    fn tell(&mut self) {
        while let Some(event) = self.untold() {
            if let Err(TrySendError::Full(_)) = self.events.try_send(event.clone()) {
                return;
            }
            match event {
                ProcessEvent::Output(readable) => self.told = readable,
                ProcessEvent::InputTaken(_) => self.taken = None,
                ProcessEvent::Done(..) | ProcessEvent::Ended(_) => drop(self.done.pop_front()),
            }
        }
    }

    /// The next thing to be said.
    fn untold(&self) -> Option<ProcessEvent> {
        let done = self.done.front().cloned();
        let done = done.map(|(id, result)| ProcessEvent::Done(id, result));
        let output = || (self.told != self.readable).then_some(ProcessEvent::Output(self.readable));
        done.or_else(|| self.taken.map(ProcessEvent::InputTaken))
            .or_else(output)
    }

    /// Tells the supervisor what is new, unless it is still busy with what it was told before. That
    /// it is gone is heard, not noticed here.
    fn obey(&mut self, operation: &mut Operation) {
        if operation.is_behind() {
            return;
        }
        let wished = *self.wishes.borrow_and_update();
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
async fn heard(socket: &mut AsyncFd<Operation>) -> Result<Step, Cut> {
    loop {
        let behind = socket.get_ref().is_behind();
        let interest = if behind {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        // Only a runtime that shuts down makes this fail.
        let mut guard = socket.ready_mut(interest).await.map_err(|_| Cut)?;
        if behind && guard.ready().is_writable() {
            guard.get_inner_mut().flush()?;
            if !guard.get_inner().is_behind() {
                return Ok(Step::Sent);
            }
            guard.clear_ready_matching(Ready::WRITABLE);
        }
        if guard.ready().is_readable() {
            match guard.get_inner_mut().next_event()? {
                Some(event) => return Ok(Step::Heard(event)),
                None => guard.clear_ready_matching(Ready::READABLE),
            }
        }
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
