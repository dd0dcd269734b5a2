//! The ends of the prefixes that the vendor caches.
//!
//! A prefix runs from the beginning of the request (tools, then system, then messages) to a mark. The vendor takes at
//! most four marks, and they are these:
//!
//! - The last tool: sessions with other prompts share the tools.
//! - The system prompt: new sessions with the same prompt share both.
//! - The last user message: this request writes all of it, for the next one.
//! - The user message before: there, the request before has written. The vendor itself looks back only 20 blocks from
//!   a mark, and one step with many calls has more.

use serde_json::{Value, json};

use super::{ContentBlock, MessagesBody, USER};

/// The user messages that end in a mark, from the last one on.
const USER_MESSAGES: usize = 2;

/// Sets the marks. Thoughts can bear none, and stand in no user message.
pub(super) fn mark(body: &mut MessagesBody<'_>) {
    let tool = body.tools.last_mut();
    let system = body.system.last_mut();
    let users = body
        .messages
        .iter_mut()
        .rev()
        .filter(|turn| turn.role == USER);
    let users = users.take(USER_MESSAGES);
    let said = users.filter_map(|turn| match turn.content.last_mut() {
        Some(ContentBlock::Plain(block)) => Some(block),
        _ => None,
    });
    let ends: Vec<&mut Value> = tool.into_iter().chain(system).chain(said).collect();
    for end in ends {
        end["cache_control"] = json!({ "type": "ephemeral" });
    }
}
