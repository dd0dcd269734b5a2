//! `/api/v1`: one file per noun, with the routes and their entries in the OpenAPI document side
//! by side, so that a route without an entry cannot be.

mod access;
mod approvals;
mod audit;
mod browser;
mod commands;
mod document;
mod extensions;
pub(crate) mod html;
mod id;
mod images;
mod install;
mod models;
mod once;
mod operations;
mod page;
mod people;
mod permissions;
mod problem;
mod runners;
mod sandboxes;
mod service_accounts;
mod session_tool_servers;
mod sessions;
mod settings;
mod shared;
mod signed;
mod status;
mod stream_tickets;
mod tool_servers;
mod usage;

pub(crate) use id::Id;
pub(crate) use once::once;
pub(crate) use operations::{hand_over, refused, to_operation, to_signal, to_size};
pub(crate) use problem::{
    Code, Refused, WholeBody, no_such_method, no_such_route, panicked, problem, respond,
    why_not_now,
};
pub(crate) use signed::{Signed, SignedProgram, SignedStream};

use axum::{Json, Router, extract::State, routing::get};
use server_app::rights::Action;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use crate::{Doors, console};

/// The OpenAPI document of the REST API, as the server serves it.
pub fn openapi() -> utoipa::openapi::OpenApi {
    document::complete(documented().split_for_parts().1)
}

pub(crate) fn router() -> Router<Doors> {
    let (routes, document) = documented().split_for_parts();
    let document = document::complete(document);
    routes
        .route(
            "/api/v1/openapi.json",
            get(
                move |Signed(ctx): Signed, State(doors): State<Doors>| async move {
                    doors.app.access.require(&ctx, Action::SeeAccount)?;
                    Ok::<_, Refused>(Json(document))
                },
            ),
        )
        .route("/livez", get(status::livez))
        .route("/readyz", get(status::readyz))
        .route("/metrics", get(status::metrics))
        .route("/install/runner/{arch}", get(install::signed))
        .route("/install/{sha256}/{name}", get(install::archive))
        .route("/problems", get(problem::page::all))
        .route("/problems/{code}", get(problem::page::one))
        .fallback(console::page_or_problem)
        .method_not_allowed_fallback(problem::no_such_method)
}

/// The metrics alone, for a listener of their own.
pub(crate) fn metrics_alone() -> Router<Doors> {
    Router::new()
        .route("/metrics", get(status::metrics_alone))
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::no_such_method)
}

fn documented() -> OpenApiRouter<Doors> {
    OpenApiRouter::with_openapi(document::Document::openapi())
        .merge(access::unsigned())
        .merge(browser::unsigned())
        .merge(shared::unsigned())
        .merge(access::routes())
        .merge(browser::routes())
        .merge(stream_tickets::routes())
        .merge(runners::routes())
        .merge(sandboxes::routes())
        .merge(people::routes())
        .merge(service_accounts::routes())
        .merge(usage::routes())
        .merge(status::routes())
        .merge(audit::routes())
        .merge(settings::routes())
        .merge(models::routes())
        .merge(approvals::routes())
        .merge(permissions::routes())
        .merge(extensions::routes())
        .merge(session_tool_servers::routes())
        .merge(tool_servers::routes())
        .merge(sessions::routes())
        .merge(commands::routes())
        .merge(images::routes())
        .merge(shared::routes())
        .merge(operations::routes())
}
