//! The layers around one model call. Each has one job, and knows nothing of the others.

pub(crate) mod breaker;
pub(crate) mod limit;
pub(crate) mod measured;
pub(crate) mod retry;
pub(crate) mod text_calls;
