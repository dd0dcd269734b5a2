//! One turn, from the message to its end. A line that is typed meanwhile is said at once (`said`). Ctrl-C stops the turn
//! on the server, with its processes. A second one leaves at once; the server still stops the turn if it has accepted
//! the first one.

use std::{collections::VecDeque, future::Future, pin::Pin, time::Duration};

use anyhow::Context as _;
use rustix::termios::{QueueSelector, tcflush};
use shared_api::{Approval, CancelAccepted, CommandDone, MessageAccepted, SendMessage};
use shared_client::{Client, ClientError, Followed};
use shared_types::{
    ApprovalId, Digest, Event, SessionEvent, SessionId, TurnId, WhileWorking, event::TurnOutcome,
    limits::MAX_EVENTS_PAGE,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, Interval},
};

use super::{
    Chat,
    asking::{self, Typed},
    said::{self, Said},
    typed::TypedLines,
};
use crate::{exit::Exit, render::question, unechoed::Unechoed, usage::cost_of_turn, watch};

/// Attempts to send a stop request while the server is unreachable.
const STOP_ATTEMPTS: u32 = 60;

/// Between two of them.
const STOP_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The interval between updates of the shown time.
pub(super) const A_SECOND: Duration = Duration::from_secs(1);

/// The time after which a question of another session is looked at again: it may have been answered elsewhere.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

pub(super) type Answer<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;

/// Sends a message with images and shows its turn to the end; the message itself may stand on the screen
/// already, behind a prompt.
pub(super) async fn run(
    chat: &mut Chat,
    text: &str,
    images: Vec<Digest>,
    is_on_screen: bool,
) -> anyhow::Result<Exit> {
    let client_id = chat.client.new_client_id();
    let message = SendMessage {
        text: text.to_owned(),
        images,
        compacts: None,
        terms: chat.terms(),
        while_working: WhileWorking::Queue,
        client_id: Some(client_id.clone()),
    };
    let sending = send(&chat.client, chat.session.id, message);
    chat.view.typed_here(&client_id, is_on_screen);
    chat.watch.go_on();
    let turn = Turn {
        sending: Some(sending),
        ..Turn::new(client_id)?
    };
    turn.until_over(chat).await
}

/// Shows the turn of a message that was sent here with this id.
pub(super) async fn sent(
    chat: &mut Chat,
    client_id: String,
    turn: TurnId,
    is_on_screen: bool,
) -> anyhow::Result<Exit> {
    chat.view.typed_here(&client_id, is_on_screen);
    chat.watch.go_on();
    let turn = Turn {
        id: Some(turn),
        ..Turn::new(client_id)?
    };
    turn.until_over(chat).await
}

/// Shows a turn that began before this client watched, from its message to its end.
pub(super) async fn watch(chat: &mut Chat, id: TurnId) -> anyhow::Result<Exit> {
    let before = before(chat, id)
        .await
        .context("failed to read the session")?;
    chat.watch.go_on_from(before);
    follow(chat, id).await
}

/// Shows a turn that follows the one that was shown last.
pub(super) async fn go_on(chat: &mut Chat, id: TurnId) -> anyhow::Result<Exit> {
    chat.watch.go_on();
    follow(chat, id).await
}

async fn follow(chat: &mut Chat, id: TurnId) -> anyhow::Result<Exit> {
    let client_id = chat.client.new_client_id();
    chat.view.typed_here(&client_id, false);
    let turn = Turn {
        id: Some(id),
        ..Turn::new(client_id)?
    };
    turn.until_over(chat).await
}

/// The last event before the turn's first one.
async fn before(chat: &Chat, turn: TurnId) -> Result<u64, ClientError> {
    let mut after = 0;
    loop {
        let page = chat.client.events(chat.session.id, after, MAX_EVENTS_PAGE);
        let page = page.await?;
        let begins = |event: &&SessionEvent| matches!(event.known(), Some(Event::InputAccepted { turn: of, .. }) if *of == turn);
        if let Some(first) = page.events.iter().find(begins) {
            return Ok(first.seq.saturating_sub(1));
        }
        match page.events.last() {
            Some(last) if page.more => after = last.seq,
            _ => return Ok(chat.session.last_seq),
        }
    }
}

pub(super) fn listen(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("failed to listen for Ctrl-C and a resized terminal")
}

struct Turn {
    interrupts: Signal,
    resizes: Signal,
    seconds: Interval,
    sending: Option<Answer<MessageAccepted>>,
    typed: TypedLines,
    /// A message or a command that was typed meanwhile and is being sent. The next line is read after it, so that their order stays.
    saying: Option<Answer<CommandDone>>,
    cancelling: Option<Answer<CancelAccepted>>,
    client_id: String,
    id: Option<TurnId>,
    stop: Stop,
    unechoed: Option<Unechoed>,
    /// Questions of the agent that are to be shown.
    questions: VecDeque<ApprovalId>,
    /// A question that is being fetched, or an answer that is being sent.
    approval: Option<Answer<Approval>>,
    /// The question to which an answer is being sent.
    answering: Option<ApprovalId>,
    /// The question that is on the screen; the next line is its answer.
    asking: Option<Approval>,
    /// The same question, which is being fetched again.
    looking: Option<Answer<Approval>>,
    /// The time of the last look, or of the question.
    looked_at: Instant,
}

#[derive(Clone, Copy, PartialEq)]
enum Stop {
    No,
    /// The stop request waits until the turn is known.
    Wanted,
    Sent,
    Accepted,
}

enum TurnEvent {
    /// Time passed, or the terminal has another width.
    Tick,
    Sent(Result<MessageAccepted, ClientError>),
    Typed(String),
    Said(Result<CommandDone, ClientError>),
    Watched(anyhow::Result<watch::WatchEvent>),
    Cancelled(Result<CancelAccepted, ClientError>),
    Interrupt,
    /// A question has come, or is answered.
    Approval(Result<Approval, ClientError>),
    /// The question on the screen was fetched again.
    Looked(Result<Approval, ClientError>),
    /// A command of the person's own has something to show.
    Ran(String),
}

impl Turn {
    fn new(client_id: String) -> anyhow::Result<Self> {
        Ok(Self {
            interrupts: listen(SignalKind::interrupt())?,
            resizes: listen(SignalKind::window_change())?,
            seconds: tokio::time::interval(A_SECOND),
            sending: None,
            typed: TypedLines::none(),
            saying: None,
            cancelling: None,
            client_id,
            id: None,
            stop: Stop::No,
            unechoed: None,
            questions: VecDeque::new(),
            approval: None,
            answering: None,
            asking: None,
            looking: None,
            looked_at: Instant::now(),
        })
    }

    async fn until_over(mut self, chat: &mut Chat) -> anyhow::Result<Exit> {
        self.unechoed = unechoed(chat);
        if self.unechoed.is_some() && chat.takes_lines {
            self.typed = TypedLines::listen();
        }
        chat.view.wait(true)?;
        let exit = self.happen(chat).await;
        if let (Some(saying), Ok(Exit::Done | Exit::Failed | Exit::Cancelled)) =
            (self.saying.take(), &exit)
        {
            said::accepted(chat, saying.await)?;
        }
        self.unechoed = None;
        chat.view.wait(false)?;
        let exit = exit?;
        if exit != Exit::Left {
            self.tell_cost(chat).await?;
        }
        Ok(exit)
    }

    /// Shows the cost of the turn, unless the person does not wait for it.
    async fn tell_cost(&mut self, chat: &mut Chat) -> anyhow::Result<()> {
        let Some(turn) = self.id.filter(|_| chat.view.is_text()) else {
            return Ok(());
        };
        let cost = tokio::select! {
            biased;
            _ = self.interrupts.recv() => None,
            cost = cost_of_turn(&chat.client, chat.session.id, turn) => cost,
        };
        match cost {
            Some(line) => chat.view.cost(&line),
            None => Ok(()),
        }
    }

    async fn happen(&mut self, chat: &mut Chat) -> anyhow::Result<Exit> {
        loop {
            let happened = self.next(chat).await;
            if let Some(exit) = self.handle(happened, chat)? {
                return Ok(exit);
            }
        }
    }

    async fn next(&mut self, chat: &mut Chat) -> TurnEvent {
        tokio::select! {
            // The accepted answer is handled before the events of the turn.
            biased;
            sent = answer(&mut self.sending) => TurnEvent::Sent(sent),
            _ = self.interrupts.recv() => TurnEvent::Interrupt,
            cancelled = answer(&mut self.cancelling) => TurnEvent::Cancelled(cancelled),
            approval = answer(&mut self.approval) => TurnEvent::Approval(approval),
            looked = answer(&mut self.looking) => TurnEvent::Looked(looked),
            said = answer(&mut self.saying) => TurnEvent::Said(said),
            line = self.typed.next(), if self.takes_line() => TurnEvent::Typed(line),
            // Behind a question it would stand where the answer is typed.
            shown = chat.own.next(), if self.asking.is_none() => TurnEvent::Ran(shown.text),
            happened = chat.watch.next(false) => TurnEvent::Watched(happened),
            _ = self.seconds.tick() => TurnEvent::Tick,
            _ = self.resizes.recv() => TurnEvent::Tick,
        }
    }

    fn handle(&mut self, happened: TurnEvent, chat: &mut Chat) -> anyhow::Result<Option<Exit>> {
        match happened {
            TurnEvent::Sent(sent) => {
                self.sending = None;
                self.began(sent.context("failed to send the message")?.turn, chat);
            }
            TurnEvent::Watched(happened) => return self.watched(&happened?, chat),
            TurnEvent::Cancelled(cancelled) => {
                self.cancelling = None;
                cancelled.context("failed to stop the turn; it goes on")?;
                self.stop = Stop::Accepted;
            }
            TurnEvent::Interrupt => return self.interrupt(chat),
            TurnEvent::Approval(approval) => self.approval(approval, chat)?,
            TurnEvent::Looked(looked) => self.looked(&looked, chat)?,
            TurnEvent::Typed(line) => match self.asking.take() {
                Some(approval) => self.answer(approval, &line, chat)?,
                None => return self.say(&line, chat),
            },
            TurnEvent::Said(sent) => {
                self.saying = None;
                said::accepted(chat, sent)?;
            }
            TurnEvent::Ran(shown) => chat.view.beside(&shown)?,
            TurnEvent::Tick => {
                self.look_at_question(chat);
                chat.view.tick()?;
            }
        }
        Ok(None)
    }

    fn watched(
        &mut self,
        happened: &watch::WatchEvent,
        chat: &mut Chat,
    ) -> anyhow::Result<Option<Exit>> {
        chat.watch.show(happened, &mut chat.view)?;
        let watch::WatchEvent::Session(Followed::Event(event)) = happened else {
            return Ok(None);
        };
        match event.known() {
            Some(Event::InputAccepted {
                turn, client_id, ..
            }) if client_id.as_ref() == Some(&self.client_id) => self.began(*turn, chat),
            Some(Event::ApprovalAsked { turn, approval, .. })
                if Some(*turn) == self.id && chat.is_attended() =>
            {
                self.questions.push_back(*approval);
                self.fetch_question(chat);
            }
            // The turn may wait for the agent, so its question has to be answered here.
            Some(Event::AgentAsks { approval, .. }) if self.id.is_some() && chat.is_attended() => {
                self.questions.push_back(*approval);
                self.fetch_question(chat);
            }
            Some(Event::AgentEnded { session, .. }) => {
                let asking = self.asking.as_ref();
                if let Some(asking) = asking.filter(|asking| asking.session == *session) {
                    self.answered(asking.id, chat)?;
                }
            }
            Some(Event::ApprovalAnswered { approval, .. }) => self.answered(*approval, chat)?,
            Some(Event::TurnEnded { turn, outcome, .. }) if Some(*turn) == self.id => {
                return Ok(Some(match outcome {
                    TurnOutcome::Completed => Exit::Done,
                    TurnOutcome::Failed | TurnOutcome::Interrupted => Exit::Failed,
                    TurnOutcome::Cancelled => Exit::Cancelled,
                }));
            }
            _ => {}
        }
        Ok(None)
    }

    fn began(&mut self, turn: TurnId, chat: &Chat) {
        self.id = Some(turn);
        if self.stop == Stop::Wanted {
            self.stop = Stop::Sent;
            self.cancelling = Some(cancel(&chat.client, chat.session.id));
        }
    }

    /// Fetches the next question, unless one is under way: another person may have answered it long ago.
    fn fetch_question(&mut self, chat: &Chat) {
        if self.approval.is_some() || self.asking.is_some() {
            return;
        }
        if let Some(id) = self.questions.pop_front() {
            let client = chat.client.clone();
            self.approval = Some(Box::pin(async move { client.approval(id).await }));
        }
    }

    /// Asks what has come, and goes on behind what is answered.
    fn approval(
        &mut self,
        approval: Result<Approval, ClientError>,
        chat: &mut Chat,
    ) -> anyhow::Result<()> {
        self.approval = None;
        match approval {
            Ok(approval) if approval.outcome.is_none() => self.ask(approval, chat)?,
            Ok(_) => self.answering = None,
            Err(error) => {
                chat.view.aside(&crate::told(&error.into(), chat.advice))?;
                // It is asked again, unless it has its answer by then.
                self.questions.extend(self.answering.take());
            }
        }
        self.fetch_question(chat);
        Ok(())
    }

    fn ask(&mut self, approval: Approval, chat: &mut Chat) -> anyhow::Result<()> {
        chat.view.wait(false)?;
        self.unechoed = None;
        // What was typed before the question was on the screen is no answer to it.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        let is_of_agent = approval.session != chat.session.id;
        if is_of_agent || !self.questions.is_empty() {
            // It does not stand above: another one does, or that of an agent of this session.
            let question = question::shown(&approval.question, chat.screen.style());
            chat.screen.print(&question)?;
        }
        let choices = asking::choices(&approval.question);
        let choices = chat.screen.style().bold(&choices);
        chat.screen.write(format!("{choices} › ").as_bytes())?;
        if !chat.takes_lines {
            self.typed = TypedLines::listen();
        }
        self.asking = Some(approval);
        self.looked_at = Instant::now();
        Ok(())
    }

    /// Looks whether the question of another session on the screen has its answer by now: the answer stands in the log of
    /// that session, which is not followed here.
    fn look_at_question(&mut self, chat: &Chat) {
        if let Some(asking) = &self.asking
            && asking.session != chat.session.id
            && self.looking.is_none()
            && self.looked_at.elapsed() >= LOOK_AGAIN_AFTER
        {
            self.looked_at = Instant::now();
            let (client, id) = (chat.client.clone(), asking.id);
            self.looking = Some(Box::pin(async move { client.approval(id).await }));
        }
    }

    /// Takes the question off the screen if it needs no answer any more.
    fn looked(
        &mut self,
        looked: &Result<Approval, ClientError>,
        chat: &mut Chat,
    ) -> anyhow::Result<()> {
        self.looking = None;
        match &self.asking {
            Some(asking) if asking::is_over(looked) => self.answered(asking.id, chat),
            _ => Ok(()),
        }
    }

    /// True if a line that is typed now is for the turn, or for the question on the screen.
    fn takes_line(&self) -> bool {
        self.asking.is_some() || (self.saying.is_none() && self.id.is_some())
    }

    /// Takes a line that was typed at a question.
    fn answer(&mut self, approval: Approval, line: &str, chat: &mut Chat) -> anyhow::Result<()> {
        let answer = match asking::read(&approval.question, line.trim()) {
            Typed::Again => return self.ask(approval, chat),
            Typed::Edit(command) => match super::prompt::edited(&command)? {
                Some(command) => shared_types::event::Answer::Allowed {
                    command: Some(command),
                    rule: None,
                    mode: None,
                },
                None => return self.ask(approval, chat),
            },
            Typed::Answer(answer) => answer,
        };
        let client = chat.client.clone();
        let (id, digest) = (approval.id, approval.digest);
        self.answering = Some(id);
        self.approval = Some(Box::pin(
            async move { client.answer(id, digest, answer).await },
        ));
        self.go_on(chat)
    }

    /// Does what a line says that was typed while no question was on the screen.
    fn say(&mut self, line: &str, chat: &mut Chat) -> anyhow::Result<Option<Exit>> {
        match said::say(chat, line) {
            Ok(Said::Sending(sending)) => self.saying = Some(sending),
            Ok(Said::Stop) if self.stop == Stop::No => return self.interrupt(chat),
            Ok(Said::Stop | Said::Nothing) => {}
            Err(error) => chat.view.aside(&crate::told(&error, chat.advice))?,
        }
        Ok(None)
    }

    /// Gives up the line at a question that has its answer.
    fn answered(&mut self, approval: ApprovalId, chat: &mut Chat) -> anyhow::Result<()> {
        self.questions.retain(|known| *known != approval);
        let is_it = |asking: &Approval| asking.id == approval;
        if self.asking.take_if(|asking| is_it(asking)).is_some() {
            chat.screen.line("")?;
            self.go_on(chat)?;
            self.fetch_question(chat);
        }
        Ok(())
    }

    /// Shows the turn on, without the echo of what is typed.
    fn go_on(&mut self, chat: &mut Chat) -> anyhow::Result<()> {
        self.looking = None;
        self.unechoed = unechoed(chat);
        if !chat.takes_lines {
            self.typed = TypedLines::none();
        }
        chat.view.wait(true)
    }

    fn interrupt(&mut self, chat: &mut Chat) -> anyhow::Result<Option<Exit>> {
        if self.stop != Stop::No {
            let note = left(self.id.is_some(), self.stop, chat.session.id);
            chat.view.aside(&note)?;
            return Ok(Some(Exit::Left));
        }
        self.stop = Stop::Wanted;
        chat.view.stopping()?;
        if let Some(turn) = self.id {
            self.began(turn, chat);
        }
        Ok(None)
    }
}

/// Stops the echo of what is typed, where lines that change are shown.
pub(super) fn unechoed(chat: &Chat) -> Option<Unechoed> {
    chat.screen.live_columns().and_then(|_| Unechoed::enter())
}

/// The last note about a turn that the person leaves.
fn left(is_accepted: bool, stop: Stop, session: SessionId) -> String {
    match (is_accepted, stop) {
        (false, _) => {
            format!("left before the message was accepted, see: gantry show {session}")
        }
        (true, Stop::Accepted) => {
            format!("left; the server goes on stopping it, see: gantry show {session}")
        }
        (true, _) => format!(
            "left; the server did not answer the wish to stop it, so it may still run: gantry cancel {session}"
        ),
    }
}

/// The answer, once there is one; never, where nothing was asked.
pub(super) async fn answer<T>(pending: &mut Option<Answer<T>>) -> Result<T, ClientError> {
    match pending {
        Some(answer) => answer.await,
        None => std::future::pending().await,
    }
}

fn send(client: &Client, session: SessionId, message: SendMessage) -> Answer<MessageAccepted> {
    let client = client.clone();
    Box::pin(async move { client.send_message(session, &message).await })
}

fn cancel(client: &Client, session: SessionId) -> Answer<CancelAccepted> {
    let client = client.clone();
    Box::pin(async move {
        let mut attempt = 1;
        loop {
            match client.cancel(session).await {
                Err(error) if error.is_passing() && attempt < STOP_ATTEMPTS => {
                    tokio::time::sleep(STOP_AGAIN_AFTER).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    })
}
