//! The conversation as the model is sent it.

use server_llm::{Message, ModelInfo};
use shared_types::{
    TurnId,
    event::{
        CallOutcome, Choice, Extensions, HookDecision, HookEnd, HookEvent, OfferedServer, Part,
        Parts, ToolCall,
    },
};

use super::{
    bytes::bytes_of_fields,
    short::{LEAST_TEXT, Short, shorten},
    surroundings,
};
use crate::{
    extensions, gates,
    tools::{Handle, NEVER_RAN, todo_written},
    transcript::{Call, Compacted, LateEnd, SentAs, Steer, Step, SurveyLog, Transcript, TurnLog},
    turn::limit,
};

/// Most bytes that are said of what was asked of a call.
const MAX_ASKED_BYTES: usize = 200;

/// The most ends that the model hears of before an input: the last ones.
const ENDED_AT_MOST: usize = 16;

/// The text in place of the oldest parts of a conversation.
const GONE: &str = "[the beginning of this conversation is left out here, to make room]";

/// The text in place of the first steps of a turn that is too long.
const STEPS_GONE: &str = "[your first steps on the message above are left out here, to make room]";

/// The part of the conversation that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct View {
    /// So many of the oldest calls are sent in short.
    pub(super) in_short: usize,
    /// So many of the oldest parts are not sent at all.
    pub(super) gone: usize,
    /// Most bytes of one text, where the log does not say fewer.
    pub(super) longest: usize,
}

impl View {
    /// The view that the log records.
    pub(super) fn of(transcript: &Transcript) -> Self {
        Self {
            in_short: transcript.left_out() as usize,
            gone: transcript.gone() as usize,
            longest: usize::MAX,
        }
    }
}

/// The messages of every turn up to and with this one. Every call is followed by one result, in the
/// order of the calls, not of their ends. A vendor's own parts of an answer, and its ids of calls, go
/// only to the model that wrote them: another would refuse them.
pub(super) fn messages(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    view: View,
) -> Vec<Message> {
    let mut messages = head(transcript, view.gone);
    messages.extend(tail(transcript, turn, model, view));
    messages
}

/// The messages in place of so many of the oldest parts.
fn head(transcript: &Transcript, gone: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let compacted = transcript.compacted().filter(|_| gone > 0);
    if let Some(compacted) = compacted {
        messages.push(user(&in_place(compacted)));
    }
    if gone > compacted.map_or(0, |compacted| compacted.gone as usize) {
        messages.push(user(GONE));
    }
    messages
}

/// The messages of the parts that are sent.
pub(super) fn tail(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    view: View,
) -> Vec<Message> {
    let mut messages = Vec::new();
    let View {
        mut in_short,
        mut gone,
        longest,
    } = view;
    // Where the beginning is not sent, the changes since then are told again.
    let mut last = transcript.turns().first().filter(|_| gone > 0);
    // The instructions were sent with the first message that they counted for; where that is not sent, they are again.
    let mut survey: Option<&SurveyLog> = None;
    let mut extended: Option<&Extensions> = None;
    let mut offered: &[OfferedServer] = &[];
    for log in transcript.up_to(turn) {
        let is_gone = take(&mut gone, 1) == 1;
        let parts = log.steps.iter().map(|step| 1 + step.calls.len());
        // A turn of which any step is sent begins with its message.
        let has_sent_steps = gone < parts.sum();
        let is_sent = !is_gone || has_sent_steps || log.id == turn;
        if is_sent {
            let longest = longest.min(log.longest);
            let mut notes = notes(last, log);
            if let Some(now) = log.survey.as_deref() {
                notes += &surroundings::note(survey, now, model.profile.window);
                survey = Some(now);
            }
            notes += &extensions::note(extended, &log.extensions);
            extended = Some(&log.extensions);
            notes += &extensions::missing_note(offered, &log.offered);
            offered = &log.offered;
            notes += &hooks_before(log);
            if !transcript.is_begun_by_call(log.id) {
                notes += &extensions::asked_note(&log.extensions, &log.input.words());
            }
            notes += gates::mode_note(last, log).unwrap_or_default();
            if let Some(found) = &log.found {
                notes += "[an earlier conversation in this folder left this to-do list; go on with it if it is asked for, \
                          or replace it:]\n";
                notes += &todo_written(found);
            }
            if !notes.is_empty() {
                messages.push(user(&shorten(&notes, longest, "note")));
            }
            last = Some(log);
            // A wish to compact is not for the model.
            if log.compacts.is_none() {
                let parts = sent_parts(&log.input, longest, "message", model);
                messages.push(Message::User { parts });
            }
        }
        if gone > 0 && (has_sent_steps || log.id == turn) && !log.steps.is_empty() {
            messages.push(user(STEPS_GONE));
        }
        for step in &log.steps {
            let sent = Sent {
                text: take(&mut gone, 1) == 0,
                calls_from: take(&mut gone, step.calls.len()),
                in_short: take(&mut in_short, step.calls.len()),
                longest: longest.min(step.longest),
            };
            if sent.text {
                let steers = log.steers_before(step.number);
                messages.extend(steers.flat_map(|steer| steered(log, steer, longest, model)));
            }
            if let Some(limit) = step.limit.filter(|_| sent.text) {
                messages.push(user(&limit::wish(limit)));
            }
            let is_bound = model.profile.binds_thoughts && step.prefix != transcript.prefix();
            push_step(&mut messages, step, &sent, model, is_bound);
            if sent.text {
                messages.extend(hooks_behind(log, step.number).map(|note| user(&note)));
            }
        }
        if is_sent {
            let steers = log.steers_behind();
            messages.extend(steers.flat_map(|steer| steered(log, steer, longest, model)));
        }
        if let Some(limit) = log.limit
            && log.steps.last().is_none_or(|step| step.limit.is_none())
        {
            messages.push(user(&limit::wish(limit)));
        }
    }
    messages
}

/// The notes of hooks before the first step of a turn.
fn hooks_before(log: &TurnLog) -> String {
    let ends = log
        .hooks
        .iter()
        .filter(|end| end.step == 0 && !end.context.is_empty());
    let note = |end: &HookEnd| match end.on {
        HookEvent::SlashCommand => format!(
            "[the output of the command that the user wrote, which is data:]\n{}\n",
            end.context
        ),
        _ => format!("[a hook says: {}]\n", end.context),
    };
    ends.map(note).collect()
}

/// The notes of hooks behind a step: what they say of all its calls, and why the turn goes on.
fn hooks_behind(log: &TurnLog, step: u32) -> impl Iterator<Item = String> {
    let ends = log.hooks.iter().filter(move |end| end.step == step);
    ends.filter_map(|end| match end.on {
        HookEvent::PostToolBatch if !end.context.is_empty() => {
            Some(format!("[a hook says: {}]", end.context))
        }
        HookEvent::AgentStop if end.decision == Some(HookDecision::Deny) => {
            Some(format!("[a hook wants you to go on: {}]", end.reason))
        }
        _ => None,
    })
}

/// The text in place of parts that were compacted.
fn in_place(compacted: &Compacted) -> String {
    let Compacted {
        carried, summary, ..
    } = compacted;
    let mut text = format!(
        "[The beginning of this conversation is compacted to make room. These parts of it are taken over word for word \
         (m1 is the first message, r7 the result of the seventh call: recall returns each whole):]\n{carried}"
    );
    if !summary.is_empty() {
        text.push_str(&format!(
            "[Your own summary of it; where the two differ, what stands above is right:]\n{summary}\n"
        ));
    }
    text + "[The conversation goes on here.]"
}

/// A message that joined a turn while it worked: in the words of its sender, behind a note where it asks for a skill.
fn steered(log: &TurnLog, steer: &Steer, longest: usize, model: &ModelInfo) -> Vec<Message> {
    let note = extensions::asked_note(&log.extensions, &steer.parts.words());
    let parts = sent_parts(&steer.parts, longest.min(steer.longest), "message", model);
    let note = (!note.is_empty()).then(|| user(&note));
    note.into_iter().chain([Message::User { parts }]).collect()
}

fn user(text: &str) -> Message {
    Message::User {
        parts: Parts::text(text),
    }
}

/// Takes up to so many of what there is.
fn take(there_is: &mut usize, at_most: usize) -> usize {
    let taken = (*there_is).min(at_most);
    *there_is -= taken;
    taken
}

/// The notes to the model before an input. They depend on the notes before.
fn notes(last: Option<&TurnLog>, log: &TurnLog) -> String {
    let machine = log.settings.as_ref().and_then(|set| set.machine.as_deref());
    let moved = last.and_then(|last| moved(last.choice.as_ref(), log.choice.as_ref()?, machine));
    let another_day = last.and_then(|last| another_day(last, log));
    ended(&log.ended_before) + &moved.unwrap_or_default() + &another_day.unwrap_or_default()
}

/// The words on operations that ended since the input before, after their calls had a result.
fn ended(late: &[LateEnd]) -> String {
    let lines = late.iter().rev().take(ENDED_AT_MOST).rev().map(|late| {
        let LateEnd { asked, summary, .. } = late;
        if let Some(agent) = &late.agent {
            return format!("[the agent {agent} has ended meanwhile: {summary}]\n");
        }
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

/// The date, if it is not that of the input before.
fn another_day(before: &TurnLog, now: &TurnLog) -> Option<String> {
    let today = now.asked_at.date();
    (before.asked_at.date() != today).then(|| format!("[it is {today} now (UTC)]\n"))
}

/// The new place of the tools, if it is not that of the input before. The note omits the place
/// before if an earlier release did not record it.
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
        None => "no runner is active now, so your tools cannot run".to_owned(),
    };
    let there = match before {
        None => String::new(),
        Some(None) => "; before this message no runner was active".to_owned(),
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

/// The part of a step that is sent.
struct Sent {
    /// True if its text is sent.
    text: bool,
    /// The first of its calls that is.
    calls_from: usize,
    /// So many of its first calls are sent in short.
    in_short: usize,
    /// Most bytes of its text; its calls share as many.
    longest: usize,
}

/// The parts of a message or a result as they are sent: its texts as one, of at most so many bytes, and its images.
/// A model that does not see is told of an image in words.
fn sent_parts(parts: &Parts, longest: usize, what: &str, model: &ModelInfo) -> Parts {
    let (images, mut others): (Vec<_>, Vec<_>) =
        (parts.0.iter().cloned()).partition(|part| matches!(part, Part::Image { .. }));
    if !model.profile.sees {
        others.extend(images.iter().map(unseen));
        return Parts::text(shorten(&Parts(others).words(), longest, what));
    }
    let mut sent = Parts::text(shorten(&Parts(others).words(), longest, what));
    sent.0.extend(images);
    sent
}

/// The words in place of an image, for a model that does not see it.
fn unseen(image: &Part) -> Part {
    let described = Parts(vec![image.clone()]);
    let described = described.words();
    let described = described.trim_start_matches('[').trim_end_matches(']');
    Part::Text {
        text: format!(
            "[{described}. You cannot see it, because this model does not read images: say so, and do not guess \
             what it shows.]"
        ),
    }
}

/// Appends what is sent of a step. What stands before its text belongs to the text, and goes with it. Where thoughts
/// are bound to what stood before them and that has changed, they are left out.
fn push_step(
    messages: &mut Vec<Message>,
    step: &Step,
    sent: &Sent,
    model: &ModelInfo,
    is_bound: bool,
) {
    if !sent.text && sent.calls_from == step.calls.len() {
        return;
    }
    let is_its_own = is_own(step, model);
    let is_state_sent = is_its_own && !is_bound && weight(&step.parts) <= sent.longest;
    let longest = share(sent.longest, step.calls.len() - sent.calls_from);
    let (mut parts, mut results) = (Vec::new(), Vec::new());
    let mut calls = step.calls.iter().enumerate();
    for part in &step.parts.0 {
        match part {
            Part::Text { text } if sent.text => parts.push(Part::Text {
                text: shorten(text, sent.longest, "answer"),
            }),
            Part::Image { .. } if sent.text => parts.push(part.clone()),
            Part::Text { .. } | Part::Image { .. } => {
                parts.retain(|before| matches!(before, Part::ToolCall(_)));
            }
            Part::Reasoning { .. } | Part::Opaque { .. } if !(is_state_sent && is_state(part)) => {}
            Part::Reasoning { .. } | Part::Opaque { .. } => parts.push(part.clone()),
            Part::ToolCall(_) => {
                let Some((ordinal, call)) = calls.next() else {
                    continue;
                };
                if ordinal >= sent.calls_from {
                    let is_short =
                        ordinal < sent.in_short || matches!(call.sent, SentAs::Masked { .. });
                    let short = is_short.then(|| Short::of(call));
                    let (asked, result) = sent_call(call, short, longest, model, is_its_own);
                    parts.push(Part::ToolCall(asked));
                    results.push(result);
                }
            }
        }
    }
    // Vendors refuse an answer with nothing in it.
    if parts.iter().any(|part| !is_state(part)) {
        let parts = Parts(parts);
        messages.push(Message::Assistant { parts });
        messages.extend(results);
    }
}

/// True if the model may be sent the vendor's own state in this step.
fn is_own(step: &Step, model: &ModelInfo) -> bool {
    let origin = step.origin.as_ref();
    step.model == model.name && origin.is_none_or(|origin| *origin == model.origin)
}

/// True for a part that only the vendor wants back. Thoughts without a signature are for people.
fn is_state(part: &Part) -> bool {
    match part {
        Part::Reasoning { signature, .. } => signature.is_some(),
        Part::Opaque { .. } => true,
        Part::Text { .. } | Part::Image { .. } | Part::ToolCall(_) => false,
    }
}

/// The text that the model has put in place of a result.
fn edited(text: &str, call: &Call) -> String {
    let handle = Handle::Result(call.number);
    match text {
        "" => format!("[you left this result out; it is stored as {handle}]"),
        text => format!("[you put this in place of {handle}:]\n{text}"),
    }
}

/// The share of one of so many calls in the bytes of a step.
fn share(longest: usize, calls: usize) -> usize {
    match longest {
        usize::MAX => usize::MAX,
        longest => (longest / calls.max(1)).max(LEAST_TEXT),
    }
}

/// The bytes of the vendor's own state. It goes whole or not at all, because the vendor signs it.
fn weight(parts: &Parts) -> usize {
    let state = parts.0.iter().map(|part| match part {
        Part::Opaque { fields } => bytes_of_fields(fields),
        Part::Reasoning {
            text,
            signature: Some(signature),
        } => text.len() + signature.len(),
        _ => 0,
    });
    state.sum()
}

/// A call and its result.
fn sent_call(
    call: &Call,
    short: Option<Short>,
    longest: usize,
    model: &ModelInfo,
    is_its_own: bool,
) -> (ToolCall, Message) {
    let mut asked = call.asked.clone();
    if !is_its_own || bytes_of_fields(&asked.opaque) > longest {
        asked.opaque.clear();
    }
    if !is_its_own {
        asked.vendor_id.clear();
    }
    let (in_short, short_result) = match short {
        Some(short) => (short.arguments, short.result),
        None => (None, None),
    };
    if let Some(arguments) = in_short {
        asked.arguments = arguments;
    } else if asked.arguments.len() > longest {
        asked.arguments = Short::of(call).arguments.unwrap_or(asked.arguments);
    }
    let (parts, failed) = match &call.result {
        Some(result) => (
            match (short_result, &call.sent) {
                (_, SentAs::Edited(text)) => Parts::text(edited(text, call)),
                (Some(short), _) => Parts::text(short),
                (None, _) => sent_parts(&result.parts, longest, "result", model),
            },
            !matches!(
                result.outcome,
                CallOutcome::Completed | CallOutcome::Background
            ),
        ),
        // Vendors refuse a call without a result.
        None => (Parts::text(NEVER_RAN), true),
    };
    let vendor_id = asked.vendor_id.clone();
    let result = Message::ToolResult {
        vendor_id,
        parts,
        failed,
    };
    (asked, result)
}

#[cfg(test)]
mod tests;
