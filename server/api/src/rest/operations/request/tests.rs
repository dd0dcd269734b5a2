use axum::http::HeaderValue;
use serde_json::{Value, json};

use super::*;

/// The problem's words; empty where there is none.
fn wrong_with(body: Value) -> String {
    let ask = match serde_json::from_value(body) {
        Ok(ask) => ask,
        Err(error) => return error.to_string(),
    };
    checked(None, ask)
        .err()
        .map_or(String::new(), |error| error.to_string())
}

#[test]
fn a_request_that_could_run_nowhere_is_refused_by_the_field_that_is_wrong() {
    let digest = "0".repeat(64);
    let exec = |exec: Value| json!({ "exec": exec });
    for (body, words) in [
        (json!({}), "exactly one of exec, download"),
        (
            json!({ "exec": { "script": "true" }, "download": { "path": "a" } }),
            "exactly one of exec, download",
        ),
        (exec(json!({})), "exactly one of argv and script"),
        (
            exec(json!({ "argv": ["a"], "script": "a" })),
            "exactly one of argv and script",
        ),
        (exec(json!({ "argv": [] })), "exec.argv is empty"),
        (exec(json!({ "argv": ["", "a"] })), "exec.argv is empty"),
        (
            exec(json!({ "argv": vec!["a"; MAX_WORDS + 1] })),
            "4097 words; at most 4096",
        ),
        (
            exec(json!({ "argv": ["a", "x".repeat(MAX_COMMAND_BYTES + 1)] })),
            "a word of exec.argv has 131072 bytes; at most 131071",
        ),
        (exec(json!({ "argv": ["a\0"] })), "a NUL character"),
        (exec(json!({ "script": "" })), "exec.script is empty"),
        (exec(json!({ "script": "a\0" })), "a NUL character"),
        (
            exec(json!({ "script": "a", "directory": "x".repeat(MAX_PATH_BYTES + 1) })),
            "exec.directory has 4097 bytes; at most 4096",
        ),
        (
            exec(json!({ "script": "a", "environment": { "A=B": "c" } })),
            "a variable named \"A=B\"",
        ),
        (
            exec(json!({ "script": "a", "environment": { "": "c" } })),
            "a variable named \"\"",
        ),
        (
            exec(json!({ "script": "a", "environment": { "A": "\0" } })),
            "a NUL character",
        ),
        (
            exec(json!({ "script": "a", "terminal": { "rows": 0, "columns": 80 } })),
            "1 to 65535 rows and columns",
        ),
        (
            exec(json!({ "script": "a", "idle_timeout_ms": 0 })),
            "exec.idle_timeout_ms is 0; give 1 to 86400000",
        ),
        (
            json!({ "exec": { "script": "a" }, "timeout_ms": 999 }),
            "timeout_ms is 999; give 1000 to 86400000",
        ),
        (
            json!({ "download": { "path": "" } }),
            "download.path is empty",
        ),
        (
            json!({ "list": { "path": "", "limit": 1001 } }),
            "list.limit is 1001; give 1 to 1000",
        ),
        (json!({ "stat": { "path": "\0" } }), "stat.path holds a NUL"),
        (
            json!({ "make_directory": { "path": "" } }),
            "make_directory.path is empty",
        ),
        (
            json!({ "move": { "from": "a", "to": "" } }),
            "move.to is empty",
        ),
        (json!({ "remove": { "path": "" } }), "remove.path is empty"),
        (
            json!({ "upload": { "path": "", "bytes": 0, "digest": digest } }),
            "upload.path is empty",
        ),
        (
            json!({ "upload": { "path": "a", "bytes": MAX_TRANSFER_BYTES + 1, "digest": digest } }),
            "at most 68719476736 bytes",
        ),
        (
            json!({ "upload": { "path": "a", "bytes": 0, "digest": "00" } }),
            "64 hexadecimal digits",
        ),
    ] {
        let said = wrong_with(body);
        assert!(said.contains(words), "it should say {words:?}: {said}");
    }
}

#[test]
fn what_a_host_can_take_passes_as_it_was_asked_for() {
    let ask = json!({ "runner": "laptop", "timeout_ms": 1000, "exec": {
        "argv": ["a", "x".repeat(MAX_COMMAND_BYTES)], "environment": { "A": "" },
        "terminal": { "rows": 1, "columns": 65535 }, "idle_timeout_ms": 1 } });
    let ask = serde_json::from_value(ask).expect("it is a request");
    let start = checked(None, ask).expect("it can run");
    assert_eq!(start.runner.as_deref(), Some("laptop"));
    assert_eq!(start.run_for, Some(Duration::from_secs(1)));
    let Request::Exec(exec) = start.request else {
        panic!("it is an exec");
    };
    assert_eq!(exec.retention, Retention::All, "nobody needs to stay");
    assert_eq!(exec.idle_for_ms, NonZeroU64::new(1));
    assert_eq!(exec.terminal.map(|size| size.columns), Some(65535));
}

#[test]
fn an_idempotency_key_is_visible_ascii_and_comes_once() {
    let key_of = |values: &[&[u8]]| {
        let values = values.iter().map(|value| {
            let value = HeaderValue::from_bytes(value).expect("a header's value");
            (
                once::IDEMPOTENCY_KEY.parse().expect("a header's name"),
                value,
            )
        });
        key(&values.collect::<Vec<_>>().into_iter().fold(
            HeaderMap::new(),
            |mut headers, (name, value): (axum::http::HeaderName, _)| {
                headers.append(name, value);
                headers
            },
        ))
    };
    assert_eq!(key_of(&[]).ok(), Some(None));
    let longest = "k".repeat(MAX_KEY_BYTES);
    for good in ["1", "build/42!~", &longest] {
        assert_eq!(
            key_of(&[good.as_bytes()]).ok().flatten().as_deref(),
            Some(good)
        );
    }
    let too_long = "k".repeat(MAX_KEY_BYTES + 1);
    for bad in [
        b"".as_slice(),
        b"a b",
        b"\xc3\xa4",
        b"a\tb",
        too_long.as_bytes(),
    ] {
        assert!(key_of(&[bad]).is_err(), "{bad:?}");
    }
    assert!(key_of(&[b"a", b"a"]).is_err(), "it comes twice");
}
