//! The client under the conformance suite of the protocol (npm `@modelcontextprotocol/conformance`):
//!
//! ```text
//! conformance client --command target/debug/examples/conformance --requirements 2026-07-28
//! ```
//!
//! The suite says the scenario and the version in the environment, and the server's address in the last argument.

use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::{Map, Value};
use server_mcp::{
    Client, ElicitAnswer, Elicitation, Era, McpError, Options, Person, Remote, Tool, Way,
};
use server_web::CheckedClient;

/// Accepts each question with its defaults.
struct Accepts;

#[async_trait]
impl Person for Accepts {
    fn is_there(&self) -> bool {
        true
    }

    async fn elicit(&self, _: Elicitation) -> ElicitAnswer {
        ElicitAnswer::Accept(Map::new())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the suite speaks through the environment"
)]
fn of_environment(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().unwrap_or_default();
    let scenario = of_environment("MCP_CONFORMANCE_SCENARIO");
    let context: Value =
        serde_json::from_str(&of_environment("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let era = match of_environment("MCP_CONFORMANCE_PROTOCOL_VERSION").as_str() {
        "" => None,
        "2026-07-28" => Some(Era::Modern),
        _ => Some(Era::Legacy),
    };
    // The suite's servers listen here.
    let here = ["127.0.0.0/8", "::1/128"].map(str::parse);
    let here = here.into_iter().collect::<Result<_, _>>()?;
    let remote = Remote::new(CheckedClient::new(here)?, &url, &BTreeMap::new())?;
    let person = Arc::new(Accepts);
    let client = Client::connect(Way::Http(remote), Options { era, person }).await?;
    let tools = client.tools().await?;
    for refused in &tools.refused {
        eprintln!("{refused}");
    }
    let mut failed = None;
    match context["toolCalls"].as_array() {
        Some(calls) => {
            for call in calls {
                let name = call["name"].as_str().unwrap_or_default();
                let arguments = call["arguments"].as_object().cloned().unwrap_or_default();
                note(&mut failed, called(&client, name, &arguments).await);
            }
        }
        None => {
            for tool in &tools.tools {
                note(
                    &mut failed,
                    called(&client, &tool.name, &some_arguments(tool)).await,
                );
            }
        }
    }
    if scenario == "http-standard-headers" {
        for resource in client.resources().await? {
            client.read(&resource.uri, Duration::from_secs(5)).await?;
        }
        for prompt in client.prompts().await? {
            client
                .prompt(&prompt.name, &Map::new(), Duration::from_secs(5))
                .await?;
        }
    }
    client.close().await;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn note(failed: &mut Option<McpError>, error: Option<McpError>) {
    *failed = failed.take().or(error);
}

async fn called(client: &Client, name: &str, arguments: &Map<String, Value>) -> Option<McpError> {
    let content = client.call(name, arguments, Duration::from_secs(20)).await;
    eprintln!("{name}: {content:?}");
    content.err()
}

/// A value for each argument that has to be there.
fn some_arguments(tool: &Tool) -> Map<String, Value> {
    let properties = tool.schema["properties"].as_object();
    let some = properties.into_iter().flatten().map(|(name, schema)| {
        let value = match schema["type"].as_str() {
            Some("number" | "integer") => 5.into(),
            Some("boolean") => true.into(),
            Some("object") => Value::Object(Map::new()),
            Some("array") => Value::Array(Vec::new()),
            _ => "some".into(),
        };
        (name.clone(), value)
    });
    some.collect()
}
