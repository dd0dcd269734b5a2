//! A typed client of the server's API, for the terminal and for tests.
//!
//! Rules:
//! - The bearer token is never part of an error, a log line or a `Debug` text.
//! - Everything that a server may send is bounded.
//! - Plain text goes to loopback only, unless the caller allows more.
//! - The client follows no redirects and uses no proxies, because they would carry the token to
//!   another host.
//!
//! [`Client`] sends requests; [`Follow`] reads a session and [`Attach`] an operation as it happens.
//! Both survive lost connections. Two pure types prevent repetition and loss: [`cursor::Cursor`]
//! and [`offsets::Offsets`].

mod attach;
mod backoff;
mod client;
mod commands;
mod consent;
pub mod cursor;
mod download;
mod error;
mod extensions;
mod follow;
mod http;
mod models;
pub mod offsets;
mod operations;
mod people;
mod sandboxes;
mod sessions;
mod settings;
mod socket;
mod tool_servers;
mod url;
mod usage;

pub use attach::{Attach, Attached, Controls, InputRoom};
pub use client::{Client, Options, PING_EVERY};
pub use download::download;
pub use error::ClientError;
pub use follow::{Follow, Followed};
pub use offsets::Piece;
pub use shared_tls::Trust;

#[cfg(test)]
mod tests;
