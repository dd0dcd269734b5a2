//! A conversation: messages of one session, one after the other. It first shows unfinished work of
//! the session, because a person who lost the terminal comes back with `gantry chat --continue`.

use std::pin::pin;

use shared_api::Me;

use super::{
    Chat, Later, bang, check, command, images, mode, model, pin,
    prompt::{Prompt, Typed},
    slash::{self, Line},
    turn,
};
use crate::{above::Above, exit::Exit};

/// Reads lines until they end. Without a terminal, the exit code is that of the last turn, so that
/// a script learns of a failure.
pub(super) async fn run(chat: &mut Chat, me: &Me) -> anyhow::Result<Exit> {
    let mut prompt = Prompt::new()?;
    let is_interactive = matches!(prompt, Prompt::Terminal(_));
    if is_interactive {
        // A server of an earlier release has no commands.
        chat.commands = chat.client.commands().await.unwrap_or_default();
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
        // A turn that waits is shown at once, and a command that runs goes on beside it.
        if !matches!(chat.later.front(), Some(Later::Turn(_))) {
            bang::until_over(chat).await?;
        }
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

/// Says with which model, in which mode and where the session works.
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
        Line::Message(text) => {
            check(text)?;
            // A script may pass on lines of others, who must not pick files of this machine.
            let images = match is_on_screen {
                true => images::added(chat, images::chosen(chat.screen, text, &[])?).await?,
                false => Vec::new(),
            };
            let exit = turn::run(chat, text, images, is_on_screen).await?;
            return Ok(Some(exit));
        }
        Line::Run(script) => return bang::run(chat, script, is_on_screen).await,
        Line::Command(line) => return run_command(chat, line, is_on_screen).await,
    }
    Ok(None)
}

/// Has the server carry out a command. The exit is that of the turn which it began, or which works in the session that
/// the command leads to.
async fn run_command(
    chat: &mut Chat,
    line: &str,
    is_on_screen: bool,
) -> anyhow::Result<Option<Exit>> {
    let client_id = chat.client.new_client_id();
    let done = command::send(chat, line, client_id.clone()).await?;
    command::take(chat, &done)?;
    if command::is_help(line) {
        chat.view.aside(command::AT_THIS_TERMINAL)?;
    }
    if let Some(message) = done.message {
        return turn::sent(chat, client_id, message.turn, is_on_screen)
            .await
            .map(Some);
    }
    let Some(session) = done.session.filter(|session| session.id != chat.session.id) else {
        return Ok(None);
    };
    match command::move_to(chat, session).await? {
        Some(turn) => turn::watch(chat, turn).await.map(Some),
        None => {
            let me = chat.client.me().await?;
            greet(chat, &me).await?;
            Ok(None)
        }
    }
}
