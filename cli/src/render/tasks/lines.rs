//! The output of one task, line by line.

use std::time::Duration;

use shared_api::StreamName;
use tokio::time::Instant;

use super::{Begin, mark};
use crate::{
    render::{
        clean::clean,
        output::{Bounds, Output},
    },
    style::Style,
};

/// Longest line that is held until it ends, in bytes.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Lines of a task that are shown of each second.
pub(super) const OF_A_SECOND: Bounds = Bounds {
    head: 20,
    tail: 5,
    live: false,
};

/// The period in which the first lines are counted; at its end the last ones are shown.
const A_SECOND: Duration = Duration::from_secs(1);

/// The output of one task, line by line.
#[derive(Debug)]
pub(super) struct Lines {
    style: Style,
    mark: String,
    /// The lines of the second that runs.
    output: Output,
    /// When that second began; none while no line has come since the last one.
    since: Option<Instant>,
    open: [OpenLine; 2],
    ready: String,
    /// True once its last line was added.
    pub(super) is_over: bool,
}

/// The line of a stream that has not ended.
#[derive(Debug, Default)]
struct OpenLine {
    bytes: Vec<u8>,
    is_after_return: bool,
    /// True if its first bytes may be missing.
    may_be_torn: bool,
}

impl Lines {
    pub(super) fn new(style: Style, number: u32, from: Begin) -> Self {
        let mark = mark(number);
        let open = || OpenLine {
            may_be_torn: from == Begin::LastLines,
            ..OpenLine::default()
        };
        Self {
            style,
            output: Output::marked(style, OF_A_SECOND, &mark),
            mark,
            since: None,
            open: [open(), open()],
            ready: String::new(),
            is_over: false,
        }
    }

    pub(super) fn output(&mut self, stream: StreamName, offset: u64, data: &[u8], now: Instant) {
        let place = match stream {
            StreamName::Stdout => 0,
            StreamName::Stderr => 1,
        };
        if std::mem::take(&mut self.open[place].may_be_torn) && offset > 0 {
            self.open[place].bytes.extend("…".as_bytes());
        }
        for byte in data {
            if let Some(line) = self.open[place].take(*byte) {
                self.line(&line, now);
            }
        }
    }

    pub(super) fn line(&mut self, text: &str, now: Instant) {
        self.since.get_or_insert(now);
        let text = clean(text);
        self.output.line(&text, &mut self.ready);
    }

    /// The last line.
    pub(super) fn end(&mut self, words: &str, now: Instant) {
        for place in 0..self.open.len() {
            if let Some(line) = self.open[place].end() {
                self.line(&line, now);
            }
        }
        self.finish();
        let line = format!("{}{words}", self.mark);
        self.ready.push_str(&self.style.dim(&line));
        self.ready.push('\n');
        self.is_over = true;
    }

    pub(super) fn ready(&mut self, now: Instant) -> String {
        if self.since.is_some_and(|since| now >= since + A_SECOND) {
            self.finish();
        }
        std::mem::take(&mut self.ready)
    }

    /// True if lines wait for time to pass.
    pub(super) fn is_holding(&self) -> bool {
        self.since.is_some() || !self.ready.is_empty()
    }

    fn finish(&mut self) {
        self.output.finish(&mut self.ready);
        self.output = Output::marked(self.style, OF_A_SECOND, &self.mark);
        self.since = None;
    }
}

impl OpenLine {
    /// Takes a byte; the line, where the byte ends it. A returning carriage ends one, too.
    fn take(&mut self, byte: u8) -> Option<String> {
        let is_after_return = std::mem::replace(&mut self.is_after_return, byte == b'\r');
        match byte {
            b'\n' if is_after_return && self.bytes.is_empty() => None,
            b'\n' | b'\r' => Some(self.text()),
            byte => {
                if self.bytes.len() < MAX_LINE_BYTES {
                    self.bytes.push(byte);
                }
                None
            }
        }
    }

    /// Takes the unfinished line, if there is one.
    fn end(&mut self) -> Option<String> {
        (!self.bytes.is_empty()).then(|| self.text())
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned()
    }
}
