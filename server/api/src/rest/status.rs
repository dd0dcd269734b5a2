//! The liveness, the readiness and the metrics of the server.

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use super::{Refused, Signed};
use crate::Doors;

/// The process answers.
pub(crate) async fn livez() -> &'static str {
    "ok\n"
}

/// The process answers, its database does and has room, and it is not about to stop.
pub(crate) async fn readyz(State(doors): State<Doors>) -> Response {
    match doors.app.ready().await {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

/// Metrics for Prometheus; they tell of all tenants' activity, so only the operator's keys read them.
pub(crate) async fn metrics(Signed(ctx): Signed, State(doors): State<Doors>) -> Response {
    if let Err(error) = doors.app.access.read_metrics(&ctx).await {
        return Refused::from(error).into_response();
    }
    rendered(&doors).await
}

/// The same without a credential, for a listener of their own.
pub(crate) async fn metrics_alone(State(doors): State<Doors>) -> Response {
    rendered(&doors).await
}

async fn rendered(doors: &Doors) -> Response {
    doors.app.update_gauges().await;
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        doors.metrics.render(),
    )
        .into_response()
}
