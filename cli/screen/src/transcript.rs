//! (see the crate's first page)

pub mod output;
