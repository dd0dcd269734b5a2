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

pub(crate) use running::{Place, Running, ToShow};

/// The time limit of a command.
const RUNS_AT_MOST: Duration = Duration::from_secs(120);

/// Most commands that run at a time.
const AT_A_TIME: usize = 8;

pub(crate) const HELP: &str = "! runs the rest of the line in a shell where this session works, such as: !git status; \
                    a space before it makes it a message";

/// The person's commands that run. A command that is dropped from here goes on, and nobody reads it.
#[derive(Default)]
pub(crate) struct OwnCommands(Vec<Running>);

impl OwnCommands {
    /// Adds a command.
    ///
    /// # Errors
    /// Refuses it where too many run.
    pub(crate) fn add(&mut self, command: Running) -> anyhow::Result<()> {
        if self.0.len() >= AT_A_TIME {
            bail!("{AT_A_TIME} commands run already; wait for the end of one");
        }
        self.0.push(command);
        Ok(())
    }

    /// The next text to show; never where no command runs. A caller may drop the future while it waits.
    pub(crate) async fn next(&mut self) -> ToShow {
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
        shown
    }

    /// Stops all of them.
    pub(crate) fn stop(&mut self) {
        self.0.iter_mut().for_each(Running::stop);
    }

    /// Leaves them alone. Returns a line about each, which says how to come back to it.
    pub(crate) fn leave(&mut self) -> Vec<String> {
        self.0.drain(..).map(|command| command.left()).collect()
    }

    /// True if none runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names, if there are any.
    pub(crate) fn names(&self) -> Option<String> {
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
    chat.own.0.push(begun(chat, script, is_live));
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
    let command = begun(chat, script, false);
    let name = command.name();
    chat.own.add(command)?;
    chat.view.aside(&format!("{name} runs beside the turn"))
}

/// A command where the session of the chat works.
fn begun(chat: &Chat, script: &str, is_live: bool) -> Running {
    let place = Place {
        client: chat.client.clone(),
        session: chat.session.id,
        style: chat.screen.style(),
        advice: chat.advice,
    };
    Running::begin(place, script, is_live)
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
                    chat.own.stop();
                    chat.view.aside("stopping… (Ctrl-C again leaves it alone)")?;
                }
                Some(_) => leave(chat)?,
            },
            shown = chat.own.next() => chat.view.beside(&shown.text)?,
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
    let left = chat.own.leave();
    left.iter().try_for_each(|line| chat.view.aside(line))
}
