//! The limits of a whole turn: of its steps, of its tokens and of the model's time. A turn that reaches one ends with
//! a summary by the model, so that the next message can go on from there.

use std::time::Duration;

use shared_types::event::TurnLimit;

use crate::{engine::EngineLimits, session::spoken, transcript::TurnLog};

/// The limit that the turn has reached, by its log.
pub(super) fn reached(turn: &TurnLog, limits: &EngineLimits) -> Option<TurnLimit> {
    let settings = turn.settings.as_ref();
    let most = settings.map_or(limits.max_steps, |settings| settings.steps);
    if turn.steps.len() >= most as usize {
        return Some(TurnLimit::Steps { most });
    }
    let most = turn.most_tokens(limits.turn_tokens);
    if turn.tokens() >= most {
        return Some(TurnLimit::Tokens { most });
    }
    let took = turn.steps.iter().map(|step| step.model_ms);
    let most_ms = u64::try_from(limits.turn_model_time.as_millis()).unwrap_or(u64::MAX);
    (took.fold(0, u64::saturating_add) >= most_ms).then_some(TurnLimit::ModelTime { most_ms })
}

/// The reason for people why such a turn ended.
pub(super) fn reason(limit: TurnLimit, has_summary: bool) -> String {
    let reached = reached_words(limit);
    let summary = match has_summary {
        true => "; a summary stands above",
        false => "",
    };
    let more = match limit {
        TurnLimit::Steps { .. } => ", or allow more: gantry config set steps NUMBER",
        _ => "",
    };
    format!("the turn reached {reached}{summary}; send another message to go on{more}")
}

/// The reason for the model why a call in the summary is not run.
pub(super) fn not_run_words(limit: TurnLimit) -> String {
    format!("the turn has reached {}", reached_words(limit))
}

/// The wish for the summary. The model is sent it behind the conversation, and before the summary from then on.
pub(crate) fn wish(limit: TurnLimit) -> String {
    format!(
        "[From Gantry, not from the user: this turn has reached {}. Call no tool. Say in a few sentences what was done, \
         what is left and where you would go on.]",
        reached_words(limit)
    )
}

fn reached_words(limit: TurnLimit) -> String {
    match limit {
        TurnLimit::Steps { most } => format!("its limit of {most} steps"),
        TurnLimit::Tokens { most } => format!("its limit of {most} tokens"),
        TurnLimit::ModelTime { most_ms } => {
            let time = spoken(Duration::from_millis(most_ms));
            format!("its limit of {time} in calls of the model")
        }
        TurnLimit::Other => "a limit".to_owned(),
    }
}
