//! Whole turns, against doubles at every port.

mod abandoned;
mod again;
mod agents;
mod background;
mod calls;
mod cancelled;
mod chain;
mod compacted;
mod consent;
mod conversation;
mod edits;
mod extended;
mod found_tools;
mod history;
mod hook_table;
mod limits;
mod project;
mod recalled;
mod resumed;
mod servers;
mod steers;
mod surveyed;
mod waiting;
mod web;
