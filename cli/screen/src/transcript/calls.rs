//! The tool calls that have not ended.

use std::{collections::BTreeMap, time::Duration};

use shared_types::{
    Event, OperationId, TurnId,
    event::{CallOutcome, Part, Parts},
};

use super::{
    item::{Call, Ended, Kind, State},
    output::{Output, OutputLine},
    request::Request,
    safe,
    store::Store,
};

/// The most streams of one call, which are usually stdout and stderr.
const MOST_STREAMS: usize = 4;

/// The place of a call: its answer, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) turn: TurnId,
    pub(super) step: u32,
    pub(super) ordinal: u32,
}

/// The calls that have not ended.
#[derive(Debug, Default)]
pub(super) struct Calls(BTreeMap<Key, Open>);

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) item: u64,
    pub(super) operation: Option<OperationId>,
    streams: Vec<Stream>,
    /// True if bytes of its output are missing.
    has_gap: bool,
}

#[derive(Debug)]
struct Stream {
    name: String,
    end: u64,
}

/// A piece of a program's output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) stream: &'a str,
    pub(super) offset: u64,
    pub(super) text: &'a str,
    pub(super) bytes: u64,
}

impl Calls {
    pub(super) fn begin(&mut self, key: Key, item: u64) {
        let open = Open {
            item,
            operation: None,
            streams: Vec::new(),
            has_gap: false,
        };
        self.0.insert(key, open);
    }

    pub(super) fn get(&mut self, key: Key) -> Option<&mut Open> {
        self.0.get_mut(&key)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Open> {
        self.0.remove(&key)
    }

    /// The items of the calls of a turn that have not ended, in their order.
    pub(super) fn of(&self, turn: TurnId) -> impl Iterator<Item = u64> {
        let calls = self.0.iter().filter(move |(key, _)| key.turn == turn);
        calls.map(|(_, open)| open.item)
    }

    /// The calls of this turn end without an end of their own.
    pub(super) fn leave(&mut self, turn: TurnId, store: &mut Store) {
        self.0.retain(|key, open| {
            if key.turn == turn {
                store.change(open.item, |item| {
                    if let Kind::Call(call) = &mut item.kind {
                        call.state = State::Left;
                    }
                    item.is_open = false;
                });
            }
            key.turn != turn
        });
    }
}

impl Open {
    /// Takes a piece of output at its place. Repeats are dropped, a jump is a gap.
    pub(super) fn write(&mut self, written: Written<'_>, store: &mut Store) {
        let reads_on = store.get(self.item).is_some_and(reads_on);
        let begins_at = if reads_on { written.offset } else { 0 };
        let Some(stream) = self.stream(written.stream, begins_at) else {
            return;
        };
        let missing = written.offset.saturating_sub(stream.end);
        let known = stream.end.saturating_sub(written.offset);
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let end = written.offset.saturating_add(written.bytes);
        if end <= stream.end {
            return;
        }
        stream.end = end;
        self.has_gap |= missing > 0;
        let from = written
            .text
            .ceil_char_boundary(known.min(written.text.len()));
        store.change(self.item, |item| {
            if let Kind::Call(call) = &mut item.kind {
                if missing > 0 {
                    call.output.gap(missing);
                }
                call.output.push(&written.text[from..]);
            }
        });
    }

    /// Notes that a stream goes on at this offset, and that the bytes before it are not stored.
    pub(super) fn gap(&mut self, stream: &str, to: u64, store: &mut Store) {
        let reads_on = store.get(self.item).is_some_and(reads_on);
        let begins_at = if reads_on { to } else { 0 };
        let Some(stream) = self.stream(stream, begins_at) else {
            return;
        };
        let missing = to.saturating_sub(stream.end);
        if missing > 0 {
            stream.end = to;
            self.has_gap = true;
            store.change(self.item, |item| {
                if let Kind::Call(call) = &mut item.kind {
                    call.output.gap(missing);
                }
            });
        }
    }

    fn stream(&mut self, name: &str, begins_at: u64) -> Option<&mut Stream> {
        let known = self.streams.iter().position(|known| known.name == name);
        let place = match known {
            Some(place) => place,
            None if self.streams.len() >= MOST_STREAMS => return None,
            None => {
                self.streams.push(Stream {
                    name: name.to_owned(),
                    end: begins_at,
                });
                self.streams.len() - 1
            }
        };
        self.streams.get_mut(place)
    }

    /// Ends the call by its event.
    pub(super) fn end(&self, event: &Event, store: &mut Store) {
        let Event::CallEnded {
            outcome,
            parts,
            unplaced,
            task,
            budget_ms,
            duration_ms,
            overran,
            findings,
            ..
        } = event
        else {
            return;
        };
        let told = Told::of(parts, *outcome);
        let ended = Ended {
            outcome: *outcome,
            exit: told.exit,
            reason: told.reason,
            took: Duration::from_millis(*duration_ms),
            budget: Duration::from_millis(*budget_ms),
            overran: *overran,
            task: *task,
            is_unplaced: *unplaced,
        };
        let images = parts
            .0
            .iter()
            .filter(|part| matches!(part, Part::Image { .. }));
        let images = images.count();
        let worst = findings.iter().max_by_key(|finding| finding.score);
        store.change(self.item, |item| {
            if let Kind::Call(call) = &mut item.kind {
                if !is_program(&call.request) {
                    call.result = safe::text(&told.raw);
                } else if self.has_gap || !ends_alike(&call.output, &told.raw) {
                    call.output = Output::default();
                    call.output.push(&told.raw);
                }
                call.state = State::Ended(ended);
                call.images = images;
                call.finding = worst.map(|finding| finding.category);
            }
            item.is_open = false;
        });
    }
}

fn reads_on(item: &super::item::Item) -> bool {
    matches!(&item.kind, Kind::Call(call) if matches!(call.request, Request::Task { .. }))
}

/// True for a call whose result is the output of a program.
fn is_program(request: &Request) -> bool {
    matches!(request, Request::Shell { .. } | Request::Task { .. })
}

/// True if the last line of the output that was seen is the last one that the log has. While the connection was lost,
/// its end was not seen.
fn ends_alike(seen: &Output, told: &str) -> bool {
    let last = |output: &Output| {
        let lines = output
            .lines()
            .into_iter()
            .rev()
            .find_map(|line| match line {
                OutputLine::Text(runs) => Some(runs),
                OutputLine::Skipped { .. } | OutputLine::Gap { .. } => None,
            });
        let runs = lines.unwrap_or_default();
        runs.iter().map(|run| run.0.as_str()).collect::<String>()
    };
    let mut end = Output::default();
    end.push(told.trim_end().lines().last().unwrap_or_default());
    last(seen).trim_end() == last(&end).trim_end()
}

/// A new call of an answer.
pub(super) fn call(key: Key, asked: &shared_types::event::ToolCall) -> Call {
    let asked = asked.as_meant();
    Call {
        step: key.step,
        ordinal: key.ordinal,
        name: safe::line(&asked.name),
        request: Request::of(&asked),
        place: None,
        state: State::Waits,
        output: Output::default(),
        approval: None,
        agent: None,
        result: String::new(),
        images: 0,
        finding: None,
    }
}

/// A result for the model, taken apart.
struct Told {
    /// The end of a command that did not exit with 0, such as `exit 1`.
    exit: Option<String>,
    reason: String,
    /// The rest, as the program or the tool wrote it.
    raw: String,
}

impl Told {
    fn of(parts: &Parts, outcome: CallOutcome) -> Self {
        let texts = parts.0.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let text = text.trim_end();
        let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
        if let Some(words) = ending(last) {
            let raw = match before {
                "[no output]" => String::new(),
                before => before.to_owned(),
            };
            let exit = (words != "exit 0").then(|| safe::line(&words));
            return Self {
                exit,
                reason: String::new(),
                raw,
            };
        }
        if outcome == CallOutcome::Completed {
            return Self {
                exit: None,
                reason: String::new(),
                raw: text.to_owned(),
            };
        }
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        Self {
            exit: None,
            reason: safe::line(without_outcome(first)),
            raw: rest.to_owned(),
        }
    }
}

/// The end of a command, if this last line of a result tells it, such as `[exit code 0, after 3 s]`. The time is left
/// out, because it is shown exactly; so is the advice to the model on reading more.
fn ending(line: &str) -> Option<String> {
    const KNOWN: [&str; 6] = [
        "exit code ",
        "ended by signal ",
        "could not be started",
        "it is not known what it had done",
        " still runs, for ",
        " goes on in the background as task ",
    ];
    let words = line.strip_prefix('[')?.strip_suffix(']')?;
    KNOWN.iter().find(|known| words.contains(**known))?;
    let words = words.split("; read on with ").next().unwrap_or(words);
    let words = words.replace("exit code ", "exit ");
    Some(match words.split_once(", after ") {
        Some((start, rest)) => {
            let after = rest.split_once(" s").map_or("", |(_, after)| after);
            format!("{start}{after}")
        }
        None => words,
    })
}

/// The reason alone. The text for the model may begin with the outcome, which is shown anyway.
fn without_outcome(reason: &str) -> &str {
    ["failed: ", "not run: ", "outcome unknown: "]
        .iter()
        .find_map(|outcome| reason.strip_prefix(outcome))
        .unwrap_or(reason)
}
