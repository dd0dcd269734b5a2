//! The payer of a model's answers.

use crate::ModelAccountId;

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
}

impl PaidBy {
    /// The word for it: `operator`, `tenant` or `own`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Tenant(_) => "tenant",
            Self::Own(_) => "own",
        }
    }

    /// The account, unless it is the operator's.
    pub fn account(self) -> Option<ModelAccountId> {
        match self {
            Self::Operator => None,
            Self::Tenant(account) | Self::Own(account) => Some(account),
        }
    }
}
