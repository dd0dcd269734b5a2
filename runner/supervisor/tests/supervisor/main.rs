//! The real supervisor, started as a daemon starts it.

mod again;
mod clocks;
mod commands;
mod daemons;
mod faults;
mod inputs;
mod kills;
mod not_started;
mod program;
mod resources;
mod scene;
mod spools;
mod stopped;
mod sweeps;
