//! OAuth 2.1 for `/mcp`: a person lets a program in by a page in the browser, and the program gets a key of that person.
//!
//! The server is the authorization server of its own resource. A program finds it by the metadata (RFC 9728, RFC 8414),
//! shows who it is by a document at its own address or by registering (RFC 7591), and gets a code by a redirect and a key
//! for the code (RFC 6749, with PKCE by RFC 7636). A key that was given so stands in the list of keys and ends there.
//!
//! Nothing is stored of a program that registers: its id is what it said of itself. What it says proves nothing, so the
//! page shows above all where the answer goes.

mod callback;
mod client;
mod page;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::json;
use server_app::{AppError, Grant, OpContext, Scope, ShownCode};

pub(crate) use self::callback::answer_of;
use self::client::{Client, Registration};
use crate::{
    Doors, Peer,
    edge::hosts,
    rest::{Signed, no_such_method},
};

/// Largest body of these routes, in bytes.
const BODY_BYTES: usize = 8 * 1024;

/// Longest value that a program gets back as it sent it, in bytes.
const MAX_STATE_BYTES: usize = 2 * 1024;

/// The length of an S256 challenge (RFC 7636).
const CHALLENGE_BYTES: usize = 43;

/// The path of the resource that tokens are for.
const RESOURCE: &str = "/mcp";

pub(crate) fn router() -> Router<Doors> {
    let one = |route: axum::routing::MethodRouter<Doors>| route.fallback(no_such_method);
    Router::new()
        .route(
            "/.well-known/oauth-protected-resource",
            one(get(resource_metadata)),
        )
        .route(
            "/.well-known/oauth-protected-resource/mcp",
            one(get(resource_metadata)),
        )
        .route(
            "/.well-known/oauth-authorization-server",
            one(get(server_metadata)),
        )
        .route("/oauth/authorize", one(get(ask).post(decide)))
        .route("/oauth/token", one(post(token)))
        .route("/oauth/register", one(post(register)))
        .route(server_app::CALLBACK, one(get(callback::callback)))
        .route(server_app::DOCUMENT, one(get(callback::client)))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
}

/// Tells a client of `/mcp` without a credential where to ask for one.
pub(crate) async fn points_here(
    State(doors): State<Doors>,
    request: Request,
    next: Next,
) -> Response {
    let base = base(&doors, request.uri(), request.headers());
    let mut response = next.run(request).await;
    if response.status() == StatusCode::UNAUTHORIZED
        && let Some(base) = base
    {
        let at = format!("{base}/.well-known/oauth-protected-resource{RESOURCE}");
        if let Ok(value) = HeaderValue::try_from(format!("Bearer resource_metadata=\"{at}\"")) {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, value);
        }
    }
    response
}

/// The address of this server, as the client wrote it.
fn base(doors: &Doors, uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let scheme = if doors.https { "https" } else { "http" };
    let host = hosts::asked_host(uri, headers)?;
    Some(format!("{scheme}://{host}"))
}

/// The address of this server in the parts of a request.
pub(crate) struct Base(pub(crate) String);

impl axum::extract::FromRequestParts<Doors> for Base {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        doors: &Doors,
    ) -> Result<Self, Response> {
        let base = base(doors, &parts.uri, &parts.headers).map(Self);
        base.ok_or_else(|| refused(StatusCode::BAD_REQUEST, "invalid_request", "name a host"))
    }
}

const SCOPES: [&str; 3] = ["exec", "chat", "read"];

async fn resource_metadata(Base(base): Base) -> Response {
    Json(json!({
        "resource": format!("{base}{RESOURCE}"),
        "resource_name": "Gantry",
        "authorization_servers": [base],
        "scopes_supported": SCOPES,
        "bearer_methods_supported": ["header"],
    }))
    .into_response()
}

async fn server_metadata(State(doors): State<Doors>, Base(base): Base) -> Response {
    Json(json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/oauth/authorize"),
        "token_endpoint": format!("{base}/oauth/token"),
        "registration_endpoint": format!("{base}/oauth/register"),
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "client_id_metadata_document_supported": doors.app.client_documents.are_read(),
        "authorization_response_iss_parameter_supported": true,
    }))
    .into_response()
}

/// Registers a program: its id is what it says of itself.
async fn register(
    body: Result<Json<Registration>, axum::extract::rejection::JsonRejection>,
) -> Response {
    let Ok(Json(registration)) = body else {
        let why = "send redirect_uris and client_name as JSON";
        return refused(StatusCode::BAD_REQUEST, "invalid_client_metadata", why);
    };
    match Client::registered(registration) {
        Ok(client) => {
            let answer = json!({
                "client_id": client.id,
                "client_name": client.name,
                "redirect_uris": client.redirects,
                "grant_types": ["authorization_code"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
            });
            (StatusCode::CREATED, Json(answer)).into_response()
        }
        Err(why) => refused(StatusCode::BAD_REQUEST, "invalid_redirect_uri", &why),
    }
}

/// The parameters of a request for a code.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    response_type: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    redirect_uri: String,
    #[serde(default)]
    code_challenge: String,
    #[serde(default)]
    code_challenge_method: String,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    resource: String,
    /// The decision of the person; in the form alone.
    #[serde(default)]
    decision: String,
}

/// A request for a code that can be granted.
pub(super) struct CodeRequest {
    client: Client,
    asked: Asked,
    /// The scopes that the program is offered.
    scopes: Vec<Scope>,
}

/// The page on which a person lets a program in.
async fn ask(
    signed: Result<Signed, Response>,
    State(doors): State<Doors>,
    Base(base): Base,
    uri: Uri,
    query: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Ok(Query(asked)) = query else {
        return page::refused("the address is not whole");
    };
    let Ok(Signed(ctx)) = signed else {
        return page::signed_out(&uri);
    };
    match checked(&doors, &ctx, &base, asked).await {
        Ok(request) => page::consent(&doors, &ctx, &request).await,
        Err(answer) => answer,
    }
}

/// The decision of the person: the program gets a code, or hears of the refusal.
async fn decide(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Base(base): Base,
    body: Bytes,
) -> Response {
    let Some(asked) = form::<Asked>(&body) else {
        return page::refused("the form is not whole");
    };
    let CodeRequest {
        client,
        asked,
        scopes,
    } = match checked(&doors, &ctx, &base, asked).await {
        Ok(request) => request,
        Err(answer) => return answer,
    };
    if asked.decision != "allow" {
        return sent_back(&asked, &base, &[("error", "access_denied")]);
    }
    let grant = Grant {
        client: client.id,
        name: client.name,
        redirect: asked.redirect_uri.clone(),
        challenge: asked.code_challenge.clone(),
        scopes: scopes.into_iter().collect(),
    };
    match doors.app.access.grant(&ctx, grant).await {
        Ok(code) => sent_back(&asked, &base, &[("code", &code)]),
        Err(AppError::Unavailable(cause)) => {
            tracing::error!(%cause, "a program could not be let in");
            sent_back(&asked, &base, &[("error", "temporarily_unavailable")])
        }
        Err(error) => page::refused(&error.to_string()),
    }
}

/// Checks a request for a code. A refusal goes to the program, or is shown to the person where the program is not
/// known.
#[expect(clippy::result_large_err, reason = "it is made once for each request")]
async fn checked(
    doors: &Doors,
    ctx: &OpContext,
    base: &str,
    asked: Asked,
) -> Result<CodeRequest, Response> {
    let client = Client::of(&asked.client_id, &doors.app.client_documents).await;
    let client = client.map_err(|why| page::refused(&why))?;
    if !client.may_be_sent_to(&asked.redirect_uri) {
        return Err(page::refused(
            "the program asks for an answer at an address that is not its own",
        ));
    }
    let wrong = |error: &str, why: &str| {
        let said = [("error", error), ("error_description", why)];
        Err(sent_back(&asked, base, &said))
    };
    if asked.state.len() > MAX_STATE_BYTES {
        return Err(page::refused("the program's state is too long"));
    }
    if asked.response_type != "code" {
        return wrong("unsupported_response_type", "ask for response_type=code");
    }
    if asked.code_challenge_method != "S256" || asked.code_challenge.len() != CHALLENGE_BYTES {
        return wrong("invalid_request", "send a code_challenge by S256");
    }
    if !asked.resource.is_empty() && !is_ours(&asked.resource, base) {
        return wrong("invalid_target", "the resource is not of this server");
    }
    let offered = doors.app.access.scopes_for_programs(ctx);
    let named: Vec<_> = asked.scope.split_ascii_whitespace().collect();
    let scopes: Vec<_> = offered
        .into_iter()
        .filter(|scope| named.is_empty() || named.contains(&scope.to_string().as_str()))
        .collect();
    if scopes.is_empty() {
        return wrong("invalid_scope", "the person may give none of these scopes");
    }
    Ok(CodeRequest {
        client,
        asked,
        scopes,
    })
}

fn is_ours(resource: &str, base: &str) -> bool {
    let rest = resource.strip_prefix(base);
    rest.is_some_and(|rest| matches!(rest.trim_end_matches('/'), "" | RESOURCE))
}

/// Sends the browser back to the program with these parameters.
fn sent_back(asked: &Asked, base: &str, said: &[(&str, &str)]) -> Response {
    let Ok(mut url) = url::Url::parse(&asked.redirect_uri) else {
        return page::refused("the program's address cannot be read");
    };
    {
        let mut query = url.query_pairs_mut();
        query.extend_pairs(said);
        if !asked.state.is_empty() {
            query.append_pair("state", &asked.state);
        }
        query.append_pair("iss", base);
    }
    match HeaderValue::try_from(url.as_str()) {
        Ok(location) => (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
        Err(_) => page::refused("the program's address cannot be written"),
    }
}

/// The parameters by which a program shows its code.
#[derive(Debug, Deserialize)]
struct TokenAsked {
    #[serde(default)]
    grant_type: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    redirect_uri: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    code_verifier: String,
}

/// Exchanges a code for a key.
async fn token(
    State(doors): State<Doors>,
    axum::Extension(Peer(peer)): axum::Extension<Peer>,
    body: Bytes,
) -> Response {
    let bad = |error: &str, why: &str| refused(StatusCode::BAD_REQUEST, error, why);
    let Some(asked) = form::<TokenAsked>(&body) else {
        return bad("invalid_request", "send a form");
    };
    if asked.grant_type != "authorization_code" {
        let why = "only grant_type=authorization_code is known here";
        return bad("unsupported_grant_type", why);
    }
    let shown = ShownCode {
        code: &asked.code,
        verifier: &asked.code_verifier,
        client: &asked.client_id,
        redirect: &asked.redirect_uri,
    };
    // On the heap, so that a stranger whose body does not come takes no room for it.
    let redeemed = Box::pin(doors.app.access.redeem_grant(shown, peer.ip())).await;
    match redeemed {
        Ok(granted) => {
            let scopes: Vec<_> = granted.key.scopes.iter().map(|it| it.to_string()).collect();
            Json(json!({
                "access_token": granted.token.reveal(),
                "token_type": "Bearer",
                "expires_in": granted.valid_for.as_secs(),
                "scope": scopes.join(" "),
            }))
            .into_response()
        }
        Err(AppError::Unavailable(cause)) => {
            tracing::error!(%cause, "a code could not be exchanged");
            let why = "the server cannot do this now, try again";
            refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "temporarily_unavailable",
                why,
            )
        }
        Err(error @ AppError::TooMany { retry_after_s }) => {
            let why = error.to_string();
            let status = StatusCode::TOO_MANY_REQUESTS;
            let wait = [(header::RETRY_AFTER, HeaderValue::from(retry_after_s))];
            (wait, refused(status, "temporarily_unavailable", &why)).into_response()
        }
        Err(error) => bad("invalid_grant", &error.to_string()),
    }
}

fn refused(status: StatusCode, error: &str, why: &str) -> Response {
    let body = json!({ "error": error, "error_description": why });
    (status, Json(body)).into_response()
}

/// A form, as browsers and programs send it (`application/x-www-form-urlencoded`).
fn form<T: serde::de::DeserializeOwned>(body: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(body).ok()?;
    let uri: Uri = format!("/?{text}").parse().ok()?;
    Query::<T>::try_from_uri(&uri).ok().map(|Query(form)| form)
}
