//! The conversation as the model is sent it.

use server_llm::Message;
use shared_types::{TurnId, event::CallOutcome};

use crate::{
    tools::NEVER_RAN,
    transcript::{Call, EndedTask, Step, Transcript},
};

/// The tasks that the model is told to have ended before an input: the last ones.
const ENDED_AT_MOST: usize = 16;

/// The messages of every turn up to and with this one. Every call is followed by one result, in
/// the order of the calls, whatever the order in which they ended.
pub(super) fn messages(transcript: &Transcript, turn: TurnId) -> Vec<Message> {
    let mut messages = Vec::new();
    for turn in transcript.up_to(turn) {
        messages.extend(ended(&turn.ended_before));
        messages.push(Message::User {
            text: turn.input.clone(),
        });
        for step in &turn.steps {
            push_step(&mut messages, step);
        }
    }
    messages
}

/// What ended in the background since the input before.
fn ended(tasks: &[EndedTask]) -> Option<Message> {
    let lines = tasks.iter().rev().take(ENDED_AT_MOST).rev().map(|task| {
        let EndedTask { number, summary } = task;
        format!("[task {number} has ended meanwhile: {summary}; task_read shows what it wrote]\n")
    });
    let text: String = lines.collect();
    (!text.is_empty()).then_some(Message::User { text })
}

fn push_step(messages: &mut Vec<Message>, step: &Step) {
    // Vendors refuse an answer with nothing in it.
    if step.text.is_empty() && step.calls.is_empty() {
        return;
    }
    messages.push(Message::Assistant {
        text: step.text.clone(),
        calls: step.calls.iter().map(|call| call.asked.clone()).collect(),
    });
    messages.extend(step.calls.iter().map(result));
}

fn result(call: &Call) -> Message {
    let (text, failed) = match &call.result {
        Some(result) => (
            result.text.clone(),
            !matches!(
                result.outcome,
                CallOutcome::Completed | CallOutcome::Background
            ),
        ),
        // Vendors refuse a call without a result.
        None => (NEVER_RAN.to_owned(), true),
    };
    Message::ToolResult {
        vendor_id: call.asked.vendor_id.clone(),
        text,
        failed,
    }
}

#[cfg(test)]
mod tests;
