//! One tool call: its title, its output, its end.

use std::time::Duration;

use shared_types::{
    Event, OperationId,
    event::{CallOutcome, ToolCall},
    human::duration,
};

use unicode_width::UnicodeWidthStr as _;

use super::{
    MAX_NOTE, card,
    clean::clean_line,
    output::{Bounds, Output},
    tool,
};
use crate::style::Style;

/// Lines of output that are shown as they come, and at the end.
const LIVE: Bounds = Bounds {
    head: 40,
    tail: 10,
    live: true,
};

/// The number of lines to show of output that was not seen live.
const RECORDED: Bounds = Bounds {
    head: 10,
    tail: 5,
    live: false,
};

/// The indent of a command's rows where the terminal is narrow, in columns.
const NARROW_INDENT: usize = 4;

#[derive(Debug)]
pub(super) struct Call {
    style: Style,
    name: String,
    /// All that it was asked to do, in lines.
    whole: String,
    /// The same in few words.
    argument: String,
    /// The task that it asks for.
    task: Option<u32>,
    has_ended: bool,
    operation: Option<OperationId>,
    output: Output,
}

impl Call {
    pub(super) fn new(style: Style, call: &ToolCall) -> Self {
        Self {
            style,
            name: tool::name(call),
            whole: tool::whole_argument(call),
            argument: tool::main_argument(call),
            task: tool::task_of(call),
            has_ended: false,
            operation: None,
            output: match tool::reads_on(call) {
                true => Output::going_on(style, LIVE),
                false => Output::new(style, LIVE),
            },
        }
    }

    /// The operation that it is by now.
    pub(super) fn placed(&mut self, operation: OperationId) {
        self.operation = Some(operation);
    }

    pub(super) fn operation(&self) -> Option<OperationId> {
        self.operation
    }

    /// The task whose output it shows.
    pub(super) fn task(&self) -> Option<u32> {
        self.task
    }

    /// Up to where its output was shown when it ended with this text.
    pub(super) fn shown_to(&self, text: &str) -> [u64; 2] {
        match self.output.is_empty() {
            true => tool::read_to(text).unwrap_or_default(),
            false => self.output.ends(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The name of the call with its whole argument.
    pub(super) fn card(&self, columns: Option<usize>) -> String {
        let name = self.style.bold(&self.name);
        if self.whole.is_empty() {
            return format!("● {name}\n");
        }
        let taken = "●   ".chars().count() + self.name.width();
        // A name that leaves little room is no measure for the rows below it.
        let indent = match columns {
            Some(columns) if taken > columns / 3 => NARROW_INDENT,
            _ => taken,
        };
        let whole = card::hanging(&self.whole, taken, indent, columns);
        format!("● {name}  {whole}\n")
    }

    /// The line that names it again.
    pub(super) fn title(&self, columns: Option<usize>) -> String {
        let mark = "  ↳ ";
        let line = match self.argument.as_str() {
            "" => self.name.clone(),
            argument => format!("{}  {argument}", self.name),
        };
        let room = columns.map(|columns| columns.saturating_sub(mark.chars().count() + 1));
        let line = card::first_row(&line, room);
        let (name, rest) = line.split_at(self.name.len().min(line.len()));
        format!("{mark}{}{rest}\n", self.style.bold(name))
    }

    pub(super) fn output(
        &mut self,
        stream: &str,
        offset: u64,
        text: &str,
        bytes: u64,
        out: &mut String,
    ) {
        self.output.piece(stream, offset, text, bytes, out);
    }

    pub(super) fn gap(&mut self, stream: &str, to: u64, out: &mut String) {
        self.output.gap(stream, to, out);
    }

    /// Gives up the unfinished line; says whether there is one on the screen.
    pub(super) fn break_line(&mut self) -> bool {
        self.output.break_line()
    }

    /// Shows the end of the call, and the part of its text that was not seen live, unless it
    /// `is_elsewhere`.
    pub(super) fn end(&mut self, event: &Event, is_elsewhere: bool, out: &mut String) {
        let Event::CallEnded {
            outcome,
            parts,
            unplaced,
            task,
            budget_ms,
            duration_ms,
            overran,
            ..
        } = event
        else {
            return;
        };
        self.has_ended = true;
        // Its turn ends with the reason, which is shown once, however many calls share it.
        if *unplaced {
            return;
        }
        let text = parts.words();
        let (ending, body) = tool::ending(&text);
        let (first, rest) = body.split_once('\n').unwrap_or((body, ""));
        // A failure's first line says why, and stands in the last line here.
        let is_reason = ending.is_none() && *outcome != CallOutcome::Completed;
        if self.output.is_empty() && !is_elsewhere {
            self.output = Output::new(self.style, RECORDED);
            let recorded = if is_reason { rest } else { body };
            if !recorded.is_empty() {
                self.output
                    .piece("", 0, recorded, recorded.len() as u64, out);
            }
        }
        self.output.finish(out);
        let reason = if is_reason {
            clean_line(without_outcome(first), MAX_NOTE)
        } else {
            String::new()
        };
        let mut line = match task {
            Some(task) => self
                .style
                .yellow(&format!("↷ goes on in the background as task {task}")),
            None => self.ending(*outcome, ending, &reason, *budget_ms),
        };
        let took = match overran {
            true if task.is_none() => format!(
                " · {}, longer than its {}",
                duration(Duration::from_millis(*duration_ms)),
                duration(Duration::from_millis(*budget_ms))
            ),
            _ => format!(" · {}", duration(Duration::from_millis(*duration_ms))),
        };
        line.push_str(&self.style.dim(&took));
        out.push_str(&format!("  {line}\n"));
    }

    fn ending(
        &self,
        outcome: CallOutcome,
        ending: Option<String>,
        reason: &str,
        budget_ms: u64,
    ) -> String {
        let style = self.style;
        let with = |word: &str| match (&ending, reason) {
            (Some(ending), _) => format!("{word}: {ending}"),
            (None, "") => word.to_owned(),
            (None, reason) => format!("{word}: {reason}"),
        };
        match outcome {
            CallOutcome::Background => style.yellow("↷ goes on in the background"),
            CallOutcome::Completed => match &ending {
                None => style.green("done"),
                Some(exit) if exit == "exit 0" => style.green(exit),
                Some(exit) => style.yellow(exit),
            },
            CallOutcome::Failed => style.red(&with("✗ failed")),
            CallOutcome::Refused => style.red(&with("✗ not run")),
            CallOutcome::TimedOut => style.red(&format!(
                "✗ stopped at its time limit of {}",
                duration(Duration::from_millis(budget_ms))
            )),
            CallOutcome::Cancelled => style.yellow("■ cancelled"),
            CallOutcome::Unknown => style.red(&with("✗ outcome unknown")),
        }
    }
}

/// The reason alone. The text for the model may begin with the outcome, which is shown anyway.
fn without_outcome(reason: &str) -> &str {
    ["failed: ", "not run: ", "outcome unknown: "]
        .iter()
        .find_map(|outcome| reason.strip_prefix(outcome))
        .unwrap_or(reason)
}
