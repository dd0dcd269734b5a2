//! Calls that ask for a part of the conversation that the model is not shown any more. The log has every message and
//! every short result; a long one is read from its operation, which is stored. Nothing is run.

use std::{sync::Arc, time::Duration};

use regex::{Regex, RegexBuilder};
use shared_sandbox::{OperationEvent, Outcome, OutputStream};
use shared_types::event::{CallOutcome, Part};
use tokio::time::{Instant, timeout_at};

use super::{
    TurnError,
    site::{Plan, Site},
    told::not_run,
};
use crate::{
    tools::{
        Ask, CommandOutput, Ended, Handle, Prepared, RecallAsk, Rendered, Tool, WholeFile,
        is_excerpt, render,
    },
    transcript::{Call, Transcript},
};

/// The time for reading what is stored.
const WITHIN: Duration = Duration::from_secs(30);

/// The time without news after which a command that may still run has written all that there is.
const IDLE: Duration = Duration::from_secs(1);

/// An offset behind all that a command can write.
const NEVER_WRITTEN: u64 = (1 << 53) - 1;

/// Most bytes of a stored result other than a command's output.
const WHOLE_BYTES: usize = 1024 * 1024;

/// Longest part of a line that matched, in bytes.
const LINE_BYTES: usize = 1024;

/// Most memory that a pattern may take, in bytes.
const PATTERN_BYTES: usize = 1024 * 1024;

/// Does what is asked.
pub(super) async fn run(site: &Site<'_>, ask: &RecallAsk) -> Result<Rendered, TurnError> {
    let transcript = Transcript::of(&site.ports.log.load().await?);
    let pattern = match ask.pattern.as_deref().map(compiled).transpose() {
        Ok(pattern) => pattern,
        Err(error) => return Ok(not_run(format_args!("the pattern cannot be used: {error}"))),
    };
    let mut wanted = Wanted::new(ask, site.result_bytes, pattern);
    let what = match ask.of {
        None => {
            search(&transcript, &mut wanted);
            "this conversation".to_owned()
        }
        Some(Handle::Message(number)) => {
            let Some(turn) = nth(transcript.turns().iter(), number) else {
                return Ok(unknown("message", transcript.turns().len(), 'm'));
            };
            wanted.push_all(turn.input.words().as_bytes());
            "message".to_owned()
        }
        Some(handle @ Handle::Steer(message, number)) => {
            let turn = nth(transcript.turns().iter(), message);
            let Some(steer) = turn.and_then(|turn| turn.steer(number)) else {
                return Ok(not_run(format_args!("there is no message {handle}")));
            };
            wanted.push_all(steer.parts.words().as_bytes());
            "message".to_owned()
        }
        Some(Handle::Result(number)) => {
            let Some(call) = nth(transcript.calls(), number) else {
                return Ok(unknown("result", transcript.calls().count(), 'r'));
            };
            let whole = match call.result.as_ref().and_then(|result| result.whole) {
                Some(whole) => site.ports.log.text(whole).await?,
                None => None,
            };
            match call_of_operation(site, call).filter(|_| whole.is_none()) {
                Some((tool, prepared)) => {
                    if let Err(why) = read(site, call, (&*tool, &prepared), &mut wanted).await {
                        return Ok(Rendered::failed(why));
                    }
                }
                None => match whole {
                    Some(whole) => wanted.push_all(&whole),
                    None => push_words(call, &mut wanted),
                },
            }
            match transcript.stale_by(call) {
                Some(by) => format!("{}; the file was changed since, by r{by}", call.asked.name),
                None => call.asked.name.clone(),
            }
        }
    };
    Ok(Rendered::completed(wanted.shown(ask, &what)))
}

pub(super) fn compiled(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build()
}

/// The n-th of these, from 1.
fn nth<T>(mut of: impl Iterator<Item = T>, number: u32) -> Option<T> {
    of.nth(usize::try_from(number).ok()?.checked_sub(1)?)
}

fn unknown(what: &str, last: usize, letter: char) -> Rendered {
    not_run(match last {
        0 => format!("there is no {what} yet"),
        last => format!("there is no such {what}; the last one is {letter}{last}"),
    })
}

/// The tool and the request of a call whose operation is stored.
fn call_of_operation(site: &Site<'_>, call: &Call) -> Option<(Arc<dyn Tool>, Prepared)> {
    call.placed.as_ref()?;
    let plan = Plan::of(&site.tools, &call.asked.name, &call.asked.arguments).ok()?;
    match plan.ask {
        // An image is shown, not read as bytes.
        Ask::Operation(prepared) if !prepared.request.is_download() => Some((plan.tool, prepared)),
        _ => None,
    }
}

fn push_words(call: &Call, wanted: &mut Wanted) {
    match &call.result {
        Some(result) => wanted.push_all(result.parts.words().as_bytes()),
        None => wanted.push(0, b"[it has no result yet]"),
    }
}

/// Reads the stored operation of a call.
async fn read(
    site: &Site<'_>,
    call: &Call,
    (tool, prepared): (&dyn Tool, &Prepared),
    wanted: &mut Wanted,
) -> Result<(), String> {
    let Some(placed) = &call.placed else {
        return Ok(());
    };
    let until = Instant::now() + WITHIN;
    let from = match wanted.stream {
        OutputStream::Stdout => [wanted.next, NEVER_WRITTEN],
        OutputStream::Stderr => [NEVER_WRITTEN, wanted.next],
    };
    let reading = timeout_at(until, site.ports.sandbox.read(placed.operation, from)).await;
    let Ok(Ok(mut running)) = reading else {
        let words = call.result.as_ref().map(|result| result.parts.words());
        if words.is_some_and(|words| is_excerpt(&words)) {
            return Err("what is stored of it cannot be read now; try again later".to_owned());
        }
        // The log has all of it.
        push_words(call, wanted);
        return Ok(());
    };
    while !wanted.is_full() {
        let until = match may_still_run(call) {
            true => until.min(Instant::now() + IDLE),
            false => until,
        };
        match timeout_at(until, running.events.recv()).await {
            // What has come so far is all that there is.
            Err(_) if may_still_run(call) => return Ok(()),
            Err(_) => return Err("it could not be read in time; try again later".to_owned()),
            Ok(Some(OperationEvent::Output {
                stream,
                offset,
                data,
            })) if stream == wanted.stream => wanted.push(offset, &data),
            Ok(Some(OperationEvent::Gap { stream, to, .. })) if stream == wanted.stream => {
                wanted.skip_to(to);
            }
            Ok(Some(OperationEvent::Ended(Outcome::Exited(record)))) => {
                let ends = match wanted.stream {
                    OutputStream::Stdout => record.stdout,
                    OutputStream::Stderr => record.stderr,
                };
                wanted.end(ends.offset);
                return Ok(());
            }
            Ok(Some(OperationEvent::Ended(outcome))) => {
                let ended = Ended {
                    request: &prepared.request,
                    outcome: &outcome.seen_from(&site.directory),
                    output: &CommandOutput::new(0),
                    file: &WholeFile::default(),
                    run_for: prepared.run_for,
                };
                wanted.push_all(render(tool, &ended, WHOLE_BYTES).text.as_bytes());
                return Ok(());
            }
            Ok(Some(OperationEvent::Unreachable { .. }) | None) => return Ok(()),
            Ok(Some(_)) => {}
        }
    }
    Ok(())
}

/// True if no end of its command is in the log.
fn may_still_run(call: &Call) -> bool {
    let outcome = call.result.as_ref().map(|result| result.outcome);
    !matches!(
        outcome,
        Some(CallOutcome::Completed | CallOutcome::Failed | CallOutcome::TimedOut)
    )
}

/// Looks for lines in the whole conversation.
fn search(transcript: &Transcript, wanted: &mut Wanted) {
    for (number, turn) in (1..).zip(transcript.turns()) {
        wanted.named(&Handle::Message(number).to_string(), &turn.input.words());
        for steer in turn.steers() {
            let handle = Handle::Steer(number, steer.number);
            wanted.named(&handle.to_string(), &steer.parts.words());
        }
        for step in &turn.steps {
            let said = step.parts.0.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            });
            said.for_each(|text| wanted.named(&format!("answer to m{number}"), text));
            for call in &step.calls {
                let handle = Handle::Result(call.number).to_string();
                wanted.named(&format!("call {handle}"), &call.asked.arguments);
                if let Some(told) = &call.result {
                    wanted.named(&handle, &told.parts.words());
                }
            }
        }
    }
}

/// The bytes, or the lines, that are looked for.
struct Wanted {
    stream: OutputStream,
    limit: usize,
    pattern: Option<Regex>,
    /// The text that was found.
    text: Vec<u8>,
    /// The first byte of the bytes that are wanted.
    from: u64,
    /// The offset after the last byte that came.
    next: u64,
    /// The bytes in all, once they are known.
    end: Option<u64>,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The offset at which that line began.
    line_from: u64,
    is_full: bool,
}

impl Wanted {
    fn new(ask: &RecallAsk, at_most: usize, pattern: Option<Regex>) -> Self {
        Self {
            stream: ask.stream,
            limit: ask.limit.min(at_most),
            pattern,
            text: Vec::new(),
            from: ask.offset,
            next: ask.offset,
            end: None,
            line: Vec::new(),
            line_from: ask.offset,
            is_full: false,
        }
    }

    /// True once nothing more fits.
    fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes in bytes at their place. Those before the first one that is wanted, and repeats, are dropped.
    fn push(&mut self, offset: u64, data: &[u8]) {
        let known = usize::try_from(self.next.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(fresh) = data.get(known..) else {
            return;
        };
        if offset > self.next {
            self.skip_to(offset);
        }
        if self.pattern.is_some() {
            return self.look_through(fresh);
        }
        let room = self.limit - self.text.len();
        let taken = &fresh[..fresh.len().min(room)];
        self.text.extend_from_slice(taken);
        self.next = self.next.saturating_add(taken.len() as u64);
        self.is_full = taken.len() < fresh.len();
    }

    /// Takes in the whole of something.
    fn push_all(&mut self, data: &[u8]) {
        self.push(0, data);
        self.end = Some(data.len() as u64);
    }

    /// Notes that the bytes before this offset are not kept.
    fn skip_to(&mut self, to: u64) {
        if to <= self.next {
            return;
        }
        self.end_line();
        let gap = format!("\n[… {} bytes that are not kept …]\n", to - self.next);
        if self.pattern.is_none() && self.text.len() + gap.len() <= self.limit {
            self.text.extend_from_slice(gap.as_bytes());
        }
        self.next = to;
    }

    /// Notes that the stream has ended there.
    fn end(&mut self, at: u64) {
        self.skip_to(at);
        self.end_line();
        self.end = Some(at);
    }

    fn look_through(&mut self, fresh: &[u8]) {
        for line in fresh.split_inclusive(|byte| *byte == b'\n') {
            if self.line.is_empty() {
                self.line_from = self.next;
            }
            let room = LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&line[..line.len().min(room)]);
            self.next = self.next.saturating_add(line.len() as u64);
            if line.ends_with(b"\n") {
                self.end_line();
            }
            if self.is_full {
                return;
            }
        }
    }

    /// Takes the line that came last, if it matches.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        let words = String::from_utf8_lossy(&line);
        self.take_line(
            &self.line_from.to_string(),
            words.trim_end_matches(['\n', '\r']),
        );
    }

    /// Takes the lines of a text that match.
    fn named(&mut self, name: &str, text: &str) {
        for line in text.lines().filter(|line| !line.is_empty()) {
            let line = &line[..line.floor_char_boundary(LINE_BYTES)];
            self.take_line(name, line);
        }
    }

    fn take_line(&mut self, name: &str, line: &str) {
        let matches = |pattern: &Regex| pattern.is_match(line);
        if self.is_full || !self.pattern.as_ref().is_some_and(matches) {
            return;
        }
        let line = format!("{name}: {line}\n");
        match self.text.len() + line.len() <= self.limit {
            true => self.text.extend_from_slice(line.as_bytes()),
            false => self.is_full = true,
        }
    }

    /// The text that was found, and the place to go on.
    fn shown(mut self, ask: &RecallAsk, what: &str) -> String {
        self.end_line();
        let of = ask.of.map_or_else(String::new, |of| format!("{of}, "));
        let mut text = String::from_utf8_lossy(&self.text).into_owned();
        let is_search = self.pattern.is_some();
        let note = match (text.is_empty(), is_search, self.is_full) {
            (true, true, _) => "[no line matches]".to_owned(),
            (true, false, _) => match self.end {
                Some(end) => format!("[it has only {end} bytes]"),
                None => "[there is nothing at this offset]".to_owned(),
            },
            (false, true, false) => String::new(),
            (false, true, true) => "[there are more such lines; narrow the pattern]".to_owned(),
            (false, false, false) if self.end.is_some() => "[this is its end]".to_owned(),
            (false, false, false) => "[this is all that came so far]".to_owned(),
            (false, false, true) => format!("[read on with offset {}]", self.next),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        format!("[{of}{what}, from offset {}]\n{text}{note}", self.from)
    }
}
