//! The real supervisor, and commands under it.

mod daemons;
mod ends;
mod many;
mod passing;
mod scene;
mod spools;
mod stopped;
mod storm;
