//! Background commands and their output: whole lines, each with the number of its task before it.
//!
//! Of a flood, the first and the last lines of each second are shown. Lines wait while the model is in the middle of a
//! line of its answer. Waiting lines are bounded like a flood. The text of the person's own commands waits as well.

use std::collections::VecDeque;

use shared_api::OperationEnd;
use shared_client::{Attached, ClientError};
use shared_types::{Event, OperationId};
use tokio::time::Instant;

use super::{MAX_NOTE, Renderer, clean::clean_line, thoughts::Thoughts};
use crate::style::Style;

mod lines;
#[cfg(test)]
mod tests;

use lines::Lines;

/// Tasks that are known at a time; the oldest is forgotten.
const MAX_TASKS: usize = 256;

/// Tasks whose output is shown at the same time. The others wait until one of them has ended.
const MAX_FOLLOWED: usize = 8;

/// The background commands of the session.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: VecDeque<Task>,
    /// True once the log was read to its end, so that it is known which tasks still run.
    is_caught_up: bool,
    /// The text of the person's own commands that waits to be shown.
    beside: String,
}

/// A task whose output is to be shown from now on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ToFollow {
    pub(crate) operation: OperationId,
    pub(crate) from: Begin,
}

/// From where on the output of a task is shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Begin {
    /// From these offsets of stdout and stderr, up to which it was shown.
    Offsets([u64; 2]),
    /// The last lines before now.
    LastLines,
}

#[derive(Debug)]
struct Task {
    number: u32,
    operation: OperationId,
    from: Begin,
    /// There from when on its output is followed.
    lines: Option<Lines>,
}

/// The state of a task that has ended, as the log says.
#[derive(Debug, PartialEq)]
pub(super) enum Settled {
    /// Its own last line says so.
    Told,
    /// A task whose output is not followed.
    Untold(u32),
    /// No task.
    Unknown,
}

impl Tasks {
    /// The log was read to its end.
    pub(super) fn caught_up(&mut self) {
        self.is_caught_up = true;
    }

    /// A command has become a task.
    pub(super) fn begun(&mut self, number: u32, operation: OperationId, from: Begin) {
        if let Some(known) = self.find(operation) {
            known.from = from;
            return;
        }
        if self.known.len() == MAX_TASKS {
            self.known.pop_front();
        }
        self.known.push_back(Task {
            number,
            operation,
            from,
            lines: None,
        });
    }

    /// The output of a task up to here was shown with a call.
    pub(super) fn read_to(&mut self, number: u32, ends: [u64; 2]) {
        let task = self.known.iter_mut().find(|task| task.number == number);
        if let Some(task) = task
            && let Begin::Offsets(known) = &mut task.from
        {
            *known = [known[0].max(ends[0]), known[1].max(ends[1])];
        }
    }

    /// A task has ended, as the log says.
    pub(super) fn settled(&mut self, operation: OperationId) -> Settled {
        let Some(place) = self
            .known
            .iter()
            .position(|task| task.operation == operation)
        else {
            return Settled::Unknown;
        };
        if self.known[place].lines.is_some() {
            return Settled::Told;
        }
        let task = self.known.remove(place);
        task.map_or(Settled::Unknown, |task| Settled::Untold(task.number))
    }

    /// True if the output of this operation is shown here.
    pub(super) fn shows(&self, operation: OperationId) -> bool {
        let task = self.known.iter().find(|task| task.operation == operation);
        task.is_some_and(|task| task.lines.is_some())
    }

    /// The same of a task with this number.
    pub(super) fn shows_number(&self, number: u32) -> bool {
        let task = self.known.iter().find(|task| task.number == number);
        task.is_some_and(|task| task.lines.is_some())
    }

    /// The tasks whose output can be shown from now on.
    pub(super) fn begin_to_follow(&mut self, style: Style) -> Vec<ToFollow> {
        if !self.is_caught_up {
            return Vec::new();
        }
        let lines = self.known.iter().filter_map(|task| task.lines.as_ref());
        let room = MAX_FOLLOWED.saturating_sub(lines.filter(|lines| !lines.is_over).count());
        let waiting = self.known.iter_mut().filter(|task| task.lines.is_none());
        let begin = |task: &mut Task| {
            task.lines = Some(Lines::new(style, task.number, task.from));
            ToFollow {
                operation: task.operation,
                from: task.from,
            }
        };
        waiting.take(room).map(begin).collect()
    }

    /// Takes news of a task.
    pub(super) fn heard(
        &mut self,
        operation: OperationId,
        item: &Result<Attached, ClientError>,
        now: Instant,
    ) {
        let lines = self.find(operation).and_then(|task| task.lines.as_mut());
        let Some(lines) = lines.filter(|lines| !lines.is_over) else {
            return;
        };
        match item {
            Ok(Attached::Output {
                stream,
                offset,
                data,
            }) => lines.output(*stream, *offset, data, now),
            Ok(Attached::Gap { from, to, .. }) => {
                let missing = to.saturating_sub(*from);
                lines.line(&format!("… {missing} bytes that are not kept"), now);
            }
            Ok(Attached::Unreachable { .. }) => {
                lines.line("its runner cannot be reached; it goes on", now);
            }
            Ok(Attached::Reachable) => lines.line("its runner is back", now),
            Ok(Attached::Ended(operation)) => {
                let words = operation.end.as_ref().map_or("", OperationEnd::words);
                lines.end(&format!("ended: {}", clean_line(words, MAX_NOTE)), now);
            }
            Err(error) => {
                let error = clean_line(&error.to_string(), MAX_NOTE);
                lines.end(&format!("is not shown any further: {error}"), now);
            }
            // The session says it of its own connection.
            Ok(Attached::Lost { .. } | Attached::Recovered) => {}
            Ok(
                Attached::Operation(_)
                | Attached::InputTaken { .. }
                | Attached::InputWanted { .. }
                | Attached::Problem(_),
            ) => {}
        }
    }

    /// The lines that can be shown by now.
    pub(super) fn ready(&mut self, now: Instant) -> String {
        let lines = self.known.iter_mut().filter_map(|task| task.lines.as_mut());
        let mut ready: String = lines.map(|lines| lines.ready(now)).collect();
        ready.push_str(&std::mem::take(&mut self.beside));
        ready
    }

    /// True if lines wait for time to pass.
    pub(super) fn is_holding(&self) -> bool {
        let mut lines = self.known.iter().filter_map(|task| task.lines.as_ref());
        lines.any(Lines::is_holding)
    }

    fn find(&mut self, operation: OperationId) -> Option<&mut Task> {
        self.known
            .iter_mut()
            .find(|task| task.operation == operation)
    }
}

/// The text before each line of a task.
pub(super) fn mark(number: u32) -> String {
    format!("[task {number}] ")
}

impl Renderer {
    /// The text about a task that runs when the person comes.
    pub(crate) fn runs(&mut self, number: u32, operation: OperationId, command: &str) -> String {
        self.tasks.begun(number, operation, Begin::LastLines);
        self.note(&format!("{}runs: {command}", mark(number)));
        std::mem::take(&mut self.out)
    }

    /// The tasks whose output can be shown from now on.
    pub(crate) fn begin_to_follow(&mut self) -> Vec<ToFollow> {
        self.tasks.begin_to_follow(self.style)
    }

    /// Takes news of a task; [`Renderer::background`] shows it.
    pub(crate) fn task(
        &mut self,
        operation: OperationId,
        item: &Result<Attached, ClientError>,
        now: Instant,
    ) {
        self.tasks.heard(operation, item, now);
    }

    /// Takes text of a command of the person's own; [`Renderer::background`] shows it.
    pub(crate) fn beside(&mut self, text: &str) {
        self.tasks.beside.push_str(text);
    }

    /// The text about the tasks by now; empty while the model is in the middle of a line.
    pub(crate) fn background(&mut self, now: Instant) -> String {
        let is_text_open = self.text.as_ref().is_some_and(|text| text.is_line_open);
        let is_thought_open = self.thoughts.as_ref().is_some_and(Thoughts::is_line_open);
        if is_text_open || is_thought_open {
            return String::new();
        }
        let lines = self.tasks.ready(now);
        if !lines.is_empty() {
            self.finish_line();
            self.out.push_str(&lines);
        }
        std::mem::take(&mut self.out)
    }

    /// True if text waits for time to pass.
    pub(crate) fn is_holding(&self) -> bool {
        self.tasks.is_holding()
    }

    /// Notes that a call ended, which may continue as a task or have shown one.
    pub(super) fn call_ended(
        &mut self,
        event: &Event,
        ordinal: u32,
        task: Option<u32>,
        text: &str,
    ) {
        self.focus_on(ordinal);
        let Some(call) = self.calls.get_mut(&ordinal) else {
            return;
        };
        let ends = call.shown_to(text);
        let of = call.task();
        let is_elsewhere = of.is_some_and(|task| self.tasks.shows_number(task));
        call.end(event, is_elsewhere, &mut self.out);
        if let Some((task, operation)) = task.zip(call.operation()) {
            self.tasks.begun(task, operation, Begin::Offsets(ends));
        } else if let Some(task) = of {
            self.tasks.read_to(task, ends);
        }
    }
}
