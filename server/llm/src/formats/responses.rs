//! OpenAI's Responses API, streaming. The vendor stores nothing, so each request carries the whole conversation.

mod refusal;
mod request;
mod stream;

use reqwest::header::{HeaderMap, InvalidHeaderValue};
use url::Url;

use self::{request::ResponsesShape, stream::ResponsesBuilder};
use super::{Format, bearer, below, to_json};
use crate::{ApiKey, ModelRequest, Profile};

/// The format.
#[derive(Debug)]
pub(crate) struct Responses;

impl Format for Responses {
    const NAME: &'static str = "openai-responses";

    type Shape = ResponsesShape;
    type Growing = ResponsesBuilder;

    fn endpoint(base: Url, _model: &str) -> Url {
        below(base, &["responses"])
    }

    fn headers(key: Option<&ApiKey>) -> Result<HeaderMap, InvalidHeaderValue> {
        bearer(key)
    }

    fn body(profile: &Profile, request: &ModelRequest, shape: ResponsesShape) -> Vec<u8> {
        to_json(&request::body(profile, request, shape))
    }

    fn after_refusal(
        shape: ResponsesShape,
        said: &str,
        _request: &ModelRequest,
    ) -> Option<ResponsesShape> {
        refusal::after_refusal(shape, said)
    }

    fn remembered(shape: ResponsesShape) -> ResponsesShape {
        // Another conversation may have thoughts that the server takes.
        ResponsesShape {
            reasoning: true,
            ..shape
        }
    }

    fn growing(request: &ModelRequest) -> ResponsesBuilder {
        ResponsesBuilder::new(request.tools.iter().map(|tool| tool.name.clone()))
    }
}
