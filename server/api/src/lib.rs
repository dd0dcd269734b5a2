//! The server's doors: REST, WebSocket, gRPC, MCP and the web console on one port.
//!
//! A door turns wire types into calls of `server-app` and back, authenticates, and bounds its input; it decides
//! nothing. Every use case gets an operation context that comes from the credential, never from the request.
//!
//! Only these answer without a credential:
//! - `/livez` and `/readyz`, which say yes, or no and why,
//! - `Identify`, by which the server proves its identity,
//! - the pages about problems, the programs of runners, the metadata and the registration of OAuth, and the files of the
//!   web console,
//! - calls with another secret: signing in, reading a session by its link, and exchanging the code of a program.
//!
//! If the operator sets it, a listener of its own answers with the metrics alone, without a credential
//! ([`metrics_router`]).

mod archives;
mod console;
mod edge;
mod grpc;
mod link;
mod mcp;
mod named;
mod oauth;
mod rest;
mod status;
mod words;
mod ws;

pub use archives::{ArchiveError, Archives};
pub use console::has_console;
pub use edge::{ConnectionPermit, Door, HostNames, Limits, Peer, serve};
pub use http::HeaderName;
pub use rest::openapi;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    middleware::{from_fn, from_fn_with_state, map_response_with_state},
};
use server_app::App;
use shared_types::{Entropy, limits::MAX_API_BODY_BYTES};

/// Everything that the doors need, for the life of the process.
#[derive(Clone)]
pub struct Doors {
    /// The version of the program, with its commit where it has one.
    pub version: &'static str,
    /// The use cases.
    pub app: Arc<App>,
    /// Prints the metrics in the text format of Prometheus.
    pub metrics: shared_telemetry::MetricsHandle,
    /// The archives for machines without a runner's programs.
    pub archives: Archives,
    /// The time limits and bounds of connections.
    pub limits: Limits,
    /// The names under which they answer.
    pub names: HostNames,
    /// True if browsers reach the server by HTTPS: TLS ends here, or at a proxy before the server.
    pub https: bool,
    /// Spreads the ages of connections.
    pub entropy: Arc<dyn Entropy>,
}

/// The routes of all doors.
pub fn router(doors: Doors) -> Router {
    let grpc = grpc::router(doors.app.clone());
    let answer_within = doors.limits.answer_within;
    let (names, https) = (doors.names.clone(), doors.https);
    let rest = rest::router()
        .merge(ws::router())
        .merge(mcp::router(doors.clone()))
        .merge(oauth::router())
        .with_state(doors.clone())
        .layer(from_fn_with_state(doors.clone(), rest::once))
        .layer(from_fn_with_state(doors, rest::why_not_now))
        .layer(Extension(edge::seats::Seats::default()))
        .layer(DefaultBodyLimit::max(MAX_API_BODY_BYTES));
    rest.merge(grpc)
        .layer(from_fn_with_state(answer_within, edge::in_time::in_time))
        .layer(from_fn(edge::browser::cookies))
        .layer(from_fn_with_state(names, edge::hosts::hosts))
        .layer(tower_http::catch_panic::CatchPanicLayer::custom(
            rest::panicked,
        ))
        .layer(map_response_with_state(https, edge::headers::on_everything))
        .layer(from_fn(edge::traced::traced))
        .layer(from_fn(edge::measured::measured))
}

/// The routes of a listener for the metrics alone: `GET /metrics`, without a credential.
pub fn metrics_router(doors: Doors) -> Router {
    let (answer_within, names) = (doors.limits.answer_within, doors.names.clone());
    rest::metrics_alone()
        .with_state(doors)
        .layer(from_fn_with_state(answer_within, edge::in_time::in_time))
        .layer(from_fn_with_state(names, edge::hosts::hosts))
        .layer(map_response_with_state(false, edge::headers::on_everything))
}
