//! OpenAI's Responses API, streaming. The vendor stores nothing, so each request carries the whole conversation.

mod refusal;
mod request;
mod stream;

use reqwest::header::{HeaderMap, InvalidHeaderValue};
use url::Url;

use self::{request::Shape, stream::Growing};
use super::{Format, bearer, below, to_json};
use crate::{ApiKey, ModelRequest, Profile};

/// The format.
#[derive(Debug)]
pub(crate) struct Responses;

impl Format for Responses {
    const NAME: &'static str = "openai-responses";

    type Shape = Shape;
    type Growing = Growing;

    fn endpoint(base: Url, _model: &str) -> Url {
        below(base, &["responses"])
    }

    fn headers(key: Option<&ApiKey>) -> Result<HeaderMap, InvalidHeaderValue> {
        bearer(key)
    }

    fn body(profile: &Profile, request: &ModelRequest, shape: Shape) -> Vec<u8> {
        to_json(&request::body(profile, request, shape))
    }

    fn after_refusal(shape: Shape, said: &str, _request: &ModelRequest) -> Option<Shape> {
        refusal::after_refusal(shape, said)
    }

    fn remembered(shape: Shape) -> Shape {
        // Another conversation may have thoughts that the server takes.
        Shape {
            reasoning: true,
            ..shape
        }
    }

    fn growing(request: &ModelRequest) -> Growing {
        Growing::new(request.tools.iter().map(|tool| tool.name.clone()))
    }
}
