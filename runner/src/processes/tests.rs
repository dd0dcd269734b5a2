//! The real supervisor, and commands under it.

mod daemons;
mod ends;
mod many;
mod overdue;
mod passing;
mod scene;
mod spools;
mod stopped;
mod storm;
