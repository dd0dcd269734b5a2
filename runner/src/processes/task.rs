//! The task of one command: listens to its supervisor, and passes wishes on.
//!
//! It ends with the command. If the supervisor is gone without a report, or does not report the
//! start in time, the records are settled off the async threads. Then the task goes on with the
//! result. While the command runs, a supervisor may be silent for as long as it likes. That ends
//! once it was asked to end the command (see `ending`), or should have ended it (see `overdue`).

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use runner_supervisor::{
    Cause, Cut, Directory, OperationEnd, OperationError, Realm, RecordError, Recovered,
    SpoolStream, SupervisedOperation, SupervisorEvent, SupervisorPool,
};
use shared_sandbox::Outcome;
use shared_types::{Refusal, RefusalCode};
use tokio::{
    io::{Interest, Ready, unix::AsyncFd},
    sync::{
        mpsc::{self, error::TrySendError},
        watch,
    },
    time::{Sleep, sleep},
};
use tracing::Instrument as _;

use super::{
    Control, EVENTS_WAITING, PassingControls, Process, ProcessEnd, ProcessEvent, Spool,
    control::ProcessWishes,
    ending::{self, Due, PendingEnd},
    outcome,
    overdue::Overdue,
    passing::SentControls,
    run_blocking,
};

/// The longest wait for a supervisor to report that the command has started.
const STARTED_WITHIN: Duration = Duration::from_secs(10);

/// The number of attempts to settle records: the host can keep a supervisor that is about to end.
const SETTLE_ATTEMPTS: u32 = 10;

/// Between these attempts.
const SETTLE_EVERY: Duration = Duration::from_secs(1);

/// The place of a command's supervisor.
pub(super) struct Supervised {
    /// Its directory.
    pub(super) path: PathBuf,
    /// The realm of the processes that its records name.
    pub(super) realm: Realm,
    /// The pool that its supervisor goes to afterwards.
    pub(super) pool: Option<Arc<SupervisorPool>>,
}

/// Begins to listen to a command that was started, or whose start failed, or whose supervisor lives
/// and accepts no connection for now.
pub(super) fn spawn(
    of: Supervised,
    started: Result<SupervisedOperation, OperationError>,
    passing: PassingControls,
    overdue: Overdue,
    kill_grace: Duration,
) -> Process {
    let (control, wishes) = Control::new(passing.clone());
    let (events, receiver) = mpsc::channel(EVENTS_WAITING);
    let from = of.pool.as_ref().map(Arc::downgrade).unwrap_or_default();
    let spool = Spool::new(of.path.clone(), of.realm, from);
    let span = tracing::debug_span!("process", process.directory = spool.name());
    // One that is attached to was started by an earlier daemon.
    let attached = matches!(&started, Ok(operation) if operation.identity().is_none());
    let task = SupervisedTask {
        of,
        started: attached,
        wishes,
        obeyed: ProcessWishes::default(),
        overdue,
        renewals: 0,
        kill_grace,
        ending: None,
        nobody_wishes: false,
        events,
        news: News::default(),
        passing,
        sent: SentControls::default(),
    };
    tokio::spawn(task.run(started).instrument(span));
    Process {
        control,
        events: receiver,
        spool,
    }
}

struct SupervisedTask {
    of: Supervised,
    started: bool,
    wishes: watch::Receiver<ProcessWishes>,
    /// The wishes that were passed on to the supervisor.
    obeyed: ProcessWishes,
    /// The time until it has to end.
    overdue: Overdue,
    /// The number of renewals that were counted there.
    renewals: u64,
    /// Between the polite signal and the kill.
    kill_grace: Duration,
    /// The end, once it has begun.
    ending: Option<PendingEnd>,
    /// True once no sender of wishes is left.
    nobody_wishes: bool,
    events: mpsc::Sender<ProcessEvent>,
    news: News,
    passing: PassingControls,
    sent: SentControls,
}

/// The events of a command that are to be reported.
#[derive(Default)]
struct News {
    /// The length of each stream that can be read.
    readable: [u64; 2],
    /// The lengths that were reported.
    told: Option<[u64; 2]>,
    /// The length of the input that was taken, until it is reported.
    taken: Option<u64>,
    /// The controls that were done, until they are reported; the table of operations bounds them.
    done: VecDeque<(u64, Result<(), Refusal>)>,
}

impl News {
    /// The next event to report; output only of a command that has started.
    fn next(&self, started: bool) -> Option<ProcessEvent> {
        let done = self.done.front().cloned();
        let done = done.map(|(id, result)| ProcessEvent::Done(id, result));
        let runs = started || self.readable != [0; 2];
        let readable = runs.then_some(self.readable);
        let output = || {
            readable
                .filter(|_| self.told != readable)
                .map(ProcessEvent::Output)
        };
        done.or_else(|| self.taken.map(ProcessEvent::InputTaken))
            .or_else(output)
    }

    fn told(&mut self, event: ProcessEvent) {
        match event {
            ProcessEvent::Output(readable) => self.told = Some(readable),
            ProcessEvent::InputTaken(_) => self.taken = None,
            ProcessEvent::Done(..) | ProcessEvent::Ended(_) => drop(self.done.pop_front()),
        }
    }
}

/// The reason why the task stops to listen to a supervisor.
enum Halt {
    Ended(OperationEnd),
    /// The records tell what holds.
    Cut,
    /// It is to be ended by force, for this reason.
    Overdue(Cause),
}

/// An event that a task waits for.
enum TaskEvent {
    /// Something is to be done for its end.
    Due(Due),
    /// Its time is over, and its supervisor does not end it.
    Over(Cause),
    /// The start was not reported in time.
    Unheard,
    Heard(SupervisorEvent),
    /// Everything that waited to be sent is sent.
    Sent,
    Cut,
    Wished,
    NobodyWishes,
    Passed,
    Room,
}

impl SupervisedTask {
    async fn run(mut self, started: Result<SupervisedOperation, OperationError>) {
        let end = match started {
            Ok(operation) => self.follow(operation).await,
            Err(OperationError::Request(error)) => {
                let refusal = Refusal::new(RefusalCode::Invalid, error.to_string());
                ProcessEnd::Outcome(Outcome::Refused(refusal))
            }
            Err(error) => {
                tracing::debug!(%error, "failed to reach a supervisor");
                match self.settled().await {
                    Ok(operation) => self.follow(operation).await,
                    Err(end) => end,
                }
            }
        };
        // The receiver may be gone, and that changes nothing.
        let _ = self.events.send(ProcessEvent::Ended(end)).await;
    }

    /// Follows it to its end, over as many connections as that takes.
    async fn follow(&mut self, mut operation: SupervisedOperation) -> ProcessEnd {
        loop {
            let halt = match observe(operation) {
                Ok(mut socket) => match self.listen(&mut socket).await {
                    Halt::Ended(ended) => return self.ended(ended, socket.into_inner()),
                    halt => halt,
                },
                Err(_) => Halt::Cut,
            };
            let settled = match halt {
                Halt::Overdue(cause) => {
                    let realm = self.of.realm;
                    let force = move |directory| realm.end_by_force(directory, cause);
                    settled(&self.of, force).await
                }
                Halt::Ended(_) | Halt::Cut => self.settled().await,
            };
            match settled {
                Ok(attached) => operation = attached,
                Err(end) => return end,
            }
            // The new connection may know none of the wishes.
            self.obeyed = ProcessWishes::default();
            self.started = true;
        }
    }

    /// Settles the command by its records.
    async fn settled(&self) -> Result<SupervisedOperation, ProcessEnd> {
        let realm = self.of.realm;
        settled(&self.of, move |directory| realm.settle(directory)).await
    }

    fn ended(&self, ended: OperationEnd, operation: SupervisedOperation) -> ProcessEnd {
        match ended {
            OperationEnd::Exited(record) => {
                if let Some((spent, pool)) = operation.into_spent().zip(self.of.pool.as_ref()) {
                    pool.keep(spent);
                }
                ProcessEnd::Outcome(outcome::of(record))
            }
            OperationEnd::Fenced => ProcessEnd::Fenced,
        }
    }

    /// Listens until the end, or as long as that is of use.
    async fn listen(&mut self, socket: &mut AsyncFd<SupervisedOperation>) -> Halt {
        let mut unheard = pin!(sleep(STARTED_WITHIN));
        // One that was attached to says so first; a new one has taken nothing.
        let taken = socket.get_ref().identity().map(|_| 0);
        self.passing.connected(&mut self.sent, taken);
        loop {
            // Before each wait, so that a supervisor that always has something to report blocks
            // neither wishes nor events.
            self.obey(socket.get_mut());
            self.passing.pass_on(&mut self.sent, socket.get_mut());
            self.tell();
            match self.step(socket, unheard.as_mut()).await {
                TaskEvent::Due(due) => {
                    if let Some(halt) = self.bring_about(due).await {
                        return halt;
                    }
                }
                TaskEvent::Over(cause) => {
                    tracing::warn!(?cause, "a supervisor does not end its command in time");
                    self.ending = Some(PendingEnd::because(cause, self.kill_grace));
                }
                TaskEvent::Heard(event) => match event {
                    SupervisorEvent::Started(_) => self.started = true,
                    SupervisorEvent::Output { out, err } => self.news.readable = [out, err],
                    SupervisorEvent::Refused(reason) => {
                        tracing::warn!(reason, "a supervisor refused what it was told");
                        // The request: then it still waits, and is not to wait for ever.
                        if !self.started {
                            return Halt::Cut;
                        }
                    }
                    SupervisorEvent::InputTaken(up_to) => {
                        self.passing.taken(&mut self.sent, up_to);
                        self.news.taken = Some(up_to);
                    }
                    SupervisorEvent::Done(id) => {
                        self.passing.done(&mut self.sent, id);
                        self.news.done.push_back((id, Ok(())));
                    }
                    SupervisorEvent::NotDone(id, reason) => {
                        self.not_done(id, RefusalCode::Invalid, reason);
                    }
                    // The same may succeed under a new id.
                    SupervisorEvent::Overtaken(id, reason) => {
                        self.not_done(id, RefusalCode::ResourceExhausted, reason);
                    }
                    SupervisorEvent::Ended(ended) => return Halt::Ended(ended),
                },
                TaskEvent::Cut | TaskEvent::Unheard => return Halt::Cut,
                TaskEvent::NobodyWishes => self.nobody_wishes = true,
                TaskEvent::Sent | TaskEvent::Wished | TaskEvent::Passed | TaskEvent::Room => {}
            }
        }
    }

    fn not_done(&mut self, id: u64, code: RefusalCode, reason: String) {
        self.passing.done(&mut self.sent, id);
        self.news
            .done
            .push_back((id, Err(Refusal::new(code, reason))));
    }

    async fn step(
        &mut self,
        socket: &mut AsyncFd<SupervisedOperation>,
        unheard: Pin<&mut Sleep>,
    ) -> TaskEvent {
        let untold = self.news.next(self.started).is_some();
        let ends = self.ending.is_some();
        tokio::select! {
            biased;
            due = ending::due(&mut self.ending), if ends => TaskEvent::Due(due),
            cause = self.overdue.over(), if !ends => TaskEvent::Over(cause),
            step = heard(socket) => step.unwrap_or(TaskEvent::Cut),
            () = unheard, if !self.started => TaskEvent::Unheard,
            wished = self.wishes.changed(), if !self.nobody_wishes => {
                wished.map_or(TaskEvent::NobodyWishes, |()| TaskEvent::Wished)
            }
            () = self.passing.changed(), if !socket.get_ref().is_behind() => TaskEvent::Passed,
            _ = self.events.reserve(), if untold => TaskEvent::Room,
        }
    }

    /// Does what is due for its end.
    async fn bring_about(&mut self, due: Due) -> Option<Halt> {
        match due {
            Due::Ask => {
                ask(&self.of).await;
                // A supervisor that was stopped early has not said whether the command started; the
                // records tell.
                (!self.started).then_some(Halt::Cut)
            }
            Due::Force(cause) => Some(Halt::Overdue(cause)),
        }
    }

    /// Reports the news, if there is room for it; else it is reported later, with the news until
    /// then.
    fn tell(&mut self) {
        while let Some(event) = self.news.next(self.started) {
            if let Err(TrySendError::Full(_)) = self.events.try_send(event.clone()) {
                return;
            }
            self.news.told(event);
        }
    }

    /// Passes the wishes on, unless the supervisor is still busy with earlier ones. If the
    /// supervisor is gone, the next read finds that out, not this.
    fn obey(&mut self, operation: &mut SupervisedOperation) {
        let wished = *self.wishes.borrow_and_update();
        if self.ending.is_none() {
            self.ending = PendingEnd::wished(&wished, self.kill_grace);
        }
        if wished.renewed.0 != self.renewals {
            self.renewals = wished.renewed.0;
            self.overdue.renew(wished.renewed.1);
        }
        if operation.is_behind() {
            return;
        }
        if wished.cancel && !self.obeyed.cancel {
            let _ = operation.cancel();
        }
        if wished.orphan && !self.obeyed.orphan {
            let _ = operation.renew(Duration::ZERO);
        }
        if wished.renewed != self.obeyed.renewed && !wished.orphan {
            let _ = operation.renew(wished.renewed.1);
        }
        for stream in SpoolStream::ALL {
            let offset = wished.committed[stream.index()];
            if offset > self.obeyed.committed[stream.index()] {
                let _ = operation.commit(stream, offset);
            }
        }
        self.obeyed = wished;
    }
}

/// The next event of the supervisor; in that time it sends what is left to send.
async fn heard(socket: &mut AsyncFd<SupervisedOperation>) -> Result<TaskEvent, Cut> {
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
                return Ok(TaskEvent::Sent);
            }
            guard.clear_ready_matching(Ready::WRITABLE);
        }
        if guard.ready().is_readable() {
            match guard.get_inner_mut().next_event()? {
                Some(event) => return Ok(TaskEvent::Heard(event)),
                None => guard.clear_ready_matching(Ready::READABLE),
            }
        }
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for those who close a registered descriptor; an owned one stays open"
)]
fn observe(operation: SupervisedOperation) -> io::Result<AsyncFd<SupervisedOperation>> {
    AsyncFd::with_interest(operation, Interest::READABLE | Interest::WRITABLE)
}

/// Asks a command to end whose supervisor is stopped.
async fn ask(of: &Supervised) {
    let (path, realm) = (of.path.clone(), of.realm);
    let asked = run_blocking(move || realm.ask_to_end(&Directory::open(&path)?)).await;
    if let Err(error) = asked {
        tracing::warn!(%error, "failed to look after the supervisor of a command that is to end");
    }
}

/// Settles by the records once the supervisor is gone, or is not waited for any longer: another
/// connection to it, or the end.
async fn settled<S>(of: &Supervised, settle: S) -> Result<SupervisedOperation, ProcessEnd>
where
    S: Fn(Directory) -> Result<Recovered, RecordError> + Copy + Send + 'static,
{
    let mut attempts = 1..=SETTLE_ATTEMPTS;
    loop {
        let settling = of.path.clone();
        let error = match run_blocking(move || settle(Directory::open(&settling)?)).await {
            Ok(Recovered::Running(operation)) => return Ok(*operation),
            Ok(Recovered::Fenced(_)) => return Err(ProcessEnd::Fenced),
            Ok(Recovered::Ended(_, record)) => {
                return Err(ProcessEnd::Outcome(outcome::of(record)));
            }
            Err(error) => error,
        };
        tracing::warn!(
            error = outcome::in_words(&error),
            "failed to settle a command"
        );
        if attempts.next().is_none() {
            return Err(given_up(of, error).await);
        }
        sleep(SETTLE_EVERY).await;
    }
}

/// The end of a command that cannot be settled. Where its supervisor accepts no connection, its end
/// would never be known, so it is ended by force.
async fn given_up(of: &Supervised, error: RecordError) -> ProcessEnd {
    let (path, realm) = (of.path.clone(), of.realm);
    let force = move || realm.end_by_force(Directory::open(&path)?, Cause::SupervisorLost);
    let forced = match &error {
        RecordError::Io(io) if io.kind() == io::ErrorKind::TimedOut => run_blocking(force).await,
        _ => Err(error),
    };
    ProcessEnd::Outcome(match forced {
        Ok(Recovered::Ended(_, record)) => outcome::of(record),
        Ok(Recovered::Fenced(_)) => return ProcessEnd::Fenced,
        Ok(Recovered::Running(_)) => outcome::lost("its supervisor accepts no connection"),
        Err(error) => outcome::lost(&outcome::in_words(&error)),
    })
}
