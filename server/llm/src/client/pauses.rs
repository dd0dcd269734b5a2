//! Answers in which the vendor paused: it is sent back its answer so far, and goes on.
//!
//! A vendor pauses where its own tools have worked for long. All of it is one answer, so that nothing above this
//! module knows of pauses. Each request has the time of one answer.

use shared_types::event::{Finish, Part, Parts, Usage};
use tokio::sync::mpsc;

use super::{Client, ReceivedAnswer};
use crate::{Answer, Failure, Message, ModelEvent, ModelRequest, formats::Format};

/// Most pauses of one answer. After the last one, the answer ends as one that reached its length.
const MAX_PAUSES: usize = 8;

impl<F: Format> Client<F> {
    /// Asks until the vendor has ended its answer; gives all its parts in their order, and the sum of the usage.
    pub(super) async fn whole_answer(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        let mut heard = self.ask(request, events, 0).await?;
        for _ in 0..MAX_PAUSES {
            if !heard.is_paused {
                return Ok(heard.answer);
            }
            let mut more = request.clone();
            more.messages.push(Message::Assistant {
                parts: heard.answer.parts.clone(),
            });
            let said_before = shown(&heard.answer.parts);
            let next = self.ask(&more, events, said_before).await?;
            heard = ReceivedAnswer {
                answer: joined(heard.answer, next.answer),
                is_paused: next.is_paused,
            };
        }
        if heard.is_paused {
            heard.answer.finish = Finish::Length;
        }
        Ok(heard.answer)
    }
}

/// The number of parts that are shown while they are said.
fn shown(parts: &Parts) -> u32 {
    let shown = parts.0.iter().map(|part| match part {
        Part::Text { .. } | Part::Reasoning { .. } => 1,
        Part::Image { .. } | Part::ToolCall(_) | Part::Opaque { .. } => 0,
    });
    shown.sum()
}

fn joined(mut before: Answer, next: Answer) -> Answer {
    before.parts.0.extend(next.parts.0);
    Answer {
        finish: next.finish,
        usage: sum(before.usage, next.usage),
        ..before
    }
}

fn sum(one: Usage, other: Usage) -> Usage {
    Usage {
        input: one.input.saturating_add(other.input),
        cached: one.cached.saturating_add(other.cached),
        cache_written: one.cache_written.saturating_add(other.cache_written),
        output: one.output.saturating_add(other.output),
        thoughts: one.thoughts.saturating_add(other.thoughts),
    }
}
