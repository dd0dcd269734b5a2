//! The card of a tool call: what it asks for, where, what came of it.

mod looks;

use ratatui_core::{
    style::Style,
    text::{Line, Span},
};
use shared_types::{event::CallOutcome, human::duration};

use super::{Fold, code, diff, item, look, palette, program, wrap};
use crate::transcript::{
    item::{Call, Ended, State},
    output::OutputLine,
    request::Request,
};

pub(super) use looks::run;

/// The first lines of output that a folded card shows.
const FIRST_LINES: usize = 2;

/// The last lines of output that a folded or a live card shows.
const LAST_LINES: usize = 6;

/// The most rows of one line of output in a folded card.
const MOST_LINE_ROWS: usize = 3;

/// The most rows of an edit in a folded card.
const MOST_EDIT_ROWS: usize = 40;

/// The most rows of a written file in a folded card.
const MOST_WRITE_ROWS: usize = 12;

/// The most rows of a failure's words, or of another result, in a folded card.
const MOST_RESULT_ROWS: usize = 4;

/// The most rows of a command while it runs. Once it has ended all of it is shown.
const MOST_LIVE_COMMAND_ROWS: usize = 12;

/// The shortest time of a call that is shown, in seconds.
const SHOWN_SECONDS: u64 = 1;

/// Paints a call.
pub(super) fn call(call: &Call, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    if call.request.looks() {
        return looks::one(call, columns, fold);
    }
    if call.request == Request::TodoWrite && call.ended_well() {
        // The change of the list is an item of its own.
        return Vec::new();
    }
    let mut rows = head(call, columns, fold);
    if fold == Fold::Live && call.state == State::Asked {
        // The question shows all of it.
        return look::first(rows, 1);
    }
    rows.extend(place(call, columns));
    rows.extend(agent(call, columns));
    if let Some(words) = &call.approval {
        let style = match words.starts_with("allowed") || words.starts_with("answered") {
            true => palette::DIM,
            false => palette::WARN,
        };
        rows.extend(look::words(words, style, columns));
    }
    rows.extend(look::indented(body(call, look::inner(columns), fold)));
    rows.extend(foot(call, columns));
    rows
}

/// The mark before a call, in the colour of its state.
fn bullet(call: &Call) -> Span<'static> {
    let (mark, style) = match &call.state {
        State::Waits | State::Runs => ("○ ", palette::DIM),
        State::Asked => ("● ", palette::WARN),
        State::Left => ("● ", palette::DIM),
        State::Ended(ended) => ("● ", colour(ended)),
    };
    Span::styled(mark, style)
}

fn colour(ended: &Ended) -> Style {
    match ended.outcome {
        CallOutcome::Completed if !ended.is_failure() => palette::GOOD,
        CallOutcome::Background => palette::ACCENT,
        CallOutcome::Cancelled => palette::WARN,
        CallOutcome::Completed
        | CallOutcome::Failed
        | CallOutcome::Refused
        | CallOutcome::TimedOut
        | CallOutcome::Unknown => palette::BAD,
    }
}

fn titled(call: &Call, text: Vec<Span<'static>>, columns: usize) -> Vec<Line<'static>> {
    let mut spans = vec![Span::styled(call.name.clone(), palette::BOLD)];
    if !text.is_empty() {
        spans.push(Span::raw(" "));
        spans.extend(text);
    }
    look::marked(bullet(call), spans, columns)
}

fn head(call: &Call, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    let plain = |text: &str| vec![Span::raw(text.to_owned())];
    let rows = match &call.request {
        Request::Shell { command, .. } => command_rows(call, command, columns),
        Request::Edit { path, every, .. } => {
            let mut text = plain(path);
            if *every {
                text.push(Span::styled(" · every occurrence", palette::DIM));
            }
            titled(call, text, columns)
        }
        Request::Write { path, content } => {
            let lines = look::counted(content.lines().count(), "line", "lines");
            let words = match call.ended_well() {
                true if call.made_file() => format!(" · new, {lines}"),
                true if call.changed_nothing() => " · nothing changed".to_owned(),
                true | false => format!(" · {lines}"),
            };
            let mut text = plain(path);
            text.push(Span::styled(words, palette::DIM));
            titled(call, text, columns)
        }
        Request::Ask { question } => {
            let mut rows = titled(call, Vec::new(), columns);
            rows.extend(look::words(question, palette::PLAIN, columns));
            rows
        }
        Request::Other { about } if about.contains('\n') => {
            let mut rows = titled(call, Vec::new(), columns);
            rows.extend(look::words(about, palette::PLAIN, columns));
            rows
        }
        Request::Plan { .. } | Request::TodoWrite => titled(call, Vec::new(), columns),
        other => match other.about() {
            none if none.is_empty() => titled(call, Vec::new(), columns),
            about => titled(call, plain(&about), columns),
        },
    };
    match fold {
        Fold::Live => look::first(rows, MOST_LIVE_COMMAND_ROWS),
        Fold::Folded | Fold::Whole => rows,
    }
}

/// All of a command.
fn command_rows(call: &Call, command: &str, columns: usize) -> Vec<Line<'static>> {
    let mut lines = code::highlight(command.trim_end(), "sh");
    if lines.len() == 1
        && let Some(line) = lines.pop()
    {
        return titled(call, line.spans, columns);
    }
    let mut rows = titled(call, Vec::new(), columns);
    let inner = look::inner(columns);
    let lines = lines.iter().flat_map(|line| wrap::wrap(line, inner, 0));
    rows.extend(look::indented(lines.collect()));
    rows
}

/// The place of a call, where it is another than that of the call before, and the folder of a command.
fn place(call: &Call, columns: usize) -> Vec<Line<'static>> {
    let folder = match &call.request {
        Request::Shell { directory, .. } if !directory.is_empty() => Some(directory),
        _ => None,
    };
    let words = match (&call.place, folder) {
        (None, None) => return Vec::new(),
        (None, Some(folder)) => format!("in {folder}"),
        (Some(place), None) => format!("on {} · isolation: {}", place.runner, place.isolation),
        (Some(place), Some(folder)) => format!(
            "on {} in {folder} · isolation: {}",
            place.runner, place.isolation
        ),
    };
    look::words(&words, palette::DIM, columns)
}

/// The agent of a call: its name, its session, and its end.
fn agent(call: &Call, columns: usize) -> Vec<Line<'static>> {
    let Some(agent) = &call.agent else {
        return Vec::new();
    };
    let state = agent.ended.as_deref().unwrap_or("at work");
    let words = format!("{} · {state} · /resume {}", agent.name, agent.session);
    look::words(&words, palette::DIM, columns)
}

/// The things that came of a call, in so many columns.
fn body(call: &Call, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    match &call.request {
        Request::Shell { .. } | Request::Task { .. } => output(call, columns, fold),
        Request::Edit { old, new, .. } => {
            let most = if fold == Fold::Whole {
                usize::MAX
            } else {
                MOST_EDIT_ROWS
            };
            let line = call.edited_line().unwrap_or(1);
            let mut rows = diff::replaced_at(line, old, new, columns, most);
            rows.extend(failure(call, columns, fold));
            rows
        }
        Request::Write { path, content } if !call.changed_nothing() => {
            let most = if fold == Fold::Whole {
                usize::MAX
            } else {
                MOST_WRITE_ROWS
            };
            let mut rows = diff::written(content, path, columns, most);
            rows.extend(failure(call, columns, fold));
            rows
        }
        Request::Plan { plan } => item::prose(plan, columns),
        Request::Ask { .. } | Request::TodoWrite | Request::Write { .. } => {
            failure(call, columns, fold)
        }
        _ => {
            let rows = look::paragraph(&call.result, palette::DIM, columns);
            folded(rows, fold)
        }
    }
}

/// The words below the reason of a failure.
fn failure(call: &Call, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    match call.is_over() && !call.ended_well() {
        true => folded(look::paragraph(&call.result, palette::DIM, columns), fold),
        false => Vec::new(),
    }
}

fn folded(rows: Vec<Line<'static>>, fold: Fold) -> Vec<Line<'static>> {
    match fold {
        Fold::Whole => rows,
        Fold::Folded | Fold::Live => look::first(rows, MOST_RESULT_ROWS),
    }
}

/// The output of a program: all that is kept, or its first and last lines.
fn output(call: &Call, columns: usize, fold: Fold) -> Vec<Line<'static>> {
    let lines = call.output.lines();
    let first = match fold {
        Fold::Whole => return look::visible(program(&lines, columns)),
        Fold::Live if !call.is_over() => 0,
        Fold::Folded | Fold::Live => FIRST_LINES,
    };
    let short = |line: &OutputLine| {
        let mut rows = look::visible(program(std::slice::from_ref(line), columns));
        if rows.len() > MOST_LINE_ROWS {
            rows.truncate(MOST_LINE_ROWS);
            rows.push(Line::from(Span::styled("…", palette::DIM)));
        }
        rows
    };
    if lines.len() <= first + LAST_LINES + 1 {
        return lines.iter().flat_map(short).collect();
    }
    let (head, tail) = (&lines[..first], &lines[lines.len() - LAST_LINES..]);
    let is_text = |line: &&OutputLine| matches!(line, OutputLine::Text(_));
    let shown = head.iter().chain(tail).filter(is_text).count();
    let all = usize::try_from(call.output.line_count()).unwrap_or(usize::MAX);
    let mut rows: Vec<_> = head.iter().flat_map(short).collect();
    rows.push(look::more_lines(all.saturating_sub(shown).max(1)));
    rows.extend(tail.iter().flat_map(short));
    rows
}

/// The end of a call, where there is something to say about it.
fn foot(call: &Call, columns: usize) -> Vec<Line<'static>> {
    let mut rows = match &call.state {
        State::Waits | State::Asked | State::Runs => Vec::new(),
        State::Left => look::words("■ its turn ended first", palette::DIM, columns),
        State::Ended(ended) => end(ended, columns),
    };
    if let Some(category) = call.finding {
        let words = format!("! the result looks like it gives the agent instructions ({category})");
        rows.extend(look::words(&words, palette::WARN, columns));
    }
    rows
}

fn end(ended: &Ended, columns: usize) -> Vec<Line<'static>> {
    // Its turn ends with the reason, which is shown once, however many calls share it.
    if ended.is_unplaced {
        return Vec::new();
    }
    let with = |word: &str| match (&ended.exit, ended.reason.as_str()) {
        (Some(exit), _) => format!("{word}: {exit}"),
        (None, "") => word.to_owned(),
        (None, reason) => format!("{word}: {reason}"),
    };
    let words = match (ended.outcome, ended.task) {
        (_, Some(task)) => format!("↷ goes on in the background as task {task}"),
        (CallOutcome::Background, None) => "↷ goes on in the background".to_owned(),
        (CallOutcome::Completed, None) => ended.exit.clone().unwrap_or_default(),
        (CallOutcome::Failed, None) => with("✗ failed"),
        (CallOutcome::Refused, None) => with("✗ not run"),
        (CallOutcome::TimedOut, None) => {
            format!("✗ stopped at its time limit of {}", duration(ended.budget))
        }
        (CallOutcome::Cancelled, None) => "■ cancelled".to_owned(),
        (CallOutcome::Unknown, None) => with("✗ outcome unknown"),
    };
    let took = match ended.took.as_secs() {
        _ if ended.overran && ended.task.is_none() => Some(format!(
            "{}, longer than its {}",
            duration(ended.took),
            duration(ended.budget)
        )),
        // Its limit tells the time.
        _ if ended.outcome == CallOutcome::TimedOut => None,
        0..SHOWN_SECONDS => None,
        _ => Some(look::took(ended.took)),
    };
    let mut spans = Vec::new();
    if !words.is_empty() {
        let style = match ended.outcome {
            CallOutcome::Completed if !ended.is_failure() => palette::DIM,
            _ => colour(ended),
        };
        spans.push(Span::styled(words, style));
    }
    if let Some(took) = took {
        let mark = if spans.is_empty() { "" } else { " · " };
        spans.push(Span::styled(format!("{mark}{took}"), palette::DIM));
    }
    match spans.is_empty() {
        true => Vec::new(),
        false => look::indented(wrap::wrap(&Line::from(spans), look::inner(columns), 0)),
    }
}
