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
}

impl Models {
    /// `first` answers where no other one was chosen. Of several with one name the first counts.
    pub fn new(first: Offer, others: impl IntoIterator<Item = Offer>) -> Self {
        Self {
            first,
            others: others.into_iter().collect(),
        }
    }

    /// The one that answers where no other one was chosen.
    pub fn first(&self) -> &Offer {
        &self.first
    }

    /// The one with this name, if it is offered.
    pub fn named(&self, name: &str) -> Option<&Offer> {
        self.all().find(|offer| offer.info().name == name)
    }

    /// All of them, the first one first.
    pub fn all(&self) -> impl Iterator<Item = &Offer> {
        std::iter::once(&self.first).chain(self.others.iter())
    }

    /// Their names, for people: `gpt-5, gpt-5-mini`.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.all().map(|offer| offer.info().name).collect();
        names.join(", ")
    }
}
