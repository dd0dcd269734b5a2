//! Anthropic's Messages API, streaming.

mod refusal;
mod request;
mod stream;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use url::Url;

use self::{request::MessagesShape, stream::MessagesBuilder};
use super::{Format, below, secret, to_json};
use crate::{ApiKey, ModelRequest, Profile};

/// The version of the API whose form this is. The vendor keeps it, and servers that speak its format know no later one.
const VERSION: &str = "2023-06-01";

/// The format.
#[derive(Debug)]
pub(crate) struct Messages;

impl Format for Messages {
    const NAME: &'static str = "anthropic-messages";

    type Shape = MessagesShape;
    type Growing = MessagesBuilder;

    /// The version of the path may be part of the base address: people copy it with and without.
    fn endpoint(base: Url, _model: &str) -> Url {
        let path = base.path_segments();
        let last = path.and_then(|path| path.rev().find(|segment| !segment.is_empty()));
        match last {
            Some("v1") => below(base, &["messages"]),
            _ => below(base, &["v1", "messages"]),
        }
    }

    fn headers(key: Option<&ApiKey>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static("anthropic-version"),
            HeaderValue::from_static(VERSION),
        );
        if let Some(key) = key {
            headers.insert(HeaderName::from_static("x-api-key"), secret(key.reveal())?);
        }
        Ok(headers)
    }

    fn body(profile: &Profile, request: &ModelRequest, shape: MessagesShape) -> Vec<u8> {
        to_json(&request::body(profile, request, shape))
    }

    fn after_refusal(
        shape: MessagesShape,
        said: &str,
        request: &ModelRequest,
    ) -> Option<MessagesShape> {
        refusal::after_refusal(shape, said, request)
    }

    fn remembered(shape: MessagesShape) -> MessagesShape {
        refusal::remembered(shape)
    }

    fn growing(request: &ModelRequest) -> MessagesBuilder {
        MessagesBuilder::new(request.tools.iter().map(|tool| tool.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(base: &str) -> String {
        let base = Url::parse(base).expect("a URL");
        Messages::endpoint(base, "m").to_string()
    }

    #[test]
    fn the_version_stands_once_in_the_path() {
        for base in [
            "https://a.test",
            "https://a.test/",
            "https://a.test/v1",
            "https://a.test/v1/",
        ] {
            assert_eq!(endpoint(base), "https://a.test/v1/messages", "{base}");
        }
        assert_eq!(
            endpoint("https://a.test/anthropic"),
            "https://a.test/anthropic/v1/messages"
        );
        assert_eq!(
            endpoint("https://a.test/v1beta?key=k"),
            "https://a.test/v1beta/v1/messages?key=k"
        );
    }

    #[test]
    fn the_key_goes_out_in_the_vendors_own_header_and_is_not_shown() {
        let key = ApiKey::new("sk-ant-0123456789").expect("a key");
        let headers = Messages::headers(Some(&key)).expect("it can be carried");
        assert_eq!(headers["x-api-key"], "sk-ant-0123456789");
        assert!(headers["x-api-key"].is_sensitive());
        assert_eq!(headers["anthropic-version"], "2023-06-01");
        assert!(!headers.contains_key("authorization"));
        let without = Messages::headers(None).expect("it can be carried");
        assert!(!without.contains_key("x-api-key"));
    }
}
