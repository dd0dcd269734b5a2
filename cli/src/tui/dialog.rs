//! A question of the agent on the screen: which keys answer it.

use cli_screen::key::{KeyCode, KeyEvent, KeyModifiers};
use shared_api::Approval;
use shared_types::{
    ApprovalId, Digest, Mode,
    event::{Answer, Question},
};
use tokio::time::Instant;

use super::questions::{Asker, Waits};

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct Dialog {
    /// The question.
    pub(super) approval: Approval,
    /// The agent that asks; absent for the session's own.
    pub(super) agent: Option<Asker>,
    /// The time of the last look at it.
    pub(super) looked_at: Instant,
    /// The way in which it is answered now.
    pub(super) answering: Answering,
    /// The text that stood in the box when the question took the keys.
    pub(super) draft: String,
    /// Rows of the question that are scrolled away above.
    pub(super) scrolled: usize,
    /// The time at which the person first saw it.
    pub(super) shown_at: Option<Instant>,
    /// True once the question takes the keys. Until then they go to the box.
    pub(super) is_ready: bool,
}

/// The way in which a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answering {
    /// By one key.
    Key,
    /// By a second key: it makes a rule.
    Always,
    /// By words that are typed into the box.
    Words,
    /// By a command that is changed in the box.
    Command,
    /// The answer is on its way.
    Sent,
}

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub(super) enum Choice {
    /// The answer.
    Answer(Answer),
    /// The command goes into the box, to be changed.
    Edit(String),
    /// Words go into the box, which begins with these.
    Words(String),
    /// The rule is shown, and made by a second key.
    Always,
    /// The question scrolls by so many rows.
    Scroll(isize),
    /// The key is not for the question.
    Other,
}

impl Dialog {
    pub(super) fn new(approval: Approval, agent: Option<Asker>) -> Self {
        let answering = match &approval.question {
            Question::Free { choices, .. } if choices.is_empty() => Answering::Words,
            _ => Answering::Key,
        };
        Self {
            approval,
            agent,
            looked_at: Instant::now(),
            answering,
            draft: String::new(),
            scrolled: 0,
            shown_at: None,
            is_ready: false,
        }
    }

    /// True if words or a command are typed for a question that one key can answer.
    pub(super) fn may_be_answered_by_key(&self) -> bool {
        let is_typed = matches!(self.answering, Answering::Words | Answering::Command);
        let is_open =
            matches!(&self.approval.question, Question::Free { choices, .. } if choices.is_empty());
        is_typed && !is_open
    }

    /// The question's id.
    pub(super) fn id(&self) -> ApprovalId {
        self.approval.id
    }

    /// The question as one that waits.
    pub(super) fn waits(&self) -> Waits {
        Waits {
            approval: self.id(),
            agent: self.agent.clone(),
        }
    }

    /// The rule that would allow calls like this one.
    pub(super) fn rule(&self) -> Option<String> {
        match &self.approval.question {
            Question::Call(call) => call.rule.clone(),
            Question::Free { .. } | Question::Plan { .. } => None,
        }
    }

    /// The digest of the question, which the answer names.
    pub(super) fn digest(&self) -> Digest {
        self.approval.digest
    }

    /// The effect of a key while one key answers.
    pub(super) fn key(&self, key: KeyEvent) -> Choice {
        match key.code {
            KeyCode::PageUp => return Choice::Scroll(-10),
            KeyCode::PageDown => return Choice::Scroll(10),
            KeyCode::Up => return Choice::Scroll(-1),
            KeyCode::Down => return Choice::Scroll(1),
            _ => {}
        }
        let KeyCode::Char(letter) = key.code else {
            return Choice::Other;
        };
        let held = KeyModifiers::CONTROL | KeyModifiers::ALT;
        if key.modifiers.intersects(held) {
            return Choice::Other;
        }
        self.letter(letter)
    }

    fn letter(&self, letter: char) -> Choice {
        let allowed = |rule: Option<String>, mode| {
            Choice::Answer(Answer::Allowed {
                command: None,
                rule,
                mode,
            })
        };
        match (&self.approval.question, letter) {
            (Question::Free { choices, .. }, letter) => {
                let number = letter.to_digit(10).and_then(|digit| digit.checked_sub(1));
                match number.and_then(|number| choices.get(number as usize)) {
                    Some(choice) => Choice::Answer(Answer::Said {
                        text: choice.clone(),
                    }),
                    None => Choice::Words(letter.to_string()),
                }
            }
            (_, 'n' | 'N') => Choice::Answer(Answer::Denied { words: None }),
            (_, 'w' | 'W') => Choice::Words(String::new()),
            (Question::Plan { .. }, 'y' | 'Y') => allowed(None, Some(Mode::Ask)),
            (Question::Plan { .. }, 'a' | 'A') => allowed(None, Some(Mode::Auto)),
            (Question::Call(_), 'y' | 'Y') => allowed(None, None),
            (Question::Call(call), 'a' | 'A') if call.rule.is_some() => Choice::Always,
            (Question::Call(call), 'e' | 'E') if call.editable => Choice::Edit(call.text.clone()),
            _ => Choice::Other,
        }
    }

    /// The answer that a text from the box is; nothing if the text is empty.
    pub(super) fn text(&self, text: &str) -> Option<Answer> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let text = text.to_owned();
        Some(match (&self.approval.question, self.answering) {
            (_, Answering::Command) => Answer::Allowed {
                command: Some(text),
                rule: None,
                mode: None,
            },
            (Question::Free { choices, .. }, _) => {
                let number = text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
                let chosen = number.and_then(|number| choices.get(number)).cloned();
                Answer::Said {
                    text: chosen.unwrap_or(text),
                }
            }
            _ => Answer::Denied { words: Some(text) },
        })
    }
}

/// The keys that answer a question, on one line.
pub(super) fn keys(dialog: &Dialog) -> String {
    if !dialog.is_ready {
        return "a question; its keys count once you stop typing".to_owned();
    }
    let escape = match dialog.agent {
        Some(_) => "Esc later",
        None => "Esc stop",
    };
    match (dialog.answering, &dialog.approval.question) {
        (Answering::Sent, _) => "sending the answer…".to_owned(),
        (Answering::Always, _) => {
            let rule = dialog.rule().unwrap_or_default();
            let rule = crate::render::clean::clean_line(&rule, 200);
            format!(
                "a once more always allows {rule} in all your sessions · any other key goes back"
            )
        }
        (Answering::Command, _) => "Enter runs the changed command · Esc goes back".to_owned(),
        (Answering::Words, Question::Free { .. }) => match dialog.agent {
            Some(_) => "Enter answers · Esc leaves it for later".to_owned(),
            None => "Enter answers · Esc stops the turn".to_owned(),
        },
        (Answering::Words, _) => {
            "Enter refuses it with these words to the agent · Esc goes back".to_owned()
        }
        (Answering::Key, Question::Free { .. }) => "a number, or your own words".to_owned(),
        (Answering::Key, Question::Plan { .. }) => {
            format!(
                "y yes, asking before changes · a yes, in mode auto · n no · w no, and say why · {escape}"
            )
        }
        (Answering::Key, Question::Call(call)) => {
            let always = match &call.rule {
                Some(_) => " · a always",
                None => "",
            };
            let edit = if call.editable { " · e edit" } else { "" };
            format!("y yes · n no{always}{edit} · w no, and say why · {escape}")
        }
    }
}
