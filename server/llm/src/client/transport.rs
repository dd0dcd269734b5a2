//! The way of a request to a model server, and of the answer back.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use shared_types::TraceContext;

use crate::{Failure, ModelError};

/// A way to one model server. It knows the server's address and the key.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request with this body, which is JSON, and returns the answer once its head has come. Dropping the
    /// future, or the body of the reply, ends the request.
    ///
    /// # Errors
    /// If no answer begins. [`Failure::is_unasked`] where nothing was sent because the way is closed now.
    async fn send(&self, body: Vec<u8>, trace: Option<TraceContext>) -> Result<Reply, Failure>;
}

/// The bytes of an answer.
#[async_trait]
pub trait ReplyBody: Send {
    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// If the answer broke off.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError>;
}

/// An answer that has begun.
pub struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Box<dyn ReplyBody>,
}

impl Reply {
    /// The answer with this status of HTTP, these headers and this body. A header that is none is left out, and a
    /// status that is none reads as trouble of the server's own.
    pub fn new<'a>(
        status: u16,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: Box<dyn ReplyBody>,
    ) -> Self {
        let header = |(name, value): (&str, &str)| {
            let name = HeaderName::try_from(name).ok()?;
            Some((name, HeaderValue::try_from(value).ok()?))
        };
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
            headers: headers.into_iter().filter_map(header).collect(),
            body,
        }
    }
}
