//! Whether frames may be sealed for a runner (docs/internals/contracts.md#b5): not any more from
//! before its removal is committed, whatever still waits to be sent.

use std::sync::{Arc, Mutex, PoisonError};

/// Of one runner; clones are the same gate. A gate that was closed stays so.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Mutex<bool>>);

impl Gate {
    /// One that is open.
    pub fn open() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    /// Does this if the gate is open. Whoever closes it waits until it is done, so this must be short.
    pub fn while_open<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.then(work)
    }

    /// Nothing is done behind it once this returns.
    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    pub(super) fn is_open(&self) -> bool {
        self.while_open(|| ()).is_some()
    }

    /// Whether a link has it as well.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}
