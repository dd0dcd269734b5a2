//! JSON-RPC 2.0: one message a body.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::words;

/// The text is no JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// The message is no JSON-RPC.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are wrong.
pub(super) const INVALID_PARAMS: i32 = -32602;
/// The headers tell something else than the message.
pub(super) const HEADER_MISMATCH: i32 = -32020;
/// The version is not spoken here.
pub(super) const UNSUPPORTED_VERSION: i32 = -32022;

/// Longest id of a request, in bytes.
const MAX_ID_BYTES: usize = 256;

/// A message of a client.
#[derive(Debug)]
pub(super) enum Message {
    /// It wants an answer.
    Request(Request),
    /// It wants none.
    Notification(Notification),
    /// It answers.
    Response,
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// A text or a whole number.
    pub(super) id: Value,
    /// The name of the method.
    pub(super) method: String,
    /// The parameters; empty if absent.
    pub(super) params: Map<String, Value>,
}

/// A notification.
#[derive(Debug)]
pub(super) struct Notification {
    /// The name of the method.
    pub(super) method: String,
    /// The parameters; empty if absent.
    pub(super) params: Map<String, Value>,
}

/// An error of the protocol. What goes wrong in a tool is a result of the tool.
#[derive(Debug)]
pub(super) struct Fault {
    status: StatusCode,
    code: i32,
    message: String,
    data: Option<Value>,
    id: Option<Value>,
}

impl Fault {
    /// A fault for which the request is refused as a whole.
    pub(super) fn bad(code: i32, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code,
            message: message.into(),
            data: None,
            id: None,
        }
    }

    /// The same fault with another status.
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same fault with facts for programs.
    pub(super) fn with_data(self, data: Value) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }

    /// The same fault as the answer to this request.
    pub(super) fn of(self, id: Value) -> Self {
        Self {
            id: Some(id),
            ..self
        }
    }

    #[cfg(test)]
    pub(super) fn parts(&self) -> (u16, i32) {
        (self.status.as_u16(), self.code)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut body = json!({ "jsonrpc": "2.0", "error": error });
        if let Some(id) = self.id {
            body["id"] = id;
        }
        (self.status, Json(body)).into_response()
    }
}

#[derive(Deserialize)]
struct Raw {
    jsonrpc: Option<String>,
    method: Option<String>,
    params: Option<Value>,
    result: Option<Value>,
    error: Option<Value>,
}

/// Reads a message.
///
/// # Errors
/// If the body is not exactly one message.
pub(super) fn read(body: &[u8]) -> Result<Message, Fault> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Fault::bad(PARSE_ERROR, words::of_message(&error)))?;
    let bad = |why: &str| Err(Fault::bad(INVALID_REQUEST, why));
    if value.is_array() {
        return bad("a batch was sent; send each message as a request of its own");
    }
    // A null id is wrong, and no id is none.
    let id = value.get("id").cloned();
    let Ok(raw) = serde_json::from_value::<Raw>(value) else {
        return bad("this is no JSON-RPC message");
    };
    if raw.jsonrpc.as_deref() != Some("2.0") {
        return bad("a message has \"jsonrpc\": \"2.0\"");
    }
    let Some(method) = raw.method else {
        return match raw.result.is_some() || raw.error.is_some() {
            true => Ok(Message::Response),
            false => bad("a message has a method, a result or an error"),
        };
    };
    let params = match raw.params {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return bad("params is not an object"),
    };
    match id {
        None => Ok(Message::Notification(Notification { method, params })),
        Some(id) if is_id(&id) => Ok(Message::Request(Request { id, method, params })),
        Some(_) => bad("an id is a text of at most 256 bytes, or a whole number"),
    }
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::String(id) => id.len() <= MAX_ID_BYTES,
        Value::Number(id) => id.is_i64() || id.is_u64(),
        _ => false,
    }
}
