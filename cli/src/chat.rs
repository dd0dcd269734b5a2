//! Sending messages and watching their turns. On a terminal, a conversation is drawn by `tui`; this is for messages of
//! the command line, for pipes, and for people who want plain lines.

use std::{collections::VecDeque, io::IsTerminal as _, path::Path};

use anyhow::bail;
use shared_api::{Command, CreateSession, Me, Runner, Session};
use shared_client::Client;
use shared_types::{Mode, TurnId, event::Terms, limits::MAX_MESSAGE_BYTES};

use crate::{
    args,
    exit::Exit,
    here::{self, Here},
    pick::{self, SessionName},
    render::clean::clean_line,
    runners,
    screen::Screen,
    tui,
    view::View,
    watch::Watch,
};

mod asking;
pub(crate) mod bang;
pub(crate) mod command;
mod conversation;
pub(crate) mod images;
mod mode;
mod model;
mod pin;
mod piped;
pub(crate) mod print;
mod prompt;
pub(crate) mod recent;
mod said;
pub(crate) mod slash;
mod turn;
mod typed;

/// Longest line about a place, in characters.
const MAX_LINE: usize = 200;

/// A session that is being talked in.
struct Chat {
    client: Client,
    screen: Screen,
    session: Session,
    watch: Watch,
    view: View,
    /// The mode that was chosen for the messages of this run.
    mode: Option<Mode>,
    /// The commands of the server.
    commands: Vec<Command>,
    /// The advice for the case that the server refuses the credential.
    advice: &'static str,
    /// True if lines that are typed during a turn are for it, and not for the program behind this one.
    takes_lines: bool,
    /// What was said during a turn and is to be done after it, in this order.
    later: VecDeque<Later>,
    /// The person's own commands that run.
    own: bang::OwnCommands,
}

/// What was said during a turn and is to be done after it.
enum Later {
    /// This turn is shown, which the server has already.
    Turn(TurnId),
    /// This line is said.
    Line(String),
}

/// Sends one message and shows its turn, or holds a conversation.
/// `home` is where a runner of this machine has its enrolment, and `advice` what to do where the server
/// does not take the credential any more.
pub(crate) async fn run(
    client: Client,
    screen: Screen,
    args: args::Chat,
    place: Place<'_>,
) -> anyhow::Result<Exit> {
    let Place { home, advice, .. } = place;
    let text = message(screen, &args.text).await?;
    // Before a session begins: a file that is no image leaves none behind.
    let (words, _) = piped::asked(&args.text, true);
    let images = images::chosen(screen, &words.join(" "), &args.images)?;
    let me = client.me().await?;
    if is_drawn(screen, &args) {
        let session = session(&client, None, &args, home).await?;
        let only = text.map(|text| tui::OnlyMessage { text, images });
        let start = tui::Start {
            client,
            session,
            me,
            mode: args.mode,
            is_resumed: is_resumed(&args),
            only,
            advice,
            home: home.to_owned(),
            terminal: place.terminal.clone(),
        };
        return tui::run(start).await;
    }
    if !args.json
        && let Some(label) = practice_label(&me)
    {
        screen.line(&screen.style().dim(label))?;
    }
    let says_place = (!args.json).then_some(screen);
    let session = session(&client, says_place, &args, home).await?;
    if text.is_none() && is_resumed(&args) && !args.json {
        screen.print(&recent::shown(&client, &session, screen.style()).await?)?;
    }
    let mut chat = Chat::open(client, screen, advice, session, args.json);
    chat.mode = args.mode;
    match text {
        Some(text) => {
            let images = images::added(&chat, images).await?;
            turn::run(&mut chat, &text, images, false).await
        }
        None => {
            if is_resumed(&args) {
                chat.view.runs(&chat.client.tasks(chat.session.id).await?)?;
            }
            let exit = conversation::run(&mut chat, &me).await;
            bang::leave(&mut chat)?;
            exit
        }
    }
}

/// Where a conversation is held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The folder with the sign-in and the history.
    pub(crate) home: &'a Path,
    /// The advice for the case that the server refuses the credential.
    pub(crate) advice: &'static str,
    /// The properties of the terminal.
    pub(crate) terminal: &'a tui::TerminalFacts,
}

/// True if the conversation is drawn on a terminal. Elsewhere its lines are written one after the other, and none is
/// taken back.
fn is_drawn(screen: Screen, args: &args::Chat) -> bool {
    let is_wanted = !args.json && !args.plain;
    is_wanted && screen.live_columns().is_some() && std::io::stdin().is_terminal()
}

/// The label of the practice model on every surface.
pub(crate) fn practice_label(me: &Me) -> Option<&'static str> {
    me.model.practice.then_some("practice model (no AI)")
}

impl Chat {
    /// True if a person sits at this terminal, who can be asked.
    fn is_attended(&self) -> bool {
        self.view.is_text() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    /// The terms of a message from here.
    fn terms(&self) -> Terms {
        Terms {
            unattended: !self.is_attended(),
            mode: self.mode,
            ..Terms::default()
        }
    }

    /// Follows a session from now on.
    fn open(
        client: Client,
        screen: Screen,
        advice: &'static str,
        session: Session,
        json: bool,
    ) -> Self {
        Self {
            watch: Watch::begin(client.clone(), session.id, session.last_seq),
            view: View::new(screen, session.id, json),
            client,
            screen,
            session,
            mode: None,
            commands: Vec::new(),
            advice,
            takes_lines: false,
            later: VecDeque::new(),
            own: bang::OwnCommands::default(),
        }
    }
}

async fn session(
    client: &Client,
    says_place: Option<Screen>,
    args: &args::Chat,
    home: &Path,
) -> anyhow::Result<Session> {
    let known = match &args.session {
        Some(name) => pick::session(client, name).await?,
        None if args.resume => pick::session(client, &SessionName::Last).await?,
        None => return begin(client, says_place, args, home).await,
    };
    if let Some(model) = &args.model {
        model::set(client, known.id, model).await?;
    }
    let Some(runner) = &args.runner else {
        return Ok(known);
    };
    pin::set(client, known.id, runner).await?;
    Ok(client.session(known.id).await?)
}

/// A new session: on the runner and in the directory that are named, else in this folder, else on the
/// runner that the person uses.
async fn begin(
    client: &Client,
    says_place: Option<Screen>,
    args: &args::Chat,
    home: &Path,
) -> anyhow::Result<Session> {
    let mut terms = CreateSession {
        directory: args.directory.clone().unwrap_or_default(),
        model: args.model.clone().filter(|model| model != model::NONE),
        ..CreateSession::default()
    };
    match (args.runner.as_deref(), &args.directory) {
        (Some(pin::NONE), _) | (None, Some(_)) => {}
        (Some(name), _) => {
            let runners = client.runners().await?;
            terms.runner = Some(pick::place(&runners, name)?);
        }
        (None, None) => {
            if let Some((runner, here)) = here(client, home).await? {
                if let Some(screen) = says_place {
                    let place = place(&runner, &here);
                    screen.line(&screen.style().dim(&place))?;
                }
                let workspace = here.workspace.as_deref();
                terms.runner = Some(runners::with_workspace(&runner.id.to_string(), workspace));
                terms.directory = here.directory;
            }
        }
    }
    Ok(client.begin_session(&terms).await?)
}

/// The runner of this machine, and this folder in its workspace, where the person may use it.
async fn here(client: &Client, home: &Path) -> anyhow::Result<Option<(Runner, Here)>> {
    let Some(here) = here::find(home) else {
        return Ok(None);
    };
    let runners = client.runners().await?;
    let runner = runners.into_iter().find(|runner| runner.id == here.runner);
    // The server refuses a workspace that its runner has not reported yet.
    let known = |runner: &Runner| match &here.workspace {
        None => true,
        Some(name) => runner.sandboxes.iter().any(|known| known.name == *name),
    };
    Ok(runner.filter(known).map(|runner| (runner, here)))
}

fn place(runner: &Runner, here: &Here) -> String {
    let directory = match here.directory.as_str() {
        "" => "the root of its workspace".to_owned(),
        directory => format!("its directory {directory}"),
    };
    let runner = runners::with_workspace(&runner.name, here.workspace.as_deref());
    let place = format!("works here: on runner {runner}, in {directory}");
    clean_line(&place, MAX_LINE)
}

fn is_resumed(args: &args::Chat) -> bool {
    args.resume || args.session.is_some()
}

/// The message on the command line and in standard input; `None` where a conversation is wanted.
async fn message(screen: Screen, words: &[String]) -> anyhow::Result<Option<String>> {
    match words.is_empty() {
        true => Ok(None),
        false => whole_message(screen, words).await.map(Some),
    }
}

/// The message that the words on the command line and standard input make.
pub(crate) async fn whole_message(screen: Screen, words: &[String]) -> anyhow::Result<String> {
    let text = piped::message(screen, words).await?;
    check(&text)?;
    Ok(text)
}

pub(crate) fn check(text: &str) -> anyhow::Result<()> {
    if text.trim().is_empty() {
        bail!("the message is empty: write what you want done");
    }
    if text.len() > MAX_MESSAGE_BYTES {
        bail!(
            "the message is longer than {} KiB: put it into a file on the runner and name the file",
            MAX_MESSAGE_BYTES / 1024
        );
    }
    Ok(())
}
