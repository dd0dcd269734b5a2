//! A question of the agent during a turn: the choices that it leaves, and the answer that a line is.

use shared_api::Approval;
use shared_client::ClientError;
use shared_types::{
    Mode,
    event::{Answer, Question},
};

use crate::render::clean::clean_line;

/// Longest rule that is shown, in characters.
const MAX_RULE: usize = 200;

/// What a person has typed at a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// An answer.
    Answer(Answer),
    /// The wish to change the command.
    Edit(String),
    /// Nothing that is an answer.
    Again,
}

/// The choices that a question leaves, on one line.
pub(super) fn choices(question: &Question) -> String {
    match question {
        Question::Call(call) => {
            let always = call.rule.as_ref();
            let always =
                always.map_or_else(String::new, |rule| format!(" · a = always {}", clean_line(rule, MAX_RULE)));
            let edit = match call.editable {
                true => " · e = edit",
                false => "",
            };
            format!("run it? y = yes · n = no{always}{edit} · or say what to do instead")
        }
        Question::Free { .. } => "your answer, or its number".to_owned(),
        Question::Plan { .. } => {
            "carry it out? y = yes, and ask before changes · a = yes, in mode auto · n = no · or say what to change"
                .to_owned()
        }
    }
}

/// True if a question that was fetched again needs no answer: it has its outcome, or is gone with its session.
pub(super) fn is_over(fetched: &Result<Approval, ClientError>) -> bool {
    match fetched {
        Ok(approval) => approval.outcome.is_some(),
        Err(ClientError::Refused(problem)) => problem.status == 404,
        Err(_) => false,
    }
}

/// Reads a line that was typed at a question.
pub(super) fn read(question: &Question, line: &str) -> Typed {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let allowed = |rule, mode| {
        Typed::Answer(Answer::Allowed {
            command: None,
            rule,
            mode,
        })
    };
    let denied = |words| Typed::Answer(Answer::Denied { words });
    match (question, word) {
        (_, "") => Typed::Again,
        (Question::Free { choices, .. }, _) => {
            let chosen = line.parse::<usize>().ok();
            let chosen = chosen.and_then(|number| choices.get(number.checked_sub(1)?));
            Typed::Answer(Answer::Said {
                text: chosen.map_or(line, String::as_str).to_owned(),
            })
        }
        (_, "n" | "no") if rest.is_empty() => denied(None),
        (Question::Plan { .. }, "y" | "yes") if rest.is_empty() => allowed(None, Some(Mode::Ask)),
        (Question::Plan { .. }, "a") if rest.is_empty() => allowed(None, Some(Mode::Auto)),
        (Question::Call(_), "y" | "yes") if rest.is_empty() => allowed(None, None),
        (Question::Call(call), "a") => match (rest, &call.rule) {
            ("", Some(rule)) => allowed(Some(rule.clone()), None),
            ("", None) => Typed::Again,
            (rule, _) if rule.contains('(') => allowed(Some(rule.to_owned()), None),
            _ => denied(Some(line.to_owned())),
        },
        (Question::Call(call), "e") if call.editable && rest.is_empty() => {
            Typed::Edit(call.text.clone())
        }
        _ => denied(Some(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use shared_api::{ApprovalOutcome, Problem};
    use shared_types::{
        ApprovalId, Digest, Risk, SessionId, Timestamp, TurnId, event::PlannedCall,
    };

    use super::*;

    fn call() -> Question {
        Question::Call(Box::new(PlannedCall {
            tool: "Shell".to_owned(),
            text: "cargo test".to_owned(),
            cut: false,
            directory: String::new(),
            environment: Vec::new(),
            paths: Vec::new(),
            runner: None,
            runner_name: String::new(),
            isolation: String::new(),
            risk: Risk::Medium,
            reasons: Vec::new(),
            why: "mode ask".to_owned(),
            rule: Some("Shell(cargo test *)".to_owned()),
            editable: true,
        }))
    }

    #[test]
    fn a_line_allows_denies_makes_a_rule_edits_or_speaks_to_the_model() {
        let allowed = |rule: Option<&str>| {
            Typed::Answer(Answer::Allowed {
                command: None,
                rule: rule.map(str::to_owned),
                mode: None,
            })
        };
        let denied = |words: Option<&str>| {
            Typed::Answer(Answer::Denied {
                words: words.map(str::to_owned),
            })
        };
        assert_eq!(read(&call(), "y"), allowed(None));
        assert_eq!(read(&call(), "a"), allowed(Some("Shell(cargo test *)")));
        assert_eq!(
            read(&call(), "a Shell(cargo *)"),
            allowed(Some("Shell(cargo *)"))
        );
        assert_eq!(read(&call(), "n"), denied(None));
        assert_eq!(read(&call(), "e"), Typed::Edit("cargo test".to_owned()));
        assert_eq!(read(&call(), ""), Typed::Again);
        for words in ["yes but first the linter", "no, use make", "a bit later"] {
            assert_eq!(read(&call(), words), denied(Some(words)), "{words}");
        }
    }

    #[test]
    fn a_number_picks_a_choice_and_other_words_are_the_answer() {
        let question = Question::Free {
            text: "which?".to_owned(),
            choices: vec!["red".to_owned(), "blue".to_owned()],
        };
        for (line, answer) in [("2", "blue"), ("3", "3"), ("green", "green")] {
            let said = Answer::Said {
                text: answer.to_owned(),
            };
            assert_eq!(read(&question, line), Typed::Answer(said));
        }
    }

    #[test]
    fn a_question_is_over_with_its_outcome_or_its_session_and_not_while_the_server_is_away() {
        let open = Approval {
            id: ApprovalId::from_u128(1),
            session: SessionId::from_u128(1),
            session_title: String::new(),
            turn: TurnId::from_u128(1),
            step: 1,
            ordinal: 0,
            question: call(),
            digest: Digest::of(b""),
            asked_at: Timestamp::from_micros(0),
            until: Timestamp::from_micros(1),
            outcome: None,
        };
        let answered = Approval {
            outcome: Some(ApprovalOutcome {
                answer: Answer::Denied { words: None },
                by: None,
                at: Timestamp::from_micros(0),
            }),
            ..open.clone()
        };
        let refused = |status| Err(ClientError::Refused(Problem::new("code", status, "words")));
        assert!(!is_over(&Ok(open)));
        assert!(is_over(&Ok(answered)));
        assert!(is_over(&refused(404)));
        assert!(!is_over(&refused(503)));
    }
}
