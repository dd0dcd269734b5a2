//! The gate that frames for a runner pass before they are sealed (docs/internals/contracts.md#b5). It closes before the
//! runner's removal is committed, for frames that wait to be sent as well.

use std::sync::{Arc, Mutex, PoisonError};

/// The gate of one runner; clones are the same gate. A gate that was closed stays so.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Mutex<bool>>);

impl Gate {
    /// One that is open.
    pub fn open() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    /// Does this work if the gate is open. To close it waits until the work is done, so the work must be short.
    pub fn while_open<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.then(work)
    }

    /// Closes the gate: no work is done behind it once this returns.
    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    pub(super) fn is_open(&self) -> bool {
        self.while_open(|| ()).is_some()
    }

    /// True if a link has it as well.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
