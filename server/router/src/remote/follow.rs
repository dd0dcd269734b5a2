//! Drives [`shared_link::server::Follow`]: one operation from its committed intent to its stored
//! outcome, over every link.
//!
//! Who reads may store the outcome itself, in one transaction with what it concludes from it; what
//! is not stored once the reader has gone, is stored here. So following goes on without a reader,
//! and ends early only when the runner is away: then the next inventory brings the outcome. The
//! output is kept on the way (`recording`): a reader that comes again reads that first.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use shared_link::{
    server::{self, Answer as Answered, Mail, Step},
    wire,
};
use shared_sandbox::{
    Control, Input, Operation, OperationEvent, Outcome, OutputStream, Request, Running,
};
use shared_types::{Generation, RunnerId};
use tokio::{sync::mpsc, time::sleep};
use tracing::Instrument;

use super::{
    RemoteSandbox, Watch,
    controls::{Answer, RemoteControls, Wishes},
    cursor::Cursor,
    linked,
    recording::Recording,
};
use crate::{
    links::{Connection, Gone, LinkHandle, Reader},
    mailbox::Mailbox,
    ports::{PortError, Settled, StoredIntent},
};

/// Events that may wait for the reader; what waits beside them is kept, or bounded by the credit.
const EVENTS: usize = 4;

/// How often the store is asked before the stream is given up, with doubling pauses.
const STORE_ATTEMPTS: u32 = 6;

/// The pause before the store is asked a second time.
const STORE_PAUSE: Duration = Duration::from_millis(50);

/// Starts to follow. `fresh`: the caller has just committed the intent, while this link was there.
pub(super) fn start(
    sandbox: RemoteSandbox,
    operation: Operation,
    stored: (StoredIntent, Option<Generation>),
    connection: Watch,
) -> Running {
    let (running, start) = Start::of(sandbox, operation, stored);
    // Detached on purpose: it ends with the operation, or as the header says.
    let span = start.span.clone();
    tokio::spawn(
        async move {
            let (recording, kept) = start.recording().await;
            let cursor = recording.cursor(kept, [0, 0]);
            start.follow((recording, cursor), kept, connection).await;
        }
        .instrument(span),
    );
    running
}

/// The same for a collector. Also says how much of stdout and stderr is kept: of that it is told
/// nothing.
pub(super) async fn collect(
    sandbox: RemoteSandbox,
    operation: Operation,
    stored: (StoredIntent, Option<Generation>),
    connection: Watch,
) -> (Running, [u64; 2]) {
    let (running, mut start) = Start::of(sandbox, operation, stored);
    start.collects = true;
    let (recording, kept) = start.recording().await;
    let cursor = recording.cursor(kept, kept);
    let span = start.span.clone();
    // Detached on purpose, as above.
    tokio::spawn(
        start
            .follow((recording, cursor), kept, connection)
            .instrument(span),
    );
    (running, kept)
}

/// What it takes to begin.
struct Start {
    sandbox: RemoteSandbox,
    operation: Operation,
    intent: StoredIntent,
    fresh: Option<Generation>,
    events: mpsc::Sender<OperationEvent>,
    wishes: Wishes,
    collects: bool,
    span: tracing::Span,
}

impl Start {
    fn of(
        sandbox: RemoteSandbox,
        operation: Operation,
        (intent, fresh): (StoredIntent, Option<Generation>),
    ) -> (Running, Self) {
        let (events, receiver) = mpsc::channel(EVENTS);
        let (controls, wishes) = RemoteControls::pair();
        let place = intent.place.clone();
        let span = tracing::info_span!(
            "operation",
            operation.id = %operation.id,
            runner.id = %place.runner
        );
        let running = Running {
            place,
            events: receiver,
            controls: Arc::new(controls),
        };
        let start = Self {
            sandbox,
            operation,
            intent,
            fresh,
            events,
            wishes,
            collects: false,
            span,
        };
        (running, start)
    }

    /// Also says how much of stdout and stderr is kept.
    async fn recording(&self) -> (Recording, [u64; 2]) {
        let mut recording = Recording::of(&self.operation, self.sandbox.intents.outputs());
        let kept = match self.fresh {
            Some(_) => [0, 0],
            None => recording.kept().await,
        };
        (recording, kept)
    }

    async fn follow(
        self,
        (recording, cursor): (Recording, Cursor),
        kept: [u64; 2],
        connection: Watch,
    ) {
        let runner = self.intent.place.runner;
        let follow = Follow {
            sandbox: self.sandbox,
            machine: server::Follow::new(self.operation, self.intent, self.fresh, kept),
            mailbox: Mailbox::starting_at(kept),
            cursor,
            recording,
            link: None,
            events: self.events,
            wishes: self.wishes,
            waiters: HashMap::new(),
            waited: 0,
            collects: self.collects,
            unsaid_end: None,
        };
        if let Err(error) = follow.run(runner, connection).await {
            tracing::error!(%error, "gave an operation's stream up: the store does not answer");
        }
    }
}

struct Follow {
    sandbox: RemoteSandbox,
    machine: server::Follow,
    mailbox: Mailbox,
    recording: Recording,
    cursor: Cursor,
    /// The one that the machine knows of, and our key as a reader on it.
    link: Option<(LinkHandle, u64)>,
    events: mpsc::Sender<OperationEvent>,
    wishes: Wishes,
    /// Who waits for what was to be done to the process, by key; the machine bounds them.
    waiters: HashMap<u64, Answer<()>>,
    /// Keys that were given so far.
    waited: u64,
    /// Its reader is the operation's collector, which concludes nothing from the end: that is stored
    /// before it is told.
    collects: bool,
    /// The end that a collector is told once it is stored.
    unsaid_end: Option<Outcome>,
}

/// What can happen while the task waits for something.
enum Event {
    Mail(Mail),
    Told,
    Answered(Answered),
    Input(Input, Answer<u64>),
    Control(Control, Answer<()>),
    Committed,
    Kept(Vec<(OutputStream, u64)>),
}

impl Follow {
    async fn run(mut self, runner: RunnerId, mut connection: Watch) -> Result<(), PortError> {
        let (intents, fleet) = (self.sandbox.intents.clone(), self.sandbox.fleet.clone());
        let id = self.machine.operation().id;
        // As it is the first time.
        connection.mark_changed();
        loop {
            if self.waits_for_a_reader() {
                return Ok(());
            }
            let step = self.machine.step();
            match step {
                Step::Connection | Step::Return => {
                    tokio::select! {
                        changed = connection.changed() => match changed {
                            Ok(()) => self.connected(&mut connection),
                            Err(_) => return Ok(()),
                        },
                        () = self.events.closed(), if step == Step::Return => return Ok(()),
                        fed = self.cursor.feed(&self.events) => fed?,
                    }
                }
                Step::Find => {
                    let found = patiently(|| intents.find(id)).await?;
                    if let Some(stored) = found.as_ref().and_then(|found| found.outcome.as_ref()) {
                        self.ended_as(stored);
                    }
                    self.machine.found(found);
                }
                Step::RunnerState => {
                    let state = patiently(|| fleet.state(runner)).await?;
                    self.machine.runner_state(state, self.sandbox.clock.now());
                }
                Step::Settle(outcome) => {
                    let settled = patiently(|| intents.settle(id, &outcome)).await?;
                    if let Settled::Already(stored) = &settled {
                        self.ended_as(stored);
                    }
                    self.machine.settled(settled);
                }
                Step::Offer(outcome) if self.collects => {
                    self.hang_up();
                    self.unsaid_end = Some(outcome);
                    self.machine.offered();
                }
                Step::Offer(outcome) => {
                    self.offer(outcome).await?;
                    self.machine.offered();
                }
                Step::Mail => {
                    let event = self.next_event().await?;
                    self.handle(event);
                }
                Step::Kept(stream, from) => {
                    let kept = self.kept(stream, from).await?;
                    let kept = kept.as_ref().map(|(offset, data)| (*offset, &data[..]));
                    self.machine.kept(kept);
                }
                Step::Tell(event) => self.tell(event).await?,
                Step::Over => {
                    if let Some(outcome) = self.unsaid_end.take() {
                        self.cursor
                            .note(OperationEvent::Ended(outcome), &self.events);
                    }
                    return self.tell_the_end().await;
                }
                Step::Cancel | Step::Attach | Step::Taken(..) => {
                    if self.over_the_link(step).await.is_err() {
                        self.machine.link_lost();
                    }
                }
            }
        }
    }

    /// Reads what is kept, for its checksum. The reader is fed meanwhile: that may be long.
    async fn kept(
        &mut self,
        stream: OutputStream,
        from: u64,
    ) -> Result<Option<(u64, Bytes)>, PortError> {
        let id = self.machine.operation().id;
        let outputs = self.sandbox.intents.outputs();
        let mut read = pin!(patiently(|| outputs.read(id, stream, from)));
        loop {
            tokio::select! {
                kept = &mut read => return kept,
                fed = self.cursor.feed(&self.events) => fed?,
            }
        }
    }

    /// Tells the end, and waits until the reader has gone. One that is behind is not waited for: it is
    /// told the end after the rest, and the end is stored before.
    async fn offer(&mut self, outcome: Outcome) -> Result<(), PortError> {
        self.hang_up();
        let waits = !(self.recording.keeps_all() && self.cursor.is_behind());
        let ended = OperationEvent::Ended(outcome);
        self.cursor.note(ended, &self.events);
        if waits {
            self.tell_the_end().await?;
            self.events.closed().await;
        }
        Ok(())
    }

    /// This is the end that is stored, whatever the runner said.
    fn ended_as(&mut self, stored: &Outcome) {
        self.cursor.ended_as(stored);
        if let Some(unsaid) = &mut self.unsaid_end {
            unsaid.clone_from(stored);
        }
    }

    /// The bytes of a file that is downloaded are nowhere but in that file: without its reader they
    /// would be read for nothing, and be gone.
    fn needs_reader(&self) -> bool {
        matches!(self.machine.operation().request, Request::Download(_))
    }

    /// Whether the next reader is to go on, who attaches anew.
    fn waits_for_a_reader(&self) -> bool {
        self.needs_reader() && self.events.is_closed()
    }

    /// Keeps it and tells it. Where not everything is kept, what comes waits for the reader: nobody
    /// else has it. A slow reader holds up nothing that is passed on.
    async fn tell(&mut self, event: OperationEvent) -> Result<(), PortError> {
        if let OperationEvent::Ended(_) = event {
            self.hang_up();
        }
        self.recording.keep(&event).await;
        self.until_all_is_told().await?;
        self.cursor.note(event, &self.events);
        self.until_all_is_told().await
    }

    /// The operation has ended: whoever waits for something to be done to it, or has one more wish,
    /// hears so at once, also one who reads no events meanwhile.
    fn hang_up(&mut self) {
        self.waiters.clear();
        (_, self.wishes) = RemoteControls::pair();
    }

    async fn until_all_is_told(&mut self) -> Result<(), PortError> {
        while self.cursor.is_behind() && !self.recording.keeps_all() {
            let event = self.next_event().await?;
            self.handle(event);
        }
        Ok(())
    }

    /// Nothing comes any more: the rest of what is kept is told, where the end follows it.
    async fn tell_the_end(&mut self) -> Result<(), PortError> {
        while self.cursor.is_ending() {
            self.cursor.feed(&self.events).await?;
        }
        Ok(())
    }

    /// Passes on what can be, and waits: for the reader to take what it is to be told, and for mail,
    /// unless that has to wait for the reader.
    async fn next_event(&mut self) -> Result<Event, PortError> {
        self.pass_on().await;
        let needs_reader = self.needs_reader();
        let Wishes {
            inputs,
            controls,
            commits,
        } = &mut self.wishes;
        let takes_mail = self.recording.keeps_all() || !self.cursor.is_behind();
        Ok(tokio::select! {
            answer = self.mailbox.answer() => Event::Answered(answer),
            Some((input, answer)) = inputs.recv(), if self.machine.takes_input() => {
                Event::Input(input, answer)
            }
            Some((control, answer)) = controls.recv(), if self.machine.takes_controls() => {
                Event::Control(control, answer)
            }
            Ok(()) = commits.changed() => Event::Committed,
            () = self.events.closed(), if needs_reader => Event::Told,
            grown = self.recording.committed() => Event::Kept(grown),
            fed = self.cursor.feed(&self.events) => {
                fed?;
                Event::Told
            }
            mail = self.mailbox.next(), if takes_mail => Event::Mail(mail),
        })
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Mail(mail) => self.machine.mail(mail),
            Event::Told => {}
            Event::Answered(answer) => {
                if let Some(controlled) = self.machine.answer(answer)
                    && let Some(waiter) = self.waiters.remove(&controlled.key)
                {
                    // Whoever stopped waiting does not want to know.
                    let _ = waiter.send(controlled.result);
                }
            }
            Event::Input(input, answer) => drop(answer.send(self.machine.input(&input))),
            Event::Control(control, answer) => {
                self.waited += 1;
                self.waiters.insert(self.waited, answer);
                self.machine.control(self.waited, control);
            }
            Event::Committed => {
                let [stdout, stderr] = *self.wishes.commits.borrow_and_update();
                if self.recording.is_left_to_the_reader() {
                    self.machine.commit(OutputStream::Stdout, stdout);
                    self.machine.commit(OutputStream::Stderr, stderr);
                }
            }
            Event::Kept(grown) => {
                for (stream, up_to) in grown {
                    self.machine.commit(stream, up_to);
                }
            }
        }
    }

    async fn pass_on(&mut self) {
        let Some((link, key)) = &self.link else {
            return;
        };
        let id = self.machine.operation().id;
        while let Some(frame) = self.machine.passed_on(|| link.control_id()) {
            if link.pass(id, *key, frame).await.is_err() {
                // The mailbox says so after what is left in it; then all of it is sent again.
                return;
            }
        }
    }

    fn connected(&mut self, connection: &mut Watch) {
        let now = connection.borrow_and_update().clone();
        self.link = match &now {
            Connection::Online(link) => Some((link.clone(), link.reader())),
            _ => None,
        };
        self.machine.connection(linked(&now));
    }

    async fn over_the_link(&mut self, step: Step) -> Result<(), Gone> {
        let (link, key) = self.link.as_ref().ok_or(Gone)?;
        let (id, holder) = {
            let operation = self.machine.operation();
            (operation.id, (operation.owner, operation.epoch))
        };
        match step {
            Step::Cancel => {
                link.cancel_unheard(id, holder).await?;
            }
            Step::Taken(stream, up_to) => {
                if let Some(up_to) = self.mailbox.taken(stream, up_to) {
                    // If the link is gone, the mailbox says so after what is left in it.
                    let _ = link.grant(id, *key, stream, up_to).await;
                }
            }
            _ => {
                let (post, offsets) = self.mailbox.attach();
                let reader = Reader {
                    key: *key,
                    post,
                    expects: wire::expected(&self.machine.operation().request),
                    yields: false,
                };
                let frame = self
                    .machine
                    .frame(offsets, &self.sandbox.clock.boot_moment());
                link.attach(id, frame, reader).await?;
                self.machine.attached();
            }
        }
        Ok(())
    }
}

/// Asks the store until it answers, a bounded number of times.
async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Result<T, PortError>
where
    F: Future<Output = Result<T, PortError>>,
{
    let mut pause = STORE_PAUSE;
    for _ in 1..STORE_ATTEMPTS {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => tracing::warn!(%error, "the store did not answer; asking again"),
        }
        sleep(pause).await;
        pause *= 2;
    }
    ask().await
}
