//! The form of a change in a journal, as it is written today or was written before.

use serde::Deserialize;
use shared_sandbox::Outcome;
use shared_types::FileDigest;

use super::{Change, Effect, There};

/// A change as a journal may have it.
#[derive(Deserialize)]
pub(super) struct Stored {
    effects: Option<Vec<Effect>>,
    /// Before changes named their effects: the only file, as it was asked for. What was to become of it
    /// stands in the outcome.
    path: Option<String>,
    unfinished: Option<String>,
    done: Outcome,
}

/// No version of the runner writes such a change.
#[derive(Debug, thiserror::Error)]
#[error("a change says nothing of what it does")]
pub(super) struct NoEffects;

impl TryFrom<Stored> for Change {
    type Error = NoEffects;

    fn try_from(stored: Stored) -> Result<Self, NoEffects> {
        let effects = match (stored.effects, stored.path) {
            (Some(effects), _) if !effects.is_empty() => effects,
            (None, Some(path)) => vec![only_effect(path, &stored.done).ok_or(NoEffects)?],
            _ => return Err(NoEffects),
        };
        Ok(Self {
            effects,
            unfinished: stored.unfinished,
            done: stored.done,
        })
    }
}

fn only_effect(path: String, done: &Outcome) -> Option<Effect> {
    let (before, after): (Option<FileDigest>, _) = match done {
        Outcome::Written(written) => (written.before, written.after),
        Outcome::Edited(edited) => (Some(edited.before.into()), edited.after.into()),
        _ => return None,
    };
    Some(Effect {
        path,
        before: There::content(before),
        after: There::Content(after),
    })
}
