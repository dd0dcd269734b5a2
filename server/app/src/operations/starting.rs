//! Operations that are being started: of two requests under one key, that come at the same time, only the
//! first starts something new.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared_types::OperationId;

/// Those that are being started now. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starting(Arc<Mutex<HashSet<OperationId>>>);

/// The one request that starts an operation, until it is dropped.
#[derive(Debug)]
pub(super) struct First {
    starting: Starting,
    id: OperationId,
}

impl Starting {
    /// Takes the operation; `None` where another request is starting it.
    pub(super) fn first(&self, id: OperationId) -> Option<First> {
        self.lock().insert(id).then(|| First {
            starting: self.clone(),
            id,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<OperationId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for First {
    fn drop(&mut self) {
        self.starting.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_request_at_a_time_starts_an_operation() {
        let starting = Starting::default();
        let [one, other] = [1, 2].map(OperationId::from_u128);
        let first = starting.first(one);
        assert!(first.is_some() && starting.first(one).is_none());
        assert!(starting.first(other).is_some());
        drop(first);
        assert!(starting.first(one).is_some());
    }
}
