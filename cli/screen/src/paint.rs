//! (see the crate's first page)

pub mod code;
pub mod diff;
pub mod markdown;
pub mod palette;
mod program;
#[cfg(test)]
pub(crate) mod shown;
pub mod wrap;

pub use program::program;
