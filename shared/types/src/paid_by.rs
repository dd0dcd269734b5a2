//! The payer of a model's answers.

use crate::{ModelAccountId, RunnerId};

/// The account that pays for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PaidBy {
    /// That of the operator, for all tenants.
    #[default]
    Operator,
    /// An account of the tenant, for all of its people.
    Tenant(ModelAccountId),
    /// An account of the person's own.
    Own(ModelAccountId),
    /// None: the model runs on the machine of a runner.
    Runner(RunnerId),
}

impl PaidBy {
    /// The word for it: `operator`, `tenant`, `own` or `runner`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Tenant(_) => "tenant",
            Self::Own(_) => "own",
            Self::Runner(_) => "runner",
        }
    }

    /// The account, where it is one of people's.
    pub fn account(self) -> Option<ModelAccountId> {
        match self {
            Self::Operator | Self::Runner(_) => None,
            Self::Tenant(account) | Self::Own(account) => Some(account),
        }
    }
}
