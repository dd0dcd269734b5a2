//! What schemathesis says of the API: it sends good and bad requests that it makes from the OpenAPI
//! document. `make test` installs it from PyPI.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shared_api::RoleName;
use tests::{
    gantry::{Gantry, Setup, eventually},
    report::report,
};

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_schema_conformance";

/// Where requests take away a right of the asking person, or what the ids name: the rest would be refused
/// after one of them, so they have a run of their own.
const TAKES_AWAY: [&str; 5] = [
    "/api/v1/keys/{id}",
    "/api/v1/people/{id}",
    "/api/v1/people/{id}/role",
    "/api/v1/runners/{id}",
    "/api/v1/sessions/{id}",
];

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_no_answer_that_the_openapi_document_does_not_describe() {
    let gantry = Gantry::with(Setup {
        settings: "[limits]\nnew_per_minute = 100000\noperations_per_minute = 100000\n\
                   message_kib_per_minute = 1000000\n"
            .to_owned(),
        ..Setup::default()
    })
    .await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = settings_for(&gantry).await;
    std::fs::write(folder.path().join("schemathesis.toml"), config).expect("it is written");
    let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
    assert_eq!(document.status, 200);
    let text = document.body.to_string();
    std::fs::write(folder.path().join("api.json"), text).expect("it is written");
    let operations = document.body["paths"].as_object().expect("paths").values();
    let operations: usize = operations
        .map(|methods| methods.as_object().expect("methods").len())
        .sum();

    let (mut tested, mut cases) = (0, 0);
    for choice in ["--exclude-path", "--include-path"] {
        let paths = TAKES_AWAY.iter().flat_map(|path| [choice, path]);
        let report = run(&gantry, folder.path(), paths.collect()).await;
        assert_eq!(report["complete"], true, "{report}");
        tested += report["operations"]["tested"].as_u64().expect("a number");
        cases += report["test_cases"]["generated"]
            .as_u64()
            .expect("a number");
    }
    assert_eq!(tested, operations as u64, "every operation was tried");
    assert!(cases > 1000, "{cases}");
    report(&format!(
        "schemathesis: {cases} requests to {tested} operations, each answered as documented"
    ));
}

/// Ids of things that are there, so that requests get behind the look-up, and the credential, which the
/// list of processes does not show. No runner is online: what schemathesis makes up is carried out on no
/// machine.
async fn settings_for(gantry: &Gantry) -> String {
    let runner = gantry.runner("laptop").await;
    let client = gantry.client();
    let exec = json!({ "runner": "laptop", "exec": { "argv": ["echo", "hi"] } });
    let started = gantry.ask("post", "/api/v1/operations", Some(exec.to_string()));
    let operation = started.await.body["id"].as_str().expect("an id").to_owned();
    eventually("it ends", async || {
        let at = format!("/api/v1/operations/{operation}");
        let seen = gantry.ask("get", &at, None).await;
        (seen.body["state"] == "ended").then_some(())
    })
    .await;
    let mut talk = gantry.talk().await;
    talk.say("run echo hi").await;
    drop(runner);
    gantry.until_online("laptop", false).await;
    let session = talk.session();
    let link = client.share_session(session, None).await.expect("a link");
    let link = link.path.replace("/shared/", "");
    let runner = client.runners().await.expect("a list")[0].id;
    let key = client.create_key("k").await.expect("a key").entry.id;
    let wish = shared_api::CreateJoinToken::one("next");
    let token = client.create_join_token(&wish);
    let token = token.await.expect("a token").id;
    let ann = client.invite("ann", RoleName::Member).await;
    let ann = ann.expect("she is invited").person.id;
    let of = |noun: &str, name: &str, value: String| {
        format!(
            "[[operations]]\ninclude-path-regex = \"^/api/v1/{noun}/\"\nparameters = {{ {name} = \"{value}\" }}\n"
        )
    };
    let about = [
        of("sessions", "id", session.to_string()),
        of("operations", "id", operation),
        of("runners", "id", runner.to_string()),
        of("keys", "id", key.to_string()),
        of("join-tokens", "id", token.to_string()),
        of("people", "id", ann.to_string()),
        of("shared", "link", link),
    ];
    format!(
        "headers = {{ Authorization = \"Bearer ${{GANTRY_TOKEN}}\" }}\nseed = 1\n{}",
        about.concat()
    )
}

/// Runs it to its end; returns its report.
async fn run(gantry: &Gantry, folder: &Path, paths: Vec<&str>) -> Value {
    let report = folder.join("report.json");
    let mut command = tokio::process::Command::new(schemathesis());
    command
        .args(["--config-file", "schemathesis.toml", "run", "api.json"])
        .args(["--url", gantry.url(), "--checks", CHECKS])
        .args(["--phases", phases(), "--max-examples", "10"])
        .args(["--continue-on-failure", "--no-color", "--warnings", "off"])
        .args(["--report", "json", "--report-json-path"])
        .arg(&report)
        .args(paths)
        .current_dir(folder)
        .env("GANTRY_TOKEN", gantry.token());
    let done = command.output().await.expect("schemathesis starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}");
    let report = std::fs::read(report).expect("a report");
    serde_json::from_slice(&report).expect("JSON")
}

/// The phases of schemathesis: its coverage phase, and with `GANTRY_FUZZ_SEEDS`, as in `make soak`, random
/// requests as well.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn phases() -> &'static str {
    match std::env::var_os("GANTRY_FUZZ_SEEDS") {
        Some(_) => "coverage,fuzzing",
        None => "coverage",
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
fn schemathesis() -> PathBuf {
    let Some(program) = std::env::var_os("GANTRY_SCHEMATHESIS") else {
        panic!(
            "GANTRY_SCHEMATHESIS does not name the program schemathesis: run `make test`, which \
             installs it, or leave this test out with -E 'not test(/schemathesis::/)'"
        );
    };
    PathBuf::from(program)
}
