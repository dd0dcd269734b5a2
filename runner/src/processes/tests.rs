//! The real supervisor, and commands under it.

mod daemons;
mod ends;
mod many;
mod scene;
mod spools;
