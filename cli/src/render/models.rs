//! The models that answer in a session: notes where another one answers than before, and where it is not sent the state
//! that a vendor keeps in earlier answers.

use std::collections::BTreeSet;

use shared_types::{
    ModelAccountId,
    event::{Origin, Part, Parts},
};

/// The most models that one note names.
const MAX_NAMED: usize = 3;

/// The models that have answered.
#[derive(Debug, Default)]
pub(super) struct Models {
    /// The choice with which the session began, until a model has answered.
    chosen: Option<String>,
    last: Option<Answerer>,
    /// Those whose answers have a vendor's own state in them.
    with_state: BTreeSet<Answerer>,
}

/// A model at its origin: the account, and the wire format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Answerer {
    model: String,
    /// Absent where an earlier release recorded the answer.
    origin: Option<(String, String)>,
}

impl Models {
    /// The session begins with this choice of models.
    pub(super) fn chosen(&mut self, choice: &str) {
        self.chosen = Some(choice.to_owned());
    }

    /// The notes before this answer.
    pub(super) fn answer(
        &mut self,
        model: &str,
        origin: Option<&Origin>,
        parts: &Parts,
    ) -> Vec<String> {
        let this = Answerer {
            model: model.to_owned(),
            origin: origin.map(|origin| (origin.account.clone(), origin.format.clone())),
        };
        let before = self.last.replace(this.clone());
        let mut notes = Vec::new();
        let chosen = self.chosen.take();
        let is_other = match &before {
            Some(before) => !before.is_same(&this),
            None => chosen.is_some_and(|choice| !means_first(&choice, model)),
        };
        if is_other {
            let is_named_alike = before.is_some_and(|before| before.name() == this.name());
            let key = if is_named_alike {
                " with another key"
            } else {
                ""
            };
            notes.push(format!("{} answers{key} from here on", this.name()));
            let foreign = self.with_state.iter().filter(|one| !one.is_same(&this));
            let mut foreign: Vec<_> = foreign.map(|one| one.name_beside(&this)).collect();
            if foreign.len() > MAX_NAMED {
                let more = foreign.split_off(MAX_NAMED).len();
                foreign.push(format!("{more} more"));
            }
            if !foreign.is_empty() {
                let names = foreign.join(", ");
                notes.push(format!("thoughts of {names} are not sent to {model}"));
            }
        }
        if parts.0.iter().any(is_state) {
            self.with_state.insert(this);
        }
        notes
    }
}

impl Answerer {
    /// True if the server sends the state of one to the other.
    fn is_same(&self, other: &Self) -> bool {
        let origins = self.origin.as_ref().zip(other.origin.as_ref());
        self.model == other.model && origins.is_none_or(|(one, other)| one == other)
    }

    fn name(&self) -> String {
        match &self.origin {
            Some((account, _)) if !account.is_empty() => {
                format!("{} ({})", self.model, place(account))
            }
            _ => self.model.clone(),
        }
    }

    /// Its name, with its account only where another one has the same model.
    fn name_beside(&self, other: &Self) -> String {
        match self.model == other.model {
            true if self.name() == other.name() => format!("{} with another key", self.name()),
            true => self.name(),
            false => self.model.clone(),
        }
    }
}

/// An account without its id, which tells people nothing: the host remains.
fn place(account: &str) -> &str {
    match account.rsplit_once(' ') {
        Some((host, id)) if id.parse::<ModelAccountId>().is_ok() => host,
        _ => account,
    }
}

/// True if the first name of this choice is that of the model, alone or behind an account or a runner.
fn means_first(choice: &str, model: &str) -> bool {
    let first = choice.split(',').next().unwrap_or_default().trim();
    let rest = first.strip_suffix(model);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// True for a part with a vendor's own state, which goes back to its origin alone.
fn is_state(part: &Part) -> bool {
    match part {
        Part::Reasoning { signature, .. } => signature.is_some(),
        Part::Opaque { .. } => true,
        Part::ToolCall(call) => !call.opaque.is_empty(),
        Part::Text { .. } | Part::Image { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(account: &str) -> Origin {
        Origin {
            format: "anthropic-messages".to_owned(),
            account: account.to_owned(),
        }
    }

    fn thoughts(signature: Option<&str>) -> Parts {
        Parts(vec![Part::Reasoning {
            text: "hm".to_owned(),
            signature: signature.map(str::to_owned),
        }])
    }

    #[test]
    fn another_model_is_named_with_the_thoughts_that_it_is_not_sent() {
        let (mut models, words) = (Models::default(), Parts::text("hello"));
        let mut answer =
            |model, account, parts: &Parts| models.answer(model, Some(&origin(account)), parts);
        let signed = thoughts(Some("s"));
        assert_eq!(answer("claude", "anthropic", &signed), [""; 0]);
        assert_eq!(answer("claude", "anthropic", &words), [""; 0]);
        let other = ["gpt-5 (openai) answers from here on"].map(str::to_owned);
        let unsent = "thoughts of claude are not sent to gpt-5";
        let both = [other[0].as_str(), unsent];
        assert_eq!(answer("gpt-5", "openai", &thoughts(None)), both);
        assert_eq!(
            answer("claude", "anthropic", &words),
            ["claude (anthropic) answers from here on"],
            "gpt-5 has no state, and claude gets its own"
        );
        assert_eq!(
            answer("claude", "ours", &words),
            [
                "claude (ours) answers from here on",
                "thoughts of claude (anthropic) are not sent to claude"
            ]
        );
    }

    #[test]
    fn a_first_answer_of_another_model_than_the_chosen_one_is_said_to_be_its() {
        for (choice, notes) in [
            ("claude", &[][..]),
            ("work/claude, gpt-5", &[]),
            (
                "gpt-5, claude",
                &["claude (anthropic) answers from here on"],
            ),
        ] {
            let mut models = Models::default();
            models.chosen(choice);
            let words = Parts::text("hello");
            let first = models.answer("claude", Some(&origin("anthropic")), &words);
            assert_eq!(first, notes, "{choice}");
            let second = models.answer("claude", Some(&origin("anthropic")), &words);
            assert_eq!(second, [""; 0], "{choice}");
        }
    }

    #[test]
    fn an_account_is_named_without_its_id() {
        let (mut models, words) = (Models::default(), Parts::text("hello"));
        let account = |number| format!("api.acme.test {}", ModelAccountId::from_u128(number));
        let mut answer =
            |model, number| models.answer(model, Some(&origin(&account(number))), &words);
        assert_eq!(answer("gpt-5", 1), [""; 0]);
        let other = "gpt-6 (api.acme.test) answers from here on";
        assert_eq!(answer("gpt-6", 1), [other]);
        let key = "gpt-6 (api.acme.test) answers with another key from here on";
        assert_eq!(answer("gpt-6", 2), [key]);
    }

    #[test]
    fn an_answer_of_an_earlier_release_has_no_origin_and_is_not_another_models() {
        let (mut models, signed) = (Models::default(), thoughts(Some("s")));
        assert_eq!(models.answer("m", None, &signed), [""; 0]);
        assert_eq!(models.answer("m", Some(&origin("a")), &signed), [""; 0]);
    }
}
