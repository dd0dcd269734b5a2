//! The router against scripted runners over in-memory channels and a store in memory.

mod away;
mod background;
mod borrowed;
mod collect;
mod double;
mod downloads;
mod full;
mod links;
mod outputs;
mod passing;
mod readers;
mod reconnect;
mod sandbox;
mod simulation;
mod start_by;
mod store_away;
mod unheard;
