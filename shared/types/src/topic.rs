//! The lists of which a client may hear that they changed.

use serde::{Deserialize, Serialize};

/// A list that a person reads by REST, as a subject of hints that it may be different now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Topic {
    /// The person's sessions: which there are, their titles, places in the list, last use, turn that runs, and links.
    Sessions,
    /// The questions of the person's agents: asked, answered, or at their deadline.
    Approvals,
    /// Runners: which there are, whether they are reachable, what they report, who may use them, and their workspaces.
    Runners,
    /// Tokens with which runners enrol.
    JoinTokens,
    /// The sandboxes of pools.
    Sandboxes,
    /// The person's operations, and those of the person's sessions.
    Operations,
    /// The settings of any layer, with the choice of a runner.
    Settings,
    /// Accounts at providers of models, and the models that are offered.
    Models,
    /// The people and service accounts of the tenant.
    People,
    /// The person's keys and sign-ins.
    Keys,
    /// The rules about what agents may do, and the files of rules that the person trusts.
    Permissions,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Sessions,
        Self::Approvals,
        Self::Runners,
        Self::JoinTokens,
        Self::Sandboxes,
        Self::Operations,
        Self::Settings,
        Self::Models,
        Self::People,
        Self::Keys,
        Self::Permissions,
    ];
}
