//! The conversation as the model is sent it.

use server_llm::Message;
use shared_types::{TurnId, event::CallOutcome};

use crate::transcript::{Call, Step, Transcript};

/// What a call without a recorded result is answered with: vendors refuse a call without one.
const NEVER_RAN: &str = "cancelled before it ran";

/// The messages of every turn up to and with this one. Every call is followed by one result, in
/// the order of the calls, whatever the order in which they ended.
pub(super) fn messages(transcript: &Transcript, turn: TurnId) -> Vec<Message> {
    let mut messages = Vec::new();
    for turn in transcript.up_to(turn) {
        messages.push(Message::User {
            text: turn.input.clone(),
        });
        for step in &turn.steps {
            push_step(&mut messages, step);
        }
    }
    messages
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
            result.outcome != CallOutcome::Completed,
        ),
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
