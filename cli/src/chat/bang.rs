//! `!SCRIPT`: a person's own command, where the session works.
//!
//! It is an operation of the person, as `gantry exec` starts one: the model is neither asked nor told. At the prompt its
//! output is shown as it comes. A command that was typed during a turn runs beside the turn, and its output is shown in
//! one block at its end.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use anyhow::bail;
use tokio::{signal::unix::SignalKind, time::interval};

use super::{
    Chat,
    turn::{A_SECOND, listen, unechoed},
};
use crate::exit::Exit;

mod running;
mod shown;

use running::Running;

/// The time limit of a command.
const RUNS_AT_MOST: Duration = Duration::from_secs(120);

/// Most commands that run at a time.
const AT_A_TIME: usize = 8;

const HELP: &str = "! runs the rest of the line in a shell where this session works, such as: !git status; \
                    a space before it makes it a message";

/// The person's commands that run. A command that is dropped from here goes on, and nobody reads it.
#[derive(Default)]
pub(super) struct OwnCommands(Vec<Running>);

impl OwnCommands {
    /// The next text to show; never where no command runs. A caller may drop the future while it waits.
    pub(super) async fn next(&mut self) -> String {
        let (place, shown) = poll_fn(|context| {
            for (place, command) in self.0.iter_mut().enumerate() {
                if let Poll::Ready(shown) = pin!(command.next()).poll(context) {
                    return Poll::Ready((place, shown));
                }
            }
            Poll::Pending
        })
        .await;
        if shown.is_last {
            self.0.remove(place);
        }
        shown.text
    }

    /// Their names, if there are any.
    fn names(&self) -> Option<String> {
        match &*self.0 {
            [] => None,
            [one] => Some(one.name()),
            [one, more @ ..] => Some(format!("{} and {} more", one.name(), more.len())),
        }
    }
}

/// Runs a command to its end; [`Exit::Cancelled`] where the person stopped it.
///
/// # Errors
/// Fails without a terminal: a script may pass on lines of others, who must not run commands.
pub(super) async fn run(
    chat: &mut Chat,
    script: &str,
    is_on_screen: bool,
) -> anyhow::Result<Option<Exit>> {
    if !is_on_screen {
        bail!(
            "! runs a command only on a terminal; use gantry exec, and a space before the ! makes it a message"
        )
    }
    if script.is_empty() {
        chat.view.aside(HELP)?;
        return Ok(None);
    }
    let is_live = chat.view.is_text();
    let command = Running::begin(chat, script, is_live);
    chat.own.0.push(command);
    until_over(chat).await
}

/// Begins a command that runs beside the turn.
///
/// # Errors
/// Fails where too many run.
pub(super) fn begin_beside_turn(chat: &mut Chat, script: &str) -> anyhow::Result<()> {
    if script.is_empty() {
        return chat.view.aside(HELP);
    }
    if chat.own.0.len() >= AT_A_TIME {
        bail!("{AT_A_TIME} commands run already; wait for the end of one");
    }
    let command = Running::begin(chat, script, false);
    chat.view
        .aside(&format!("{} runs beside the turn", command.name()))?;
    chat.own.0.push(command);
    Ok(())
}

/// Waits for the end of all commands, and shows their output. Ctrl-C stops them, and a second one leaves them alone:
/// [`Exit::Cancelled`].
pub(super) async fn until_over(chat: &mut Chat) -> anyhow::Result<Option<Exit>> {
    if chat.own.0.is_empty() {
        return Ok(None);
    }
    let mut interrupts = listen(SignalKind::interrupt())?;
    let mut resizes = listen(SignalKind::window_change())?;
    let mut seconds = interval(A_SECOND);
    let unechoed = unechoed(chat);
    let mut exit = None;
    while let Some(names) = chat.own.names() {
        chat.view.wait_for(Some(names))?;
        tokio::select! {
            biased;
            _ = interrupts.recv() => match exit.replace(Exit::Cancelled) {
                None => {
                    chat.own.0.iter_mut().for_each(Running::stop);
                    chat.view.aside("stopping… (Ctrl-C again leaves it alone)")?;
                }
                Some(_) => leave(chat)?,
            },
            shown = chat.own.next() => chat.view.beside(&shown)?,
            _ = seconds.tick() => {}
            _ = resizes.recv() => {}
        }
    }
    drop(unechoed);
    chat.view.wait_for(None)?;
    Ok(exit)
}

/// Leaves the commands alone, and says how to come back to them.
pub(super) fn leave(chat: &mut Chat) -> anyhow::Result<()> {
    for command in std::mem::take(&mut chat.own.0) {
        chat.view.aside(&command.left())?;
    }
    Ok(())
}
