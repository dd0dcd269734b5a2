//! The models that the operator offers.

use std::sync::Arc;

use crate::{Breaker, Model, ModelInfo, Vendor as _};

/// A model that is offered.
#[derive(Clone)]
pub enum Offer {
    /// One that answers as it is, such as the practice model.
    Whole(Arc<dyn Model>),
    /// One behind a server, which needs the layers around a call.
    Vendor(Arc<Breaker>),
}

impl Offer {
    /// The name and kind of the model.
    pub fn info(&self) -> ModelInfo {
        match self {
            Self::Whole(model) => model.info(),
            Self::Vendor(vendor) => vendor.info(),
        }
    }
}

/// Models by their names, at least one. Clones are the same.
#[derive(Clone)]
pub struct Models {
    first: Offer,
    others: Arc<[Offer]>,
    accounts: Arc<[OperatorAccount]>,
}

/// A further account of the operator.
pub struct OperatorAccount {
    /// Its name.
    pub name: String,
    /// Its models, the first one first.
    pub models: Vec<Offer>,
}

impl Models {
    /// `first` answers where no other one was chosen. Of several with one name the first counts.
    pub fn new(first: Offer, others: impl IntoIterator<Item = Offer>) -> Self {
        Self {
            first,
            others: others.into_iter().collect(),
            accounts: Arc::default(),
        }
    }

    /// The same, and behind them the models of these accounts.
    #[must_use]
    pub fn with_accounts(self, accounts: impl IntoIterator<Item = OperatorAccount>) -> Self {
        Self {
            accounts: accounts.into_iter().collect(),
            ..self
        }
    }

    /// The one that answers where no other one was chosen.
    pub fn first(&self) -> &Offer {
        &self.first
    }

    /// All of them, the first one first, each with the name of its account where that is a further one.
    pub fn all(&self) -> impl Iterator<Item = (Option<&str>, &Offer)> {
        let of_first = std::iter::once(&self.first).chain(self.others.iter());
        let of_accounts = self.accounts.iter().flat_map(|account| {
            let models = account.models.iter();
            models.map(|offer| (Some(account.name.as_str()), offer))
        });
        of_first.map(|offer| (None, offer)).chain(of_accounts)
    }
}
