//! Tool servers, and the caller's sign-ins to them.

use axum::{Json, extract::State, http::StatusCode};
use server_app::{AppError, RegisteredToolServer, SignInState};
use shared_api::{
    ListedToolServer, NamedToolServer, Problem, PutToolValue, ToolServerAnswer, ToolServerSignIn,
    ToolServerSignedIn, ToolServerSigningIn, ToolServers, ToolValue, ToolValues,
};
use shared_types::event::ToolServerTransport;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    problem::{Body, Refused},
};
use crate::{
    Doors,
    oauth::{Base, answer_of},
};

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(sign_in))
        .routes(routes!(answer))
        .routes(routes!(sign_out))
        .routes(routes!(values, put_value))
}

/// The tool servers that are registered for the caller, with the caller's sign-ins: the tenant's, then the caller's own.
#[utoipa::path(get, path = "/api/v1/tool-servers", operation_id = "list_tool_servers", responses(
    (status = 200, body = ToolServers), (status = 401, body = Problem)))]
pub(crate) async fn list(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<ToolServers>, Refused> {
    let servers = doors.app.tool_sign_ins.list(&ctx).await?;
    let tool_servers = servers.into_iter().map(to_server).collect();
    Ok(Json(ToolServers { tool_servers }))
}

/// Begin to sign in to a tool server that wants it (OAuth). The answer has an address that the caller opens in a browser;
/// the browser comes back to `/oauth/callback` of this server.
#[utoipa::path(post, path = "/api/v1/tool-servers/sign-in", operation_id = "sign_in_to_tool_server", request_body = NamedToolServer, responses(
    (status = 200, body = ToolServerSigningIn), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn sign_in(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    base: Result<Base, axum::response::Response>,
    Body(ask): Body<NamedToolServer>,
) -> Result<Json<ToolServerSigningIn>, Refused> {
    let no_host = |_| AppError::Invalid("name the host of this server".to_owned());
    let Base(base) = base.map_err(no_host)?;
    let sign_ins = &doors.app.tool_sign_ins;
    let begun = sign_ins
        .begin(&ctx, &ask.server, ask.session, &base)
        .await?;
    Ok(Json(ToolServerSigningIn {
        url: begun.url,
        issuer: begun.issuer,
        ends_at: begun.ends_at,
    }))
}

/// Finish a sign-in to a tool server with the address at which the caller's browser came back, where no browser is signed
/// in here.
#[utoipa::path(post, path = "/api/v1/tool-servers/sign-in/answer", operation_id = "answer_tool_server_sign_in", request_body = ToolServerAnswer, responses(
    (status = 200, body = ToolServerSignedIn), (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn answer(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<ToolServerAnswer>,
) -> Result<Json<ToolServerSignedIn>, Refused> {
    let url = url::Url::parse(ask.address.trim()).ok();
    let brought = url.as_ref().and_then(|url| answer_of(url.query()?));
    let Some((state, answer)) = brought else {
        return Err(AppError::Invalid(
            "it is no address at which a browser came back: copy the whole address, with all behind the ?".to_owned(),
        )
        .into());
    };
    let server = doors
        .app
        .tool_sign_ins
        .finish(&ctx, &state, &answer)
        .await?;
    Ok(Json(ToolServerSignedIn { server }))
}

/// Sign out of a tool server: the tokens are removed here, and given back where the authorization server takes them.
#[utoipa::path(post, path = "/api/v1/tool-servers/sign-out", operation_id = "sign_out_of_tool_server", request_body = NamedToolServer, responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn sign_out(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<NamedToolServer>,
) -> Result<StatusCode, Refused> {
    let sign_ins = &doors.app.tool_sign_ins;
    sign_ins.sign_out(&ctx, &ask.server, ask.session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The caller's values that stand for `${NAME}` in addresses and headers of tool servers; they themselves are not shown.
#[utoipa::path(get, path = "/api/v1/tool-values", operation_id = "list_tool_values", responses(
    (status = 200, body = ToolValues), (status = 401, body = Problem)))]
pub(crate) async fn values(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<ToolValues>, Refused> {
    let values = doors.app.tool_sign_ins.values(&ctx).await?.into_iter();
    let values = values.map(|value| ToolValue {
        name: value.name,
        host: value.host,
        since: value.changed_at,
    });
    Ok(Json(ToolValues {
        values: values.collect(),
    }))
}

/// Set one of the caller's values for tool servers, which is sent to its host alone, or remove it. Answers with all that there are.
#[utoipa::path(put, path = "/api/v1/tool-values", operation_id = "put_tool_value", request_body = PutToolValue, responses(
    (status = 200, body = ToolValues), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn put_value(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<PutToolValue>,
) -> Result<Json<ToolValues>, Refused> {
    let PutToolValue { name, host, value } = ask;
    let value = match (host, value) {
        (Some(host), Some(value)) => Some((host, value)),
        (None, None) => None,
        _ => {
            let why = "name the host and the value, or neither to remove it";
            return Err(AppError::Invalid(why.to_owned()).into());
        }
    };
    let sign_ins = &doors.app.tool_sign_ins;
    sign_ins.put_value(&ctx, &name, value).await?;
    values(Signed(ctx), State(doors.clone())).await
}

fn to_server(registered: RegisteredToolServer) -> ListedToolServer {
    let RegisteredToolServer {
        id,
        server,
        sign_in,
    } = registered;
    let (url, command, env, headers) = match server.transport {
        ToolServerTransport::Stdio { command, args, env } => {
            let words: Vec<_> = std::iter::once(command).chain(args).collect();
            (None, Some(words.join(" ")), env, Default::default())
        }
        ToolServerTransport::Http { url, headers, .. } => {
            (Some(url), None, Default::default(), headers)
        }
    };
    let (sign_in, issuer, scopes, since) = match sign_in {
        SignInState::None => (ToolServerSignIn::None, None, Vec::new(), None),
        SignInState::Needed => (ToolServerSignIn::Needed, None, Vec::new(), None),
        SignInState::SignedIn {
            issuer,
            scopes,
            since,
        } => (
            ToolServerSignIn::SignedIn,
            Some(issuer),
            scopes,
            Some(since),
        ),
    };
    ListedToolServer {
        id,
        name: server.name,
        layer: server.from.layer,
        url,
        command,
        env: env.into_keys().collect(),
        headers: headers.into_keys().collect(),
        sign_in,
        issuer,
        scopes,
        since,
    }
}
