//! Google's Gemini, as bytes, and the rules of its requests.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{
    Said,
    pieces::{call_id, list, seal, spoken},
};

/// The signature that Google documents for calls of another model.
const UNCHECKED_SIGNATURE: &str = "skip_thought_signature_validator";

/// A whole answer to request `number`: thoughts, text and calls, then the end and the usage. The first call is signed.
pub(super) fn answer(number: usize, said: &Said) -> Vec<u8> {
    let thoughts = spoken(&said.thoughts).into_iter();
    let thoughts = thoughts.map(|text| json!({ "text": text, "thought": true }));
    let text = spoken(&said.text)
        .into_iter()
        .map(|text| json!({ "text": text }));
    let (mut parts, mut reason): (Vec<Value>, _) = (thoughts.chain(text).collect(), "STOP");
    for (place, (name, arguments)) in said.calls.iter().enumerate() {
        // The format has no place for arguments that are no object.
        let Ok(arguments) = serde_json::from_str::<Map<String, Value>>(arguments) else {
            reason = "MALFORMED_FUNCTION_CALL";
            break;
        };
        let call = json!({ "id": call_id(number, place), "name": name, "args": arguments });
        let mut part = json!({ "functionCall": call });
        if place == 0 {
            part["thoughtSignature"] = signature(&part).into();
        }
        parts.push(part);
    }
    let events = parts
        .into_iter()
        .map(|part| event(number, vec![part], None, said));
    let end = event(number, Vec::new(), Some(reason), said);
    events.chain([end]).collect::<Vec<_>>().concat()
}

fn event(number: usize, parts: Vec<Value>, reason: Option<&str>, said: &Said) -> Bytes {
    let usage = said.usage;
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if let Some(reason) = reason {
        candidate["finishReason"] = reason.into();
    }
    let event = json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": usage.input,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output - usage.thoughts,
            "thoughtsTokenCount": usage.thoughts,
            "totalTokenCount": usage.input + usage.output,
        },
        "modelVersion": "test-model",
        "responseId": format!("resp_{number}"),
    });
    format!("data: {event}\r\n\r\n").into()
}

/// The signature of a call. Its letters are some of base64, as the vendor sends it.
fn signature(part: &Value) -> String {
    seal(&part["functionCall"])
}

/// Holds a request to the rules: the first of the calls made at a time comes back with its signature, and each call
/// has a response.
///
/// # Errors
/// Fails with the vendor's words about the first rule that is broken.
pub(super) fn check(request: &Value) -> Result<(), String> {
    let contents = list(request, "contents");
    for (place, content) in contents.iter().enumerate() {
        if content["role"] != "model" {
            continue;
        }
        let calls: Vec<_> = with(content, "functionCall").collect();
        let Some(first) = calls.first() else {
            continue;
        };
        match first["thoughtSignature"].as_str() {
            None => {
                return Err(
                    "Function call is missing a thought_signature in functionCall parts."
                        .to_owned(),
                );
            }
            Some(signed) if signed == signature(first) || signed == UNCHECKED_SIGNATURE => {}
            Some(_) => return Err("Corrupted thought signature.".to_owned()),
        }
        let next = contents.get(place + 1).unwrap_or(&Value::Null);
        if with(next, "functionResponse").count() != calls.len() {
            return Err("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned());
        }
    }
    Ok(())
}

/// The parts of a content that have this field.
fn with<'a>(content: &'a Value, field: &'a str) -> impl Iterator<Item = &'a Value> {
    let parts = list(content, "parts").iter();
    parts.filter(move |part| !part[field].is_null())
}
