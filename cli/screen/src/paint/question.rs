//! A question to a person in full: everything that is to happen, where, and its risk.

#[cfg(test)]
mod tests;

use ratatui_core::text::{Line, Span};
use shared_types::event::{PlannedCall, Question};

use super::{code, diff, item, look, palette, wrap};
use crate::transcript::{item::Call, request::Request, safe};

/// Paints a question with all of its lines, in rows of at most so many columns. A long question holds only the beginning of its text; then all of it is taken
/// from the call that waits.
pub fn asked(question: &Question, waits: Option<&Call>, columns: usize) -> Vec<Line<'static>> {
    match question {
        Question::Call(call) => planned(call, waits, columns),
        Question::Free { text, choices } => free(text, choices, columns),
        Question::Plan { text } => {
            let mut rows = look::marked(
                Span::styled("? ", palette::WARN),
                vec![Span::styled("The agent proposes a plan", palette::BOLD)],
                columns,
            );
            let plan = item::prose(&safe::whole(text.trim_end()), look::inner(columns));
            rows.extend(look::indented(plan));
            rows
        }
    }
}

fn planned(call: &PlannedCall, waits: Option<&Call>, columns: usize) -> Vec<Line<'static>> {
    let paths: Vec<_> = call
        .paths
        .iter()
        .map(|path| safe::whole(&path.path))
        .collect();
    let mut head = vec![
        Span::raw("May "),
        Span::styled(safe::line(&call.tool), palette::BOLD),
        Span::raw(" run"),
    ];
    if !paths.is_empty() {
        head = vec![
            Span::raw("May "),
            Span::styled(safe::line(&call.tool), palette::BOLD),
            Span::raw(" change "),
            Span::styled(paths.join(", "), palette::BOLD),
        ];
    }
    head.push(Span::raw("?"));
    let mut rows = look::marked(Span::styled("? ", palette::WARN), head, columns);
    rows.extend(look::words(&place(call), palette::DIM, columns));
    rows.push(Line::default());
    let inner = look::inner(columns);
    let whole = waits.filter(|_| call.cut);
    let whole = whole.and_then(|waits| whole_deed(&waits.request, inner));
    let is_cut = call.cut && whole.is_none();
    let deed = whole.unwrap_or_else(|| deed(call, inner));
    rows.extend(look::indented(deed));
    if is_cut {
        let words = "… more of it was left out; the call's arguments have all of it";
        rows.extend(look::words(words, palette::WARN, columns));
    }
    if !call.environment.is_empty() {
        let names = safe::whole(&call.environment.join(", "));
        rows.extend(look::words(&format!("with {names}"), palette::DIM, columns));
    }
    rows.push(Line::default());
    rows.extend(look::indented(risk(call, look::inner(columns))));
    rows
}

/// All that runs: the command, or the edit.
fn deed(call: &PlannedCall, columns: usize) -> Vec<Line<'static>> {
    let text = call.text.trim_end().replace("\r\n", "\n");
    let text = safe::whole(&text);
    match call.paths.first() {
        None => command(&text, columns),
        Some(path) => {
            let edit = (call.tool == "Edit")
                .then(|| edit(&text, columns))
                .flatten();
            edit.unwrap_or_else(|| diff::written(&text, &path.path, columns, usize::MAX))
        }
    }
}

/// All that a call asks for, where the question has only its beginning.
fn whole_deed(request: &Request, columns: usize) -> Option<Vec<Line<'static>>> {
    match request {
        Request::Shell { command: text, .. } => Some(command(text, columns)),
        Request::Edit { old, new, .. } => Some(diff::replaced_at(1, old, new, columns, usize::MAX)),
        Request::Write { path, content } => Some(diff::written(content, path, columns, usize::MAX)),
        _ => None,
    }
}

fn command(text: &str, columns: usize) -> Vec<Line<'static>> {
    let lines = code::highlight(text, "sh");
    let rows = lines.iter().flat_map(|line| wrap::wrap(line, columns, 0));
    rows.collect()
}

/// An edit, which a question tells as all lines that go, with `-`, and then all lines that come, with `+`.
fn edit(text: &str, columns: usize) -> Option<Vec<Line<'static>>> {
    let (every, lines) = match text.strip_prefix(EVERY) {
        Some(lines) => (true, lines),
        None => (false, text),
    };
    let mut sides = [String::new(), String::new()];
    for line in lines.lines() {
        let (place, line) = match line.strip_prefix('-') {
            Some(line) => (0, line),
            None => (1, line.strip_prefix('+')?),
        };
        sides[place].push_str(line);
        sides[place].push('\n');
    }
    let mut rows = Vec::new();
    if every {
        rows.push(Line::from(Span::styled(EVERY.trim_end(), palette::WARN)));
    }
    rows.extend(diff::replaced_at(
        1,
        &sides[0],
        &sides[1],
        columns,
        usize::MAX,
    ));
    Some(rows)
}

fn place(call: &PlannedCall) -> String {
    let name = safe::line(&call.runner_name);
    if name.is_empty() {
        return "on the server".to_owned();
    }
    let folder = match call.directory.as_str() {
        "" => String::new(),
        folder => format!(" in {}", safe::whole(folder)),
    };
    format!(
        "on {name}{folder} · isolation: {}",
        safe::line(&call.isolation)
    )
}

/// The risk, its reasons, and why a person is asked.
fn risk(call: &PlannedCall, columns: usize) -> Vec<Line<'static>> {
    let reasons = match call.reasons.is_empty() {
        true => String::new(),
        false => format!(": {}", safe::line(&call.reasons.join("; "))),
    };
    let style = match call.risk {
        shared_types::Risk::Low => palette::DIM,
        shared_types::Risk::Medium => palette::WARN,
        shared_types::Risk::High => palette::BAD,
    };
    let line = Line::from(vec![
        Span::styled(format!("risk {}{reasons}", call.risk), style),
        Span::styled(format!(" · {}", safe::line(&call.why)), palette::DIM),
    ]);
    wrap::wrap(&line, columns, 0)
}

fn free(text: &str, choices: &[String], columns: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let text = safe::whole(text.trim_end());
    for (number, line) in text.lines().enumerate() {
        let mark = if number == 0 { "? " } else { "  " };
        let words = vec![Span::styled(line.to_owned(), palette::BOLD)];
        rows.extend(look::marked(
            Span::styled(mark, palette::WARN),
            words,
            columns,
        ));
    }
    for (number, choice) in (1..).zip(choices) {
        let mark = Span::styled(format!("{number} "), palette::ACCENT);
        let words = vec![Span::raw(safe::line(choice))];
        let choice = look::marked(mark, words, look::inner(columns));
        rows.extend(look::indented(choice));
    }
    rows
}

/// The first line of an edit of more than one place.
const EVERY: &str = "every occurrence:\n";
