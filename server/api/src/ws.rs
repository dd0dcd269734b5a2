//! WebSockets: `GET /api/v1/stream`, on which a client follows sessions (`sessions`), the one of each
//! operation (`operation`), and the one that carries a runner's link (`link`).

use std::time::Duration;

use axum::{Router, routing::get};

use crate::Doors;

mod conversation;
mod farewell;
mod handshake;
mod link;
mod live;
mod operation;
mod outbox;
mod sessions;
mod watching;

/// The longest time for the last message to a client or a runner.
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);

pub(crate) fn router() -> Router<Doors> {
    Router::new()
        .route("/api/v1/stream", get(sessions::upgrade))
        .route("/api/v1/operations/{id}/stream", get(operation::upgrade))
        .merge(link::router())
}
