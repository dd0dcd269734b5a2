//! The common part of all programs: their version, the lines that their verbs say and, with the feature `manual`,
//! their shell completions, man pages and reference pages. With the feature `files` it has what the programs that
//! read and replace files share.

/// The version, and in brackets the commit with its day: `0.1.0 (64d3de4c1b2a 2026-11-22)`. A development
/// build names no commit.
pub const VERSION: &str = env!("GANTRY_VERSION");

/// The version alone: `0.1.0`.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");

mod environment;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "manual")]
mod manual;
#[cfg(feature = "manual")]
mod markdown;
mod say;

pub use environment::take_secret;
#[cfg(feature = "manual")]
pub use manual::write_manual;
pub use say::{line, note_line};
