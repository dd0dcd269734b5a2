//! Whole turns, against doubles at every port.

mod calls;
mod cancelled;
mod conversation;
mod resumed;
