//! The way of items into the scrollback: which lines are final, and which may still change.
//!
//! Lines that were printed stay as they are. So an item is printed once it cannot change, in the order of the items;
//! of an answer that still comes, all before its open block. A text that was printed and then taken back is followed
//! by a note that says so.

use std::collections::BTreeMap;

use ratatui_core::text::Line;

use super::{Fold, call, item, markdown};
use crate::transcript::{
    Transcript,
    item::{Call, Item, Kind, Speech},
};

/// The most calls that only look and are told at once.
const MOST_RUN: usize = 50;

/// The most rows of an open block of code that stay live.
const MOST_OPEN_ROWS: usize = 64;

/// The rows of a long block of code that stay live once its first ones were printed.
const LAST_OPEN_ROWS: usize = 16;

/// The lines of one step.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// New lines that are final: each is given once.
    pub printed: Vec<Line<'static>>,
    /// All lines that may still change, in place of those of the step before.
    pub live: Vec<Line<'static>>,
}

/// The state of the way into the scrollback.
#[derive(Debug, Default)]
pub struct Flow {
    /// The first item of which not all was printed.
    next: u64,
    /// The part of that item that was printed.
    part: Option<Part>,
    /// The last thing that was printed.
    last: Option<Group>,
    /// The lines of items that may still change.
    cache: BTreeMap<u64, Cached>,
}

/// The part of an answer that was printed.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// The bytes of its text.
    bytes: usize,
    /// The rows of the block that begins there.
    rows: usize,
    /// The columns at which those rows were painted.
    columns: usize,
}

#[derive(Debug)]
struct Cached {
    stamp: Stamp,
    lines: Vec<Line<'static>>,
}

/// The things on which the lines of a unit depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    items: usize,
    revisions: u64,
    columns: usize,
    from: usize,
}

/// Things that stand together without a blank line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    User,
    Prose,
    Card,
    /// A call that only looks.
    Look,
    Note,
    End,
}

/// Items that are painted together.
enum Unit<'a> {
    One(&'a Item),
    Run(Run<'a>),
}

/// Calls in a row that only look.
struct Run<'a> {
    items: Vec<&'a Item>,
    /// The number of the first item behind it.
    end: u64,
    /// True if no call can join it.
    is_closed: bool,
}

impl Flow {
    /// A flow of which nothing was printed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the first item of which not all was printed, for [`Transcript::printed`].
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes the news of a transcript, for a terminal of so many columns.
    pub fn advance(&mut self, transcript: &Transcript, columns: usize) -> Step {
        let mut printed = Vec::new();
        self.next = self.next.max(transcript.first());
        while let Some(unit) = unit(transcript, self.next) {
            match unit.settled() {
                true => self.print(&unit, columns, &mut printed),
                false => {
                    if let Unit::One(item) = unit {
                        self.print_part(item, columns, &mut printed);
                    }
                    break;
                }
            }
        }
        let live = self.live(transcript, columns);
        let next = self.next;
        self.cache.retain(|number, _| *number >= next);
        Step { printed, live }
    }

    /// Prints the rest of a unit that changes no more.
    fn print(&mut self, unit: &Unit<'_>, columns: usize, printed: &mut Vec<Line<'static>>) {
        let part = self.part.take();
        let lines = match (unit, part) {
            (Unit::One(item), Some(part)) => rest(item, part, columns),
            (unit, None) => unit.lines(columns, Fold::Folded),
            (Unit::Run(_), Some(_)) => Vec::new(),
        };
        if !lines.is_empty() {
            let goes_on = part.is_some_and(|part| part.rows > 0);
            if !goes_on && self.is_apart(unit.group(), part.is_some()) {
                printed.push(Line::default());
            }
            printed.extend(lines);
            self.last = Some(unit.group());
        }
        self.next = unit.end();
    }

    /// Prints the part of an answer that changes no more.
    fn print_part(&mut self, item: &Item, columns: usize, printed: &mut Vec<Line<'static>>) {
        let Kind::Answer(Speech { text, .. }) = &item.kind else {
            return;
        };
        let is_begun = self.part.is_some();
        let mut part = self.part.unwrap_or_default();
        let Some(text) = text.get(part.bytes..) else {
            return;
        };
        let open = markdown::open_block(text);
        if open > 0 {
            let at = if part.rows > 0 { part.columns } else { columns };
            let lines = item::prose(&text[..open], at);
            let lines: Vec<_> = lines.into_iter().skip(part.rows).collect();
            if !lines.is_empty() {
                if part.rows == 0 && self.is_apart(Group::Prose, is_begun) {
                    printed.push(Line::default());
                }
                printed.extend(lines);
                self.last = Some(Group::Prose);
            }
            part = Part {
                bytes: part.bytes + open,
                rows: 0,
                columns,
            };
            self.part = Some(part);
        }
        self.print_code(&text[open..], part, columns, printed);
    }

    /// Prints the first rows of a long block of code. The rows of its whole lines change no more.
    fn print_code(
        &mut self,
        block: &str,
        mut part: Part,
        columns: usize,
        printed: &mut Vec<Line<'static>>,
    ) {
        let is_code = block.starts_with("```") || block.starts_with("~~~");
        let lines = block.bytes().filter(|byte| *byte == b'\n').count();
        // Each line takes a row or more.
        if !is_code || lines.max(block.len() / columns.max(1)) < MOST_OPEN_ROWS {
            return;
        }
        if part.rows == 0 {
            part.columns = columns;
        }
        let end = block.rfind('\n').map_or(0, |end| end + 1);
        let rows = item::prose(&block[..end], part.columns);
        if rows.len() < part.rows + MOST_OPEN_ROWS {
            return;
        }
        let settled = rows.len() - LAST_OPEN_ROWS;
        if part.rows == 0 && self.is_apart(Group::Prose, self.part.is_some()) {
            printed.push(Line::default());
        }
        printed.extend(rows.into_iter().take(settled).skip(part.rows));
        self.last = Some(Group::Prose);
        part.rows = settled;
        self.part = Some(part);
    }

    /// The lines that may still change.
    fn live(&mut self, transcript: &Transcript, columns: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut last = self.last;
        let mut at = self.next;
        while let Some(unit) = unit(transcript, at) {
            let part = self.part.filter(|_| at == self.next);
            let new = self.cached(&unit, at, part, columns);
            if !new.is_empty() {
                let goes_on = part.is_some_and(|part| part.rows > 0);
                let is_apart = part.is_some() || last.is_some_and(|last| apart(last, unit.group()));
                if !goes_on && is_apart {
                    lines.push(Line::default());
                }
                lines.extend(new.iter().cloned());
                last = Some(unit.group());
            }
            at = unit.end();
        }
        lines
    }

    /// The lines of a unit, painted again only where it changed.
    fn cached(
        &mut self,
        unit: &Unit<'_>,
        at: u64,
        part: Option<Part>,
        columns: usize,
    ) -> &[Line<'static>] {
        let stamp = unit.stamp(columns, part.map_or(0, |part| part.bytes + part.rows));
        let paint = || Cached {
            stamp,
            lines: match (unit, part) {
                (Unit::One(item), Some(part)) => rest(item, part, columns),
                (unit, _) => unit.lines(columns, Fold::Live),
            },
        };
        let cached = self.cache.entry(at).or_insert_with(paint);
        if cached.stamp != stamp {
            *cached = paint();
        }
        &cached.lines
    }

    /// True if a blank line stands before the next thing that is printed.
    fn is_apart(&self, group: Group, goes_on: bool) -> bool {
        goes_on || self.last.is_some_and(|last| apart(last, group))
    }
}

/// True if a blank line stands between two things.
fn apart(before: Group, after: Group) -> bool {
    let is_small = |group| matches!(group, Group::Look | Group::Note);
    !(is_small(before) && is_small(after))
}

/// The part of an answer that was not printed.
fn rest(item: &Item, part: Part, columns: usize) -> Vec<Line<'static>> {
    let Kind::Answer(speech) = &item.kind else {
        return Vec::new();
    };
    if speech.is_void {
        return item::void(columns);
    }
    let at = if part.rows > 0 { part.columns } else { columns };
    let text = speech.text.get(part.bytes..).unwrap_or_default();
    item::prose(text, at).into_iter().skip(part.rows).collect()
}

/// The things that begin with this item.
fn unit(transcript: &Transcript, at: u64) -> Option<Unit<'_>> {
    let first = transcript.item(at)?;
    if look(first).is_none() {
        return Some(Unit::One(first));
    }
    let mut run = Run {
        items: Vec::new(),
        end: at,
        is_closed: false,
    };
    for item in transcript.from(at) {
        let is_look = look(item).is_some();
        if run.items.len() >= MOST_RUN || !(is_look || is_nothing(item)) {
            run.is_closed = true;
            break;
        }
        if is_look {
            run.items.push(item);
            run.end = item.number + 1;
        } else if item.is_open {
            break;
        }
    }
    Some(Unit::Run(run))
}

/// The call of an item, if it only looks.
fn look(item: &Item) -> Option<&Call> {
    match &item.kind {
        Kind::Call(call) if call.request.looks() => Some(call),
        _ => None,
    }
}

/// True for a text of the model that shows nothing by now.
fn is_nothing(item: &Item) -> bool {
    match &item.kind {
        Kind::Thought(speech) | Kind::Answer(speech) => {
            speech.is_void || speech.text.trim().is_empty()
        }
        _ => false,
    }
}

impl Unit<'_> {
    /// True if it changes no more.
    fn settled(&self) -> bool {
        match self {
            Self::One(item) => !item.is_open,
            Self::Run(run) => run.is_closed && run.items.iter().all(|item| !item.is_open),
        }
    }

    /// The number of the first item behind it.
    fn end(&self) -> u64 {
        match self {
            Self::One(item) => item.number + 1,
            Self::Run(run) => run.end,
        }
    }

    fn group(&self) -> Group {
        match self {
            Self::Run(_) => Group::Look,
            Self::One(item) => match &item.kind {
                Kind::User(_) => Group::User,
                Kind::Answer(_) => Group::Prose,
                Kind::Thought(_) | Kind::Note(_) => Group::Note,
                Kind::Call(_) | Kind::Todo(_) => Group::Card,
                Kind::End(_) => Group::End,
            },
        }
    }

    fn lines(&self, columns: usize, fold: Fold) -> Vec<Line<'static>> {
        match self {
            Self::One(item) => item::item(item, columns, fold),
            Self::Run(run) => {
                let calls: Vec<_> = run.items.iter().filter_map(|item| look(item)).collect();
                call::run(&calls, columns)
            }
        }
    }

    fn stamp(&self, columns: usize, from: usize) -> Stamp {
        let (items, revisions) = match self {
            Self::One(item) => (1, u64::from(item.revision)),
            Self::Run(run) => {
                let revisions = run.items.iter().map(|item| u64::from(item.revision));
                (run.items.len(), revisions.sum())
            }
        };
        Stamp {
            items,
            revisions,
            columns,
            from,
        }
    }
}
