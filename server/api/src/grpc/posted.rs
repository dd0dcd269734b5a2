//! The calls of the enrolment service for runners whose way here passes no gRPC: the same
//! messages as bodies, see [`proto::http1`].

use std::sync::Arc;

use axum::{
    Router,
    extract::{DefaultBodyLimit, FromRequest as _, Request, State},
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use http::{StatusCode, header::CONTENT_TYPE};
use prost::Message;
use proto::{http1, v1::enrolment_server::Enrolment as _};
use server_app::App;
use tonic::{Code, Extensions, Status, metadata::MetadataMap};

use super::{MAX_ENROLMENT_BYTES, enrolment::EnrolmentService};
use crate::words;

pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route(http1::IDENTIFY, post(identify))
        .route(http1::ENROL, post(enrol))
        .route(http1::AUTHENTICATE, post(authenticate))
        .layer(DefaultBodyLimit::max(MAX_ENROLMENT_BYTES))
        .with_state(Arc::new(EnrolmentService::new(app)))
}

async fn identify(State(service): State<Arc<EnrolmentService>>, request: Request) -> PostResult {
    answer(service.identify(read(request).await?).await?)
}

async fn enrol(State(service): State<Arc<EnrolmentService>>, request: Request) -> PostResult {
    answer(service.enrol(read(request).await?).await?)
}

async fn authenticate(
    State(service): State<Arc<EnrolmentService>>,
    request: Request,
) -> PostResult {
    answer(service.authenticate(read(request).await?).await?)
}

type PostResult = Result<Response, PostRefusal>;

/// The call that a request stands for; its extensions name the peer.
async fn read<T: Message + Default>(request: Request) -> Result<tonic::Request<T>, Status> {
    let extensions: Extensions = request.extensions().clone();
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|error| Status::invalid_argument(words::of_bytes(&error)))?;
    let message = T::decode(body).map_err(|error| Status::internal(error.to_string()))?;
    let metadata = MetadataMap::new();
    Ok(tonic::Request::from_parts(metadata, extensions, message))
}

fn answer(message: tonic::Response<impl Message>) -> PostResult {
    let body = message.into_inner().encode_to_vec();
    Ok(([(CONTENT_TYPE, http1::MEDIA_TYPE)], body).into_response())
}

/// A gRPC status as a plain HTTP answer.
pub(crate) struct PostRefusal(Status);

impl From<Status> for PostRefusal {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl IntoResponse for PostRefusal {
    fn into_response(self) -> Response {
        let code = match self.0.code() {
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::AlreadyExists => StatusCode::CONFLICT,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::InvalidArgument | Code::Internal => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let mut response = code.into_response();
        match self.0.add_header(response.headers_mut()) {
            Ok(()) => response,
            // A message that is no header's value; ours all are.
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}
