//! What the protocol's own conformance suite says of `/mcp`: `@modelcontextprotocol/conformance` from npm, which
//! `make test` installs.
//!
//! The suite is made for servers that have tools, prompts and resources for the test alone. So only what is about the
//! protocol itself is required here. Of all other scenarios the messages must still be those of the schema.

use std::{collections::BTreeMap, path::Path};

use tests::gantry::Gantry;
use tokio::process::Command;

use super::sdks::{FOLDER, peer};

/// The checks that failed, by revision and scenario.
type Failed = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// Scenarios, each with the checks in it that fail.
type Scenarios = &'static [(&'static str, &'static [&'static str])];

/// The scenarios of each revision that pass, but for checks that need a tool or a list that this server has not.
const REQUIRED: [(&str, Scenarios); 2] = [
    (
        "2025-11-25",
        &[
            ("server-initialize", &[]),
            ("server-session-lifecycle", &[]),
            ("ping", &[]),
            ("tools-list", &[]),
            ("server-sse-multiple-streams", &[]),
            ("server-sse-polling", &[]),
            ("dns-rebinding-protection", &[]),
        ],
    ),
    (
        "2026-07-28",
        &[
            (
                "server-stateless",
                &[
                    "sep-2575-server-rejects-undeclared-capability",
                    "sep-2575-missing-capability-http-400",
                    "sep-2575-http-server-no-independent-requests-on-stream",
                    "sep-2575-server-no-log-without-loglevel",
                ],
            ),
            ("tools-list", &[]),
            ("server-sse-multiple-streams", &[]),
            ("sep-2164-resource-not-found", &[]),
            ("dns-rebinding-protection", &[]),
            (
                "caching",
                &[
                    "sep-2549-prompts-list-caching-hints",
                    "sep-2549-resources-list-caching-hints",
                    "sep-2549-resources-templates-list-caching-hints",
                ],
            ),
            ("input-required-result-unsupported-methods", &[]),
            ("http-header-validation", &[]),
        ],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_of_mcp_finds_the_protocol_kept_in_both_eras() {
    let gantry = Gantry::practice().await;
    let revisions = REQUIRED.map(|(revision, _)| revision);
    let suite = peer("GANTRY_MCP_CONFORMANCE");
    // The suite wants a newer Node than that of the path may be.
    let node = Path::new(&suite).join("node_modules/node/bin/node");
    let output = Command::new(node)
        .arg(format!("{FOLDER}/conformance.mjs"))
        .env("MCP_URL", format!("{}/mcp", gantry.url()))
        .env("TOKEN", gantry.token())
        .env("SUITE", &suite)
        .env("REVISIONS", revisions.join(" "))
        .kill_on_drop(true)
        .output()
        .await
        .expect("node starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let failed: Failed = serde_json::from_slice(&output.stdout).expect("checks that failed");
    for (revision, scenarios) in REQUIRED {
        for (scenario, but) in scenarios {
            let found = failed[revision].get(*scenario);
            let found = found.unwrap_or_else(|| panic!("{revision}: {scenario} did not run"));
            assert_eq!(found, but, "{revision}: {scenario}");
        }
    }
    for (scenario, checks) in failed.values().flatten() {
        assert!(
            !checks.iter().any(|check| check == "wire-schema-valid"),
            "{scenario}: a message is not of the schema"
        );
    }
}
