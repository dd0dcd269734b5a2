//! The state of the server: its liveness, its readiness, its status and its metrics.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use shared_api::{
    DatabaseKind, DatabaseStatus, ModelCounts, Problem, Replica, ReplicaState, Replicas,
    RunnerCounts, ServerStatus,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Refused, Signed};
use crate::Doors;

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(status))
        .routes(routes!(replicas))
}

/// The state of the server, and of what the tenant has there: version, servers, database, runners, operations and
/// models. Admins see it.
#[utoipa::path(get, path = "/api/v1/status", operation_id = "read_status", responses(
    (status = 200, body = ServerStatus), (status = 401, body = Problem)))]
pub(crate) async fn status(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<ServerStatus>, Refused> {
    let now = doors.app.status.read(&ctx).await?;
    let replicas = now.replicas.into_iter();
    Ok(Json(ServerStatus {
        version: doors.version.to_owned(),
        started_at: now.started_at,
        replicas: replicas
            .map(|replica| Replica {
                id: replica.id,
                since: replica.started_at,
                this: replica.id == now.replica,
            })
            .collect(),
        database: DatabaseStatus {
            kind: match now.is_shared {
                true => DatabaseKind::Postgresql,
                false => DatabaseKind::Sqlite,
            },
            schema: now.schema,
            answered_us: u64::try_from(now.answered_in.as_micros()).unwrap_or(u64::MAX),
        },
        runners: RunnerCounts {
            online: now.counts.runners_online,
            away: now.counts.runners_away,
        },
        operations_open: now.counts.operations_open,
        models: ModelCounts {
            ready: now.models.ready,
            cooling_down: now.models.cooling_down,
            refused: now.models.refused,
            away: now.models.away,
        },
    }))
}

/// The servers that use the same database, with their leases, and their links and turns of all tenants. Admins of the
/// operator's tenant see it.
#[utoipa::path(get, path = "/api/v1/replicas", operation_id = "list_replicas", responses(
    (status = 200, body = Replicas), (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(crate) async fn replicas(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<Replicas>, Refused> {
    let all = doors.app.status.replicas(&ctx).await?.into_iter();
    let replicas = all.map(|server| ReplicaState {
        id: server.row.id,
        this: server.is_this,
        since: server.row.started_at,
        version: server.row.version,
        address: server.row.address,
        renewed_ms_ago: server
            .renewal_age
            .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        links: server.row.links,
        turns: server.row.turns,
        draining_since: server.row.draining_since,
    });
    Ok(Json(Replicas {
        replicas: replicas.collect(),
    }))
}

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
