//! Drives [`shared_link::server::Follow`]: one operation from its committed intent to its stored outcome,
//! over every link.
//!
//! The order of steps is always the same, with readers or without:
//! 1. Output is stored before any reader receives it, and committed to the runner once it is durable.
//! 2. The end is stored.
//! 3. The server lets the runner forget the operation.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use shared_link::{
    server::{self, ControlAnswer as Answered, FollowStep, Mail},
    wire,
};
use shared_sandbox::{
    CancelAnswer, Control, Input, OperationEvent, Outcome, OutputStream, Request,
};
use shared_telemetry::server::OPERATION_START_DURATION;
use shared_types::{Generation, OperationId, Refusal, RefusalCode, human::duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, sleep_until},
};

use super::{
    Ports, asks_for_all,
    audience::Audience,
    controls::{ControlRequests, RemoteControls, ReplySender},
    keeping::Keeping,
    patience::{Pauses, patiently},
};
use crate::{
    bounds::{KEPT_AT_LAST_WITHIN, KEPT_ELSEWHERE_WITHIN, LOOK_AGAIN_AFTER, LOOK_WHILE_AWAY_EVERY},
    links::{
        ConnectionWatch, LinkGone, LinkHandle, OutputReader, RunnerConnection, linked,
        linked_or_not,
    },
    mailbox::Mailbox,
};
use server_records::{Outputs, PortError};

/// The arguments to begin with.
pub(super) struct Begin {
    pub(super) ports: Ports,
    pub(super) machine: server::Follow,
    /// The intent has just been committed, while this link was there.
    pub(super) fresh: Option<Generation>,
    pub(super) keeping: Keeping,
    pub(super) audience: Audience,
    pub(super) wishes: ControlRequests,
    /// Permits of the collectors that may ask for output once more at the same time.
    pub(super) again: Arc<Semaphore>,
}

/// One operation's task.
pub(super) struct CollectDriver {
    ports: Ports,
    machine: server::Follow,
    mailbox: Mailbox,
    keeping: Keeping,
    room: RoomCheck,
    /// The time of the next check whether the end was stored while the runner is away.
    look_while_away_at: Instant,
    audience: Audience,
    /// The link that the machine knows of, and our key as a reader on it.
    link: Option<(LinkHandle, u64)>,
    /// The operation was asked for over that link.
    is_attached: bool,
    wishes: ControlRequests,
    waiters: Waiters,
    /// Its end is stored.
    is_stored: bool,
    /// The runner may remember it.
    is_remembered: bool,
    /// A borrowed link was used since this replica last kept output itself.
    was_kept_elsewhere: bool,
    /// The operation was asked for over a borrowed link the last time.
    was_asked_by_holder: bool,
    /// The holder of that link was sent no request: it passes on no input.
    holder_lacks_request: bool,
    /// The time when readers look for the last output again, which its holder keeps.
    look_again: Option<LookAgain>,
    /// The link over which it is sent first, and the time when its intent was committed; until its runner has it.
    placed: Option<(Generation, Instant)>,
    again: Again,
}

/// The next time when readers look for output that another replica keeps.
struct LookAgain {
    at: Instant,
    pause: Duration,
}

impl LookAgain {
    fn soon() -> Self {
        let pause = KEPT_ELSEWHERE_WITHIN;
        let at = Instant::now() + pause;
        Self { at, pause }
    }

    /// The pauses grow, and end after 5 s: the holder has kept the output by then.
    fn next(self) -> Option<Self> {
        let pause = 2 * self.pause;
        let at = Instant::now() + pause;
        (pause <= KEPT_AT_LAST_WITHIN).then_some(Self { at, pause })
    }
}

/// The checks whether output can be kept that could not be.
struct RoomCheck {
    at: Option<Instant>,
    /// The pauses before the next check; they grow until something is kept.
    pauses: Pauses,
}

/// The callers that wait for a control of the process, by key; the machine bounds them.
#[derive(Default)]
struct Waiters {
    by_key: HashMap<u64, ReplySender<()>>,
    /// Keys that were given so far.
    given: u64,
}

impl Waiters {
    fn add(&mut self, waiter: ReplySender<()>) -> u64 {
        self.given += 1;
        self.by_key.insert(self.given, waiter);
        self.given
    }
}

/// The right to request the output of an ended operation once more.
struct Again {
    permits: Arc<Semaphore>,
    /// It has ended, and its output is requested once more: that takes a permit.
    is_needed: bool,
    permit: Option<OwnedSemaphorePermit>,
}

/// The work that is left once the machine has nothing more to do.
#[derive(Debug, PartialEq, Eq)]
enum RemainingWork {
    /// Nothing: a later reader that asks for the operation continues it.
    Nothing,
    /// The end is stored and passed on.
    Forget,
    /// Output that could not be kept is to be requested again.
    Output,
}

/// An event while the task waits for mail.
enum DriverEvent {
    Mail(Mail),
    Attended,
    Answered(Answered),
    Input(Input, ReplySender<u64>),
    Control(Control, ReplySender<()>),
    Committed,
    /// The offsets up to which stdout and stderr are durable; none if some of it cannot be kept.
    Durable(Option<[u64; 2]>),
    Asked,
    LookForRoom,
    /// Readers may find output by now that another replica keeps.
    LookAgain,
}

impl CollectDriver {
    pub(super) fn new(begin: Begin) -> Self {
        let pauses = room_pauses(&begin.ports);
        let mut driver = Self {
            mailbox: Mailbox::starting_at(begin.machine.came()),
            machine: begin.machine,
            ports: begin.ports,
            keeping: begin.keeping,
            room: RoomCheck { at: None, pauses },
            look_while_away_at: Instant::now() + LOOK_WHILE_AWAY_EVERY,
            audience: begin.audience,
            link: None,
            is_attached: false,
            wishes: begin.wishes,
            waiters: Waiters::default(),
            is_stored: false,
            is_remembered: false,
            was_kept_elsewhere: false,
            was_asked_by_holder: false,
            holder_lacks_request: false,
            look_again: None,
            placed: begin.fresh.map(|link| (link, Instant::now())),
            again: Again {
                permits: begin.again,
                is_needed: false,
                permit: None,
            },
        };
        driver.note_what_cannot_be_kept();
        driver
    }

    /// Runs until the end is stored, the output is kept, and the runner may forget both; or until this task can do
    /// nothing more.
    pub(super) async fn run(mut self, connection: ConnectionWatch) -> Result<(), PortError> {
        let ran = self.go_on(connection).await;
        self.let_go().await;
        ran
    }

    async fn go_on(&mut self, mut connection: ConnectionWatch) -> Result<(), PortError> {
        loop {
            // As in the first round.
            connection.mark_changed();
            let left = self.follow(&mut connection).await?;
            self.tell_the_one_reader().await;
            let has_ended = left != RemainingWork::Output;
            match left {
                RemainingWork::Nothing => return Ok(()),
                // Its reader confirms when it has all of it.
                RemainingWork::Forget if self.keeping.is_left_to_the_reader() => return Ok(()),
                RemainingWork::Forget if self.is_borrowed() => {
                    if self.wait_until_the_holder_kept().await {
                        return Ok(());
                    }
                }
                RemainingWork::Forget => {
                    if self.keeping.is_all_kept(self.machine.came()).await {
                        self.forget(&mut connection).await;
                        return Ok(());
                    }
                    self.again.permit = None;
                    self.note_what_cannot_be_kept();
                    self.until_there_is_room().await;
                    self.again.is_needed = true;
                }
                RemainingWork::Output => {}
            }
            if !self.begin_again(has_ended).await? {
                return Ok(());
            }
        }
    }

    async fn follow(
        &mut self,
        connection: &mut ConnectionWatch,
    ) -> Result<RemainingWork, PortError> {
        let operations = Arc::clone(&self.ports.operations);
        let id = self.machine.id();
        loop {
            if self.waits_for_its_reader() {
                return Ok(RemainingWork::Nothing);
            }
            match self.machine.step() {
                FollowStep::Connection => {
                    if self.audience.has_left() {
                        return Ok(RemainingWork::Nothing);
                    }
                    tokio::select! {
                        biased;
                        changed = connection.changed() => match changed {
                            Ok(()) => {
                                if self.takes_over_keeping(connection) && !self.begin_again(false).await? {
                                    return Ok(RemainingWork::Nothing);
                                }
                                self.wait_for_permit(connection).await;
                                self.connected(connection);
                            }
                            Err(_) => return Ok(RemainingWork::Nothing),
                        },
                        Ok(()) = self.wishes.asked.changed() => self.asked(),
                        () = self.audience.attend() => {}
                        () = sleep_until(self.look_while_away_at) => {
                            self.look_while_away(connection).await?;
                        }
                    }
                }
                FollowStep::Wait(time, why) => {
                    self.ports
                        .tell(format!("{why}; trying again in {}", duration(time)));
                    tokio::select! {
                        changed = connection.changed() => match changed {
                            Ok(()) => self.connected(connection),
                            Err(_) => return Ok(RemainingWork::Nothing),
                        },
                        () = sleep(time) => self.machine.waited(),
                    }
                }
                FollowStep::Find => {
                    let found = patiently(|| operations.find(id)).await?;
                    self.machine.found(found);
                }
                FollowStep::RunnerState => {
                    let runner = self.machine.runner();
                    let state = patiently(|| operations.runner(runner)).await?;
                    self.machine.runner_state(state, self.ports.clock.now());
                }
                FollowStep::Settle(outcome) => {
                    let settled = patiently(|| operations.settle(id, &outcome)).await?;
                    self.is_stored = true;
                    self.tell_holder_of_end().await;
                    self.machine.settled(settled);
                }
                FollowStep::Offer(outcome) => {
                    self.hang_up();
                    self.is_remembered = true;
                    let stored = self.audience.offer(outcome).await;
                    self.is_stored = stored;
                    if stored {
                        self.tell_holder_of_end().await;
                    }
                    self.machine.offered(stored);
                }
                FollowStep::Mail => {
                    let event = self.next_event().await;
                    let looks = matches!(event, DriverEvent::LookForRoom);
                    if looks && self.keeping.can_go_on().await {
                        return Ok(RemainingWork::Output);
                    }
                    self.handle(event);
                }
                FollowStep::Kept(stream, from) => {
                    let outputs = operations.outputs();
                    let kept: Option<(u64, Bytes)> =
                        patiently(|| outputs.read(id, stream, from)).await?;
                    let kept = kept.as_ref().map(|(offset, data)| (*offset, &data[..]));
                    self.machine.kept(kept);
                }
                FollowStep::Tell(OperationEvent::Gap { stream, from, to })
                    if self.keeping.is_left_to_the_reader() =>
                {
                    self.tell_what_was_kept(stream, from, to).await?;
                }
                FollowStep::Tell(event) => self.tell(event).await,
                FollowStep::Over if self.is_stored => return Ok(RemainingWork::Forget),
                FollowStep::Over => return Ok(RemainingWork::Nothing),
                FollowStep::Fence => {
                    let never_starts = self.fence().await;
                    self.machine.fenced(never_starts);
                }
                step @ (FollowStep::Cancel | FollowStep::Attach | FollowStep::Taken(..)) => {
                    if self.over_the_link(step).await.is_err() {
                        self.machine.link_lost();
                    }
                }
            }
        }
    }

    /// True if another replica has held the runner's link and kept the output, and now this one holds it.
    fn takes_over_keeping(&mut self, connection: &ConnectionWatch) -> bool {
        let is_here = match &*connection.borrow() {
            RunnerConnection::Online(link) => !link.is_borrowed(),
            _ => return false,
        };
        is_here
            && !self.keeping.is_left_to_the_reader()
            && std::mem::replace(&mut self.was_kept_elsewhere, false)
    }

    /// True if another replica holds the runner's link.
    fn is_borrowed(&self) -> bool {
        self.link
            .as_ref()
            .is_some_and(|(link, _)| link.is_borrowed())
    }

    /// True if a download has lost its reader. The bytes of its file are nowhere else, so without the reader they would
    /// be read for nothing and lost. The next reader has the file read again.
    fn waits_for_its_reader(&self) -> bool {
        self.audience.has_left() && self.is_download()
    }

    fn is_download(&self) -> bool {
        self.machine.request().is_some_and(Request::is_download)
    }

    /// Lets go of a download. One that has not ended waits on its runner for credit, with its file open, and no reader
    /// gives any. One that has ended is not known to the link any more.
    async fn let_go(&mut self) {
        if let Some((link, key)) = &self.link
            && self.is_download()
        {
            // A link that is gone has let go of it.
            let _ = link.let_go(self.machine.id(), *key).await;
        }
    }

    /// Keeps an event and passes it on. Output that is kept nowhere waits for its reader, but delays no input and no
    /// control.
    async fn tell(&mut self, event: OperationEvent) {
        match &event {
            OperationEvent::Accepted => {
                self.is_remembered = true;
                let link = self.link.as_ref().map(|(link, _)| link.generation());
                if let Some((over, at)) = self.placed.take()
                    && link == Some(over)
                {
                    OPERATION_START_DURATION.record(&[], at.elapsed().as_secs_f64());
                }
            }
            OperationEvent::Ended(outcome) => {
                self.hang_up();
                self.is_remembered |= !matches!(outcome, Outcome::Refused(_));
            }
            _ => {}
        }
        match self.is_borrowed() {
            true if matches!(event, OperationEvent::Output { .. }) => {
                self.look_again = Some(LookAgain::soon());
            }
            true => {}
            false => self.keeping.keep(&event).await,
        }
        self.note_what_cannot_be_kept();
        self.audience.note(event);
        while self.audience.is_behind() {
            let event = self.next_event().await;
            self.handle(event);
        }
    }

    /// Lets the replica that holds the link go on: it has left the end to this one. A holder that was not asked for the
    /// operation may have yet to keep its output.
    async fn tell_holder_of_end(&mut self) {
        if let Some((link, _)) = self.link.clone()
            && link.is_borrowed()
            && self.is_attached
            && !self.keeping.is_left_to_the_reader()
        {
            // If it does not arrive, the holder finds the end where it is stored.
            let _ = link.forget(self.machine.id()).await;
        }
    }

    /// Waits until the database has all output that came. Returns false if the link ended first. After 5 s it stops
    /// waiting, unless readers need all of it.
    async fn wait_until_the_holder_kept(&mut self) -> bool {
        let Some((link, _)) = self.link.clone() else {
            return false;
        };
        let (outputs, id) = (self.ports.operations.outputs(), self.machine.id());
        let [stdout, stderr] = self.machine.came();
        let is_whole = self.machine.request().is_some_and(asks_for_all);
        let (until, mut pauses) = (
            Instant::now() + KEPT_AT_LAST_WITHIN,
            room_pauses(&self.ports),
        );
        loop {
            // Bytes that never come count as well, so they are not read.
            let kept = outputs.resume(id).await;
            if kept.is_ok_and(|kept| kept[0] >= stdout && kept[1] >= stderr) {
                return true;
            }
            let pause = match (Instant::now() < until, is_whole) {
                (true, _) => LOOK_AGAIN_AFTER,
                (false, true) => pauses.next(),
                (false, false) => {
                    tracing::debug!(operation.id = %id, "the end of the output is not seen yet; the holder of the link keeps it");
                    return true;
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = link.over() => return false,
            }
        }
    }

    /// Passes on the kept bytes of a range that the runner has no more. A collector that did not know the request may
    /// have kept some of them while the one reader was away.
    async fn tell_what_was_kept(
        &mut self,
        stream: OutputStream,
        mut from: u64,
        to: u64,
    ) -> Result<(), PortError> {
        let (outputs, id) = (self.ports.operations.outputs(), self.machine.id());
        while from < to {
            let kept = patiently(|| outputs.read(id, stream, from)).await?;
            let (offset, mut data) = kept.unwrap_or((to, Bytes::new()));
            let begin = offset.clamp(from, to);
            if from < begin {
                let (from, to) = (from, begin);
                self.tell(OperationEvent::Gap { stream, from, to }).await;
            }
            data.truncate(usize::try_from(to - begin).unwrap_or(usize::MAX));
            from = begin + data.len() as u64;
            if !data.is_empty() {
                let offset = begin;
                self.tell(OperationEvent::Output {
                    stream,
                    offset,
                    data,
                })
                .await;
            }
        }
        Ok(())
    }

    /// Passes the last events on to the one reader.
    async fn tell_the_one_reader(&mut self) {
        while self.audience.is_behind() {
            self.audience.attend().await;
        }
    }

    /// Answers callers at once because the operation has ended: those that wait for a control, and those with one more
    /// request. They get the answer even if they read no events.
    fn hang_up(&mut self) {
        // The runner answers before it reports the end, for instance the signal that ended a process.
        while let Some(answer) = self.mailbox.answered() {
            self.handle(DriverEvent::Answered(answer));
        }
        self.waiters.by_key.clear();
        (_, self.wishes) = RemoteControls::pair(None);
    }

    /// Passes on requests, and waits for the next event: for mail only if it need not wait for a reader.
    async fn next_event(&mut self) -> DriverEvent {
        self.pass_on().await;
        let ControlRequests {
            inputs,
            controls,
            commits,
            asked,
        } = &mut self.wishes;
        let takes_mail = !self.audience.is_behind();
        let (look_at, came) = (self.room.at, self.machine.came());
        tokio::select! {
            answer = self.mailbox.answer() => DriverEvent::Answered(answer),
            Some((input, answer)) = inputs.recv(), if self.machine.takes_input() => {
                DriverEvent::Input(input, answer)
            }
            Some((control, answer)) = controls.recv(), if self.machine.takes_controls() => {
                DriverEvent::Control(control, answer)
            }
            Ok(()) = commits.changed() => DriverEvent::Committed,
            Ok(()) = asked.changed() => DriverEvent::Asked,
            durable = self.keeping.durable(came) => DriverEvent::Durable(durable),
            () = self.audience.attend() => DriverEvent::Attended,
            () = until(look_at) => DriverEvent::LookForRoom,
            () = until(self.look_again.as_ref().map(|look| look.at)) => DriverEvent::LookAgain,
            mail = self.mailbox.next(), if takes_mail => DriverEvent::Mail(mail),
        }
    }

    fn handle(&mut self, event: DriverEvent) {
        match event {
            DriverEvent::Mail(mail) => {
                if mail == Mail::Detached && self.is_borrowed() {
                    self.give_up_controls();
                }
                self.machine.mail(mail);
            }
            DriverEvent::Attended => {}
            DriverEvent::LookAgain => {
                self.look_again = self.look_again.take().and_then(LookAgain::next);
                if let Audience::Board(board) = &self.audience {
                    board.look_again();
                }
            }
            DriverEvent::LookForRoom => self.look_for_room_later(),
            DriverEvent::Asked => self.asked(),
            DriverEvent::Answered(answer) => {
                if let Some(controlled) = self.machine.answer(answer)
                    && let Some(waiter) = self.waiters.by_key.remove(&controlled.key)
                {
                    // A caller that stopped waiting needs no answer.
                    let _ = waiter.send(controlled.result);
                }
            }
            DriverEvent::Input(input, answer) => {
                // The caller with the input may just have brought the request, by which the operation takes input.
                if self.wishes.asked.has_changed().unwrap_or(false) {
                    self.asked();
                }
                drop(answer.send(self.machine.input(&input)));
            }
            DriverEvent::Control(control, answer) => {
                let key = self.waiters.add(answer);
                self.machine.control(key, control);
            }
            DriverEvent::Committed => {
                let confirmed = *self.wishes.commits.borrow_and_update();
                if self.keeping.is_left_to_the_reader() {
                    self.machine.confirmed(confirmed);
                }
            }
            DriverEvent::Durable(durable) => {
                if durable.is_some_and(|up_to| self.machine.durable(up_to)) {
                    self.room.pauses = room_pauses(&self.ports);
                }
                self.note_what_cannot_be_kept();
            }
        }
    }

    /// Answers the callers whose control the holder of a link may have passed on, or not. A holder gives controls ids of
    /// its own, so the runner would not know a second one for the same.
    fn give_up_controls(&mut self) {
        for key in self.machine.give_up_sent_controls() {
            if let Some(waiter) = self.waiters.by_key.remove(&key) {
                let message = "the server with the runner's link did not answer; it is not known if this was done";
                let _ = waiter.send(Err(Refusal::new(RefusalCode::Unavailable, message)));
            }
        }
    }

    fn asked(&mut self) {
        let asked = self.wishes.asked.borrow_and_update().clone();
        if let Some(asked) = asked {
            self.machine.ask(asked);
            if self.is_borrowed() && std::mem::take(&mut self.holder_lacks_request) {
                self.machine.ask_again();
            }
        }
    }

    async fn pass_on(&mut self) {
        let Some((link, key)) = &self.link else {
            return;
        };
        let id = self.machine.id();
        while let Some(frame) = self.machine.passed_on(|| link.control_id()) {
            if link.pass(id, *key, frame).await.is_err() {
                // The mailbox reports it after its last mail; then all of it is sent again.
                return;
            }
        }
    }

    /// Takes a permit: only a few ended operations whose output could not be kept request it again at once. One whose
    /// runner is away delays no other.
    async fn wait_for_permit(&mut self, connection: &ConnectionWatch) {
        let is_there = matches!(*connection.borrow(), RunnerConnection::Online(_));
        if !is_there {
            self.again.permit = None;
        } else if self.again.is_needed && self.again.permit.is_none() {
            self.again.permit = Arc::clone(&self.again.permits).acquire_owned().await.ok();
        }
    }

    fn connected(&mut self, connection: &mut ConnectionWatch) {
        let now = connection.borrow_and_update().clone();
        self.link = match (&now, self.link.take()) {
            // The same reader stays: without a request it would give way to another one, also to itself.
            (RunnerConnection::Online(link), Some((same, key))) if same.is(link) => {
                Some((same, key))
            }
            (RunnerConnection::Online(link), _) => {
                self.is_attached = false;
                Some((link.clone(), link.reader()))
            }
            (_, before) => {
                self.is_attached = false;
                if before.is_some() {
                    self.look_while_away_at = Instant::now() + LOOK_WHILE_AWAY_EVERY;
                }
                None
            }
        };
        self.was_kept_elsewhere |= self.is_borrowed();
        self.machine.connection(linked(&now));
    }

    /// Checks if another server has stored the end without the runner's report, and kept the output. The runner may
    /// have the only copy of bytes that are not kept: those are waited for, and are no gap.
    async fn look_while_away(&mut self, connection: &mut ConnectionWatch) -> Result<(), PortError> {
        self.look_while_away_at = Instant::now() + LOOK_WHILE_AWAY_EVERY;
        // A failed read is repeated at the next check.
        let found = self.ports.operations.find(self.machine.id()).await;
        let found = found.ok().flatten();
        let Some(outcome) = found.and_then(|found| found.outcome) else {
            return Ok(());
        };
        let is_left_to_the_reader = self.keeping.is_left_to_the_reader();
        if self.machine.output_is_missing(&outcome) && !is_left_to_the_reader {
            self.begin_again(false).await?;
            connection.mark_changed();
        }
        let (outputs, id) = (self.ports.operations.outputs(), self.machine.id());
        if !self.machine.output_is_missing(&outcome)
            || (is_left_to_the_reader && is_kept_to_the_end(&*outputs, id, &outcome).await)
        {
            self.machine.ended_elsewhere(outcome);
        }
        Ok(())
    }

    async fn over_the_link(&mut self, step: FollowStep) -> Result<(), LinkGone> {
        let (link, key) = self.link.as_ref().ok_or(LinkGone)?;
        let id = self.machine.id();
        match step {
            FollowStep::Cancel => {
                let (owner, epoch) = self.machine.holder();
                link.cancel_unheard(id, owner, epoch).await?;
            }
            FollowStep::Taken(stream, up_to) => {
                if let Some(up_to) = self.mailbox.taken(stream, up_to) {
                    // If the link is gone, the mailbox reports it after its last mail.
                    let _ = link.grant(id, *key, stream, up_to).await;
                }
            }
            _ => {
                let (post, offsets) = self.mailbox.attach();
                let expects: Option<wire::Expects> = self.machine.request().map(wire::expected);
                let reader = OutputReader {
                    key: *key,
                    post,
                    yields: expects.is_none(),
                    // Without the request it is not known how the operation can end.
                    expects: expects.unwrap_or(|_| true),
                };
                if link.has_let_go_of(id) {
                    self.machine.begun_before();
                }
                let by_holder = link.is_borrowed();
                if std::mem::replace(&mut self.was_asked_by_holder, by_holder) || by_holder {
                    self.give_up_controls();
                }
                let (link, _) = self.link.as_ref().ok_or(LinkGone)?;
                let clock = &self.ports.clock;
                if self.machine.sends_request(&clock.boot_moment()) {
                    let sandbox = self.machine.sandbox();
                    link.prepare(sandbox, &*self.ports.operations).await?;
                }
                let machine = &mut self.machine;
                let mut has_request = false;
                let frame = || {
                    let now = clock.boot_moment();
                    let frame = match by_holder {
                        true => machine.frame_for_holder(offsets, &now),
                        false => machine.frame(offsets, &now),
                    };
                    has_request = frame.request.is_some();
                    frame
                };
                link.attach(id, frame, reader).await?;
                self.holder_lacks_request = by_holder && !has_request;
                self.is_attached = true;
                self.machine.attached();
            }
        }
        Ok(())
    }

    /// Has the runner promise that it never starts an operation that it does not know; returns true if it did.
    async fn fence(&mut self) -> bool {
        let Some((link, _)) = &self.link else {
            return false;
        };
        let (owner, epoch) = self.machine.holder();
        let answered = link.cancel(self.machine.id(), owner, epoch).await;
        matches!(answered, Ok(Ok(CancelAnswer::NeverStarted)))
    }

    /// Tells the runner to forget the operation. If it does not arrive, the verdict on the next inventory repeats it.
    async fn forget(&mut self, connection: &mut ConnectionWatch) {
        if !self.is_remembered {
            return;
        }
        if let RunnerConnection::Online(link) = linked_or_not(connection).await {
            let _ = link.forget(self.machine.id()).await;
        }
    }

    fn note_what_cannot_be_kept(&mut self) {
        if self.keeping.has_given_up() && self.room.at.is_none() {
            self.look_for_room_later();
            if let Audience::Board(board) = &self.audience {
                board.cannot_keep();
            }
        }
    }

    fn look_for_room_later(&mut self) {
        self.room.at = Some(Instant::now() + self.room.pauses.next());
    }

    async fn until_there_is_room(&mut self) {
        loop {
            sleep(self.room.pauses.next()).await;
            if self.keeping.can_go_on().await {
                return;
            }
        }
    }

    /// Asks for the operation once more, behind the kept output. Returns true if it is still stored.
    async fn begin_again(&mut self, has_ended: bool) -> Result<bool, PortError> {
        let (operations, id) = (&self.ports.operations, self.machine.id());
        let Some(intent) = patiently(|| operations.find(id)).await? else {
            return Ok(false);
        };
        let kept = self.keeping.resume().await;
        let asked = self.wishes.asked.borrow().clone();
        let machine = server::Follow::new(id, asked, intent, None, kept);
        let before = std::mem::replace(&mut self.machine, machine);
        self.mailbox = Mailbox::starting_at(kept);
        if has_ended {
            self.waiters.by_key.clear();
        } else {
            // Input that this task has taken is nowhere else until the runner has taken it.
            self.machine.take_over(before);
        }
        self.room.at = None;
        if let Audience::Board(board) = &self.audience {
            board.begin_again(kept);
        }
        self.note_what_cannot_be_kept();
        Ok(true)
    }
}

fn room_pauses(ports: &Ports) -> Pauses {
    Pauses::up_to(ports.links.options().keep_again_after)
}

/// Tells if the last byte of each stream is kept, for an operation with this outcome.
async fn is_kept_to_the_end(outputs: &dyn Outputs, id: OperationId, outcome: &Outcome) -> bool {
    let mut ends = [0, 0];
    for (stream, end) in outcome.output() {
        ends[stream as usize] = end;
    }
    is_kept_to(outputs, id, ends).await
}

/// Tells if the bytes before these offsets of stdout and stderr are kept.
async fn is_kept_to(outputs: &dyn Outputs, id: OperationId, ends: [u64; 2]) -> bool {
    for (stream, end) in [OutputStream::Stdout, OutputStream::Stderr]
        .into_iter()
        .zip(ends)
    {
        if let Some(last) = end.checked_sub(1)
            && !matches!(outputs.read(id, stream, last).await, Ok(Some(_)))
        {
            return false;
        }
    }
    true
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
