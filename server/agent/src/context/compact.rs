//! Compaction: a text stands in for the oldest parts of the conversation. Code carries over the facts
//! ([`super::carried`]), and the model writes a summary of the rest. The parts stay in the log.

use server_llm::{Message, ModelInfo, ModelRequest};
use shared_types::{TurnId, event::Parts};

use super::{carried::carried, estimate, tokens::tokens};
use crate::{
    prompt,
    tools::{ToolSet, bounded},
    transcript::Transcript,
};

/// Part of the window from which a conversation is compacted, in percent.
pub(crate) const COMPACT_PERCENT: usize = 75;

/// Parts of the conversation's room that its newest parts, the facts and the summary may take, in percent; and their
/// most tokens in a large window.
const TAIL: (usize, usize) = (20, 20_000);
const CARRIED: (usize, usize) = (28, 12_000);
const SUMMARY: (usize, usize) = (10, 2_000);

/// The least room of a conversation, as a part of the window, in percent: where instructions and tools take nearly
/// all of it.
const LEAST_ROOM_PERCENT: usize = 12;

/// The window that is taken where the model's is not known.
const UNKNOWN_WINDOW: usize = 128_000;

/// A compaction that is about to be made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// So many of the oldest parts go.
    pub(crate) gone: usize,
    /// The facts that are carried over.
    pub(crate) carried: String,
    /// Most tokens of the summary.
    pub(crate) summary: usize,
}

/// The compaction of what stands before the next answer of this turn: of all of it, or of its oldest parts. Nothing
/// where no more parts could go.
pub(crate) fn plan(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    tools: &ToolSet,
    window: Option<usize>,
    whole: bool,
) -> Option<Plan> {
    let window = window.unwrap_or(UNKNOWN_WINDOW);
    let request = prompt::request(transcript, turn, model, tools);
    let size = estimate::size(transcript, model, &request);
    // All sizes here are estimated tokens. Where the vendor counts more, fewer of them fit into its window.
    let window = window.saturating_mul(size.raw) / size.tokens.max(1);
    let messages: Vec<_> = request.messages.iter().map(estimate::of_message).collect();
    let conversation: usize = messages.iter().sum();
    let fixed = size.raw.saturating_sub(conversation);
    let room = (window / 100 * COMPACT_PERCENT).saturating_sub(fixed);
    let room = room.max(window / 100 * LEAST_ROOM_PERCENT);
    let share = |(percent, most): (usize, usize)| (room / 100 * percent).min(most);
    let tail = if whole { 0 } else { share(TAIL) };
    let begins = prompt::begins(transcript, turn);
    let known = transcript.gone() as usize;
    // The first place from which the rest fits, or the last one.
    let place = begins.partition_point(|gone| {
        let rest = prompt::tail(transcript, turn, model, *gone);
        rest.iter().map(estimate::of_message).sum::<usize>() > tail
    });
    let gone = *begins.get(place).or(begins.last())?;
    let compacted = transcript
        .compacted()
        .map_or(0, |compacted| compacted.gone as usize);
    if gone <= known.max(compacted) {
        return None;
    }
    Some(Plan {
        gone,
        carried: carried(transcript, gone, share(CARRIED)),
        summary: share(SUMMARY),
    })
}

/// The request for the summary: the conversation as it is, so that a vendor's cache of it holds, and the wish behind it.
pub(crate) fn asking(mut request: ModelRequest, plan: &Plan, focus: &str) -> ModelRequest {
    let words = plan.summary * 3 / 4;
    let focus = match focus.trim() {
        "" => String::new(),
        focus => format!(" Above all keep what matters for this: {focus}."),
    };
    let wish = format!(
        "[From Gantry, not from the user: the conversation above is about to be compacted. What the user said, the files \
         and the commands are taken over by themselves. Write what is missing then, for yourself, in at most {words} \
         words: the goal, what was decided and why, what was found out, what was tried and failed, what is done and \
         what is left. Write plain statements, and only what is so. Call no tool and answer nothing else.{focus}]"
    );
    request.messages.push(Message::User {
        parts: Parts::text(wish),
    });
    request
}

/// The summary in what the model said, within its bound; nothing if it said nothing.
pub(crate) fn summary(said: &str, plan: &Plan) -> Option<String> {
    let said = said.trim();
    if said.is_empty() {
        return None;
    }
    let all = tokens(said);
    let bytes = match all <= plan.summary {
        true => said.len(),
        false => said.len() * plan.summary / all,
    };
    Some(bounded(said, bytes.max(256)))
}
