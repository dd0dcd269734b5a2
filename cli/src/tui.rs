//! A conversation on a terminal: one loop that joins the feed of a session, the keys of the person and the answers of the
//! server, and draws the screen.
//!
//! The screen is made elsewhere (`cli_screen`): the transcript is what a session looks like, the composer is the input
//! box, the surface is the terminal. This loop only carries things between them.

mod choices;
mod dialog;
mod drawing;
mod editor;
mod facts;
mod files;
mod greeting;
mod input;
mod outbox;
mod questions;
mod replies;
mod requests;
mod say;
mod status;
mod talk;

use std::{path::PathBuf, sync::Arc, time::Duration};

use cli_screen::{
    compose::Composer,
    surface::{Input, Pager, Picker, Reflow},
    transcript::item::{Level, Note},
};
use shared_api::{Me, Session};
use shared_client::{Client, Followed};
use shared_types::{
    Clock as _, Event, Mode, SystemClock, Timestamp, TurnId, WhileWorking, event::TurnOutcome,
};
use tokio::time::{Instant, sleep_until, timeout};

use self::{
    choices::Offered,
    dialog::Dialog,
    drawing::Stage,
    outbox::{Outbox, OutgoingKind},
    questions::{Asker, Questions, Waits},
    requests::{Reply, Requests},
    talk::Talk,
};
use crate::{
    browser::Opener,
    chat::bang::{OwnCommands, ToShow},
    exit::Exit,
};

/// The interval between two frames while much happens.
const FRAME: Duration = Duration::from_millis(33);

/// The time after which the client asks again for a place where nothing can run.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Most keys that are drawn as one.
const KEYS_AT_ONCE: usize = 1024;

/// The time after which a question of another agent is looked at again: it may have been answered elsewhere.
const ASKS_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The interval between two looks at the clock, which the screen shows in seconds.
const SECOND: Duration = Duration::from_secs(1);

/// Most events of a session that are shown when it is entered.
const SHOWN_EVENTS: u64 = 5000;

/// The pause of the keys before a question takes them, so that no key that was meant for the box answers it.
const KEYS_REST: Duration = Duration::from_millis(600);

/// The time within which a second Ctrl-C or Esc counts.
const TWICE_WITHIN: Duration = Duration::from_secs(2);

/// The beginning of a conversation on a terminal.
pub(crate) struct Start {
    /// The way to the server.
    pub(crate) client: Client,
    /// The session.
    pub(crate) session: Session,
    /// The person.
    pub(crate) me: Me,
    /// The mode of the messages of this run.
    pub(crate) mode: Option<Mode>,
    /// True if the session was there before.
    pub(crate) is_resumed: bool,
    /// The only message: the conversation ends with its turn. Absent where the person goes on.
    pub(crate) only: Option<OnlyMessage>,
    /// The advice for the case that the server refuses the credential.
    pub(crate) advice: &'static str,
    /// The folder that keeps the history of the box.
    pub(crate) home: PathBuf,
    /// The properties of the terminal and of its user.
    pub(crate) terminal: TerminalFacts,
}

/// The message of a conversation that has one turn.
#[derive(Debug)]
pub(crate) struct OnlyMessage {
    /// Its words.
    pub(crate) text: String,
    /// The bytes of its images.
    pub(crate) images: Vec<Vec<u8>>,
}

/// The properties of a terminal and of its user, as the environment tells them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TerminalFacts {
    /// True if colours are not wanted.
    pub(crate) no_color: bool,
    /// The terminal's treatment of rows that have become too long.
    pub(crate) reflow: Reflow,
    /// The kind of the terminal.
    pub(crate) term: Option<String>,
    /// True inside tmux.
    pub(crate) is_tmux: bool,
    /// The command of the person's editor.
    pub(crate) editor: Option<String>,
    /// The program that opens a page in the person's browser, where this is a desktop.
    pub(crate) browser: Option<Opener>,
    /// The file with the settings of readline.
    pub(crate) inputrc: Option<PathBuf>,
}

/// A conversation on a terminal.
struct Tui {
    talk: Talk,
    stage: Stage,
    composer: Composer,
    overlay: Overlay,
    outbox: Outbox,
    requests: Requests,
    own: OwnCommands,
    stop: Stop,
    /// Questions of the agent that are to be fetched.
    questions: Questions,
    /// The key that counts when it is pressed again.
    armed: Option<Armed>,
    /// The time of the newest key.
    key_at: Option<Instant>,
    /// The time at which a list was asked for.
    list_asked_at: Option<Instant>,
    /// The time at which the turn began that works, or worked last.
    working_since: Option<Timestamp>,
    /// The turn after which the conversation ends by itself.
    once: Option<Once>,
    /// The end of the conversation, once it is decided.
    exit: Option<Exit>,
}

/// The only turn of a conversation.
#[derive(Debug, Default)]
struct Once {
    /// Its message.
    client_id: String,
    /// The turn, once it is known.
    turn: Option<TurnId>,
    /// Its outcome, once it has ended. Its cost is shown before the end.
    exit: Option<Exit>,
}

/// The view that takes the keys before the input box.
enum Overlay {
    None,
    /// A question of the agent; it waits while the person still types.
    Question(Box<Dialog>),
    /// A list to choose from.
    List(Box<Picker>, Offered),
    /// A page of lines on the whole screen.
    Page(Box<Pager>),
}

/// The wish to stop the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    /// The server was asked.
    Asked,
    /// The server stops it.
    Accepted,
}

/// A key that was pressed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Armed {
    key: ArmedKey,
    at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArmedKey {
    CtrlC,
    Escape,
}

/// Something that the loop handles.
enum Happened {
    Input(Input),
    Reply(Box<Reply>),
    Own(ToShow),
    Feed(Option<Result<Followed, shared_client::ClientError>>),
    /// A frame is due.
    Frame,
}

/// Holds a conversation until the person leaves.
///
/// # Errors
/// Fails if the terminal cannot be used.
pub(crate) async fn run(start: Start) -> anyhow::Result<Exit> {
    let mut tui = Tui::begin(start)?;
    let exit = tui.until_left().await;
    tui.end()?;
    exit
}

impl Tui {
    fn begin(start: Start) -> anyhow::Result<Self> {
        let stage = Stage::begin(&start.terminal)?;
        let composer = Composer::new(editor::settings(&start.home, &start.terminal));
        let requests = Requests::new(start.client.clone());
        let mut tui = Self {
            talk: Talk::new(&start),
            stage,
            composer,
            overlay: Overlay::None,
            outbox: Outbox::default(),
            requests,
            own: OwnCommands::default(),
            stop: Stop::No,
            questions: Questions::default(),
            armed: None,
            key_at: None,
            list_asked_at: None,
            working_since: None,
            once: None,
            exit: None,
        };
        match start.only {
            Some(only) => tui.only(start.session, only),
            None => tui.enter(start.session, !start.is_resumed),
        }
        Ok(tui)
    }

    async fn until_left(&mut self) -> anyhow::Result<Exit> {
        self.draw()?;
        loop {
            let happened = self.next().await;
            let is_frame = matches!(happened, Happened::Input(_) | Happened::Frame);
            self.handle(happened)?;
            if is_frame {
                self.rest_of_input().await?;
            }
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            match is_frame {
                true => self.draw()?,
                false => self.stage.wants_frame(Instant::now() + FRAME),
            }
        }
    }

    /// Handles the keys that came at once, so that a flood of them is drawn as one.
    async fn rest_of_input(&mut self) -> anyhow::Result<()> {
        for _ in 0..KEYS_AT_ONCE {
            let next = timeout(Duration::ZERO, self.stage.keys.next()).await;
            let Ok(input) = next else {
                break;
            };
            self.handle(Happened::Input(input))?;
            if self.exit.is_some() {
                break;
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Happened {
        let feed = async {
            match &mut self.talk.follow {
                Some(follow) => follow.next().await,
                None => std::future::pending().await,
            }
        };
        let frame_at = self.stage.frame_at;
        tokio::select! {
            biased;
            input = self.stage.keys.next() => Happened::Input(input),
            // Before the feed: a flood must not keep the screen from being drawn.
            () = sleep_until(frame_at) => Happened::Frame,
            reply = self.requests.next() => Happened::Reply(Box::new(reply)),
            shown = self.own.next() => Happened::Own(shown),
            item = feed => Happened::Feed(item),
        }
    }

    fn handle(&mut self, happened: Happened) -> anyhow::Result<()> {
        match happened {
            Happened::Input(input) => self.input(input)?,
            Happened::Reply(reply) => self.reply(*reply),
            Happened::Own(shown) => self.own_output(&shown),
            Happened::Feed(item) => self.fed(item),
            Happened::Frame => self.look_again(),
        }
        self.say_what_waits();
        Ok(())
    }

    /// Takes in an item of the feed.
    fn fed(&mut self, item: Option<Result<Followed, shared_client::ClientError>>) {
        let item = match item {
            Some(Ok(item)) => item,
            Some(Err(error)) => return self.feed_failed(&self.talk.told(error)),
            None => return self.feed_failed("the server ended the feed of the session"),
        };
        self.stage.transcript.time(now());
        if let Some(working) = &self.stage.transcript.facts().turn {
            self.working_since = Some(working.since);
        }
        match &item {
            Followed::Event(event) => {
                self.talk.seq = event.seq;
                self.stage.transcript.event(event);
                if let Some(event) = event.known() {
                    self.happened(event);
                }
            }
            Followed::Live(live) => self.stage.transcript.live(live),
            Followed::CaughtUp { .. } => {
                self.stage.is_caught_up = true;
                self.stage.transcript.caught_up();
                self.fetch_question();
            }
            Followed::Lost { reason } => self.stage.transcript.lost(reason),
            Followed::Recovered => {
                self.stage.transcript.recovered();
                self.ask_facts();
            }
        }
    }

    /// Follows the background commands that run.
    fn follow_tasks(&mut self) {
        for task in self.stage.transcript.facts().running_tasks() {
            self.requests.follow_task(task.operation);
        }
    }

    /// Acts on an event, beside showing it.
    fn happened(&mut self, event: &Event) {
        match event {
            Event::InputAccepted {
                turn,
                client_id,
                parts,
                ..
            } => {
                self.outbox.seen(client_id.as_deref());
                self.talk.turns.insert(*turn);
                if let Some(once) = &mut self.once
                    && client_id.as_ref() == Some(&once.client_id)
                {
                    once.turn = Some(*turn);
                }
                if self.talk.session.title.is_empty() {
                    self.talk.session.title = parts.words().into_owned();
                    self.title();
                }
            }
            Event::InputSteered { client_id, .. } => self.outbox.seen(client_id.as_deref()),
            Event::ApprovalAsked { approval, .. } => {
                self.questions.add(Waits {
                    approval: *approval,
                    agent: None,
                });
                // One of long ago may have its answer further on in the log.
                if self.stage.is_caught_up {
                    self.fetch_question();
                }
            }
            // The turn may wait for the agent, so its question has to be answered here.
            Event::AgentAsks {
                approval,
                session,
                name,
            } => {
                let asker = Asker {
                    session: *session,
                    name: name.clone(),
                };
                self.questions.add(Waits {
                    approval: *approval,
                    agent: Some(asker),
                });
                if self.stage.is_caught_up {
                    self.fetch_question();
                }
            }
            Event::AgentEnded { session, .. } => self.agent_asks_no_more(*session),
            Event::ApprovalAnswered { approval, .. } => self.question_is_answered(*approval),
            Event::TurnEnded { turn, outcome, .. } => {
                if let Some(once) = self.once.as_mut().filter(|once| once.turn == Some(*turn)) {
                    once.exit = Some(match outcome {
                        TurnOutcome::Completed => Exit::Done,
                        TurnOutcome::Failed | TurnOutcome::Interrupted => Exit::Failed,
                        TurnOutcome::Cancelled => Exit::Cancelled,
                    });
                }
                self.talk.turns.remove(turn);
                self.stop = Stop::No;
                self.requests.stop_no_more();
                self.outbox.turn_ended();
                if self.stage.is_caught_up {
                    self.requests.cost(self.talk.session.id, *turn);
                    self.notify("the agent is done");
                    self.ask_facts();
                }
            }
            Event::CallEnded { task: Some(_), .. } => self.follow_tasks(),
            Event::TurnClaimed { .. } if self.stage.is_caught_up => self.ask_facts(),
            _ => {}
        }
    }

    /// The feed has failed for good: the box stays usable, and the next line tries again.
    fn feed_failed(&mut self, why: &str) {
        self.talk.follow = None;
        self.warn(format!("failed to follow the session: {why}"));
    }

    /// True while a turn of the session works or waits.
    fn is_working(&self) -> bool {
        self.stage.transcript.facts().turn.is_some() || !self.talk.turns.is_empty()
    }

    /// Shows words of this program.
    fn note(&mut self, words: impl Into<String>) {
        self.stage.transcript.note(Note::quiet(words));
    }

    /// Shows words that a person should read.
    fn warn(&mut self, words: impl Into<String>) {
        let note = Note::new(Level::Warning, words);
        self.stage.transcript.note(note);
    }

    /// Asks again for the place while its runner is away: no event tells that the runner is back.
    fn look_again(&mut self) {
        let is_lost = self.stage.transcript.facts().is_lost;
        if self.talk.facts.is_away()
            && !is_lost
            && self.talk.facts_asked_at.elapsed() >= LOOK_AGAIN_AFTER
        {
            self.ask_facts();
        }
        self.look_at_question();
    }

    fn ask_facts(&mut self) {
        self.talk.facts_asked_at = Instant::now();
        self.requests
            .facts(self.talk.session.clone(), self.talk.mode);
        // A turn may have started tool servers, whose prompts are commands.
        self.requests.commands(self.talk.session.id);
    }

    /// Sends the only message of this conversation, and shows the session from there on.
    fn only(&mut self, session: Session, only: OnlyMessage) {
        let last = session.last_seq;
        self.talk.enter(session, false);
        self.talk.is_entering = false;
        self.stage.enter(self.talk.me.user.id);
        // All that the feed tells happens now.
        self.stage.is_caught_up = true;
        self.talk.follow_from(last);
        if self.talk.me.model.practice {
            self.note("practice model (no AI)");
        }
        let kind = OutgoingKind::Message {
            while_working: WhileWorking::Queue,
            images: Arc::from(only.images),
        };
        let client_id = self.post(&only.text, kind);
        self.once = Some(Once {
            client_id,
            ..Once::default()
        });
        self.ask_facts();
        self.say_what_waits();
    }

    /// Goes to a session, and shows what was said there.
    fn enter(&mut self, session: Session, is_new: bool) {
        let session_id = session.id;
        self.talk.enter(session, is_new);
        self.stage.enter(self.talk.me.user.id);
        self.stop = Stop::No;
        self.questions.clear();
        self.outbox.moved();
        self.requests.follow_no_task();
        if let Overlay::Question(dialog) = &self.overlay {
            if dialog.is_ready {
                self.composer.set_text(&dialog.draft);
            }
            self.overlay = Overlay::None;
        }
        let session = &self.talk.session;
        let after = match is_new {
            true => session.last_seq,
            false => session.last_seq.saturating_sub(SHOWN_EVENTS),
        };
        if !is_new {
            self.divide(after > 0);
        }
        self.talk.follow_from(after);
        self.title();
        self.ask_facts();
        self.requests.tasks(session_id);
    }

    /// Takes the bottom away, and says what is left undone.
    fn end(&mut self) -> anyhow::Result<()> {
        let session = self.talk.session.id;
        let under_way = self.outbox.under_way().map(|line| line.text.clone());
        if let Some(text) = under_way {
            self.warn(format!(
                "the server has not answered to: {text}; see gantry show {session}"
            ));
        }
        let unsent = self.outbox.forget();
        for line in unsent {
            self.warn(format!("not sent: {}", line.text));
        }
        for line in self.own.leave() {
            self.note(line);
        }
        let draft = match &self.overlay {
            Overlay::Question(dialog) if dialog.is_ready => dialog.draft.clone(),
            _ => self.composer.text(),
        };
        if !draft.trim().is_empty() {
            self.warn(format!("not sent: {draft}"));
        }
        self.stage.end()
    }
}

/// The present time.
fn now() -> Timestamp {
    SystemClock::new().now()
}
