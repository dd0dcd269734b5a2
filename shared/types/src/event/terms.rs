//! The terms that a message sets for its own turn.

use serde::{Deserialize, Serialize};

use crate::{Mode, event::TurnSettings};

/// The terms of a message for its turn. A reader that does not know one refuses them all. They go before the settings, and below every ceiling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Terms {
    /// True if no person can be asked while the turn works: then a question has the outcome *unanswered* at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
    /// The mode of the turn; absent where the settings count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Rules that allow calls in this turn, such as `Shell(cargo test *)`; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The most model calls of the turn, if that is fewer than the settings allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// The most freedom of the turn, whatever the settings and its own mode say; absent where they count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Mode>,
    /// The most tokens of the turn, sent and received, if that is fewer than the server allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl Terms {
    /// The settings of the turn under these terms.
    pub fn of_turn(&self, settings: TurnSettings) -> TurnSettings {
        TurnSettings {
            mode: self.mode.or(settings.mode),
            ceiling: self.ceiling.into_iter().chain(settings.ceiling).min(),
            steps: self
                .steps
                .map_or(settings.steps, |most| most.min(settings.steps)),
            ..settings
        }
    }

    /// True if it sets nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
