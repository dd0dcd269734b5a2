//! The messages of JSON-RPC 2.0.

use serde_json::{Value, json};
use shared_types::clean::peer_words;

use crate::McpError;

/// A message of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    /// The answer to a request.
    Response(u64, Result<Value, RpcError>),
    /// A request of the server's own.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// Words that want no answer.
    Notification { method: String, params: Value },
    /// An error about no request in particular.
    Error(RpcError),
}

/// An error of a server, with its words made harmless.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

impl RpcError {
    fn read(error: &Value) -> Self {
        Self {
            code: error["code"].as_i64().unwrap_or_default(),
            message: peer_words(error["message"].as_str().unwrap_or("without words")),
            data: error["data"].clone(),
        }
    }
}

impl From<RpcError> for McpError {
    fn from(error: RpcError) -> Self {
        Self::Refused {
            code: error.code,
            message: error.message,
        }
    }
}

impl Incoming {
    /// The message with this text; nothing if it is none.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(text).ok()?;
        Self::of(value)
    }

    fn of(mut value: Value) -> Option<Self> {
        if value["jsonrpc"] != "2.0" {
            return None;
        }
        let (method, params) = (value["method"].take(), value["params"].take());
        let id = value["id"].take();
        if let Value::String(method) = method {
            return Some(match id {
                Value::Null => Self::Notification { method, params },
                id => Self::Request { id, method, params },
            });
        }
        let error = value.get("error").map(RpcError::read);
        match (id.as_u64(), error) {
            (Some(id), Some(error)) => Some(Self::Response(id, Err(error))),
            (Some(id), None) => {
                let result = value.get_mut("result")?.take();
                Some(Self::Response(id, Ok(result)))
            }
            (None, Some(error)) => Some(Self::Error(error)),
            (None, None) => None,
        }
    }
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    match params {
        Value::Null => json!({ "jsonrpc": "2.0", "method": method }),
        params => json!({ "jsonrpc": "2.0", "method": method, "params": params }),
    }
}

pub(crate) fn response(id: &Value, result: Result<Value, (i64, &str)>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, message)) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_message_is_read_and_other_texts_are_none() {
        let read = |text: &str| Incoming::read(text.as_bytes());
        let answer = read(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#);
        assert_eq!(answer, Some(Incoming::Response(7, Ok(json!({ "a": 1 })))));
        let refused =
            read(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"a\u001b[2Jb"}}"#);
        let Some(Incoming::Response(7, Err(error))) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((error.code, error.message.as_str()), (-1, "ab"));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#),
            Some(Incoming::Request { .. })
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
            Some(Incoming::Notification { .. })
        ));
        for other in [
            "",
            "Server ready",
            "[]",
            "{}",
            r#"{"jsonrpc":"2.0","id":7}"#,
            "null",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
