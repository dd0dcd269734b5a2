//! The rows at the bottom of the terminal, from top to bottom: what may still change in the conversation, what goes on,
//! the lines that wait, a question or a list, the input box, and the status line.

use cli_screen::{
    compose::Composer,
    paint::wrap::{cut, width, wrap},
    surface::{Bottom, Position, Size},
    transcript::facts::{Facts, Waits, Working},
};
use ratatui_core::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use shared_types::{
    Timestamp,
    event::{TodoItem, TodoState},
    human::{duration, tokens},
};

use super::facts::SessionFacts;

/// Most rows of the input box.
const BOX_ROWS: usize = 12;

/// Most rows of the to-do list.
const TODO_ROWS: usize = 6;

/// Most rows of background commands.
const TASK_ROWS: usize = 4;

/// Most rows of lines that wait.
const WAITING_ROWS: usize = 4;

/// The wait after which the line says how long it takes.
const QUIET_FOR_S: u64 = 1;

/// A line that is not in the conversation yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WaitingLine {
    /// The line.
    pub(super) text: String,
    /// The reason why it waits, in a few words.
    pub(super) why: &'static str,
}

/// All that the bottom shows.
pub(super) struct BottomView<'a> {
    pub(super) live: &'a [Line<'static>],
    pub(super) facts: &'a Facts,
    pub(super) session: &'a SessionFacts,
    pub(super) waiting: &'a [WaitingLine],
    pub(super) own: Option<String>,
    pub(super) middle: Middle,
    pub(super) composer: &'a Composer,
    /// A hint in place of the status line, such as the second Ctrl-C.
    pub(super) hint: Option<String>,
    pub(super) is_stopping: bool,
    pub(super) now: Timestamp,
}

/// The part between the conversation and the status line.
pub(super) enum Middle {
    /// The input box.
    Box,
    /// A question; `has_box` if words are typed for it.
    Question {
        lines: Vec<Line<'static>>,
        scrolled: usize,
        keys: String,
        has_box: bool,
    },
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

impl BottomView<'_> {
    /// The rows for a terminal of this size.
    pub(super) fn bottom(&self, size: Size) -> Bottom {
        let (columns, rows) = (
            usize::from(size.columns).max(4),
            usize::from(size.rows).max(4),
        );
        let most = rows - 1;
        let status = self.status(columns);
        let boxed = self.boxed(columns, (rows / 2).clamp(1, BOX_ROWS));
        let mut head = self.activity(columns);
        head.extend(self.todo(columns));
        head.extend(self.tasks(columns));
        head.extend(self.waiting(columns));
        let fixed = boxed.lines.len() + 1;
        if matches!(self.middle, Middle::Question { .. }) {
            // The question needs the room.
            head.truncate(2);
        }
        // On a very low terminal the box matters most.
        head.truncate(most.saturating_sub(fixed));
        let mut middle = self.question(columns, most.saturating_sub(fixed + head.len()));
        let room = most.saturating_sub(fixed + head.len() + middle.len());
        let live = self.tail(room);
        let mut lines = live;
        lines.append(&mut middle);
        lines.append(&mut head);
        let row = lines.len() + boxed.row;
        lines.extend(boxed.lines);
        lines.push(status);
        let cursor = boxed.has_cursor.then(|| Position {
            row: u16::try_from(row).unwrap_or(u16::MAX),
            column: u16::try_from(boxed.column).unwrap_or(u16::MAX),
        });
        Bottom { lines, cursor }
    }

    /// The last rows of what may still change.
    fn tail(&self, room: usize) -> Vec<Line<'static>> {
        let from = self.live.len().saturating_sub(room);
        let mut lines = self.live[from..].to_vec();
        if from > 0
            && let Some(first) = lines.first_mut()
        {
            *first = Line::styled(format!("… {} rows above", from + 1), dim());
        }
        lines
    }

    fn boxed(&self, columns: usize, most: usize) -> Boxed {
        let rule = || Line::styled("─".repeat(columns), dim());
        match &self.middle {
            Middle::Question {
                keys,
                has_box: false,
                ..
            } => {
                let mut lines = vec![rule()];
                lines.extend(keys_rows(keys, columns));
                Boxed {
                    lines,
                    row: 1,
                    column: 0,
                    has_cursor: false,
                }
            }
            middle => {
                let drawn = self.composer.draw(columns, most);
                let mut lines = vec![rule()];
                if let Middle::Question { keys, .. } = middle {
                    lines.extend(keys_rows(keys, columns));
                }
                let row = lines.len() + drawn.row;
                lines.extend(drawn.lines);
                lines.push(rule());
                Boxed {
                    lines,
                    row,
                    column: drawn.column,
                    has_cursor: true,
                }
            }
        }
    }

    /// The rows of the question that fit.
    fn question(&self, columns: usize, room: usize) -> Vec<Line<'static>> {
        let Middle::Question {
            lines, scrolled, ..
        } = &self.middle
        else {
            return Vec::new();
        };
        if lines.len() <= room {
            return lines.clone();
        }
        let shown = room.saturating_sub(1);
        let from = (*scrolled).min(lines.len().saturating_sub(shown));
        let to = (from + shown).min(lines.len());
        let mut rows = lines[from..to].to_vec();
        let words = format!(
            "rows {}–{to} of {} · ↑ ↓ PageUp PageDown",
            from + 1,
            lines.len()
        );
        rows.push(Line::styled(
            cut(&words, columns),
            Style::new().fg(Color::Yellow),
        ));
        rows
    }

    /// The row about what goes on.
    fn activity(&self, columns: usize) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        if let Some(working) = &self.facts.turn {
            rows.push(Line::default());
            rows.push(self.working(working, columns));
        }
        if let Some(names) = &self.own {
            rows.push(Line::styled(cut(&format!("○ {names}"), columns), dim()));
        }
        rows
    }

    fn working(&self, working: &Working, columns: usize) -> Line<'static> {
        let since = |from: Timestamp| self.now.since(from);
        let waits = since(working.activity.since);
        let what = match (&working.activity.what, self.is_stopping) {
            (_, true) => "stopping".to_owned(),
            (what, false) => what.words(),
        };
        let mut words = what;
        if self.facts.is_lost && !self.is_stopping {
            words = "the server is away; the turn may go on there".to_owned();
        } else if waits.as_secs() >= QUIET_FOR_S {
            words = format!("{words} · {}", duration(waits));
        }
        let mut more = vec![format!("turn {}", duration(since(working.since)))];
        if self.facts.output > 0 {
            more.push(format!("{} tokens", tokens(self.facts.output)));
        }
        // The keys of a question say what Esc does there.
        let is_asked = matches!(self.middle, Middle::Question { .. });
        if !self.is_stopping && !is_asked && !matches!(working.activity.what, Waits::Person) {
            more.push("Esc stops".to_owned());
        }
        let more = format!(" ({})", more.join(" · "));
        let words = cut(&words, columns.saturating_sub(2));
        let room = columns.saturating_sub(2 + width(&words));
        let more = if width(&more) <= room {
            more
        } else {
            String::new()
        };
        Line::from(vec![
            Span::styled("○ ", Style::new().fg(Color::Cyan)),
            Span::raw(words),
            Span::styled(more, dim()),
        ])
    }

    /// The to-do list, as long as something is left to do.
    fn todo(&self, columns: usize) -> Vec<Line<'static>> {
        let items = &self.facts.todo;
        let is_done = |item: &TodoItem| item.state == TodoState::Done;
        if items.iter().all(is_done) || self.facts.turn.is_none() {
            return Vec::new();
        }
        let done = items.iter().filter(|item| is_done(item)).count();
        // The items that are done go first, when there is no room.
        let skip = match items.len() > TODO_ROWS {
            true => done.min(items.len() - TODO_ROWS),
            false => 0,
        };
        let mut rows: Vec<_> = items
            .iter()
            .skip(skip)
            .take(TODO_ROWS)
            .map(|item| todo_row(item, columns))
            .collect();
        let left = items.len().saturating_sub(skip + TODO_ROWS);
        if skip + left > 0 {
            let words = format!("  {done} of {} done", items.len());
            rows.push(Line::styled(words, dim()));
        }
        rows
    }

    fn tasks(&self, columns: usize) -> Vec<Line<'static>> {
        let running: Vec<_> = self.facts.running_tasks().collect();
        let mut rows: Vec<_> = running
            .iter()
            .take(TASK_ROWS)
            .map(|task| {
                let last = match task.last_line.is_empty() {
                    true => String::new(),
                    false => format!(" · {}", task.last_line),
                };
                let words = format!("task {} · {}{last}", task.number, task.command);
                Line::styled(cut(&words, columns), dim())
            })
            .collect();
        if running.len() > TASK_ROWS {
            rows.push(Line::styled(
                format!("… {} more tasks", running.len() - TASK_ROWS),
                dim(),
            ));
        }
        rows
    }

    fn waiting(&self, columns: usize) -> Vec<Line<'static>> {
        let from = self.waiting.len().saturating_sub(WAITING_ROWS);
        let row = |line: &WaitingLine| {
            let why = format!(" · {}", line.why);
            let text = line.text.lines().next().unwrap_or_default();
            let text = cut(text, columns.saturating_sub(2 + width(&why)).max(1));
            Line::from(vec![
                Span::styled(format!("↳ {text}"), dim().add_modifier(Modifier::ITALIC)),
                Span::styled(why, dim()),
            ])
        };
        self.waiting[from..].iter().map(row).collect()
    }

    fn status(&self, columns: usize) -> Line<'static> {
        if let Some(hint) = &self.hint {
            return Line::styled(cut(hint, columns), Style::new().fg(Color::Yellow));
        }
        let session = self.session;
        let mut parts = Vec::new();
        if self.facts.is_lost {
            parts.push(Span::styled(
                "the server is away, trying again",
                Style::new().fg(Color::Yellow),
            ));
        }
        if !session.model.is_empty() {
            parts.push(Span::styled(session.model.clone(), dim()));
        }
        if let Some(mode) = session.mode {
            parts.push(Span::styled(format!("mode {mode}"), mode_style(mode)));
        }
        if !session.place.is_empty() {
            let style = match session.is_online {
                true => dim(),
                false => Style::new().fg(Color::Yellow),
            };
            parts.push(Span::styled(session.place.clone(), style));
        }
        let window = self.facts.window_filled().or(session.window_filled);
        if let Some(percent) = window {
            parts.push(Span::styled(format!("{percent} % of the window"), dim()));
        }
        if let Some(cost) = &session.cost {
            parts.push(Span::styled(cost.clone(), dim()));
        }
        joined(parts, columns)
    }
}

/// The rows of the box, and the cursor's place in them.
struct Boxed {
    lines: Vec<Line<'static>>,
    row: usize,
    column: usize,
    has_cursor: bool,
}

/// The keys that answer a question.
fn keys_rows(keys: &str, columns: usize) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    wrap(&Line::styled(keys.to_owned(), bold), columns, 0)
}

fn todo_row(item: &TodoItem, columns: usize) -> Line<'static> {
    let (mark, style) = match item.state {
        TodoState::Open => ("☐", Style::new()),
        TodoState::Doing => ("▸", Style::new().add_modifier(Modifier::BOLD)),
        TodoState::Done => ("☑", dim()),
    };
    let text = shared_types::clean::clean_line(&item.text, 200);
    Line::styled(cut(&format!("  {mark} {text}"), columns), style)
}

/// A mode that gives more freedom stands out.
fn mode_style(mode: shared_types::Mode) -> Style {
    match mode {
        shared_types::Mode::Full => Style::new().fg(Color::Red),
        shared_types::Mode::Plan => Style::new().fg(Color::Cyan),
        shared_types::Mode::Ask | shared_types::Mode::Auto => dim(),
    }
}

/// The parts that fit, with a dot between each two.
fn joined(parts: Vec<Span<'static>>, columns: usize) -> Line<'static> {
    let mut line = Line::default();
    let mut used = 0;
    for part in parts {
        let gap = if used == 0 { 0 } else { 3 };
        let room = columns.saturating_sub(used + gap);
        let wide = width(&part.content);
        if wide > room && used > 0 {
            break;
        }
        if gap > 0 {
            line.push_span(Span::styled(" · ", dim()));
        }
        let text = cut(&part.content, room);
        used += gap + width(&text);
        line.push_span(Span::styled(text, part.style));
    }
    line
}
