//! The sandbox contract: what a place where tools run promises, wherever it is.
//!
//! A [`Sandbox`] is given an [`Operation`] and returns a stream of [`OperationEvent`]s that ends
//! with exactly one [`Outcome`]. The router implements the contract for a sandbox on a runner,
//! and a runner's table of operations implements it on the spot, so the engine cannot tell
//! here from there. This crate runs nothing.

mod consent;
mod control;
mod directory;
mod events;
pub mod examples;
mod outcome;
mod request;
mod sandbox;
pub mod scripted;

pub use consent::Consent;
pub use control::{Control, Controls, Input, Signal};
pub use directory::path_from_root;
pub use events::{EndToken, EndTokenGiven, Events};
// All of each: a new kind needs no line here.
pub use outcome::*;
pub use request::*;
pub use sandbox::{
    CancelAnswer, Operation, OperationEvent, OperationLimits, OutputStream, Running, Sandbox,
};
