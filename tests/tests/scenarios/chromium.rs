//! What a real browser makes of the cookie, the tickets and the headers: Debian's Chromium, driven by
//! playwright-core (npm). `make test` installs both.

use serde_json::{Value, json};
use tests::gantry::Gantry;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/chromium.mjs");

#[tokio::test(flavor = "multi_thread")]
async fn chromium_signs_in_from_the_servers_page_and_another_page_gets_nothing() {
    let gantry = Gantry::practice().await;
    let output = tokio::process::Command::new("node")
        .arg(SCRIPT)
        .env("SERVER", gantry.url())
        .env("CODE", gantry.sign_in_code().await)
        .env("PLAYWRIGHT", variable("GANTRY_PLAYWRIGHT"))
        .env("CHROMIUM", variable("GANTRY_CHROMIUM"))
        .kill_on_drop(true)
        .output()
        .await
        .expect("node starts");
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");

    assert_eq!(
        (&said["before"], &said["signIn"]),
        (&json!(401), &json!(200))
    );
    assert_eq!(said["scriptSees"], "", "no script reads the cookie");
    let kept = json!([{ "name": "__Host-gantry", "httpOnly": true, "secure": true, "sameSite": "Strict" }]);
    assert_eq!(said["kept"], kept);
    assert_eq!(
        (&said["me"], &said["session"]),
        (&json!("owner"), &json!(201))
    );
    let streams = ["stream", "streamAgain", "streamWithCookie"].map(|name| &said[name]);
    assert_eq!(streams, ["open", "refused", "refused"]);
    for (page, statuses) in [
        // The browser sends the cookie of the same site along, and says that another page asks.
        ("neighbour", [403, 403, 403]),
        // It sends none to another site, and no page may have an answer.
        ("stranger", [401, 401, 401]),
    ] {
        let tried = &said[page];
        let heard = tried["statuses"].as_array().expect("a list");
        assert_eq!(heard[..3], statuses.map(Value::from), "{page}: {tried}");
        assert_eq!(
            (&tried["reads"], &tried["stream"]),
            (&json!("nothing"), &json!("refused")),
            "{page}"
        );
    }
    assert_eq!(said["typed"], 200, "the person may look at an address");
    assert_eq!(said["sessions"], 1, "no other page made one");
    let end = ["signOut", "after", "left"].map(|name| &said[name]);
    assert_eq!(end, [204, 401, 0]);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn variable(name: &str) -> std::ffi::OsString {
    std::env::var_os(name).unwrap_or_else(|| {
        panic!(
            "{name} is not set: run `make test`, which installs Chromium and playwright-core, or leave this \
             test out with -E 'not test(/chromium::/)'"
        )
    })
}
