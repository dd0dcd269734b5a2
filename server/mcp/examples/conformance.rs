//! The client under the conformance suite of the protocol (npm `@modelcontextprotocol/conformance`):
//!
//! ```text
//! conformance client --command target/debug/examples/conformance --requirements 2026-07-28
//! ```
//!
//! The suite says the scenario and the version in the environment, and the server's address in the last argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use reqwest::{Method, header::LOCATION};
use serde_json::{Map, Value};
use server_mcp::{
    Client, ElicitAnswer, Elicitation, Era, McpError, Options, Person, Remote, Tool, Way,
    sign_in::{Access, AccessToken, Answer, Challenge, Grant, KnownClient, Own, SignIns},
};
use server_web::CheckedClient;
use shared_types::{Entropy as _, OsEntropy};
use url::Url;

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

/// Signs in as often as it is asked to. The suite's authorization servers ask no person.
struct SignsIn {
    web: CheckedClient,
    server: Url,
    known: Option<KnownClient>,
    grant: Mutex<Option<Grant>>,
    /// All scopes that were asked for so far.
    asked: Mutex<BTreeSet<String>>,
}

impl SignsIn {
    async fn signed_in(&self, challenge: &Challenge) -> Result<Grant, Box<dyn Error>> {
        let sign_ins = SignIns::new(self.web.clone());
        let found = sign_ins.find(&self.server, challenge, None).await?;
        // The suite does not say which authorization server knows its client.
        let issuer = Some(found.issuer().to_owned());
        let known = self
            .known
            .clone()
            .map(|known| KnownClient { issuer, ..known });
        let also = match challenge.wants_more() {
            true => self
                .asked
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            false => BTreeSet::new(),
        };
        let own = Own {
            redirect: "http://localhost:3000/callback",
            document: Some("https://conformance-test.local/client-metadata.json"),
            known: known.as_ref(),
        };
        let random = |bytes: &mut [u8]| OsEntropy.fill(bytes);
        let (url, begun) = sign_ins
            .begin(&found, challenge, &also, &own, random)
            .await?;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = begun.scopes().clone();
        let sent_back = self.web.request(Method::GET, &url)?.send().await?;
        let location = sent_back.headers().get(LOCATION).ok_or("no redirect")?;
        let brought: BTreeMap<_, _> = Url::parse(location.to_str()?)?
            .query_pairs()
            .into_owned()
            .collect();
        if brought.get("state") != Some(&begun.state) {
            return Err("another state".into());
        }
        let answer = Answer {
            code: brought.get("code").cloned().unwrap_or_default(),
            iss: brought.get("iss").cloned(),
            ..Answer::default()
        };
        Ok(sign_ins.redeem(&begun, &answer).await?)
    }
}

#[async_trait]
impl Access for SignsIn {
    async fn token(&self) -> Result<Option<AccessToken>, McpError> {
        let grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(grant.as_ref().map(Grant::access))
    }

    async fn refused(
        &self,
        _: Option<&AccessToken>,
        challenge: &Challenge,
    ) -> Result<bool, McpError> {
        let signed_in = self.signed_in(challenge).await;
        let grant = signed_in.map_err(|error| McpError::SignIn(error.to_string()))?;
        *self.grant.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant);
        Ok(true)
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
    let web = CheckedClient::new(here)?;
    let word = |name: &str| context[name].as_str().map(str::to_owned);
    let access = SignsIn {
        server: web.url(&url)?,
        known: word("client_id").map(|id| KnownClient {
            id,
            secret: word("client_secret"),
            issuer: None,
        }),
        web: web.clone(),
        grant: Mutex::default(),
        asked: Mutex::default(),
    };
    let remote = Remote::new(web, &url, &BTreeMap::new())?.with_access(Arc::new(access));
    let person = Arc::new(Accepts);
    let start_within = Duration::from_secs(20);
    let options = Options {
        era,
        person,
        start_within,
    };
    let client = Client::connect(Way::Http(remote), options).await?;
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
