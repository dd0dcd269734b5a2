use axum::http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use super::{
    era::{Era, era},
    message::{Message, read},
};

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let lines = lines.iter().copied();
    let line = |(name, value): (&'static str, &'static str)| {
        (
            axum::http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    lines.map(line).collect()
}

fn of(lines: &[(&'static str, &'static str)], message: &Value) -> Result<Era, (u16, i32)> {
    let message = read(message.to_string().as_bytes()).expect("a message");
    let Message::Request(request) = message else {
        panic!("no request: {message:?}");
    };
    era(&headers(lines), &request).map_err(|fault| fault.parts())
}

fn call(meta: Value) -> Value {
    let params = json!({ "name": "exec", "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const METHOD: (&str, &str) = ("mcp-method", "tools/call");
const NAME: (&str, &str) = ("mcp-name", "exec");

#[test]
fn the_era_of_a_request_is_what_its_headers_and_its_meta_say_alike() {
    let modern = call(meta("2026-07-28"));
    let legacy = json!({ "jsonrpc": "2.0", "id": "a", "method": "ping" });
    let nameless = |session: Option<&str>| {
        let session = session.map(str::to_owned);
        Ok(Era::Legacy { session })
    };
    assert_eq!(of(&[], &legacy), nameless(None));
    let older = [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", "abc"),
    ];
    assert_eq!(of(&older, &legacy), nameless(Some("abc")));
    assert_eq!(of(&[VERSION, METHOD, NAME], &modern), Ok(Era::Modern));
    let encoded = ("mcp-name", "=?base64?ZXhlYw==?=");
    assert_eq!(of(&[VERSION, METHOD, encoded], &modern), Ok(Era::Modern));
    let unknown = ("mcp-protocol-version", "1900-01-01");
    for (lines, message, code) in [
        (&[METHOD, NAME][..], &modern, -32020),
        (&[VERSION, NAME], &modern, -32020),
        (&[VERSION, METHOD], &modern, -32020),
        (&[VERSION, METHOD, ("mcp-name", "read")], &modern, -32020),
        (&[older[0], METHOD, NAME], &modern, -32020),
        (&[VERSION, VERSION, METHOD, NAME], &modern, -32020),
        (&[unknown, METHOD, NAME], &call(meta("1900-01-01")), -32022),
        (&[VERSION, METHOD, NAME], &call(json!({})), -32602),
        (&[VERSION, METHOD, NAME], &call(Value::Null), -32602),
    ] {
        assert_eq!(of(lines, message), Err((400, code)), "{lines:?} {message}");
    }
}

#[test]
fn a_call_has_the_same_key_on_every_replica_and_no_other_call_has_it() {
    let key = |session: &str, id: Value| {
        let session = Some(session.to_owned());
        Era::Legacy { session }.key_of(Some(&id))
    };
    let one = key("a", json!(1)).expect("a key");
    assert_eq!(key("a", json!(1)), Some(one.clone()));
    for other in [key("a", json!(2)), key("a", json!("1")), key("b", json!(1))] {
        assert!(other.is_some_and(|other| other != one));
    }
    assert_eq!(Era::Modern.key_of(Some(&json!(1))), None);
    assert_eq!(key("a", Value::Null), None);
}

#[test]
fn a_body_is_one_message_and_a_batch_is_none() {
    let code = |body: &str| read(body.as_bytes()).map_err(|fault| fault.parts().1);
    for (body, wrong) in [
        ("{", -32700),
        ("[]", -32600),
        ("1", -32600),
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            -32600,
        ),
    ] {
        assert_eq!(code(body).err(), Some(wrong), "{body}");
    }
    let notified = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(matches!(code(notified), Ok(Message::Notification(_))));
    let answered = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert!(matches!(code(answered), Ok(Message::Response)));
}
