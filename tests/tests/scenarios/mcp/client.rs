//! A small client of MCP over streamable HTTP, which shows what is on the wire.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tests::gantry::Gantry;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// A client of one server, with one credential.
pub(super) struct McpClient {
    http: reqwest::Client,
    url: String,
    token: String,
    /// The name that the server gave it; absent in the newer era.
    session: Option<String>,
    next: AtomicU64,
}

/// A call whose answer has yet to come.
pub(super) struct Begun {
    pub(super) id: u64,
    response: reqwest::Response,
}

impl McpClient {
    /// A client of 2025-11-25, which has initialized.
    pub(super) async fn begun(gantry: &Gantry, token: &str) -> Self {
        let mut client = Self::modern(gantry, token);
        client.session = Some(String::new());
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let response = client.send("initialize", params).await.response;
        let session = response.headers().get("mcp-session-id");
        let session = session.and_then(|session| session.to_str().ok());
        client.session = Some(session.expect("a session id").to_owned());
        let answer: Value = response.json().await.expect("JSON");
        assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
        let accepted = client.notify("notifications/initialized", json!({})).await;
        assert_eq!(accepted, 202);
        client
    }

    /// A client of 2026-07-28, which needs no beginning.
    pub(super) fn modern(gantry: &Gantry, token: &str) -> Self {
        Self {
            http: reqwest::Client::builder()
                .no_proxy()
                .build()
                .expect("a client"),
            url: format!("{}/mcp", gantry.url()),
            token: token.to_owned(),
            session: None,
            next: AtomicU64::new(1),
        }
    }

    /// The same client at another server of the database.
    pub(super) fn by_way_of(&self, gantry: &Gantry) -> Self {
        Self {
            http: self.http.clone(),
            url: format!("{}/mcp", gantry.url()),
            token: self.token.clone(),
            session: self.session.clone(),
            // An id of a request is good once for a client, at whichever server.
            next: AtomicU64::new(1000),
        }
    }

    /// Asks, and waits for the answer.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Value {
        self.send(method, params).await.answer().await
    }

    /// Calls a tool: its text, and whether it failed.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.begin(tool, arguments).await.answer().await;
        let failed = answer["result"]["isError"] == true;
        (text(&answer), failed)
    }

    /// Begins a call of a tool.
    pub(super) async fn begin(&self, tool: &str, arguments: Value) -> Begun {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send("tools/call", params).await
    }

    /// Cancels a call, as clients of the older era do.
    pub(super) async fn cancel(&self, call: &Begun) {
        let params = json!({ "requestId": call.id, "reason": "a test" });
        assert_eq!(self.notify("notifications/cancelled", params).await, 202);
    }

    async fn notify(&self, method: &str, params: Value) -> u16 {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let sent = self.request(method, &body).send().await;
        sent.expect("an answer").status().as_u16()
    }

    async fn send(&self, method: &str, mut params: Value) -> Begun {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let sent = self.request(method, &body).send().await;
        let response = sent.expect("an answer");
        Begun { id, response }
    }

    fn request(&self, method: &str, body: &Value) -> reqwest::RequestBuilder {
        let mut request = self.http.post(&self.url).bearer_auth(&self.token);
        request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        request = match self.session.as_deref() {
            None => {
                let name = body["params"]["name"].as_str();
                let request = request
                    .header("mcp-protocol-version", MODERN)
                    .header("mcp-method", method);
                match name {
                    Some(name) => request.header("mcp-name", name),
                    None => request,
                }
            }
            Some("") => request,
            Some(session) => request
                .header("mcp-protocol-version", LEGACY)
                .header("mcp-session-id", session),
        };
        request.body(body.to_string())
    }
}

impl Begun {
    /// The answer: the body, or the last message of the stream.
    pub(super) async fn answer(self) -> Value {
        let kind = self.response.headers().get("content-type").cloned();
        let body = self.response.text().await.expect("a body");
        let json = match kind.is_some_and(|kind| kind == "text/event-stream") {
            true => {
                let mut lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
                lines.next_back().unwrap_or_default().to_owned()
            }
            false => body,
        };
        let answer: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json:?}"));
        assert_eq!(answer["id"], self.id, "{answer}");
        answer
    }
}

/// The text of a tool's result.
pub(super) fn text(answer: &Value) -> String {
    let content = answer["result"]["content"].as_array();
    let content = content.unwrap_or_else(|| panic!("no result: {answer}"));
    let texts = content.iter().filter_map(|part| part["text"].as_str());
    texts.collect()
}
