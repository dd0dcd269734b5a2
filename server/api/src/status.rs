//! The errors of use cases, as runners receive them.

use server_app::AppError;
use tonic::{Code, Status};

/// A use case's error in gRPC's words.
pub(crate) fn status(error: &AppError) -> Status {
    let code = match error {
        AppError::NotFound(_) => Code::NotFound,
        AppError::Invalid(_) => Code::InvalidArgument,
        AppError::Conflict(_) => Code::AlreadyExists,
        AppError::Full(_) => Code::ResourceExhausted,
        AppError::Unauthenticated(_) => Code::Unauthenticated,
        AppError::Forbidden(_) => Code::PermissionDenied,
        AppError::TooMany { .. } | AppError::OverRate { .. } => Code::ResourceExhausted,
        AppError::Unavailable(cause) => {
            tracing::error!(%cause, "a runner's request could not be carried out");
            Code::Unavailable
        }
    };
    Status::new(code, error.to_string())
}
