//! The report on a session's window: its use by category, and what was done to it.

use server_llm::{Message, ModelInfo};
use shared_types::{
    Event, SessionEvent, Timestamp, TurnId,
    event::{CompactedBecause, LeftOutBecause},
};

use super::{
    estimate::{self, size},
    tokens::tokens,
};
use crate::{
    prompt,
    tools::{ToolSet, is_excerpt},
    transcript::Transcript,
};

/// Most changes that are reported: the newest.
const CHANGES_AT_MOST: usize = 50;

/// The use of a model's window by a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextReport {
    /// The model that answers next.
    pub model: String,
    /// Its window in tokens, where that is known.
    pub window: Option<usize>,
    /// The tokens of the next request, about, before its message.
    pub tokens: usize,
    /// The parts of these, in the order in which they are sent.
    pub parts: Vec<(&'static str, usize)>,
    /// The tokens of the last request and those of them that the vendor had cached, as it counted them.
    pub last: Option<(u64, u64)>,
    /// Results that are shown as excerpts; recall returns the rest of each.
    pub excerpts: usize,
    /// The changes of what was sent before, the newest last: with each the vendor's cache broke.
    pub changes: Vec<ContextChange>,
}

/// A change of what was sent before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextChange {
    /// The time of it.
    pub at: Timestamp,
    /// The change in words.
    pub what: String,
}

/// The report on a session with this log.
pub(crate) fn report(log: &[SessionEvent], model: &ModelInfo, tools: &ToolSet) -> ContextReport {
    let transcript = Transcript::of(log);
    let turn = transcript
        .turns()
        .last()
        .map_or(TurnId::from_u128(0), |turn| turn.id);
    let request = prompt::request(&transcript, turn, model, tools);
    let size = size(&transcript, model, &request);
    let specs = request.tools.iter();
    let of_tools = specs.map(|tool| {
        tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.parameters.to_string())
    });
    let mut parts = [
        ("tools", of_tools.sum::<usize>()),
        ("system", tokens(&request.system)),
        ("compacted", 0),
        ("instructions", 0),
        ("messages", 0),
        ("results", 0),
    ];
    let is_compacted = transcript.compacted().is_some();
    for (place, message) in request.messages.iter().enumerate() {
        let all = estimate::of_message(message);
        match message {
            Message::ToolResult { .. } => parts[5].1 += all,
            Message::User { .. } if place == 0 && is_compacted => parts[2].1 += all,
            Message::User { parts: said } => {
                let instructions = tokens(prompt::instructions_in(&said.words())).min(all);
                parts[3].1 += instructions;
                parts[4].1 += all - instructions;
            }
            Message::Assistant { .. } => parts[4].1 += all,
        }
    }
    // As the vendor counts them.
    let raw: usize = parts.iter().map(|(_, tokens)| tokens).sum();
    let calibrated = |tokens: usize| tokens.saturating_mul(size.tokens) / raw.max(1);
    ContextReport {
        model: model.name.clone(),
        window: model.profile.window,
        tokens: size.tokens,
        parts: parts
            .into_iter()
            .map(|(name, tokens)| (name, calibrated(tokens)))
            .collect(),
        last: log.iter().rev().find_map(|event| match event.known() {
            Some(Event::AnswerRecorded { turn, usage, .. })
                if usage.input > 0 && transcript.turn(*turn).is_some() =>
            {
                Some((usage.input, usage.cached))
            }
            _ => None,
        }),
        excerpts: excerpts(&transcript),
        changes: changes(log),
    }
}

fn excerpts(transcript: &Transcript) -> usize {
    let results = transcript.calls().filter_map(|call| call.result.as_ref());
    let cut = results.filter(|result| is_excerpt(&result.parts.words()));
    cut.count()
}

fn changes(log: &[SessionEvent]) -> Vec<ContextChange> {
    let mut changes = Vec::new();
    let mut answered: Option<&str> = None;
    let mut language: Option<Option<&str>> = None;
    for event in log {
        let what = match event.known() {
            Some(Event::ContextCompacted {
                because,
                before,
                after,
                no_summary,
                ..
            }) => {
                let because = match because {
                    CompactedBecause::NearWindow => "the window was nearly full",
                    CompactedBecause::Refused => "the model refused the request as too long",
                    CompactedBecause::Asked => "it was asked for",
                };
                let without = match no_summary {
                    Some(why) => format!("; without a summary: {why}"),
                    None => String::new(),
                };
                Some(format!(
                    "compacted from {before} to {after} tokens, because {because}{without}"
                ))
            }
            Some(Event::ResultsMasked {
                calls,
                before,
                after,
                ..
            }) => {
                let count: u32 = calls
                    .iter()
                    .map(|range| range.last.saturating_sub(range.first) + 1)
                    .sum();
                Some(format!(
                    "left out {count} old results, from {before} to {after} tokens, because the window filled"
                ))
            }
            Some(Event::PromptChanged { .. }) => answered.map(|_| {
                "the operator changed the text with which the system prompt begins".to_owned()
            }),
            Some(Event::ContextEdited { call, .. }) => {
                Some(format!("the model put another text in place of r{call}"))
            }
            Some(Event::ResultsLeftOut {
                results,
                gone,
                because,
                ..
            }) => {
                let because = match because {
                    LeftOutBecause::NearWindow => "the window was full",
                    LeftOutBecause::Refused => "the model refused the request as too long",
                };
                Some(format!(
                    "left out {results} results and {gone} older parts, because {because}"
                ))
            }
            Some(Event::ConversationRewound { before, .. }) => {
                Some(format!("went back to before {before:?}"))
            }
            Some(Event::AnswerRecorded { model, .. }) => {
                let before = answered.replace(model);
                let before = before.filter(|before| before != model);
                before.map(|before| format!("the model changed from {before} to {model}"))
            }
            Some(Event::TurnClaimed {
                settings: Some(settings),
                ..
            }) => {
                let now = settings.language.as_deref();
                let before = language.replace(now);
                before.filter(|before| *before != now).map(|_| match now {
                    Some(now) => format!("the language changed to {now}"),
                    None => "the language is the model's choice again".to_owned(),
                })
            }
            _ => None,
        };
        changes.extend(what.map(|what| ContextChange { at: event.at, what }));
    }
    changes.split_off(changes.len().saturating_sub(CHANGES_AT_MOST))
}
