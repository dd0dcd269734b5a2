//! The gates that a call passes before it runs: whether it may, whether people are asked, and what they answered.
//!
//! A call is judged by the mode of its turn and by rules (`shared-consent`). Where people are to be asked, the question
//! is an event and a row, and the turn waits for the answer without a worker. The call runs once a person has allowed
//! it as it is, and never because no person could be asked.

mod deed;
mod planned;
mod words;

pub(crate) use deed::OwnedDeed;
pub(crate) use planned::planned_call;
pub(crate) use words::{denied_by_rule, mode_note, of_answer};
