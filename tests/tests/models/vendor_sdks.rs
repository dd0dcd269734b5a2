//! What the vendors' own Python libraries make of the scripted model server: `openai`, `anthropic` and `google-genai`,
//! from PyPI. `make test` installs them.

use serde_json::{Value, json};
use shared_types::event::Usage;
use tests::model_server::{Format, ModelServer, Reply, Said};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/vendor_sdks.py");

#[tokio::test(flavor = "multi_thread")]
async fn vendor_sdks_read_every_format_and_what_they_send_back_is_accepted() {
    let server = ModelServer::start().await;
    let first = || {
        Reply::Said(Said {
            thoughts: "Größer als gedacht 🦀.".to_owned(),
            text: "Ich sehe nach, 世界.".to_owned(),
            calls: ["ls 'ü'", "pwd"]
                .map(|command| {
                    (
                        "Shell".to_owned(),
                        json!({ "command": command }).to_string(),
                    )
                })
                .into(),
            usage: Usage {
                input: 120,
                cached: 70,
                cache_written: 20,
                output: 50,
                thoughts: 30,
            },
        })
    };
    // Each format is asked twice, one after the other.
    for _ in 0..4 {
        server.script(vec![first(), Reply::text("fertig")]);
    }
    let output = tokio::process::Command::new(python())
        .arg(SCRIPT)
        .env("MODEL_SERVER", server.root_url())
        .env("NO_PROXY", "127.0.0.1")
        .kill_on_drop(true)
        .output()
        .await
        .expect("Python starts");
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let said = said.as_array().expect("a list");

    let formats = [
        (Format::Chat, "tool_calls"),
        (Format::Responses, "completed"),
        (Format::Messages, "tool_use"),
        (Format::Gemini, "STOP"),
    ];
    assert_eq!(said.len(), formats.len());
    for (place, (said, (format, finish))) in said.iter().zip(formats).enumerate() {
        let id = |call: usize| format!("call_{}_{call}", 2 * place);
        let expected = json!({
            "thoughts": "Größer als gedacht 🦀.",
            "text": "Ich sehe nach, 世界.",
            "calls": [
                [id(0), "Shell", { "command": "ls 'ü'" }],
                [id(1), "Shell", { "command": "pwd" }],
            ],
            "finish": finish,
            "usage": [120, 70, 50, 30],
            "then": "fertig",
        });
        assert_eq!(*said, expected, "{format:?}");
    }
    let asked = server.asked();
    let of_request = asked.iter().map(|asked| asked.format);
    let expected = formats.iter().flat_map(|(format, _)| [*format; 2]);
    assert!(of_request.eq(expected), "{asked:#?}");
    assert_eq!(asked[6].path, "/v1/models/test-model:streamGenerateContent");
    let bearer = "authorization";
    let keys = [bearer, bearer, bearer, "x-goog-api-key"];
    for (place, name) in keys.into_iter().enumerate() {
        let key = asked[2 * place].header(name).unwrap_or_default();
        assert!(key.ends_with("key"), "{name}: {key}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn python() -> std::ffi::OsString {
    std::env::var_os("GANTRY_VENDOR_SDKS").unwrap_or_else(|| {
        panic!(
            "GANTRY_VENDOR_SDKS is not set: run `make test`, which installs the vendors' libraries, or leave this \
             test out with -E 'not test(/vendor_sdks::/)'"
        )
    })
}
