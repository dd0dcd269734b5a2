//! The models that answer in a session: notes where another one answers than before, and where it is not sent the
//! state that a vendor keeps in earlier answers.

use std::collections::BTreeSet;

use shared_types::{
    ModelAccountId,
    event::{Origin, Part, Parts},
};

use super::safe;

/// The most models that one note names.
const MOST_NAMED: usize = 3;

/// The most models whose state is remembered.
const MOST_WITH_STATE: usize = 64;

/// The models that have answered.
#[derive(Debug, Default)]
pub(super) struct Models {
    /// The choice with which the session began, until a model has answered.
    chosen: Option<String>,
    last: Option<Answerer>,
    /// Those whose answers have a vendor's own state in them.
    with_state: BTreeSet<Answerer>,
}

/// A model at its origin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Answerer {
    model: String,
    /// The account and the wire format; absent where an earlier release recorded the answer.
    origin: Option<(String, String)>,
}

impl Models {
    /// The session begins with this choice of models.
    pub(super) fn chosen(&mut self, choice: &str) {
        self.chosen = Some(choice.to_owned());
    }

    /// The notes on the model of this answer.
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
        let chosen = self.chosen.take();
        let is_other = match &before {
            Some(before) => !before.is_same(&this),
            None => chosen.is_some_and(|choice| !means_first(&choice, model)),
        };
        let mut notes = Vec::new();
        if is_other {
            let is_alike = before.is_some_and(|before| before.name() == this.name());
            let key = if is_alike { " with another key" } else { "" };
            notes.push(safe::line(&format!(
                "{} answers{key} from here on",
                this.name()
            )));
            let foreign = self.with_state.iter().filter(|one| !one.is_same(&this));
            let mut foreign: Vec<_> = foreign.map(Answerer::name).collect();
            if foreign.len() > MOST_NAMED {
                let more = foreign.split_off(MOST_NAMED).len();
                foreign.push(format!("{more} more"));
            }
            if !foreign.is_empty() {
                let names = foreign.join(", ");
                notes.push(safe::line(&format!(
                    "thoughts of {names} are not sent to {model}"
                )));
            }
        }
        if parts.0.iter().any(is_state) && self.with_state.len() < MOST_WITH_STATE {
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
                format!("{} ({})", self.model, host(account))
            }
            _ => self.model.clone(),
        }
    }
}

/// An account without its id, which tells people nothing.
fn host(account: &str) -> &str {
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
