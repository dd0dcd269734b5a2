//! Guards of texts that enter or leave: secrets that should not leave, and instructions that a result should not give.
//!
//! All is pure: a text goes in, ranges or a text come out. The forms are rows of tables, so that a new form is a new
//! row with its examples. The work is bounded: each scan goes over the text a fixed number of times.

pub mod injection;
pub mod leaks;
mod secrets;
mod table;

pub use secrets::{MIN_SECRET_CHARS, Secrets};
