//! The models that the operator offers.

use std::sync::Arc;

use crate::{Model, ModelInfo};

/// Models by their names, at least one. Clones are the same.
#[derive(Clone)]
pub struct Models {
    first: Arc<dyn Model>,
    others: Arc<[Arc<dyn Model>]>,
}

impl Models {
    /// `first` answers where no other one was chosen. Of several with one name the first counts.
    pub fn new(first: Arc<dyn Model>, others: impl IntoIterator<Item = Arc<dyn Model>>) -> Self {
        Self {
            first,
            others: others.into_iter().collect(),
        }
    }

    /// The one that answers where no other one was chosen.
    pub fn first(&self) -> &Arc<dyn Model> {
        &self.first
    }

    /// The one with this name, if it is offered.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Model>> {
        self.all().find(|model| model.info().name == name)
    }

    /// All of them, the first one first.
    pub fn infos(&self) -> impl Iterator<Item = ModelInfo> {
        self.all().map(|model| model.info())
    }

    /// Their names, for people: `gpt-5, gpt-5-mini`.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.infos().map(|info| info.name).collect();
        names.join(", ")
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        std::iter::once(&self.first).chain(self.others.iter())
    }
}
