//! gRPC: enrolment and the runner link; and enrolment where gRPC does not pass.

mod enrolment;
mod first_message;
mod link;
mod posted;

pub(crate) use posted::PostRefusal;

use std::sync::Arc;

use axum::{Router, middleware::map_request};
use proto::v1::{enrolment_server::EnrolmentServer, runner_link_server::RunnerLinkServer};
use server_app::App;
use shared_types::limits::MAX_FRAME_BYTES;
use tonic::service::Routes;

/// Largest message of the enrolment service, in bytes: a runner has 32 labels at most.
const MAX_ENROLMENT_BYTES: usize = 8 * 1024;

pub(crate) fn router(app: Arc<App>) -> Router {
    let enrolment = EnrolmentServer::new(enrolment::EnrolmentService::new(app.clone()))
        .max_decoding_message_size(MAX_ENROLMENT_BYTES);
    let link = RunnerLinkServer::new(link::LinkService::new(app.clone()))
        .max_decoding_message_size(MAX_FRAME_BYTES);
    let posted = posted::router(app.clone());
    // The REST side has the fallback for addresses that do not exist.
    let routes = |routes: Routes| routes.into_axum_router().reset_fallback();
    let link = routes(Routes::new(link)).layer(map_request(first_message::is_short));
    routes(Routes::new(enrolment)).merge(link).merge(posted)
}
