//! The conformance suite of the protocol plays servers for this client. `make test` installs it.

use std::{collections::BTreeSet, ffi::OsString, path::PathBuf};

use tokio::process::Command;

#[tokio::test]
async fn the_conformance_suite_of_mcp_finds_no_fault_in_the_client_of_2025_11_25() {
    passes("2025-11-25").await;
}

#[tokio::test]
async fn the_conformance_suite_of_mcp_finds_no_fault_in_the_client_of_2026_07_28() {
    passes("2026-07-28").await;
}

/// Every scenario that this revision requires passes.
async fn passes(revision: &str) {
    let installed = PathBuf::from(peer("GANTRY_MCP_CONFORMANCE")).join("node_modules");
    let test = std::env::current_exe().expect("a path");
    let built = test.ancestors().nth(2).expect("the folder of the profile");
    let driver = built.join("examples/conformance");
    let suite = async |arguments: &[&str]| {
        let mut node = Command::new(installed.join("node/bin/node"));
        node.arg(installed.join("@modelcontextprotocol/conformance/dist/index.js"));
        node.args(arguments).env("NO_PROXY", "*").kill_on_drop(true);
        let output = node.output().await.expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&said).into_owned()
    };
    let listed = suite(&["list", "--client", "--requirements", revision]).await;
    let (_, of_clients) = listed.split_once("Client scenarios").expect("a list");
    let lines = of_clients
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.trim().strip_prefix("- "));
    let names: BTreeSet<_> = names.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() >= 18, "{listed}");
    let driver = driver.display().to_string();
    let said = suite(&["client", "--command", &driver, "--requirements", revision]).await;
    let passed = |name: &str| {
        said.lines()
            .any(|line| line.starts_with(&format!("✓ {name}: ")))
    };
    let failed: Vec<_> = names.into_iter().filter(|name| !passed(name)).collect();
    assert!(failed.is_empty(), "{failed:?}: {said}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn peer(name: &str) -> OsString {
    std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set: run this with make test, which installs it"))
}
