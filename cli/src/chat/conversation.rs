//! A conversation: messages of one session, one after the other. It first shows unfinished work of
//! the session, because a person who lost the terminal comes back with `gantry chat --continue`.

use std::pin::pin;

use shared_api::{CreateSession, Me};

use super::{
    Chat, Later, check, images, mode, model, pin,
    prompt::{Prompt, Typed},
    slash::{self, HELP, Line},
    turn,
};
use crate::{above::Above, args::ListSessions, context, exit::Exit, sessions, tasks, view::View};

/// The sessions that `/sessions` lists.
const RECENT: ListSessions = ListSessions {
    limit: 10,
    archived: false,
    search: None,
    json: false,
};

/// Reads lines until they end. Without a terminal, the exit code is that of the last turn, so that
/// a script learns of a failure.
pub(super) async fn run(chat: &mut Chat, me: &Me) -> anyhow::Result<Exit> {
    let mut prompt = Prompt::new()?;
    let is_interactive = matches!(prompt, Prompt::Terminal(_));
    if is_interactive {
        greet(chat, me).await?;
    }
    chat.takes_lines = is_interactive;
    let mut last = Exit::Done;
    if let Some(turn) = chat.session.running_turn {
        last = turn::watch(chat, turn).await?;
        match last {
            Exit::Left => return Ok(Exit::Left),
            Exit::Cancelled if !is_interactive => return Ok(Exit::Cancelled),
            _ if is_interactive => chat.screen.line("")?,
            _ => {}
        }
    }
    let mut interrupted = false;
    let mut above = prompt.above();
    loop {
        let done = match chat.later.pop_front() {
            Some(Later::Turn(turn)) => turn::go_on(chat, turn).await.map(Some),
            Some(Later::Line(line)) => say(chat, &line, is_interactive).await,
            None => match typed(chat, &mut prompt, &mut above).await? {
                Typed::Line(line) => {
                    interrupted = false;
                    say(chat, &line, is_interactive).await
                }
                Typed::Interrupt if !is_interactive => return Ok(Exit::Left),
                Typed::Interrupt if !interrupted => {
                    interrupted = true;
                    chat.view
                        .aside("Ctrl-C once more or Ctrl-D ends the conversation")?;
                    continue;
                }
                Typed::Interrupt | Typed::End => break,
            },
        };
        match done {
            Ok(Some(Exit::Left)) => return Ok(Exit::Left),
            Ok(Some(Exit::Cancelled)) if !is_interactive => return Ok(Exit::Cancelled),
            Ok(Some(exit)) => {
                if exit == Exit::Cancelled {
                    chat.later.retain(|later| matches!(later, Later::Turn(_)));
                    prompt.forget()?;
                    above = prompt.above();
                }
                last = exit;
                if is_interactive {
                    chat.screen.line("")?;
                }
            }
            Ok(None) => {}
            // On a terminal, the failure of one turn does not end the conversation, because a
            // person sees it.
            Err(error) if is_interactive => chat.screen.note(&crate::told(&error, chat.advice)),
            Err(error) => return Err(error),
        }
    }
    Ok(if is_interactive { Exit::Done } else { last })
}

/// Reads the next line. Events that happen before are shown above the prompt.
async fn typed(
    chat: &mut Chat,
    prompt: &mut Prompt,
    above: &mut Option<Above>,
) -> anyhow::Result<Typed> {
    chat.view.prompt_begins(above.take());
    let mut line = pin!(prompt.next());
    let line = loop {
        let ticks = chat.view.needs_ticks();
        let happened = tokio::select! {
            biased;
            line = &mut line => break line,
            happened = async {
                chat.view.room().await;
                chat.watch.next(ticks).await
            } => happened,
        };
        match happened {
            Ok(happened) => chat.watch.show(&happened, &mut chat.view)?,
            Err(error) => chat.view.aside(&crate::told(&error, chat.advice))?,
        }
    };
    *above = chat.view.prompt_ended().await?;
    line
}

async fn greet(chat: &mut Chat, me: &Me) -> anyhow::Result<()> {
    let runner = pin::place(chat).await?;
    // The practice model was named in the first line.
    let model = match me.model.practice {
        true => String::new(),
        false => format!("{} · ", model::name(chat).await?),
    };
    let mode = mode::name(chat).await?;
    chat.view
        .aside(&format!("{model}{mode} · {runner} · /help"))
}

/// Does what a line says. The exit is that of the turn, if it was a message.
async fn say(chat: &mut Chat, line: &str, is_on_screen: bool) -> anyhow::Result<Option<Exit>> {
    match slash::parse(line) {
        Line::Empty => {}
        // Where no turn works, each of them starts one.
        Line::Message(text) | Line::Queue(text) | Line::Interrupt(text) => {
            check(text)?;
            // A script may pass on lines of others, who must not pick files of this machine.
            let images = match is_on_screen {
                true => images::added(chat, images::chosen(chat.screen, text, &[])?).await?,
                false => Vec::new(),
            };
            let exit = turn::run(chat, text, images, is_on_screen).await?;
            return Ok(Some(exit));
        }
        Line::Runner(None) => pin::list(chat).await?,
        Line::Runner(Some(name)) => pin::choose(chat, name).await?,
        Line::Model(None) => model::list(chat).await?,
        Line::Model(Some(name)) => model::choose(chat, name).await?,
        Line::Mode(None) => mode::show(chat).await?,
        // A script may pass on lines of others, who must not free its agent.
        Line::Mode(Some(_)) if !is_on_screen => {
            anyhow::bail!("/mode sets a mode only on a terminal; use gantry chat --mode MODE")
        }
        Line::Mode(Some(name)) => mode::choose(chat, name).await?,
        Line::Sessions => sessions::list(&chat.client, chat.screen, &RECENT).await?,
        Line::New => {
            let same_place = CreateSession {
                runner: chat.session.runner.as_ref().map(|pin| pin.id.to_string()),
                directory: chat.session.directory.clone(),
                model: model::of_this_session(chat).await?,
                ..CreateSession::default()
            };
            let session = chat.client.begin_session(&same_place).await?;
            let is_json = matches!(chat.view, View::Json(..));
            let (later, takes_lines) = (std::mem::take(&mut chat.later), chat.takes_lines);
            let named = chat.mode;
            let opened = Chat::open(
                chat.client.clone(),
                chat.screen,
                chat.advice,
                session,
                is_json,
            );
            *chat = Chat {
                takes_lines,
                later,
                mode: named,
                ..opened
            };
            // The mode of the last session stays behind, which may have been a less free one.
            let mode = mode::name(chat).await?;
            chat.view.aside(&format!("a new session begins · {mode}"))?;
        }
        Line::Stop => {
            let stopped = chat.client.cancel(chat.session.id).await?;
            let said = stopped.turn.map_or("nothing is under way", |_| "stopping…");
            chat.view.aside(said)?;
        }
        Line::Context => context::show(&chat.client, chat.screen, chat.session.id, false).await?,
        Line::Compact(focus) => return Ok(Some(turn::compact(chat, focus, is_on_screen).await?)),
        Line::Tasks => tasks::list(&chat.client, chat.screen, chat.session.id, false).await?,
        Line::StopTask(task) => {
            tasks::cancel(&chat.client, chat.screen, chat.session.id, task).await?;
        }
        Line::Help => chat.screen.note(HELP),
        // Without a terminal, no person would notice that the message was not sent.
        Line::Unknown(command) if !is_on_screen => {
            anyhow::bail!("there is no {command}; a space before the slash makes it a message")
        }
        Line::Unknown(command) => chat.view.aside(&format!(
            "there is no {command}; /help lists what there is, and a space before the slash \
             makes it a message"
        ))?,
    }
    Ok(None)
}
