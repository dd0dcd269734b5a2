//! `/api/v1`: one file per noun, with the routes and their entries in the OpenAPI document side
//! by side, so that a route without an entry cannot be.

mod access;
mod audit;
mod browser;
mod document;
mod html;
mod id;
mod install;
mod once;
mod operations;
mod page;
mod people;
mod problem;
mod runners;
mod sandboxes;
mod service_accounts;
mod sessions;
mod settings;
mod shared;
mod signed;
mod status;
mod stream_tickets;

pub(crate) use id::Id;
pub(crate) use once::once;
pub(crate) use operations::{hand_over, refused, to_operation, to_signal, to_size};
pub(crate) use problem::{Code, Refused, panicked, problem, respond, why_not_now};
pub(crate) use signed::{Signed, SignedStream};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::get,
};
use server_app::rights::Action;
use utoipa::OpenApi as _;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt as _},
    routes,
};

use self::operations::input::MAX_INPUT_BODY_BYTES;
use crate::Doors;

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
        .fallback(problem::no_such_route)
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
        .routes(routes!(access::me))
        .routes(routes!(access::keys, access::create_key))
        .routes(routes!(access::revoke_key))
        .routes(routes!(browser::sign_out))
        .routes(routes!(stream_tickets::create))
        .routes(routes!(runners::use_runner, runners::use_none))
        .routes(routes!(runners::runners))
        .routes(routes!(runners::remove))
        .routes(routes!(runners::share))
        .routes(routes!(runners::unshare))
        .routes(routes!(runners::take))
        .routes(routes!(runners::trust))
        .routes(routes!(runners::distrust))
        .routes(routes!(runners::join_tokens, runners::create_join_token))
        .routes(routes!(runners::end_join_token))
        .routes(routes!(sandboxes::sandboxes, sandboxes::create))
        .routes(routes!(
            sandboxes::sandbox,
            sandboxes::change,
            sandboxes::remove
        ))
        .routes(routes!(sandboxes::changes))
        .routes(routes!(sandboxes::start))
        .routes(routes!(sandboxes::stop))
        .routes(routes!(people::people, people::invite))
        .routes(routes!(people::change_role))
        .routes(routes!(people::remove))
        .routes(routes!(service_accounts::add))
        .routes(routes!(
            service_accounts::keys,
            service_accounts::create_key
        ))
        .routes(routes!(audit::audit))
        .routes(routes!(settings::settings, settings::change))
        .routes(routes!(sessions::sessions, sessions::create))
        .routes(routes!(
            sessions::session,
            sessions::change,
            sessions::delete
        ))
        .routes(routes!(shared::share, shared::unshare))
        .routes(routes!(sessions::pin, sessions::unpin))
        .routes(routes!(sessions::events))
        .routes(routes!(sessions::send))
        .routes(routes!(sessions::cancel))
        .routes(routes!(sessions::tasks))
        .routes(routes!(operations::operations, operations::start))
        .routes(routes!(operations::operation))
        .routes(routes!(operations::output::output))
        .routes(
            routes!(operations::input::input).layer(DefaultBodyLimit::max(MAX_INPUT_BODY_BYTES)),
        )
        .routes(routes!(operations::input::resize))
        .routes(routes!(operations::input::signal))
        .routes(routes!(operations::cancel))
}
