//! The model's window: what of the conversation fits into it, and what stands in for the rest.

mod carried;
pub(crate) mod compact;
pub(crate) mod estimate;
pub(crate) mod mask;
pub(crate) mod report;
pub(crate) mod tokens;
mod weight;
