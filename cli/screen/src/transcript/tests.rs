//! Scripted sessions, and the facts and items that they make.

mod facts;
mod items;
pub(crate) mod script;
