//! Commands behind a slash. The server carries them out, as it does for every other surface; this sends the line, shows
//! the answer, and goes on in the session that the answer names.

use shared_api::{CommandDone, CommandTable, RunCommand, Session, Shown};
use shared_types::TurnId;
use unicode_width::UnicodeWidthStr as _;

use super::{Chat, Later, recent, turn::Answer};
use crate::{render::clean::clean_line, style::Style, table::Table};

/// Longest line of an answer, in characters.
const MAX_LINE: usize = 400;

/// Narrowest column of values, in characters.
const NARROW: usize = 20;

/// The lines of help that only this terminal can say.
pub(super) const AT_THIS_TERMINAL: &str = "\
!SCRIPT runs in a shell where this session works, also during a turn.
During a turn, a line is sent at once: the agent reads it before its next step.
Ctrl-C stops a turn and forgets what waits for its end · Ctrl-D ends the conversation";

/// The name of the command of a line.
fn name(line: &str) -> &str {
    let name = line.strip_prefix('/').unwrap_or(line);
    name.split_whitespace().next().unwrap_or_default()
}

/// True if the line is `/help`.
pub(super) fn is_help(line: &str) -> bool {
    matches!(name(line), "help" | "?")
}

/// True if the line may lead to another session, so that it waits for the end of a turn.
pub(super) fn is_between_turns(chat: &Chat, line: &str) -> bool {
    let mut commands = chat.commands.iter();
    commands.any(|command| command.between_turns && command.name == name(line))
}

/// Sends a line; its message gets this id.
pub(super) fn send(chat: &Chat, line: &str, client_id: String) -> Answer<CommandDone> {
    let (client, session) = (chat.client.clone(), chat.session.id);
    let command = RunCommand {
        line: line.trim().to_owned(),
        terms: chat.terms(),
        client_id: Some(client_id.clone()),
    };
    Box::pin(async move { client.run_command(session, &command, &client_id).await })
}

/// Shows an answer, and takes in what it changes in this session.
pub(super) fn take(chat: &mut Chat, done: &CommandDone) -> anyhow::Result<()> {
    if done.sets_mode {
        // The mode of the command line goes before every setting, and would hide this choice.
        chat.mode = None;
    }
    let here = chat.session.id;
    if let Some(session) = done.session.as_ref().filter(|session| session.id == here) {
        chat.session = session.clone();
    }
    let (style, columns) = (chat.screen.style(), chat.screen.columns());
    for shown in &done.shown {
        match shown {
            Shown::Text(text) => chat.view.aside(&clean_line(text, MAX_LINE))?,
            Shown::Table(table) if table.columns.is_empty() => {
                chat.view.block(&pairs(table, style, columns))?;
            }
            Shown::Table(table) => chat.view.block(&rows(table, style, columns))?,
        }
    }
    Ok(())
}

/// Goes on in another session. Returns the turn that works there.
pub(super) async fn move_to(chat: &mut Chat, session: Session) -> anyhow::Result<Option<TurnId>> {
    let is_json = !chat.view.is_text();
    let is_new = session.title.is_empty() && session.running_turn.is_none();
    if !is_json && !is_new {
        let shown = recent::shown(&chat.client, &session, chat.screen.style());
        chat.screen.print(&shown.await?)?;
    }
    let turn = session.running_turn;
    let left = chat.later.len();
    // Its turns go on without a spectator.
    chat.later.retain(|later| matches!(later, Later::Line(_)));
    if chat.later.len() < left {
        chat.view
            .aside("the session before this one works on; /back returns to it")?;
    }
    let opened = Chat::open(
        chat.client.clone(),
        chat.screen,
        chat.advice,
        session,
        is_json,
    );
    *chat = Chat {
        takes_lines: chat.takes_lines,
        later: std::mem::take(&mut chat.later),
        mode: chat.mode,
        commands: std::mem::take(&mut chat.commands),
        ..opened
    };
    let tasks = chat.client.tasks(chat.session.id).await?;
    chat.view.runs(&tasks)?;
    Ok(turn)
}

/// A table in plain words, for a screen of this width.
pub(crate) fn table_shown(table: &CommandTable, columns: usize) -> String {
    let style = Style::new(false);
    match table.columns.is_empty() {
        true => pairs(table, style, Some(columns)),
        false => rows(table, style, Some(columns)),
    }
}

fn rows(table: &CommandTable, style: Style, columns: Option<usize>) -> String {
    // The first column has names that are to be typed.
    let mut shown = Table::new(table.columns.iter().map(String::as_str)).whole(&[0]);
    for row in &table.rows {
        shown.row(row.iter().cloned());
    }
    shown.show(style, columns)
}

/// Names with their values beside them. A value that is too long goes on below its beginning.
fn pairs(table: &CommandTable, style: Style, columns: Option<usize>) -> String {
    let cell = |row: &[String], index: usize| {
        let cell = row.get(index).map_or("", String::as_str);
        clean_line(cell, MAX_LINE)
    };
    let widths = table.rows.iter().map(|row| cell(row, 0).width());
    let width = widths.max().unwrap_or(0);
    let room = columns.unwrap_or(usize::MAX).saturating_sub(width + 2);
    let mut out = String::new();
    for row in &table.rows {
        let mut name = cell(row, 0);
        for line in folded(&cell(row, 1), room.max(NARROW)) {
            let space = " ".repeat(width - name.width());
            out.push_str(&style.dim(&format!("{name}{space}  ")));
            out.push_str(&line);
            out.push('\n');
            name.clear();
        }
    }
    out
}

/// The lines of a text, cut between words.
fn folded(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines
            .last_mut()
            .filter(|line| line.is_empty() || line.width() + 1 + word.width() <= room);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_stand_side_by_side_and_long_values_go_on_below_their_beginning() {
        let table = CommandTable {
            columns: Vec::new(),
            rows: [
                ["/new", "begin"],
                ["/model [NAME]", "list the models, or \x1b[2Jchoose one"],
            ]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec(),
        };
        assert_eq!(
            pairs(&table, Style::new(false), Some(36)),
            "/new           begin\n/model [NAME]  list the models, or\n               choose one\n"
        );
    }
}
