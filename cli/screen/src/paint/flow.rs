//! The way of items into the scrollback: which lines are final, and which may still change.
//!
//! Lines that were printed stay as they are. So an item is printed once it cannot change, in the order of the items;
//! of an answer that still comes, all before its open block. A text that was printed and then taken back is followed
//! by a note that says so.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap};

use ratatui_core::text::Line;

use super::{Fold, call, item, markdown};
use crate::transcript::{
    Transcript,
    item::{Call, Item, Kind, Speech},
};

/// The most calls that only look and are told at once.
const MOST_RUN: usize = 50;

/// The most printed texts that are watched, because they may be taken back.
const MOST_SPOKEN: usize = 64;

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
    /// The first item that was not printed whole.
    next: u64,
    /// The part of that item that was printed.
    part: Option<Part>,
    /// The last thing that was printed.
    last: Option<Group>,
    /// The texts of the answer that comes now which were printed whole.
    spoken: Vec<u64>,
    /// The lines of items that may still change.
    cache: BTreeMap<u64, Cached>,
}

/// The part of an answer that was printed.
#[derive(Debug, Clone, Default)]
struct Part {
    /// The bytes of its text.
    bytes: usize,
    /// The text to be put before the rest, where a block was divided.
    before: String,
    /// True if a blank line stands before the rest.
    has_gap: bool,
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
    /// A flow that has printed nothing.
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
        self.take_back(transcript, columns, &mut printed);
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
        let lines = unit.lines(part.as_ref(), columns, Fold::Folded);
        self.remember(unit, part.is_some() || !lines.is_empty());
        self.append(lines, unit.group(), part.as_ref(), printed);
        self.next = unit.end();
    }

    /// Remembers the texts that may still be taken back: those of an answer that is not recorded.
    fn remember(&mut self, unit: &Unit<'_>, is_shown: bool) {
        let Unit::One(item) = unit else {
            self.spoken.clear();
            return;
        };
        match &item.kind {
            Kind::Thought(speech) | Kind::Answer(speech) => {
                if is_shown && !speech.is_void && self.spoken.len() < MOST_SPOKEN {
                    self.spoken.push(item.number);
                }
            }
            Kind::Call(_) | Kind::End(_) => self.spoken.clear(),
            Kind::User(_) | Kind::Todo(_) | Kind::Note(_) => {}
        }
    }

    /// Says of texts that were printed whole that they are void by now.
    fn take_back(
        &mut self,
        transcript: &Transcript,
        columns: usize,
        printed: &mut Vec<Line<'static>>,
    ) {
        let known = self.spoken.len();
        self.spoken.retain(|number| {
            let item = transcript.item(*number);
            !item.is_some_and(|item| match &item.kind {
                Kind::Thought(speech) | Kind::Answer(speech) => speech.is_void,
                _ => false,
            })
        });
        if self.spoken.len() < known {
            self.append(item::void(columns), Group::Note, None, printed);
        }
    }

    /// Prints the part of an answer that changes no more.
    fn print_part(&mut self, item: &Item, columns: usize, printed: &mut Vec<Line<'static>>) {
        let Kind::Answer(speech) = &item.kind else {
            return;
        };
        let part = self.part.take();
        let text = rest_of(speech, part.as_ref());
        let open = markdown::open_part(&text);
        let before = part.as_ref().map_or(0, |part| part.before.len());
        if open.at <= before {
            self.part = part;
            return;
        }
        let lines = item::prose(&text[..open.at], columns);
        self.append(lines, Group::Prose, part.as_ref(), printed);
        self.part = Some(Part {
            bytes: part.map_or(0, |part| part.bytes) + open.at - before,
            before: open.before,
            has_gap: open.has_gap,
        });
    }

    /// Adds lines behind those that were printed, of which the part belongs to the same item.
    fn append(
        &mut self,
        lines: Vec<Line<'static>>,
        group: Group,
        part: Option<&Part>,
        printed: &mut Vec<Line<'static>>,
    ) {
        if lines.is_empty() {
            return;
        }
        if is_apart(self.last, group, part) {
            printed.push(Line::default());
        }
        printed.extend(lines);
        self.last = Some(group);
    }

    /// The lines that may still change.
    fn live(&mut self, transcript: &Transcript, columns: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut last = self.last;
        let mut at = self.next;
        while let Some(unit) = unit(transcript, at) {
            let part = self.part.clone().filter(|_| at == self.next);
            let part = part.as_ref();
            let new = self.cached(&unit, at, part, columns);
            if !new.is_empty() {
                if is_apart(last, unit.group(), part) {
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
        part: Option<&Part>,
        columns: usize,
    ) -> &[Line<'static>] {
        let stamp = unit.stamp(columns, part.map_or(0, |part| part.bytes));
        let paint = || Cached {
            stamp,
            lines: unit.lines(part, columns, Fold::Live),
        };
        let cached = self.cache.entry(at).or_insert_with(paint);
        if cached.stamp != stamp {
            *cached = paint();
        }
        &cached.lines
    }
}

/// These items, unfolded, in rows of at most so many columns: for the pager.
pub fn pages<'a>(items: impl IntoIterator<Item = &'a Item>, columns: usize) -> Vec<Line<'static>> {
    let (mut rows, mut last) = (Vec::new(), None);
    for item in items {
        let fold = if item.is_open {
            Fold::Live
        } else {
            Fold::Whole
        };
        let lines = item::item(item, columns, fold);
        if lines.is_empty() {
            continue;
        }
        let group = Unit::One(item).group();
        // Unfolded, also a read has more than one row.
        if !rows.is_empty() && (last != Some(Group::Note) || group != Group::Note) {
            rows.push(Line::default());
        }
        rows.extend(lines);
        last = Some(group);
    }
    rows
}

/// True if a blank line stands before the next thing. The part is what was printed of the same item.
fn is_apart(last: Option<Group>, next: Group, part: Option<&Part>) -> bool {
    match part {
        Some(part) => part.has_gap,
        None => last.is_some_and(|last| apart(last, next)),
    }
}

/// True if a blank line stands between two things.
fn apart(before: Group, after: Group) -> bool {
    let is_small = |group| matches!(group, Group::Look | Group::Note);
    !(is_small(before) && is_small(after))
}

/// The text of an answer that was not printed.
fn rest_of<'a>(speech: &'a Speech, part: Option<&Part>) -> Cow<'a, str> {
    let Some(part) = part else {
        return Cow::Borrowed(&speech.text);
    };
    let text = speech.text.get(part.bytes..).unwrap_or_default();
    match part.before.is_empty() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{}{text}", part.before)),
    }
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

    /// Its lines; of an answer, those of which no part was printed.
    fn lines(&self, part: Option<&Part>, columns: usize, fold: Fold) -> Vec<Line<'static>> {
        match self {
            Self::One(item) => match (&item.kind, part) {
                (Kind::Answer(speech), Some(_)) if speech.is_void => item::void(columns),
                (Kind::Answer(speech), Some(_)) => item::prose(&rest_of(speech, part), columns),
                _ => item::item(item, columns, fold),
            },
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
