//! Google's Gemini API, streaming.

mod refusal;
mod request;
mod stream;

use reqwest::header::{HeaderMap, InvalidHeaderValue};
use url::Url;

use self::{request::GeminiShape, stream::GeminiBuilder};
use super::{Format, below, secret, to_json};
use crate::{ApiKey, ModelRequest, Profile};

/// The header with the key.
const KEY_HEADER: &str = "x-goog-api-key";

/// The version of the API, where the base address names none.
const VERSION: &str = "v1beta";

/// The signature that Google documents for calls of another model. It is not checked.
const UNCHECKED_SIGNATURE: &str = "skip_thought_signature_validator";

/// The field with a signature of thoughts.
const SIGNATURE: &str = "thoughtSignature";

/// The format.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Format for Gemini {
    const NAME: &'static str = "gemini";

    type Shape = GeminiShape;
    type Growing = GeminiBuilder;

    fn endpoint(base: Url, model: &str) -> Url {
        let last = base
            .path_segments()
            .and_then(|mut path| path.rfind(|name| !name.is_empty()));
        let is_version = |name: &str| {
            let version = name.strip_prefix('v').unwrap_or_default();
            version.starts_with(|letter: char| letter.is_ascii_digit())
        };
        let version = match last.is_some_and(is_version) {
            true => None,
            false => Some(VERSION),
        };
        // A tuned model has a collection of its own.
        let (collection, name) = model.split_once('/').unwrap_or(("models", model));
        let method = format!("{name}:streamGenerateContent");
        let path: Vec<_> = version.into_iter().chain([collection, &method]).collect();
        let mut endpoint = below(base, &path);
        endpoint.query_pairs_mut().append_pair("alt", "sse");
        endpoint
    }

    fn headers(key: Option<&ApiKey>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(KEY_HEADER, secret(key.reveal())?);
        }
        Ok(headers)
    }

    fn body(profile: &Profile, request: &ModelRequest, shape: GeminiShape) -> Vec<u8> {
        to_json(&request::body(profile, request, shape))
    }

    fn after_refusal(
        shape: GeminiShape,
        said: &str,
        _request: &ModelRequest,
    ) -> Option<GeminiShape> {
        refusal::after_refusal(shape, said)
    }

    fn remembered(shape: GeminiShape) -> GeminiShape {
        GeminiShape {
            schema: shape.schema,
            thoughts: shape.thoughts,
            ..GeminiShape::default()
        }
    }

    fn growing(request: &ModelRequest) -> GeminiBuilder {
        GeminiBuilder::new(request.tools.iter().map(|tool| tool.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_has_one_version_and_names_the_model() {
        for (base, model, expected) in [
            (
                "https://g.test",
                "gemini-3",
                "https://g.test/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
            ),
            (
                "https://g.test/v1beta/",
                "models/gemini-3",
                "https://g.test/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
            ),
            (
                "https://g.test/v1alpha",
                "tunedModels/mine",
                "https://g.test/v1alpha/tunedModels/mine:streamGenerateContent?alt=sse",
            ),
            (
                "https://g.test/vendors/google?team=a",
                "gemini-3",
                "https://g.test/vendors/google/v1beta/models/gemini-3:streamGenerateContent?team=a&alt=sse",
            ),
        ] {
            let base = Url::parse(base).expect("a URL");
            assert_eq!(Gemini::endpoint(base, model).as_str(), expected);
        }
    }

    #[test]
    fn the_key_has_a_header_of_its_own_and_is_not_shown() {
        let key = ApiKey::new("AIza0123456789");
        let headers = Gemini::headers(key.as_ref()).expect("it fits");
        assert!(headers[KEY_HEADER].is_sensitive());
        assert_eq!(headers[KEY_HEADER], "AIza0123456789");
        assert!(Gemini::headers(None).expect("it fits").is_empty());
    }
}
