//! A tool server that wants a sign-in, and its authorization server, on one port. It takes each refresh token once: the
//! second use ends all tokens, as servers do that hold it for a theft.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use shared_types::Digest;
use tokio::{net::TcpListener, task::AbortHandle};

type Fields = BTreeMap<String, String>;

/// See the module. It stops when it is dropped.
pub(crate) struct ToolServer {
    /// Its address, without a path.
    pub(crate) base: String,
    pub(crate) told: Arc<Mutex<Told>>,
    serving: AbortHandle,
}

/// All that it was told, and what it is to do.
#[derive(Default)]
pub(crate) struct Told {
    base: String,
    codes: BTreeMap<String, Fields>,
    /// The person of each token that holds.
    people: BTreeMap<String, String>,
    /// The person of each refresh token, and if it is spent.
    refreshes: BTreeMap<String, (String, bool)>,
    made: u32,
    /// The number of renewals.
    pub(crate) renewals: u32,
    /// The number of refresh tokens that were shown twice.
    pub(crate) thefts: u32,
    /// The tokens that were given back.
    pub(crate) revoked: BTreeSet<String>,
    /// The credentials and the header `X-Key` of each request to `/mcp`.
    pub(crate) asked: Vec<(Option<String>, Option<String>)>,
    /// The seconds for which tokens are good.
    pub(crate) good_for: u32,
    /// The address to which `/mcp` sends on.
    pub(crate) sends_on: Option<String>,
    /// The name that it gives itself as a resource, where that is another one.
    pub(crate) calls_itself: Option<String>,
    /// The issuer that it names as its authorization server, where that is another one.
    pub(crate) authority: Option<String>,
    /// True if clients show a secret.
    pub(crate) takes_secrets: bool,
    /// The forms with which tokens were asked for.
    pub(crate) forms: Vec<BTreeMap<String, String>>,
    /// True if anybody may ask.
    pub(crate) is_open: bool,
    /// The number of calls of its tool.
    pub(crate) calls: u32,
    /// True if it answers no call.
    pub(crate) holds_calls: bool,
}

impl Told {
    fn new_word(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}-canary-{}", self.made)
    }

    /// All tokens that it ever gave.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let all = self.people.keys().chain(self.refreshes.keys());
        all.cloned().collect()
    }
}

impl ToolServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("it is bound"));
        let told = Arc::new(Mutex::new(Told {
            base: base.clone(),
            good_for: 3600,
            ..Told::default()
        }));
        let app = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(described))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .route("/mcp", post(mcp))
            .with_state(Arc::clone(&told));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            base,
            told,
            serving: serving.abort_handle(),
        }
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("no test panicked with it")
    }

    /// The address of the tool server.
    pub(crate) fn mcp(&self) -> String {
        format!("{}/mcp", self.base)
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Shared = State<Arc<Mutex<Told>>>;

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().expect("no test panicked with it")
}

/// The fields of a form.
fn form(body: &str) -> Fields {
    let url = reqwest::Url::parse(&format!("http://form/?{body}")).expect("a form");
    url.query_pairs().into_owned().collect()
}

async fn described(State(told): Shared) -> Json<Value> {
    let told = lock(&told);
    let resource = told.calls_itself.clone();
    let resource = resource.unwrap_or_else(|| format!("{}/mcp", told.base));
    let authority = told.authority.as_ref().unwrap_or(&told.base);
    Json(
        json!({ "resource": resource, "authorization_servers": [authority], "scopes_supported": ["read"] }),
    )
}

async fn metadata(State(told): Shared) -> Json<Value> {
    let told = lock(&told);
    let base = &told.base;
    let method = match told.takes_secrets {
        true => "client_secret_post",
        false => "none",
    };
    Json(json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "registration_endpoint": format!("{base}/register"),
        "revocation_endpoint": format!("{base}/revoke"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": [method],
        "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(State(told): Shared) -> (StatusCode, Json<Value>) {
    let id = lock(&told).new_word("client");
    (StatusCode::CREATED, Json(json!({ "client_id": id })))
}

/// The person of the parameter `person` agrees at once.
async fn authorize(State(told): Shared, Query(asked): Query<Fields>) -> Response {
    let mut told = lock(&told);
    let code = told.new_word("code");
    let mut back = reqwest::Url::parse(&asked["redirect_uri"]).expect("an address");
    back.query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &asked["state"])
        .append_pair("iss", &told.base);
    told.codes.insert(code, asked);
    (
        StatusCode::SEE_OTHER,
        [(header::LOCATION, back.to_string())],
    )
        .into_response()
}

async fn token(State(told): Shared, body: String) -> (StatusCode, Json<Value>) {
    let form = form(&body);
    let mut told = lock(&told);
    told.forms.push(form.clone());
    let refused = |error: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": error })));
    let person = match form["grant_type"].as_str() {
        "refresh_token" => {
            let Some((person, spent)) = told.refreshes.get_mut(&form["refresh_token"]) else {
                return refused("invalid_grant");
            };
            if std::mem::replace(spent, true) {
                told.thefts += 1;
                told.people.clear();
                return refused("invalid_grant");
            }
            let person = person.clone();
            told.renewals += 1;
            person
        }
        _ => {
            let Some(asked) = told.codes.remove(&form["code"]) else {
                return refused("invalid_grant");
            };
            let challenge = Digest::of(form["code_verifier"].as_bytes());
            let holds = URL_SAFE_NO_PAD.encode(challenge.as_bytes()) == asked["code_challenge"]
                && ["redirect_uri", "client_id", "resource"]
                    .iter()
                    .all(|name| form.get(*name) == asked.get(*name));
            if !holds {
                return refused("invalid_grant");
            }
            asked.get("person").cloned().unwrap_or_default()
        }
    };
    let (access, refresh) = (told.new_word("access"), told.new_word("refresh"));
    told.people.insert(access.clone(), person.clone());
    told.refreshes.insert(refresh.clone(), (person, false));
    let tokens = json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer",
        "expires_in": told.good_for, "scope": "read" });
    (StatusCode::OK, Json(tokens))
}

async fn revoke(State(told): Shared, body: String) -> StatusCode {
    lock(&told).revoked.insert(form(&body)["token"].clone());
    StatusCode::OK
}

async fn mcp(State(told): Shared, headers: HeaderMap, body: String) -> Response {
    let answer = answer(&mut lock(&told), &headers, &body);
    match answer {
        Some(answer) => answer,
        None => std::future::pending().await,
    }
}

/// The answer to a request; nothing where it holds it.
fn answer(told: &mut Told, headers: &HeaderMap, body: &str) -> Option<Response> {
    let word = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let credential = word("authorization");
    told.asked.push((credential.clone(), word("x-key")));
    if let Some(to) = &told.sends_on {
        let to = [(header::LOCATION, to.clone())];
        return Some((StatusCode::TEMPORARY_REDIRECT, to).into_response());
    }
    let token = credential
        .as_deref()
        .and_then(|it| it.strip_prefix("Bearer "));
    let person = token.and_then(|token| told.people.get(token)).cloned();
    let Some(person) = person.or_else(|| told.is_open.then(String::new)) else {
        let at = format!("{}/.well-known/oauth-protected-resource/mcp", told.base);
        let says = format!("Bearer resource_metadata=\"{at}\", scope=\"read\"");
        let says = [(header::WWW_AUTHENTICATE, says)];
        return Some((StatusCode::UNAUTHORIZED, says).into_response());
    };
    let asked: Value = serde_json::from_str(body).expect("JSON");
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "double", "version": "1" } }),
        "tools/list" => {
            json!({ "tools": [{ "name": "whoami", "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => {
            told.calls += 1;
            if told.holds_calls {
                return None;
            }
            json!({ "content": [{ "type": "text", "text": format!("you are {person}") }] })
        }
        _ if asked.get("id").is_none() => return Some(StatusCode::ACCEPTED.into_response()),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
            return Some(Json(answer).into_response());
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
    Some(Json(answer).into_response())
}
