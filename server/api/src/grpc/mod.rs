//! gRPC: enrolment and the runner link.

mod enrolment;
mod link;

use axum::Router;
use proto::v1::{enrolment_server::EnrolmentServer, runner_link_server::RunnerLinkServer};
use server_app::{App, AppError};
use shared_types::limits::{MAX_FRAME_BYTES, MAX_HELLO_BYTES};
use tonic::{Code, Status};

pub(crate) fn router(app: App) -> Router {
    let enrolment = EnrolmentServer::new(enrolment::Service::new(app.clone()))
        .max_decoding_message_size(MAX_HELLO_BYTES);
    let link =
        RunnerLinkServer::new(link::Service::new(app)).max_decoding_message_size(MAX_FRAME_BYTES);
    let mut routes = tonic::service::Routes::builder();
    routes.add_service(enrolment).add_service(link);
    // The REST side has the fallback for addresses that do not exist.
    routes.routes().into_axum_router().reset_fallback()
}

/// A use case's error in gRPC's words.
fn status(error: &AppError) -> Status {
    let code = match error {
        AppError::NotFound(_) => Code::NotFound,
        AppError::Invalid(_) => Code::InvalidArgument,
        AppError::Conflict(_) => Code::AlreadyExists,
        AppError::Unauthenticated(_) => Code::Unauthenticated,
        AppError::Forbidden(_) => Code::PermissionDenied,
        AppError::TooMany { .. } => Code::ResourceExhausted,
        AppError::Unavailable(cause) => {
            tracing::error!(%cause, "a runner's request could not be carried out");
            Code::Unavailable
        }
    };
    Status::new(code, error.to_string())
}
