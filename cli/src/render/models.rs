//! The models that answer in a session: notes where another one answers than before, and where it is not sent the state
//! that a vendor keeps in earlier answers.

use std::collections::BTreeSet;

use shared_types::event::{Origin, Part, Parts};

/// The most models that one note names.
const MAX_NAMED: usize = 3;

/// The models that have answered.
#[derive(Debug, Default)]
pub(super) struct Models {
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
        if before.is_some_and(|before| !before.is_same(&this)) {
            notes.push(format!("{} answers from here on", this.name()));
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
            Some((account, _)) if !account.is_empty() => format!("{} ({account})", self.model),
            _ => self.model.clone(),
        }
    }

    /// Its name, with its account only where another one has the same model.
    fn name_beside(&self, other: &Self) -> String {
        match self.model == other.model {
            true => self.name(),
            false => self.model.clone(),
        }
    }
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
    fn an_answer_of_an_earlier_release_has_no_origin_and_is_not_another_models() {
        let (mut models, signed) = (Models::default(), thoughts(Some("s")));
        assert_eq!(models.answer("m", None, &signed), [""; 0]);
        assert_eq!(models.answer("m", Some(&origin("a")), &signed), [""; 0]);
    }
}
