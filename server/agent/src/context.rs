//! The model's window: what of the conversation fits into it, and what stands in for the rest.

pub(crate) mod tokens;
