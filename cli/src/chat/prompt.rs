//! Reading a conversation's lines: with editing and history on a terminal, as they come elsewhere.
//! The history stays in memory: messages may hold what should not lie in a file.

use std::io::{BufRead as _, IsTerminal as _, Read as _};

use anyhow::Context as _;
use rustyline::{DefaultEditor, error::ReadlineError};
use shared_types::limits::MAX_MESSAGE_BYTES;
use tokio::signal::unix::{SignalKind, signal};

use crate::above::Above;

/// The text before the line.
const PROMPT: &str = "› ";

/// The source of lines.
pub(super) enum Prompt {
    /// A terminal; absent only while a line is being read.
    Terminal(Option<Box<DefaultEditor>>),
    /// A pipe or a file.
    Lines,
}

/// An action of a person at the prompt.
pub(super) enum Typed {
    Line(String),
    Interrupt,
    End,
}

impl Prompt {
    pub(super) fn new() -> anyhow::Result<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(Self::Lines);
        }
        Ok(Self::Terminal(Some(Box::new(editor_of_a_prompt()?))))
    }

    /// The way to show lines above a prompt; `None` if no person types at one.
    pub(super) fn above(&mut self) -> Option<Above> {
        let Self::Terminal(Some(editor)) = self else {
            return None;
        };
        // A terminal that cannot edit a line shows what comes where the cursor is.
        editor.create_external_printer().ok().map(Above::start)
    }

    /// Forgets the lines that were typed ahead, as a shell does with Ctrl-C; the history stays.
    pub(super) fn forget(&mut self) -> anyhow::Result<()> {
        let Self::Terminal(Some(editor)) = self else {
            return Ok(());
        };
        // Only a new editor holds no lines that it has read and not returned.
        let mut new = editor_of_a_prompt()?;
        std::mem::swap(new.history_mut(), editor.history_mut());
        **editor = new;
        Ok(())
    }

    /// The next line: lines that were typed before they are asked for come one after the other.
    pub(super) async fn next(&mut self) -> anyhow::Result<Typed> {
        match self {
            Self::Terminal(place) => {
                let mut editor = place.take().context("failed to read: the prompt is gone")?;
                // Reading blocks, and must not hold up the connection.
                let (editor, line) = tokio::task::spawn_blocking(move || {
                    let line = editor.readline(PROMPT);
                    (editor, line)
                })
                .await
                .context("failed to read a line")?;
                let editor = place.insert(editor);
                typed(line, editor)
            }
            Self::Lines => {
                let mut interrupts =
                    signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
                tokio::select! {
                    line = tokio::task::spawn_blocking(read_line) => {
                        line.context("failed to read a line")?
                    }
                    _ = interrupts.recv() => Ok(Typed::Interrupt),
                }
            }
        }
    }
}

/// A command as a person has changed it; nothing if the person gave that up.
pub(super) fn edited(command: &str) -> anyhow::Result<Option<String>> {
    match editor_of_a_prompt()?.readline_with_initial("run › ", (command, "")) {
        Ok(line) => Ok(Some(line).filter(|line| !line.trim().is_empty())),
        Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(None),
        Err(error) => Err(error).context("failed to read a line"),
    }
}

fn editor_of_a_prompt() -> anyhow::Result<DefaultEditor> {
    DefaultEditor::new().context("failed to set up the prompt")
}

fn typed(line: Result<String, ReadlineError>, editor: &mut DefaultEditor) -> anyhow::Result<Typed> {
    match line {
        Ok(line) => {
            // A line that cannot be remembered is still a line.
            let _ = editor.add_history_entry(&line);
            Ok(Typed::Line(line))
        }
        Err(ReadlineError::Interrupted) => Ok(Typed::Interrupt),
        Err(ReadlineError::Eof) => Ok(Typed::End),
        Err(error) => Err(error).context("failed to read a line"),
    }
}

fn read_line() -> anyhow::Result<Typed> {
    let mut line = String::new();
    let read = std::io::stdin()
        .lock()
        .take(MAX_MESSAGE_BYTES as u64 + 1)
        .read_line(&mut line)
        .context("failed to read a line from standard input")?;
    Ok(match read {
        0 => Typed::End,
        _ => Typed::Line(line),
    })
}
