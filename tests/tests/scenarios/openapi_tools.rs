//! What tools that others make say of the API's document. `make test` installs them from npm.

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use tempfile::TempDir;
use tests::gantry::Gantry;

/// A client that tells events, live messages and messages of the socket apart by their tags. It
/// compiles only where each of them is a type of its own.
const CLIENT: &str = r#"
import type { components, operations, webhooks } from "./api";

type Schemas = components["schemas"];
type ServerMessage = webhooks["stream"]["post"]["requestBody"]["content"]["application/json"];

export function told(message: ServerMessage): string {
    switch (message.type) {
        case "event":
            return event(message.event);
        case "live":
            return live(message.live);
        case "caught_up":
            return message.seq.toFixed();
        case "problem":
            return message.problem.detail;
        case "reconnect":
            return message.within_ms.toFixed();
        case "changed":
            return message.topics.join();
    }
}

type OperationMessage = webhooks["operation_stream"]["post"]["requestBody"]["content"]["application/json"];

export function happens(message: OperationMessage): string {
    switch (message.type) {
        case "ended":
            return end(message.operation);
        case "gap":
            return `${message.stream} ${message.to - message.from}`;
        case "problem":
            return message.problem.detail;
        default:
            return message.type;
    }
}

function end(operation: Schemas["Operation"]): string {
    const end = operation.end;
    if (!end) return operation.state;
    return end.kind === "exited" ? `${end.code ?? end.signal} ${end.cause}` : end.words;
}

function event(event: Schemas["SessionEvent"]): string {
    const place: number = event.seq;
    switch (event.type) {
        case "turn.ended":
            const outcome: "completed" | "failed" | "cancelled" | "interrupted" = event.outcome;
            return `${place} ${outcome} ${event.at}`;
        case "answer.recorded":
            return event.parts.map((part) => (part.type === "tool_call" ? part.name : part.type)).join();
        case "call.placed":
            return event.place.runner_name;
        default:
            return event.type;
    }
}

function live(live: Schemas["Live"]): string {
    switch (live.kind) {
        case "output": return `${live.stream} ${live.bytes}`;
        case "gap": return `${live.stream} lacks ${live.to - live.from}`;
        case "taken_back": return `${live.step} ${live.attempt}`;
        default: return live.text;
    }
}

export const following: Schemas["ClientMessage"] = { type: "subscribe", session: "ses_1", after: 0 };
export const query: operations["read_output"]["parameters"]["query"] = { stream: "stderr" };
// @ts-expect-error there is no such stream
export const wrong: operations["read_output"]["parameters"]["query"] = { stream: "stdlog" };
export const start: Schemas["StartOperation"] = { runner: "laptop", exec: { argv: ["ls", "-l"] } };
export const says: Schemas["OperationClientMessage"] = { type: "signal", signal: "interrupt" };
export const input: operations["send_input"]["parameters"]["query"] = { offset: 0, end: true };
export const both: [keyof operations, keyof operations] = ["cancel_session", "cancel_operation"];
"#;

#[tokio::test(flavor = "multi_thread")]
async fn redocly_finds_nothing_wrong_with_the_openapi_document() {
    let folder = with_document().await;
    let linted = run(
        "redocly",
        &["lint", "--format=json", "api.json"],
        folder.path(),
    );
    let said = String::from_utf8_lossy(&linted.stdout);
    let found: serde_json::Value = serde_json::from_str(&said).expect(&said);
    let totals = &found["totals"];
    let clean = totals["errors"] == 0 && totals["warnings"] == 0 && totals["ignored"] == 0;
    assert!(linted.status.success() && clean, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_typescript_makes_types_that_tell_events_and_messages_apart() {
    let folder = with_document().await;
    let made = run(
        "openapi-typescript",
        &["api.json", "-o", "api.ts"],
        folder.path(),
    );
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && !said.contains('⚠'), "{said}");
    std::fs::write(folder.path().join("client.ts"), CLIENT).expect("it is written");
    let checked = run(
        "tsc",
        &["--strict", "--noEmit", "--skipLibCheck", "client.ts"],
        folder.path(),
    );
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
}

/// A folder with the document, as the server serves it.
async fn with_document() -> TempDir {
    let gantry = Gantry::practice().await;
    let document = gantry.ask("get", "/api/v1/openapi.json", None).await;
    assert_eq!(document.status, 200);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = document.body.to_string();
    std::fs::write(folder.path().join("api.json"), text).expect("it is written");
    folder
}

/// Runs a tool to its end, where it asks nobody for a newer version and tells nobody of its use.
pub(super) fn run(tool: &str, arguments: &[&str], folder: &Path) -> Output {
    let tool = tools().join(tool);
    let mut command = std::process::Command::new(&tool);
    command
        .args(arguments)
        .current_dir(folder)
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    command.output().expect("the tool starts")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment of the tests is theirs to read"
)]
pub(super) fn tools() -> PathBuf {
    let Some(tools) = std::env::var_os("GANTRY_OPENAPI_TOOLS") else {
        panic!(
            "GANTRY_OPENAPI_TOOLS does not name the folder of redocly, openapi-typescript and tsc: \
             run `make test`, which installs them, or leave these tests out with \
             -E 'not test(/openapi_tools::|dashboards::/)'"
        );
    };
    PathBuf::from(tools)
}
