//! Pure functions from what a session shows to styled lines at a width, and [`flow::Flow`], which decides which lines
//! are final.

mod call;
pub mod changes;
pub mod code;
pub mod diff;
pub mod flow;
mod item;
mod look;
pub mod markdown;
pub mod palette;
mod program;
pub mod question;
#[cfg(test)]
pub(crate) mod shown;
pub mod wrap;

#[cfg(test)]
pub(crate) use flow::Flow;
pub use item::{Fold, item};
pub use program::program;
