//! The runner link's behaviour without IO and clock, for both of its ends.

pub mod received;
pub mod retained;
