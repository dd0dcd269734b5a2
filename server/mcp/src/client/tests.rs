//! Servers of both eras over a pipe, and bad ones.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::*;
use crate::{ElicitAnswer, Elicitation, NobodyThere, PipeReader, PipeWriter};

const START_WITHIN: Duration = Duration::from_secs(10);

/// A server that is a function from a message to what it writes.
struct Scripted<F>(F, mpsc::Sender<Vec<u8>>);

#[async_trait]
impl<F: FnMut(Value) -> Vec<Vec<u8>> + Send> PipeWriter for Scripted<F> {
    async fn write(&mut self, bytes: Bytes) -> Result<(), String> {
        let message = serde_json::from_slice(&bytes).expect("the client writes messages");
        for line in (self.0)(message) {
            if line == DIES {
                self.1 = mpsc::channel(1).0;
                return Ok(());
            }
            let _ = self.1.send(line).await;
        }
        Ok(())
    }
}

/// Written by a server that ends.
const DIES: &[u8] = b"dies";

struct Output(mpsc::Receiver<Vec<u8>>);

#[async_trait]
impl PipeReader for Output {
    async fn read(&mut self) -> Result<Bytes, String> {
        match self.0.recv().await {
            Some(bytes) => Ok(bytes.into()),
            None => Err("it exited with code 1".to_owned()),
        }
    }
}

fn pipe(server: impl FnMut(Value) -> Vec<Vec<u8>> + Send + 'static) -> Way {
    let (out, output) = mpsc::channel(64);
    Way::Pipe(Pipe {
        reader: Box::new(Output(output)),
        writer: Box::new(Scripted(server, out)),
    })
}

fn options() -> Options {
    Options {
        era: None,
        person: Arc::new(NobodyThere),
        start_within: START_WITHIN,
    }
}

fn answer(message: &Value, result: Value) -> Vec<Vec<u8>> {
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    vec![format!("{answer}\n").into_bytes()]
}

fn refuse(message: &Value, code: i64) -> Vec<Vec<u8>> {
    let error = json!({ "code": code, "message": "no" });
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
    vec![format!("{answer}\n").into_bytes()]
}

/// A server with a handshake, whose other requests are answered by this.
fn legacy(mut rest: impl FnMut(Value) -> Vec<Vec<u8>> + Send + 'static) -> Way {
    pipe(move |message| match message["method"].as_str() {
        Some("server/discover") => refuse(&message, -32601),
        Some("initialize") => answer(
            &message,
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "old" } }),
        ),
        _ => rest(message),
    })
}

fn modern(mut rest: impl FnMut(Value) -> Vec<Vec<u8>> + Send + 'static) -> Way {
    pipe(move |message| match message["method"].as_str() {
        Some("server/discover") => answer(
            &message,
            json!({ "resultType": "complete", "supportedVersions": [MODERN], "capabilities": { "tools": {} },
                    "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "new", "version": "1" } } }),
        ),
        _ => rest(message),
    })
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

async fn connected(way: Way) -> Client {
    Client::connect(way, options()).await.expect("it connects")
}

async fn called(way: Way) -> Result<Content, McpError> {
    let client = connected(way).await;
    client.call("t", &Map::new(), Duration::from_secs(60)).await
}

#[tokio::test]
async fn a_server_of_each_era_is_known_by_its_first_answer() {
    let old = connected(legacy(|_| Vec::new())).await;
    assert_eq!((old.era(), old.server()), (Era::Legacy, "old"));
    let new = connected(modern(|_| Vec::new())).await;
    assert_eq!((new.era(), new.server()), (Era::Modern, "new 1"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_question_is_of_the_earlier_era_and_a_silent_one_is_none() {
    let ignores = pipe(|message| match message["method"].as_str() {
        Some("initialize") => answer(
            &message,
            json!({ "protocolVersion": LEGACY, "capabilities": {} }),
        ),
        _ => Vec::new(),
    });
    assert_eq!(connected(ignores).await.era(), Era::Legacy);
    let silent = Client::connect(pipe(|_| Vec::new()), options()).await;
    assert_eq!(silent.err(), Some(McpError::TimedOut(START_WITHIN)));
}

#[tokio::test]
async fn a_modern_request_says_all_of_the_protocol_by_itself() {
    let content = called(modern(|message| {
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], MODERN);
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
        answer(&message, said("here"))
    }));
    assert_eq!(content.await.expect("it answers").text, "here");
}

#[tokio::test]
async fn a_list_has_all_pages_and_ends_where_the_bound_is() {
    let client = connected(legacy(|message| {
        let page: u64 = message["params"]["cursor"]
            .as_str()
            .map_or(0, |at| at.parse().unwrap());
        let tools: Vec<_> = (0..100)
            .map(|n| json!({ "name": format!("t{}", page * 100 + n), "inputSchema": { "type": "object" } }))
            .collect();
        answer(
            &message,
            json!({ "tools": tools, "nextCursor": (page + 1).to_string() }),
        )
    }));
    let tools = client.await.tools().await.expect("they are listed");
    assert_eq!((tools.tools.len(), tools.refused.len()), (MAX_TOOLS, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stalls_times_out_and_the_connection_lives() {
    let client = connected(legacy(|message| match message["params"]["name"].as_str() {
        Some("stalls") => Vec::new(),
        Some(_) => answer(&message, said("ok")),
        None => Vec::new(),
    }))
    .await;
    let within = Duration::from_secs(5);
    let stalled = client.call("stalls", &Map::new(), within).await;
    assert_eq!(stalled, Err(McpError::TimedOut(within)));
    assert!(stalled.is_err_and(|error| error.is_in_doubt()));
    assert_eq!(
        client
            .call("t", &Map::new(), within)
            .await
            .map(|said| said.text),
        Ok("ok".to_owned())
    );
}

#[tokio::test]
async fn a_server_that_dies_in_mid_call_leaves_the_outcome_open() {
    let died = called(legacy(|message| match message["id"].is_null() {
        true => Vec::new(),
        false => vec![DIES.to_vec()],
    }))
    .await;
    assert_eq!(
        died,
        Err(McpError::Closed("it exited with code 1".to_owned()))
    );
}

#[tokio::test]
async fn a_server_that_floods_is_cut_off() {
    let piece = vec![b'x'; 64 * 1024];
    let flooded = called(legacy(move |message| match message["id"].is_null() {
        true => Vec::new(),
        false => vec![piece.clone(); 32],
    }))
    .await;
    assert_eq!(flooded, Err(McpError::TooLarge(1024 * 1024)));
    let babbled = called(legacy(|message| match message["id"].is_null() {
        true => Vec::new(),
        false => vec![b"log\n".repeat(300)],
    }))
    .await;
    assert_eq!(babbled, Err(McpError::Stray));
}

#[tokio::test]
async fn a_few_lines_of_a_log_are_skipped_and_a_change_of_the_tools_is_noted() {
    let client = connected(legacy(|message| {
        let mut lines = vec![b"Server ready\n".to_vec(), b"\n".to_vec()];
        lines.push(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n".to_vec(),
        );
        if !message["id"].is_null() {
            lines.extend(answer(&message, said("ok")));
        }
        lines
    }))
    .await;
    client
        .call("t", &Map::new(), START_WITHIN)
        .await
        .expect("it answers");
    assert!(client.has_changed() && !client.has_changed());
}

struct Anna;

#[async_trait]
impl Person for Anna {
    fn is_there(&self) -> bool {
        true
    }

    async fn elicit(&self, question: Elicitation) -> ElicitAnswer {
        assert_eq!(question.message, "Who?");
        let Value::Object(content) = json!({ "name": "Anna", "other": 1 }) else {
            return ElicitAnswer::Cancel;
        };
        ElicitAnswer::Accept(content)
    }
}

#[tokio::test]
async fn a_question_of_a_server_has_a_persons_answer_and_its_state_comes_back() {
    let mut ids = Vec::new();
    let way = modern(move |message| {
        assert!(!ids.contains(&message["id"]), "each round has its own id");
        ids.push(message["id"].clone());
        let params = &message["params"];
        if params["requestState"] == "s" {
            assert_eq!(
                params["inputResponses"]["q"],
                json!({ "action": "accept", "content": { "name": "Anna", "age": 7 } })
            );
            return answer(&message, said("hello"));
        }
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" }, "age": { "type": "integer", "default": 7 } } });
        let question = json!({ "method": "elicitation/create", "params": { "message": "Who?", "requestedSchema": schema } });
        answer(
            &message,
            json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "q": question } }),
        )
    });
    let person = Arc::new(Anna);
    let client = Client::connect(
        way,
        Options {
            person,
            ..options()
        },
    )
    .await
    .expect("it connects");
    let content = client.call("t", &Map::new(), START_WITHIN).await;
    assert_eq!(content.expect("it answers").text, "hello");
}

#[tokio::test]
async fn a_server_that_asks_for_ever_or_for_what_nobody_gives_is_refused() {
    let asks = called(modern(|message| {
        answer(
            &message,
            json!({ "resultType": "input_required", "requestState": "again" }),
        )
    }));
    assert_eq!(asks.await, Err(McpError::Rounds(MAX_ROUNDS)));
    let samples = called(modern(|message| {
        let wanted = json!({ "s": { "method": "sampling/createMessage", "params": {} } });
        answer(
            &message,
            json!({ "resultType": "input_required", "inputRequests": wanted }),
        )
    }));
    assert!(matches!(samples.await, Err(McpError::Form(_))));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_slowly_keeps_its_era() {
    let mut later = Vec::new();
    let slow = pipe(move |message| match message["method"].as_str() {
        // It reads nothing while it starts.
        Some("server/discover") => {
            later = answer(
                &message,
                json!({ "supportedVersions": [MODERN], "capabilities": {}, "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "slow" } } }),
            );
            Vec::new()
        }
        Some("initialize") => [
            std::mem::take(&mut later),
            refuse(&message, UNSUPPORTED_VERSION),
        ]
        .concat(),
        _ => Vec::new(),
    });
    let client = connected(slow).await;
    assert_eq!((client.era(), client.server()), (Era::Modern, "slow"));
}

/// Opens addresses after an hour.
struct Slowly;

#[async_trait]
impl Person for Slowly {
    fn is_there(&self) -> bool {
        true
    }

    async fn elicit(&self, question: Elicitation) -> ElicitAnswer {
        tokio::time::sleep(Duration::from_secs(60 * 60)).await;
        match question.wants {
            crate::Wants::Opened(url) if url.host_str() == Some("example.org") => {
                ElicitAnswer::Accept(Map::new())
            }
            _ => ElicitAnswer::Decline,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_wants_an_address_opened_is_sent_again_once_it_is_and_its_time_stands_still() {
    let refusal = |message: &Value, url: &str| {
        let wanted =
            json!({ "mode": "url", "elicitationId": "e", "url": url, "message": "Sign in" });
        let error =
            json!({ "code": -32042, "message": "no", "data": { "elicitations": [wanted] } });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
        vec![format!("{answer}\n").into_bytes()]
    };
    let mut calls = 0;
    let way = legacy(move |message| {
        let first = message["params"]["name"] == "t";
        calls += u32::from(!message["id"].is_null());
        match (message["id"].is_null(), first, calls) {
            (true, ..) => Vec::new(),
            (_, true, 1) => refusal(&message, "https://example.org/a"),
            (_, true, _) => answer(&message, said("signed")),
            (_, false, _) => refusal(&message, "https://other.example/"),
        }
    });
    let person = Arc::new(Slowly);
    let client = Client::connect(
        way,
        Options {
            person,
            ..options()
        },
    )
    .await;
    let client = client.expect("it connects");
    let within = Duration::from_secs(5);
    let signed = client.call("t", &Map::new(), within).await;
    assert_eq!(signed.map(|content| content.text), Ok("signed".to_owned()));
    let declined = client.call("u", &Map::new(), within).await;
    assert!(
        matches!(declined, Err(McpError::Refused { code: -32042, .. })),
        "{declined:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_stands_still_while_the_servers_own_question_is_open() {
    let mut call = Value::Null;
    let way = legacy(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            call = message["id"].clone();
            let params = json!({ "message": "?", "requestedSchema": { "properties": {} } });
            let asks = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params });
            vec![format!("{asks}\n").into_bytes()]
        }
        None => answer(
            &json!({ "id": call }),
            said(&message["result"]["action"].to_string()),
        ),
        Some(_) => Vec::new(),
    });
    let person = Arc::new(Slowly);
    let client = Client::connect(
        way,
        Options {
            person,
            ..options()
        },
    )
    .await;
    let client = client.expect("it connects");
    let called = client.call("t", &Map::new(), Duration::from_secs(5)).await;
    assert_eq!(
        called.map(|content| content.text),
        Ok("\"decline\"".to_owned())
    );
}
