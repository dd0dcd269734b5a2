//! The OpenAPI document: the documentation of each route, and then the facts about all routes, in one place, so that no
//! route can forget them.

mod unions;

use super::once;

use axum::http::StatusCode;
use utoipa::{
    Modify, ToSchema as _,
    openapi::{
        Content, HeaderBuilder, HttpMethod, ObjectBuilder, OpenApi, Paths, PathsBuilder, Ref,
        RefOr, Required, Response, ResponseBuilder,
        path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathItem},
        request_body::RequestBodyBuilder,
        schema::Type,
        security::{
            ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
        },
    },
};

/// The problems that every route may answer. The request names no host, a host that is not the server's, or a page of
/// another site. Or it was too slow, or the server has a fault or cannot do it now.
const ANY_PROBLEMS: [StatusCode; 6] = [
    StatusCode::BAD_REQUEST,
    StatusCode::FORBIDDEN,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// The problems that every route with a body may answer: the body is too large, or not as documented.
const BODY_PROBLEMS: [StatusCode; 2] = [
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNPROCESSABLE_ENTITY,
];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Gantry", version = "1", description = "A control plane for AI agents whose hands are on the users' own machines."),
    servers((url = "/", description = "Where this document comes from")),
    components(schemas(shared_api::ClientMessage, shared_api::ServerMessage, shared_api::OperationClientMessage, shared_api::OperationServerMessage, shared_api::Problem)),
    modifiers(&Credentials)
)]
pub(super) struct Document;

struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut OpenApi) {
        let bearer =
            SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        let cookie = ApiKeyValue::with_description(
            "__Host-gantry",
            "Of a browser that signed in; it counts from pages of this server alone.",
        );
        let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(cookie));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", bearer);
        components.add_security_scheme("cookie", cookie);
        let either = ["bearer", "cookie"];
        let either = either.map(|name| SecurityRequirement::new(name, Vec::<String>::new()));
        document.security = Some(either.into());
    }
}

/// Adds the facts about all routes.
pub(super) fn complete(mut document: OpenApi) -> OpenApi {
    for keeps in &once::KEEPS {
        let item = document.paths.paths.get_mut(keeps.path);
        if let Some(operation) = item.and_then(|item| item.post.as_mut()) {
            takes_a_key(operation);
        }
    }
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            let responses = &mut operation.responses.responses;
            let has_body = operation.request_body.is_some();
            let of_bodies = has_body.then_some(BODY_PROBLEMS).into_iter().flatten();
            for status in ANY_PROBLEMS.into_iter().chain(of_bodies) {
                let status = status.as_str().to_owned();
                responses.entry(status).or_insert_with(problem);
            }
            for (status, response) in responses {
                if let (Ok(status), RefOr::T(response)) = (status.parse(), response) {
                    complete_response(status, response);
                }
            }
        }
    }
    document.webhooks = Some(sockets());
    unions::name_variants(document.components.get_or_insert_default());
    document
}

/// Adds the header by which a request is carried out once, and its answers.
fn takes_a_key(operation: &mut Operation) {
    let key = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(once::MAX_KEY_BYTES))
        .pattern(Some("^[!-~]+$"));
    let header = ParameterBuilder::new()
        .name(once::IDEMPOTENCY_KEY)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "1 to 255 visible ASCII characters, without spaces. The same request with the same key is \
             carried out once within 24 hours, and answered alike; an answer that holds a secret is given \
             once.",
        ))
        .schema(Some(key));
    operation
        .parameters
        .get_or_insert_default()
        .push(RefOr::T(header.build()));
    let responses = &mut operation.responses.responses;
    for status in [StatusCode::CONFLICT, StatusCode::UNPROCESSABLE_ENTITY] {
        let status = status.as_str().to_owned();
        responses.entry(status).or_insert_with(problem);
    }
}

/// The WebSockets. The standard describes none, so they stand where it describes messages that come
/// from the server: each of them as a request, and what the client may say as an answer.
fn sockets() -> Paths {
    let sessions = socket(
        "stream",
        "Follow sessions over a WebSocket.",
        SESSIONS,
        [
            shared_api::ServerMessage::name(),
            shared_api::ClientMessage::name(),
        ],
    );
    let operation = socket(
        "operation_stream",
        "Follow an operation over a WebSocket, and pass input on to it.",
        OPERATION,
        [
            shared_api::OperationServerMessage::name(),
            shared_api::OperationClientMessage::name(),
        ],
    );
    PathsBuilder::new()
        .path("stream", sessions)
        .path("operation_stream", operation)
        .build()
}

const SESSIONS: &str = "Not a webhook: `GET /api/v1/stream` opens a WebSocket, with a bearer token, or \
    for a page with `?ticket=` and a ticket of `POST /api/v1/stream-tickets`. The request below is what the server sends on it, the answer what the \
    client may send, each as one text message.\n\n\
    `subscribe` follows one session. `watch` asks for hints that lists are different now; the lists themselves are read \
    by REST. The first `changed` after a `watch` names every topic that is watched: read all of these lists then, and \
    again after each new connection, and nothing is missed. A topic that the credential may not read is not watched.\n\n\
    `reconnect` is the server's last message before it closes a sound connection with code 1012: wait a \
    random part of its time, connect again, watch the same topics, and subscribe with the last event that you have. Skip a message \
    whose type you do not know. Code 1008: the credential was revoked.";

const OPERATION: &str = "Not a webhook: `GET /api/v1/operations/{id}/stream?stdout=0&stderr=0` opens \
    a WebSocket, with a bearer token, or for a page with `&ticket=` and a ticket of \
    `POST /api/v1/stream-tickets`. The two offsets say from which byte on \
    each output stream is sent; 0 where they are absent. The request below is what the server sends \
    as text, the answer what the client may send as text, each as one message.\n\n\
    A binary message carries a piece of output (from the server) or of input (from the client). Byte 0 \
    says which: 0 input, 1 stdout, 2 stderr. Bytes 1 to 8 are the offset of the piece's first byte, \
    as a big-endian number. At most 65536 bytes of data follow.\n\n\
    The first message of the server is `operation`. Then comes all output from the offsets on, first \
    what is stored, then what happens. `ended` comes after all output, and the server closes the \
    connection with code 1000. Where the operation takes input, `input_taken` says from which offset \
    on to send it. `input_end` ends the input. A piece behind missing bytes is dropped.\n\n\
    A client whose connection broke connects again with the offsets that it has, and sends its input \
    again from the next `input_taken` on. So does one that hears `reconnect`, the server's last message before \
    it closes a sound connection with code 1012, after a random part of the time that it says. Skip a \
    message whose type you do not know. Code 1008: the credential was revoked. Codes 1012 and 1013: connect \
    again.\n\n\
    The server stores the output of every operation but of a download: it keeps that until the client \
    says `taken`, and one client reads it at a time.";

/// One WebSocket, as what the server says and what the client says.
fn socket(
    id: &str,
    summary: &str,
    description: &str,
    [server, client]: [std::borrow::Cow<'static, str>; 2],
) -> PathItem {
    let of = |name: std::borrow::Cow<'static, str>| {
        Content::new(Some(RefOr::Ref(Ref::from_schema_name(name))))
    };
    let server_says = RequestBodyBuilder::new()
        .description(Some("A message of the server."))
        .required(Some(Required::True))
        .content("application/json", of(server));
    let client_says = ResponseBuilder::new()
        .description("A message of the client, at any time.")
        .content("application/json", of(client));
    let operation = OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some(summary))
        .description(Some(description))
        .request_body(Some(server_says.build()))
        .response("200", client_says.build());
    PathItem::new(HttpMethod::Post, operation)
}

/// The standard demands a description, and problems have a media type of their own.
fn complete_response(status: StatusCode, response: &mut Response) {
    if response.description.is_empty() {
        let reason = status.canonical_reason().unwrap_or_default();
        response.description = reason.to_lowercase();
    }
    if status.is_client_error() || status.is_server_error() {
        let content = std::mem::take(&mut response.content);
        let problems = content.into_values();
        response.content = problems
            .map(|content| ("application/problem+json".to_owned(), content))
            .collect();
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        let seconds = ObjectBuilder::new().schema_type(Type::Integer);
        let header = HeaderBuilder::new()
            .schema(Some(seconds.minimum(Some(1))))
            .description(Some("How many seconds to wait before another attempt."));
        response
            .headers
            .insert("Retry-After".to_owned(), RefOr::T(header.build()));
    }
}

fn problem() -> RefOr<Response> {
    let schema = Ref::from_schema_name(shared_api::Problem::name());
    let mut response = Response::new("");
    let content = RefOr::T(Content::new(Some(schema)));
    response.content.insert(String::new(), content);
    RefOr::T(response)
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        patch,
        ..
    } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}
