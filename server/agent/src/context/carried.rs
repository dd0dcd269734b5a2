//! The facts that code carries over when a conversation is compacted: what people said, the files and commands of the
//! session, and the names that came up. They are taken from the whole log each time and not from an earlier
//! compaction, so a fact survives any number of them.
//!
//! Where the room is too small for all that people said, long messages are shortened to their weightiest sentences,
//! and then those that say least are named only. Each has a name, under which recall returns all of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use shared_types::event::{CallOutcome, Part, TodoItem, TodoState};

use super::{
    tokens::tokens,
    weight::{sentences, weight},
};
use crate::{
    tools::{Handle, SKILL, is_excerpt, todo_written},
    transcript::{Call, Steer, Step, Transcript},
};

/// Tokens to which long messages may be shortened before others are only named.
const LEAST_MESSAGE: usize = 16;

/// The end of a message that is shortened.
const SHORTENED: &str = " […]";

/// Tokens of a line beside its text.
const FRAME: usize = 6;

/// A message counts as one of many alike from this many on.
const ALIKE: usize = 3;

/// Parts of the room that files, commands and names may take, in percent. The rest is for what people said.
const FILES_PERCENT: usize = 12;
const COMMANDS_PERCENT: usize = 16;
const NAMES_PERCENT: usize = 8;

/// The part of the room for the instructions of skills that were loaded, in percent. The newest come first.
const SKILLS_PERCENT: usize = 25;

/// The part of the room that the to-do list may take with all of its items, in percent; else only those that are not
/// done are taken over.
const TODO_PERCENT: usize = 20;

/// Longest part of a command that is carried over, in bytes.
const COMMAND_BYTES: usize = 160;

/// Longest name that is carried over, in bytes.
const NAME_BYTES: usize = 80;

/// The facts of the oldest parts of a conversation, so many of them, within so many tokens.
pub(super) fn carried(transcript: &Transcript, gone: usize, room: usize) -> String {
    let old = Old::of(transcript, gone);
    let share = |percent: usize| room / 100 * percent;
    let files = old.files(share(FILES_PERCENT));
    let commands = old.commands(share(COMMANDS_PERCENT));
    let names = old.names(share(NAMES_PERCENT));
    let todo = todo(transcript.todo(), share(TODO_PERCENT));
    let skills = old.skills(share(SKILLS_PERCENT));
    let running = running(transcript);
    let others = [&files, &commands, &names, &todo, &running, &skills];
    let used: usize = others.iter().map(|text| tokens(text)).sum();
    let said = said(&old.messages, room.saturating_sub(used));
    let mut text = String::new();
    for (title, section) in [
        ("What the user said", said),
        ("Skills that were loaded", skills),
        ("To-do list", todo),
        ("Files (the newest last)", files),
        ("Commands (the newest last)", commands),
        ("Commands that run in the background", running),
        ("Names that came up", names),
    ] {
        if !section.is_empty() {
            text.push_str(&format!("# {title}\n{section}\n"));
        }
    }
    text
}

/// The to-do list, or as many of its items as fit of those that are not done.
fn todo(items: &[TodoItem], room: usize) -> String {
    let whole = todo_written(items);
    if tokens(&whole) <= room {
        return whole;
    }
    let mut text = String::new();
    for item in items.iter().filter(|item| item.state != TodoState::Done) {
        let line = todo_written(std::slice::from_ref(item));
        if tokens(&text) + tokens(&line) > room {
            break;
        }
        text.push_str(&line);
    }
    text + "(the rest of the list is not shown here; todo_list returns it)\n"
}

/// A line for each command that goes on as a task.
fn running(transcript: &Transcript) -> String {
    let lines = transcript.running_tasks().map(|task| {
        let asked = &task.asked.arguments;
        let asked = &asked[..asked.floor_char_boundary(COMMAND_BYTES)];
        format!("task {}: {asked}\n", task.number)
    });
    lines.collect()
}

/// The oldest parts of a conversation, in the order in which they came.
struct Old<'a> {
    /// Messages of people, by their names.
    messages: Vec<(Handle, String)>,
    calls: Vec<&'a Call>,
    steps: Vec<&'a Step>,
}

impl<'a> Old<'a> {
    fn of(transcript: &'a Transcript, gone: usize) -> Self {
        let (mut messages, mut calls, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let mut part = 0;
        for (number, turn) in (1..).zip(transcript.turns()) {
            if part >= gone {
                break;
            }
            part += 1;
            if turn.compacts.is_none() {
                messages.push((Handle::Message(number), turn.input.words().into_owned()));
            }
            let named = |steer: &Steer| {
                let handle = Handle::Steer(number, steer.number);
                (handle, steer.parts.words().into_owned())
            };
            for step in &turn.steps {
                if part < gone {
                    messages.extend(turn.steers_before(step.number).map(named));
                    steps.push(step);
                }
                part += 1;
                for call in &step.calls {
                    if part < gone {
                        calls.push(call);
                    }
                    part += 1;
                }
            }
            if part <= gone {
                messages.extend(turn.steers_behind().map(named));
            }
        }
        Self {
            messages,
            calls,
            steps,
        }
    }

    /// The instructions of skills that were loaded and completed, as many as fit; of one that was loaded twice the newest.
    fn skills(&self, room: usize) -> String {
        let (mut text, mut seen) = (String::new(), BTreeSet::new());
        for call in self
            .calls
            .iter()
            .rev()
            .filter(|call| call.asked.name == SKILL)
        {
            let Some(result) = &call.result else { continue };
            let loaded = result.parts.words();
            let is_new =
                result.outcome == CallOutcome::Completed && seen.insert(&call.asked.arguments);
            if is_new && tokens(&text) + tokens(&loaded) <= room {
                text.push_str(loaded.trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// A line for each file that was read or changed.
    fn files(&self, room: usize) -> String {
        let mut files: BTreeMap<String, (&'static str, u32)> = BTreeMap::new();
        for call in &self.calls {
            let what = match call.asked.name.as_str() {
                "Read" => "read",
                "Write" => "written",
                "Edit" | "patch" => "changed",
                _ => continue,
            };
            let is_done = outcome(call) == Some(CallOutcome::Completed);
            let Some(path) = argument(call, "path").filter(|_| is_done) else {
                continue;
            };
            let known = files.entry(path).or_insert((what, call.number));
            // That it was changed stays true when it is read again.
            let what = match what {
                "read" if known.0 != "read" => known.0,
                what => what,
            };
            *known = (what, call.number);
        }
        let mut lines: Vec<_> = files.into_iter().collect();
        lines.sort_by_key(|(_, (_, number))| *number);
        let lines = lines.into_iter().map(|(path, (what, number))| {
            format!("{path}: {what}, last in {}\n", Handle::Result(number))
        });
        newest(lines.collect(), room)
    }

    /// A line for each command with its end.
    fn commands(&self, room: usize) -> String {
        let shells = self.calls.iter().filter(|call| call.asked.name == "Shell");
        let lines = shells.filter_map(|call| {
            let command = argument(call, "command")?;
            let command = command.replace('\n', " ");
            let shown = &command[..command.floor_char_boundary(COMMAND_BYTES)];
            let cut = if shown.len() < command.len() {
                "…"
            } else {
                ""
            };
            let handle = Handle::Result(call.number);
            Some(format!("{handle} {shown}{cut}: {}\n", end_of(call)))
        });
        newest(lines.collect(), room)
    }

    /// The names that the model set in backticks; those that it used most stand first.
    fn names(&self, room: usize) -> String {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let texts = self.steps.iter().flat_map(|step| &step.parts.0);
        for part in texts {
            let Part::Text { text } = part else { continue };
            for (place, name) in text.split('`').enumerate() {
                let is_name =
                    !name.trim().is_empty() && name.len() <= NAME_BYTES && !name.contains('\n');
                if place % 2 == 1 && is_name {
                    *counts.entry(name).or_default() += 1;
                }
            }
        }
        let mut names: Vec<_> = counts.into_iter().collect();
        names.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let mut text = String::new();
        for (name, _) in names {
            let next = format!("`{name}` ");
            if tokens(&text) + tokens(&next) > room {
                break;
            }
            text.push_str(&next);
        }
        match text.is_empty() {
            true => text,
            false => text + "\n",
        }
    }
}

/// The last of these lines that fit into so many tokens.
fn newest(lines: Vec<String>, room: usize) -> String {
    let mut left = room;
    let fitting = lines.iter().rev().take_while(|line| {
        let rest = left.checked_sub(tokens(line));
        left = rest.unwrap_or(0);
        rest.is_some()
    });
    let count = fitting.count();
    let missing = lines.len() - count;
    let more = match missing {
        0 => String::new(),
        missing => format!("({missing} older ones)\n"),
    };
    more + &lines[missing..].concat()
}

fn outcome(call: &Call) -> Option<CallOutcome> {
    call.result.as_ref().map(|result| result.outcome)
}

/// A text among the arguments of a call.
fn argument(call: &Call, name: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.asked.arguments).ok()?;
    arguments.get(name)?.as_str().map(str::to_owned)
}

/// The end of a command, in its own words where it exited.
fn end_of(call: &Call) -> String {
    let Some(result) = &call.result else {
        return "no result".to_owned();
    };
    if let Some(settled) = &call.settled {
        return settled.clone();
    }
    let words = result.parts.words();
    // The last line is Gantry's own; what stands before it may be the output of the command.
    let mut lines = words.lines().rev();
    let last = lines.next().filter(|last| !is_excerpt(last));
    let last = last.or_else(|| lines.next()).unwrap_or_default();
    let said = match result.outcome {
        CallOutcome::Completed => last
            .strip_prefix('[')
            .and_then(|last| last.strip_suffix(']')),
        _ => None,
    };
    let said = said
        .filter(|said| said.contains("exit code"))
        .map(str::to_owned);
    said.unwrap_or_else(|| match result.outcome {
        CallOutcome::Completed => "completed".to_owned(),
        CallOutcome::Failed => "failed".to_owned(),
        CallOutcome::Refused => "was not run".to_owned(),
        CallOutcome::TimedOut => "was stopped at its time limit".to_owned(),
        CallOutcome::Cancelled => "was stopped".to_owned(),
        CallOutcome::Unknown => "its end is not known".to_owned(),
        CallOutcome::Background => "went on in the background".to_owned(),
    })
}

/// The messages of people, within so many tokens.
fn said(messages: &[(Handle, String)], room: usize) -> String {
    let each: Vec<_> = messages.iter().map(|(_, text)| tokens(text)).collect();
    let all =
        |longest: usize| -> usize { each.iter().map(|own| FRAME + (*own).min(longest)).sum() };
    let longest = match all(usize::MAX) <= room {
        true => usize::MAX,
        false => greatest(LEAST_MESSAGE, room, |longest| all(longest) <= room),
    };
    let lines: Vec<_> = messages
        .iter()
        .map(|(handle, text)| format!("{handle}: {}\n", shortened(text, longest)))
        .collect();
    let weights = weights(messages);
    let mut order: Vec<_> = (0..lines.len()).collect();
    // The weightiest first; of those alike, the newest.
    order.sort_by_key(|place| {
        (
            std::cmp::Reverse(weights[*place]),
            std::cmp::Reverse(*place),
        )
    });
    let mut left = room.saturating_sub(2 * FRAME);
    let whole: BTreeSet<_> = match longest > LEAST_MESSAGE {
        true => order.into_iter().collect(),
        false => order
            .into_iter()
            .take_while(|place| {
                let rest = left.checked_sub(tokens(&lines[*place]) + FRAME / 2);
                left = rest.unwrap_or(0);
                rest.is_some()
            })
            .collect(),
    };
    let mut text = String::new();
    let mut named: Vec<Handle> = Vec::new();
    for (place, (handle, _)) in messages.iter().enumerate() {
        match whole.contains(&place) {
            true => text.push_str(&lines[place]),
            false => named.push(*handle),
        }
    }
    if !named.is_empty() {
        text.push_str(&only_named(&named));
    }
    text
}

/// The line about messages that are only named.
fn only_named(handles: &[Handle]) -> String {
    let (first, last) = (handles[0], handles[handles.len() - 1]);
    match handles.len() {
        1 => format!("({first} is not shown here; recall returns it)\n"),
        count => format!(
            "({count} more messages between {first} and {last} are not shown here; recall returns each, and finds \
             lines in them by a pattern)\n"
        ),
    }
}

/// The weight of each message; one of many alike weighs nothing.
fn weights(messages: &[(Handle, String)]) -> Vec<u32> {
    let alike: Vec<String> = messages
        .iter()
        .map(|(_, text)| {
            let letters = text.chars().filter(|character| character.is_alphabetic());
            letters.flat_map(char::to_lowercase).take(200).collect()
        })
        .collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for form in &alike {
        *counts.entry(form).or_default() += 1;
    }
    messages
        .iter()
        .zip(&alike)
        .map(|((_, text), form)| match counts[form.as_str()] {
            ALIKE.. => 0,
            _ => sentences(text).map(weight).max().unwrap_or(0),
        })
        .collect()
}

/// The text, or its weightiest sentences within so many tokens, in their order.
fn shortened(text: &str, longest: usize) -> String {
    if tokens(text) <= longest {
        return text.to_owned();
    }
    let sentences: Vec<_> = sentences(text).collect();
    let mut order: Vec<_> = (0..sentences.len()).collect();
    // The beginning says what the message is about.
    order.sort_by_key(|place| match place {
        0 => std::cmp::Reverse(u32::MAX),
        place => std::cmp::Reverse(weight(sentences[*place])),
    });
    let mut left = longest.saturating_sub(tokens(SHORTENED));
    let mut kept = BTreeMap::new();
    for place in order {
        let sentence = sentences[place];
        let own = tokens(sentence);
        if own <= left {
            left -= own;
            kept.insert(place, sentence.to_owned());
        } else if kept.is_empty() {
            // At least a beginning.
            let bytes = sentence.len() * left / own.max(1);
            let beginning = &sentence[..sentence.floor_char_boundary(bytes)];
            left = 0;
            kept.insert(place, beginning.to_owned());
        }
    }
    let kept: String = kept.into_values().collect();
    kept.trim_end().to_owned() + SHORTENED
}

/// The greatest number from `least` to `most` that fits, or `least`.
fn greatest(least: usize, most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut least, mut most) = (least, most.max(least));
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        match fits(middle) {
            true => least = middle,
            false => most = middle - 1,
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use shared_types::{
        Event, Timestamp, TurnId, UserId,
        event::{Finish, Parts, ToolCall, TurnOutcome, Usage},
    };

    use super::*;

    const TURN: TurnId = TurnId::from_u128(7);

    fn transcript() -> Transcript {
        let steered = |number, text: &str| Event::InputSteered {
            turn: TURN,
            number,
            by: UserId::from_u128(1),
            client_id: None,
            parts: Parts::text(text),
        };
        let answered = |step| Event::AnswerRecorded {
            turn: TURN,
            step,
            model: "m".to_owned(),
            origin: None,
            parts: Parts::text("yes"),
            finish: Finish::Complete,
            usage: Usage::default(),
            estimated: 0,
            model_ms: 0,
            limit: None,
        };
        let mut transcript = Transcript::default();
        for event in [
            Event::InputAccepted {
                turn: TURN,
                by: UserId::from_u128(1),
                client_id: None,
                parts: Parts::text("begin"),
                compacts: None,
                terms: crate::testing::full(),
            },
            answered(1),
            steered(1, "use tabs"),
            Event::SteersTaken {
                turn: TURN,
                step: 2,
                through: 1,
                into: None,
            },
            answered(2),
            steered(2, "too late"),
            Event::TurnEnded {
                turn: TURN,
                outcome: TurnOutcome::Cancelled,
                reason: None,
            },
        ] {
            transcript.apply(&event, Timestamp::from_micros(0));
        }
        transcript
    }

    #[test]
    fn a_message_that_joined_a_turn_is_carried_over_with_the_step_that_took_it() {
        // The message, the first step, the second step.
        let said = [2, 3].map(|gone| carried(&transcript(), gone, 1_000));
        let title = "# What the user said\n";
        assert_eq!(said[0], format!("{title}m1: begin\n\n"));
        let all = "m1: begin\nm1.1: use tabs\nm1.2: too late\n\n";
        assert_eq!(said[1], format!("{title}{all}"));
    }

    #[test]
    fn the_instructions_of_a_skill_that_was_loaded_are_carried_over_once() {
        let loads = || ToolCall {
            vendor_id: "v".to_owned(),
            name: SKILL.to_owned(),
            arguments: r#"{"name":"pdf"}"#.to_owned(),
            opaque: serde_json::Map::new(),
        };
        let mut transcript = transcript();
        let answered = Event::AnswerRecorded {
            turn: TURN,
            step: 3,
            model: "m".to_owned(),
            origin: None,
            parts: crate::testing::said("", [loads(), loads()]),
            finish: Finish::Complete,
            usage: Usage::default(),
            estimated: 0,
            model_ms: 0,
            limit: None,
        };
        transcript.apply(&answered, Timestamp::from_micros(0));
        for ordinal in [0, 1] {
            let ended = Event::CallEnded {
                turn: TURN,
                step: 3,
                ordinal,
                outcome: CallOutcome::Completed,
                parts: Parts::text("[the skill pdf: follow these instructions]\nUse ink."),
                unplaced: false,
                task: None,
                awaits: None,
                budget_ms: 0,
                duration_ms: 0,
                overran: false,
                file: None,
                whole: None,
                findings: Vec::new(),
                tools: Vec::new(),
            };
            transcript.apply(&ended, Timestamp::from_micros(0));
        }
        let text = carried(&transcript, 99, 1_000);
        assert_eq!(text.matches("Use ink.").count(), 1, "{text}");
    }
}
