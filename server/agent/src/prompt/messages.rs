//! The conversation as the model is sent it.

use server_llm::Message;
use shared_types::{
    TurnId,
    event::{CallOutcome, Choice, Opaque},
};

use super::short::Short;
use crate::{
    tools::NEVER_RAN,
    transcript::{Call, LateEnd, Step, Transcript, TurnLog},
};

/// Most bytes that are said of what was asked of a call.
const MAX_ASKED_BYTES: usize = 200;

/// The ends that the model is told of before an input: the last ones.
const ENDED_AT_MOST: usize = 16;

/// The messages of every turn up to and with this one. Every call is followed by one result, in
/// the order of the calls, whatever the order in which they ended. A vendor's own parts of an
/// answer, and its ids of calls, go to the model that wrote them and to no other: it would refuse them.
pub(super) fn messages(transcript: &Transcript, turn: TurnId, model: &str) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut in_short = transcript.left_out() as usize;
    let mut last: Option<&TurnLog> = None;
    for turn in transcript.up_to(turn) {
        let machine = turn
            .settings
            .as_ref()
            .and_then(|set| set.machine.as_deref());
        let moved =
            last.and_then(|last| moved(last.choice.as_ref(), turn.choice.as_ref()?, machine));
        let another_day = last.and_then(|last| another_day(last, turn));
        let notes = ended(&turn.ended_before)
            + &moved.unwrap_or_default()
            + &another_day.unwrap_or_default();
        if !notes.is_empty() {
            messages.push(Message::User { text: notes });
        }
        last = Some(turn);
        messages.push(Message::User {
            text: turn.input.clone(),
        });
        for step in &turn.steps {
            let of_step = in_short.min(step.calls.len());
            push_step(&mut messages, step, of_step, model);
            in_short -= of_step;
        }
    }
    messages
}

/// What ended since the input before, after its call had a result.
fn ended(late: &[LateEnd]) -> String {
    let lines = late.iter().rev().take(ENDED_AT_MOST).rev().map(|late| {
        let LateEnd { asked, summary, .. } = late;
        match late.task {
            Some(number) => format!(
                "[task {number} has ended meanwhile: {summary}; task_read shows what it wrote]\n"
            ),
            None => format!(
                "[a call whose end was not known, {} {}, has ended meanwhile: {summary}]\n",
                asked.name,
                &asked.arguments[..asked.arguments.floor_char_boundary(MAX_ASKED_BYTES)]
            ),
        }
    });
    lines.collect()
}

/// Which day it is, where it is not the day of the input before.
fn another_day(before: &TurnLog, now: &TurnLog) -> Option<String> {
    let today = now.asked_at.date();
    (before.asked_at.date() != today).then(|| format!("[it is {today} now (UTC)]\n"))
}

/// Where the tools work from this input on, where that is another place than before. Nothing is said
/// of the place before where an earlier release recorded none.
fn moved(before: Option<&Choice>, now: &Choice, machine: Option<&str>) -> Option<String> {
    let place = |choice: &Choice| {
        let (runner, _) = choice.runner()?;
        Some((runner, choice.workspace().map(str::to_owned)))
    };
    if before.is_some_and(|before| place(before) == place(now)) {
        return None;
    }
    let (before, now) = (before.map(Choice::words), now.words());
    let here = match &now {
        Some(name) => {
            let machine = machine.map(|machine| format!(" ({machine})"));
            let machine = machine.unwrap_or_default();
            format!("your tools now work on runner {name}{machine}")
        }
        None => "no runner is chosen now, so your tools cannot run".to_owned(),
    };
    let there = match before {
        None => String::new(),
        Some(None) => "; before this message no runner was chosen".to_owned(),
        Some(Some(name)) => {
            let which = match now {
                Some(same) if same == name => "another runner of the same name".to_owned(),
                _ => format!("runner {name}"),
            };
            format!(
                "; before this message they worked on {which}: its files are not here, and tasks \
                 that were begun there go on there"
            )
        }
    };
    Some(format!("[{here}{there}]\n"))
}

/// Appends a step, with so many of its first calls in short.
fn push_step(messages: &mut Vec<Message>, step: &Step, in_short: usize, model: &str) {
    // Vendors refuse an answer with nothing in it.
    if step.text.is_empty() && step.calls.is_empty() {
        return;
    }
    let shorts: Vec<_> = step.calls[..in_short].iter().map(Short::of).collect();
    let short = |ordinal: usize| shorts.get(ordinal);
    let is_its_own = step.model == model;
    let asked = step.calls.iter().enumerate().map(|(ordinal, call)| {
        let short = short(ordinal).and_then(|short| short.arguments.clone());
        let mut asked = call.asked.clone();
        asked.arguments = short.unwrap_or(asked.arguments);
        if !is_its_own {
            asked.opaque.clear();
            asked.vendor_id.clear();
        }
        asked
    });
    messages.push(Message::Assistant {
        text: step.text.clone(),
        calls: asked.collect(),
        opaque: match is_its_own {
            true => step.opaque.clone(),
            false => Opaque::default(),
        },
    });
    let results = step.calls.iter().enumerate();
    messages.extend(results.map(|(ordinal, call)| {
        let short = short(ordinal).and_then(|short| short.result.clone());
        let vendor_id = match is_its_own {
            true => call.asked.vendor_id.clone(),
            false => String::new(),
        };
        result(vendor_id, call, short)
    }));
}

fn result(vendor_id: String, call: &Call, short: Option<String>) -> Message {
    let (text, failed) = match &call.result {
        Some(result) => (
            short.unwrap_or_else(|| result.text.clone()),
            !matches!(
                result.outcome,
                CallOutcome::Completed | CallOutcome::Background
            ),
        ),
        // Vendors refuse a call without a result.
        None => (NEVER_RAN.to_owned(), true),
    };
    Message::ToolResult {
        vendor_id,
        text,
        failed,
    }
}

#[cfg(test)]
mod tests;
