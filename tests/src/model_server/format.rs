//! The wire formats, each in a module of its own.

use serde_json::{Value, json};

use super::{Reply, Said, chat, gemini, messages, responses};

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenAI's Chat Completions API.
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Messages,
    /// Google's Gemini API.
    Gemini,
}

impl Format {
    /// The format of requests to this path.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        // The vendor serves the same in both versions, and its own libraries ask in the first.
        let versions = ["/v1/models/", "/v1beta/models/"];
        let gemini = versions.iter().find_map(|models| path.strip_prefix(models));
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/responses" => Some(Self::Responses),
            "/v1/messages" => Some(Self::Messages),
            _ if gemini?.ends_with(":streamGenerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// The stream of an answer to request `number`, with this body.
    pub(super) fn answer(self, number: usize, said: &Said, request: &Value) -> Vec<u8> {
        match self {
            Self::Chat => chat::answer(number, said),
            Self::Responses => responses::answer(number, said),
            Self::Messages => messages::answer(number, said, request),
            Self::Gemini => gemini::answer(number, said),
        }
    }

    /// Holds a request to the rules of the vendor.
    ///
    /// # Errors
    /// Fails with the vendor's words about the first rule that is broken.
    pub(super) fn check(self, request: &Value) -> Result<(), String> {
        match self {
            Self::Chat => Ok(()),
            Self::Responses => responses::check(request),
            Self::Messages => messages::check(request),
            Self::Gemini => gemini::check(request),
        }
    }

    /// The vendor's refusal of a request that breaks a rule.
    pub(super) fn refusal(self, message: &str) -> Reply {
        let kind = "invalid_request_error";
        let body = match self {
            Self::Chat | Self::Responses => {
                json!({ "error": { "message": message, "type": kind } })
            }
            Self::Messages => json!({
                "type": "error",
                "error": { "type": kind, "message": message },
                "request_id": "req_test",
            }),
            Self::Gemini => json!({ "error": {
                "code": 400, "message": message, "status": "INVALID_ARGUMENT",
            } }),
        };
        Reply::Status {
            code: 400,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    /// The vendor's refusal of a request that is too long.
    pub(super) fn too_long(self, length: usize, most: usize) -> Reply {
        let message = match self {
            Self::Chat | Self::Responses => format!(
                "This model's maximum context length is {most} bytes. However, your messages resulted in {length}."
            ),
            Self::Messages => format!("prompt is too long: {length} tokens > {most} maximum"),
            Self::Gemini => format!(
                "The input token count ({length}) exceeds the maximum number of tokens allowed ({most})."
            ),
        };
        self.refusal(&message)
    }
}
