//! Masking: the results of old calls are sent in short, in whole groups, and many at once. The results stay in the log.
//!
//! A mask breaks the vendor's cache: everything behind the first masked result is sent anew at the full price. So results
//! are masked only where that gains enough. A model that binds its thoughts to all before them gets no masks, only
//! compaction.

use std::collections::BTreeSet;

use server_llm::ModelInfo;
use shared_types::{TurnId, event::CallRange};

use super::tokens::tokens;
use crate::{
    prompt::masked_tokens,
    tools::SKILL,
    transcript::{Call, SentAs, Step, Transcript},
};

/// Part of the window from which results are masked, in percent.
pub(crate) const MASK_PERCENT: usize = 60;

/// The newest steps, whose results stay.
const STEPS_STAY: usize = 4;

/// The newest turns: the results of calls on files that were touched in them stay.
const TURNS_STAY: usize = 3;

/// Part of the window that must be gained at once, in percent.
const GAIN_PERCENT: usize = 10;

/// The tokens that are sent anew may be at most so many times those that are gained. Vendors ask about a tenth for cached
/// tokens, and about ten requests follow until the window is full again.
const ANEW_AT_MOST: usize = 8;

/// The calls to mask before the next answer of this turn, as runs of their numbers; nothing where that does not pay.
pub(crate) fn plan(
    transcript: &Transcript,
    turn: TurnId,
    model: &ModelInfo,
    window: usize,
) -> Option<Vec<CallRange>> {
    if model.profile.binds_thoughts {
        return None;
    }
    let turns = transcript.up_to(turn);
    let newest = &turns[turns.len().saturating_sub(TURNS_STAY)..];
    let touched: BTreeSet<&str> = newest
        .iter()
        .flat_map(|turn| &turn.steps)
        .flat_map(|step| &step.calls)
        .filter_map(|call| Some(call.file()?.path.as_str()))
        .collect();
    let mut steps: Vec<&Step> = turns.iter().flat_map(|turn| &turn.steps).collect();
    steps.truncate(steps.len().saturating_sub(STEPS_STAY));
    let is_touched = |call: &Call| {
        call.file()
            .is_some_and(|file| touched.contains(&*file.path))
    };
    let calls_gone = transcript.calls_gone();
    let groups: Vec<&Step> = steps
        .into_iter()
        .filter(|step| step.number_of_last() > calls_gone)
        .filter(|step| !step.calls.iter().any(is_touched))
        .filter(|step| step.calls.iter().any(|call| gain(call) > 0))
        .collect();
    let calls = || groups.iter().flat_map(|step| &step.calls);
    let gained: usize = calls().map(gain).sum();
    let first = calls().map(|call| call.number).min()?;
    let behind = transcript.calls().filter(|call| call.number >= first);
    let anew: usize = behind
        .map(|call| size(call) - gain(call).min(size(call)))
        .sum();
    let is_enough = gained >= window / 100 * GAIN_PERCENT;
    let pays = anew <= gained.saturating_mul(ANEW_AT_MOST);
    let masked = || calls().filter(|call| !is_skill(call));
    (is_enough && pays).then(|| runs(masked().map(|call| call.number)))
}

/// True for a skill that was loaded: its instructions stay.
fn is_skill(call: &Call) -> bool {
    call.asked.name == SKILL
}

/// The tokens by which a call becomes shorter.
fn gain(call: &Call) -> usize {
    match call.sent {
        _ if is_skill(call) => 0,
        SentAs::Whole => size(call).saturating_sub(masked_tokens(call)),
        SentAs::Masked { .. } | SentAs::Edited(_) => 0,
    }
}

/// The tokens of a call and its result.
fn size(call: &Call) -> usize {
    let result = call
        .result
        .as_ref()
        .map(|result| tokens(&result.parts.words()));
    tokens(&call.asked.arguments) + result.unwrap_or(0)
}

/// Numbers in ascending order, as runs.
fn runs(numbers: impl Iterator<Item = u32>) -> Vec<CallRange> {
    let mut runs: Vec<CallRange> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.last + 1 == number => run.last = number,
            _ => runs.push(CallRange {
                first: number,
                last: number,
            }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_gathered_into_runs() {
        let runs_of = |numbers: &[u32]| {
            let found = runs(numbers.iter().copied()).into_iter();
            found.map(|run| (run.first, run.last)).collect::<Vec<_>>()
        };
        assert_eq!(runs_of(&[1, 2, 3, 7, 9, 10]), [(1, 3), (7, 7), (9, 10)]);
        assert_eq!(runs_of(&[]), []);
    }
}
