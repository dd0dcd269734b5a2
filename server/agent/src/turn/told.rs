//! The words to the model about a call, by the conclusion on its operation.

use std::time::Duration;

use shared_sandbox::{ExitRecord, Outcome};
use shared_types::{Refusal, RefusalCode, Remedy, Timestamp, event::CallOutcome, human::duration};

use super::{conclusion::Conclusion, listen::Listener};
use crate::{
    context::tokens::tokens,
    session::spoken,
    tools::{Ended, NEVER_RAN, Prepared, Rendered, Tool, bounded, excerpt_of, render},
    transcript::{NOT_RUN, Task},
};

/// Output that is shown with an unknown outcome, in bytes.
const LAST_OUTPUT_BYTES: usize = 2 * 1024;

/// Longest text that is shown whole, in tokens.
const RESULT_TOKENS: usize = 2_000;

/// The length of an excerpt, in percent of the longest text that is shown whole.
const EXCERPT_PERCENT: usize = 60;

/// The least length of which that is taken, in bytes.
const LEAST_EXCERPT: usize = 1024;

/// Room for the line that names the way to the rest.
pub(super) const HANDLE_BYTES: usize = 112;

/// Longest text that is made to see whether it fits.
const WHOLE_BYTES: usize = 64 * 1024;

fn fits(text: &str, limit: usize) -> bool {
    text.len() <= limit && tokens(text) <= RESULT_TOKENS
}

/// An operation that was listened to.
pub(super) struct Told<'a> {
    pub(super) tool: &'a dyn Tool,
    /// The request.
    pub(super) prepared: &'a Prepared,
    pub(super) listener: &'a Listener<'a>,
    /// The time of its start, as far as is known.
    pub(super) started: Timestamp,
    /// True if an earlier run of the turn had placed it.
    pub(super) was_placed: bool,
    /// Longest text, in bytes.
    pub(super) limit: usize,
    /// The number of the call whose result it is; nothing where it is looked at by another call.
    pub(super) number: Option<u32>,
}

impl Told<'_> {
    pub(super) fn of(&self, conclusion: &Conclusion) -> Rendered {
        let rendered = match conclusion {
            Conclusion::Ended(outcome) => self.ended(outcome),
            Conclusion::StillRuns | Conclusion::Waits { .. } => self.unknown("it still runs"),
            Conclusion::DidNotStart(refusal) => self.did_not_start(refusal),
            // The turn ends with it, so the words are for a person.
            Conclusion::Refused(refusal) if self.is_unplaced(conclusion) => not_run(refusal),
            Conclusion::Refused(refusal) => self.refused(refusal),
            Conclusion::Parked { since } => self.unknown(&format!(
                "runner {} has been offline since {since:.0}",
                self.listener.runner()
            )),
            Conclusion::Silent => self.unknown("the runner did not report its end in time"),
            Conclusion::NotRun => cancelled(NEVER_RAN.to_owned()),
            Conclusion::StopRecorded => cancelled(format!(
                "stop requested; the runner could not be reached, so it is stopped when the runner is back{}",
                self.last_output()
            )),
            Conclusion::StopUnanswered => {
                self.unknown("stop requested, and the runner did not confirm it in time")
            }
        };
        Rendered {
            text: bounded(&rendered.text, self.limit),
            ..rendered
        }
    }

    /// The words on a command that goes on in the background as a task, once the call has waited so
    /// long.
    pub(super) fn goes_on(&self, task: u32, waited: Duration) -> Rendered {
        let waited = spoken(waited);
        let text = self.output_and(&format!(
            "it still ran after {waited} and goes on in the background as task {task}; do not run it \
             again: {}; task_kill stops it",
            self.read_on(task)
        ));
        Rendered::new(CallOutcome::Background, text)
    }

    /// The words on a task whose end was not heard.
    pub(super) fn no_end_yet(&self, task: &Task, age: Duration) -> Rendered {
        let number = task.number;
        let state = match (&task.ended, self.listener.gone_since()) {
            (Some(summary), _) => format!(
                "task {number} has ended: {summary}; not all that it wrote could be read in time"
            ),
            (None, Some(since)) => format!(
                "task {number} ran when runner {} went offline at {since:.0}; what has become of it \
                 is known when the runner is back",
                self.listener.runner()
            ),
            (None, None) => format!("task {number} still runs, for {}", duration(age)),
        };
        Rendered::completed(self.output_and(&format!("{state}; {}", self.read_on(number))))
    }

    fn read_on(&self, task: u32) -> String {
        let [stdout, stderr] = self.listener.output.ends();
        format!(
            "read on with task_read {{\"task\":{task},\"stdout_from\":{stdout},\"stderr_from\":{stderr}}}"
        )
    }

    fn output_and(&self, state: &str) -> String {
        let mut text = self.listener.output.show(self.limit);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{state}]"));
        bounded(&text, self.limit)
    }

    fn ended(&self, outcome: &Outcome) -> Rendered {
        let outcome = outcome.clone().seen_from(self.listener.directory());
        let ended = Ended {
            request: &self.prepared.request,
            outcome: &outcome,
            output: &self.listener.output,
            file: &self.listener.file,
            run_for: self.prepared.run_for,
        };
        let whole = render(self.tool, &ended, WHOLE_BYTES);
        if fits(&whole.text, self.limit) {
            return whole;
        }
        self.excerpt(&ended, tokens(&whole.text), whole.text.len())
    }

    /// The beginning and the end of a result that is too long, and the way to the rest.
    fn excerpt(&self, ended: &Ended<'_>, tokens: usize, bytes: usize) -> Rendered {
        // A text of many tokens for its bytes is cut as much shorter.
        let dense = bytes.saturating_mul(RESULT_TOKENS) / tokens.max(1);
        let limit = self.limit.min(dense).max(LEAST_EXCERPT);
        let number = self.number.filter(|_| !self.tool.reads_on());
        let Some(number) = number else {
            return render(self.tool, ended, limit);
        };
        let limit = limit / 100 * EXCERPT_PERCENT;
        let rendered = render(self.tool, ended, limit.saturating_sub(HANDLE_BYTES));
        let text = excerpt_of(&rendered.text, number);
        Rendered { text, ..rendered }
    }

    fn did_not_start(&self, refusal: &Refusal) -> Rendered {
        match refusal.code {
            RefusalCode::Lost => self.unknown(&refusal.message),
            _ => not_run(format_args!("{refusal}{}", advice(refusal))),
        }
    }

    /// True if no runner could be given it, and none can be given the next call either. It was not
    /// run, and every call gets the same words until a person has seen to it.
    pub(super) fn is_unplaced(&self, conclusion: &Conclusion) -> bool {
        match conclusion {
            Conclusion::Refused(refusal) => !self.is_in_doubt() && has_no_place(refusal),
            _ => false,
        }
    }

    fn is_in_doubt(&self) -> bool {
        self.was_placed || self.listener.attached
    }

    /// A refusal speaks of this start only: where there was an earlier one it must not be read
    /// as "it did not happen", unless it says so.
    fn refused(&self, refusal: &Refusal) -> Rendered {
        match self.is_in_doubt() && !says_that_it_never_ran(refusal.code) {
            // Where nothing was heard, the command may have written all the same: an earlier worker may have shown it.
            true if self.listener.output.ends() == [0, 0] => self.unknown_and(&refusal.message, ""),
            true => self.unknown(&refusal.message),
            false => self.did_not_start(refusal),
        }
    }

    fn unknown(&self, why: &str) -> Rendered {
        self.unknown_and(why, &self.last_output())
    }

    fn unknown_and(&self, why: &str, last_output: &str) -> Rendered {
        let started = self.started;
        let text = format!(
            "outcome unknown: started at {started:.0}; {why}; it was not run again, so find out \
             what happened before you repeat it{last_output}"
        );
        Rendered::new(CallOutcome::Unknown, text)
    }

    fn last_output(&self) -> String {
        match self.listener.output.show(LAST_OUTPUT_BYTES) {
            none if none.is_empty() => "; no output was seen".to_owned(),
            // On lines of its own: what comes first is what people are shown as the reason.
            output => format!("\nthe last output was\n{output}"),
        }
    }
}

/// The words on a call that was not run.
pub(super) fn not_run(why: impl std::fmt::Display) -> Rendered {
    Rendered::new(CallOutcome::Refused, format!("{NOT_RUN}{why}"))
}

/// True if the active runner is away, or none is active.
fn has_no_place(refusal: &Refusal) -> bool {
    refusal.code == RefusalCode::Unavailable && refusal.remedy() == Remedy::Person
}

/// The reader's remedy for a refusal. A refusal that is final for one operation says nothing of the
/// next call, which is another operation.
fn advice(refusal: &Refusal) -> String {
    match (refusal.remedy(), refusal.retry_after_ms) {
        (Remedy::Retry, Some(wait)) => {
            format!("; try again in {}", spoken(Duration::from_millis(wait)))
        }
        (Remedy::Retry, None) => "; try again later".to_owned(),
        (Remedy::Person, _) => "; somebody has to see to that first".to_owned(),
        (Remedy::Final, _) => match refusal.code {
            RefusalCode::Unsupported | RefusalCode::Invalid => {
                "; trying again as it is will not change that".to_owned()
            }
            _ => String::new(),
        },
    }
}

/// The time that the process itself ran: more than the turn saw of it, if the turn was resumed.
pub(super) fn wall(conclusion: &Conclusion) -> Duration {
    match conclusion {
        Conclusion::Ended(Outcome::Exited(ExitRecord { wall_ms, .. })) => {
            Duration::from_millis(*wall_ms)
        }
        _ => Duration::ZERO,
    }
}

pub(super) fn cancelled(text: String) -> Rendered {
    Rendered::new(CallOutcome::Cancelled, text)
}

fn says_that_it_never_ran(code: RefusalCode) -> bool {
    matches!(
        code,
        RefusalCode::Fenced
            | RefusalCode::Expired
            | RefusalCode::Draining
            | RefusalCode::ResourceExhausted
            | RefusalCode::SpoolFull
            | RefusalCode::Unsupported
            | RefusalCode::Invalid
    )
}
