//! OpenAI's Chat Completions API, streaming, as OpenAI and many other servers speak it.

mod own;
mod refusal;
mod request;
mod stream;

use reqwest::header::{HeaderMap, InvalidHeaderValue};
use url::Url;

use self::{request::ChatShape, stream::ChatBuilder};
use super::{Format, bearer, below, to_json};
use crate::{ApiKey, ModelRequest, Profile};

/// The format.
#[derive(Debug)]
pub(crate) struct Chat;

impl Format for Chat {
    const NAME: &'static str = "openai-chat";

    type Shape = ChatShape;
    type Growing = ChatBuilder;

    fn endpoint(base: Url, _model: &str) -> Url {
        below(base, &["chat", "completions"])
    }

    fn headers(key: Option<&ApiKey>) -> Result<HeaderMap, InvalidHeaderValue> {
        bearer(key)
    }

    fn body(profile: &Profile, request: &ModelRequest, shape: ChatShape) -> Vec<u8> {
        to_json(&request::body(profile, request, shape))
    }

    fn after_refusal(shape: ChatShape, said: &str, request: &ModelRequest) -> Option<ChatShape> {
        refusal::after_refusal(shape, said, request)
    }

    fn remembered(shape: ChatShape) -> ChatShape {
        ChatShape {
            usage: shape.usage,
            ..ChatShape::default()
        }
    }

    fn growing(request: &ModelRequest) -> ChatBuilder {
        ChatBuilder::new(request.tools.iter().map(|tool| tool.name.clone()))
    }
}
