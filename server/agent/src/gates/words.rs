//! The words to the model about consent.

use shared_consent::Verdict;
use shared_types::{
    Mode,
    event::{Answer, Unanswered},
};

use crate::transcript::TurnLog;

/// The words on a call that a rule or the mode does not allow.
pub(crate) fn denied_by_rule<T>(verdict: &Verdict<'_, T>) -> String {
    format!(
        "{}; do not try to reach the same in another way: say what you need",
        verdict.why
    )
}

/// The words on a call whose question has this answer; nothing if it may run.
pub(crate) fn of_answer(answer: &Answer) -> Option<String> {
    match answer {
        Answer::Allowed { .. } | Answer::Said { .. } => None,
        Answer::Denied { words: None } => {
            Some("the user does not allow it; ask what to do instead".to_owned())
        }
        Answer::Denied { words: Some(words) } => {
            Some(format!("the user does not allow it, and says: {words}"))
        }
        Answer::Unanswered { because } => Some(unanswered(*because).to_owned()),
    }
}

fn unanswered(because: Unanswered) -> &'static str {
    match because {
        Unanswered::NobodyThere => {
            "it needs a person's consent, and nobody can be asked here; nobody refused it either: go on without \
             it, or end and say what needs consent"
        }
        Unanswered::Deadline => {
            "it needs a person's consent, and nobody answered before the deadline; nobody refused it either: ask \
             again only if it still matters"
        }
        Unanswered::Changed => {
            "it is not the call any more that people were asked about; ask for it again"
        }
        Unanswered::Stopped => "the turn was stopped before anybody answered",
    }
}

/// The note to the model on its mode, where that is new since the turn before.
pub(crate) fn mode_note(before: Option<&TurnLog>, now: &TurnLog) -> Option<&'static str> {
    let was_plan = before.is_some_and(|turn| turn.mode() == Mode::Plan);
    match (was_plan, now.began_in() == Mode::Plan) {
        (false, true) => Some(
            "[plan mode: you may only read. Look at what you need, then propose what you would do with \
             present_plan; a person decides on it. Do not try to change anything]\n",
        ),
        (true, false) => Some("[plan mode has ended: you may change things again]\n"),
        _ => None,
    }
}
