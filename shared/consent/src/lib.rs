//! Consent to what an agent asks for: may it run, must a person be asked, or is it refused.
//!
//! [`judge`] is a pure function of the deed, the mode, the proved isolation and the rules. The
//! server calls it before it sends a call to a runner, and the runner calls it again. Isolation is
//! what protects a machine; the judgement only decides when a person is asked. So ordinary work must
//! pass, and what cannot be read is not granted.
//!
//! - `command`: from a script to the commands that it may run.
//! - `risk`: how much harm a command may do, and why.
//! - `rule`: what people allow, want to be asked about, or refuse.
//! - `project`: the rules that a project's own file proposes.
//! - `judge`: the decision.

mod command;
mod deed;
mod judge;
mod project;
mod risk;
mod rule;

#[cfg(test)]
mod tests;

pub use deed::Deed;
pub use judge::{Terms, Verdict, judge};
pub use project::{InvalidProjectRules, ProjectRules};
pub use rule::{Decision, InvalidRule, Rule, Ruled, UnknownDecision};
