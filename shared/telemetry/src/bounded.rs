//! Log lines that no peer can forge, stretch or multiply.
//!
//! Many log lines have words of a peer. So a line is one line, of bounded length, without characters that drive a
//! terminal. The number of lines about one runner in a time is bounded (an event or a span around it has the field
//! `runner.id`). The next line that is written says how many were left out.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use shared_types::{Clock, clean::is_harmless};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{self, Writer},
    },
    layer::Context,
    registry::LookupSpan,
};

/// Longest line, in bytes; more of it is cut off.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Lines about one runner that may come at once.
const LINES_AT_ONCE: u32 = 100;

/// The pause after which another line may come then.
const LINE_EVERY: Duration = Duration::from_millis(200);

/// Runners that are told apart; those beyond them share one bound.
const MAX_RUNNERS: usize = 1024;

/// The field that names a runner.
const RUNNER: &str = "runner.id";

/// Formats events as another format does, within the bounds.
pub(crate) struct Bounded<F> {
    inner: F,
    json: bool,
    clock: Arc<dyn Clock>,
    runners: Mutex<RunnerBounds>,
}

impl<F> Bounded<F> {
    pub(crate) fn new(inner: F, json: bool, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner,
            json,
            clock,
            runners: Mutex::default(),
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for Bounded<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut left_out = 0;
        if let Some(runner) = runner_of(context, event) {
            let mut runners = self.runners.lock().unwrap_or_else(PoisonError::into_inner);
            match runners.admit(&runner, self.clock.monotonic()) {
                Some(before) => left_out = before,
                None => return Ok(()),
            }
        }
        let mut line = String::new();
        self.inner
            .format_event(context, Writer::new(&mut line), event)?;
        let line = match self.json {
            true => json(&line, left_out),
            false => text(&line, left_out),
        };
        writer.write_str(&line)
    }
}

/// A line for people; colours stay.
fn text(line: &str, left_out: u64) -> String {
    let line = line.trim_end_matches('\n');
    let (kept, cut) = line.split_at(line.floor_char_boundary(MAX_LINE_BYTES));
    let mut out = String::with_capacity(kept.len() + 1);
    let mut rest = kept;
    while let Some(letter) = rest.chars().next() {
        let length = colour(rest).unwrap_or(0);
        if length > 0 {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        out.push(match letter {
            '\n' | '\r' => '⏎',
            '\t' => ' ',
            letter if is_harmless(letter) => letter,
            _ => char::REPLACEMENT_CHARACTER,
        });
        rest = &rest[letter.len_utf8()..];
    }
    if !cut.is_empty() {
        out += &format!("… ({} bytes of this line were left out)", cut.len());
    }
    if left_out > 0 {
        out += &format!(" ({left_out} more lines about this runner were left out)");
    }
    out.push('\n');
    out
}

/// The length of the sequence that begins here and sets a colour.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    parameters[end..].starts_with('m').then_some(2 + end + 1)
}

/// A line for programs, where every control character is escaped already.
fn json(line: &str, left_out: u64) -> String {
    let harmless = |letter| match is_harmless(letter) {
        true => letter,
        false => char::REPLACEMENT_CHARACTER,
    };
    let line: String = line.trim_end().chars().map(harmless).collect();
    let mut out = match line.len() > MAX_LINE_BYTES {
        false => line,
        true => {
            let kept = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
            let bytes = line.len() - kept.len();
            serde_json::json!({ "cut_line": kept, "left_out_bytes": bytes }).to_string()
        }
    };
    if left_out > 0 && out.ends_with('}') {
        out.truncate(out.len() - 1);
        out += &format!(",\"left_out_lines\":{left_out}}}");
    }
    out.push('\n');
    out
}

/// The bounds of the lines about each runner.
#[derive(Debug, Default)]
struct RunnerBounds(HashMap<String, WrittenLines>);

#[derive(Debug, Default)]
struct WrittenLines {
    /// The time until which each of its lines takes [`LINE_EVERY`].
    until: Duration,
    left_out: u64,
}

impl RunnerBounds {
    /// Admits one more line about this runner, if there is room; returns how many were left out before it.
    fn admit(&mut self, runner: &str, now: Duration) -> Option<u64> {
        if !self.0.contains_key(runner) && self.0.len() >= MAX_RUNNERS {
            self.0
                .retain(|_, written| written.until > now || written.left_out > 0);
        }
        let has_room = self.0.contains_key(runner) || self.0.len() < MAX_RUNNERS;
        let key = if has_room { runner } else { "others" };
        let written = self.0.entry(key.to_owned()).or_default();
        let until = written.until.max(now) + LINE_EVERY;
        if until - now > LINE_EVERY * LINES_AT_ONCE {
            written.left_out += 1;
            return None;
        }
        written.until = until;
        Some(std::mem::take(&mut written.left_out))
    }
}

/// The runner that a span is about.
struct RunnerOf(String);

/// Remembers which spans are about a runner.
pub(crate) struct RunnerSpans;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for RunnerSpans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut found = RunnerField::default();
        attributes.record(&mut found);
        if let (Some(runner), Some(span)) = (found.0, context.span(id)) {
            span.extensions_mut().insert(RunnerOf(runner));
        }
    }
}

fn runner_of<S, N>(context: &FmtContext<'_, S, N>, event: &Event<'_>) -> Option<String>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let mut found = RunnerField::default();
    event.record(&mut found);
    found.0.or_else(|| {
        let mut spans = context.event_scope()?;
        spans.find_map(|span| Some(span.extensions().get::<RunnerOf>()?.0.clone()))
    })
}

/// The value of the field that names a runner.
#[derive(Default)]
struct RunnerField(Option<String>);

impl Visit for RunnerField {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == RUNNER {
            self.0 = Some(format!("{value:?}"));
        }
    }
}

/// The format of lines for people.
pub(crate) fn people(colours: bool) -> format::Format {
    format::Format::default().with_ansi(colours)
}

#[cfg(test)]
mod tests;
