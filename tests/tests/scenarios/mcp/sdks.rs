//! What the official SDKs make of `/mcp`: `mcp` from PyPI and `@modelcontextprotocol/client` from npm. `make test`
//! installs them.

use std::ffi::OsString;

use serde_json::{Value, json};
use tests::gantry::Gantry;
use tokio::process::Command;

pub(super) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/mcp");

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_of_mcp_uses_a_fleet_in_both_eras() {
    let mut python = Command::new(peer("GANTRY_MCP_PYTHON"));
    python.arg(format!("{FOLDER}/sdk.py"));
    uses_a_fleet(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_of_mcp_uses_a_fleet_in_both_eras() {
    let mut node = Command::new("node");
    node.arg(format!("{FOLDER}/sdk.mjs"))
        .env("MCP_SDK", peer("GANTRY_MCP_NPM"));
    uses_a_fleet(node).await;
}

async fn uses_a_fleet(mut client: Command) {
    let gantry = Gantry::practice().await;
    let _runner = gantry.runner("laptop").await;
    let output = client
        .env("MCP_URL", format!("{}/mcp", gantry.url()))
        .env("TOKEN", gantry.token())
        .env("NO_PROXY", "127.0.0.1")
        .kill_on_drop(true)
        .output()
        .await
        .expect("it starts");
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{failed}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let expected = |version: &str| {
        json!({
            "version": version,
            "tools": 13,
            "said": "hi\n[exit code 3]",
            "missing": true,
            "slow": false,
            "progress": 1,
        })
    };
    let newer = "2026-07-28";
    let all = [expected("2025-11-25"), expected(newer), expected(newer)];
    assert_eq!(said, json!(all));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
pub(super) fn peer(name: &str) -> OsString {
    std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set: run this with make test, which installs it"))
}
