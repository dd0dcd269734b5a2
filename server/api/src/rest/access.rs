//! Signing in, and keys.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{DefaultBodyLimit, Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use server_app::{AppError, CredentialKind, KeyTerms, Role, Scope};
use shared_api::{
    CreateKey, CreatedKey, Key, Keys, Me, Model, Problem, ScopeName, SignIn, SignedIn, User,
};
use shared_types::{CredentialId, address::NotARange};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    id::Id,
    page::{PageQuery, asked, cursor},
    problem::{Body, Refused},
};
use crate::{Doors, Peer};

/// The largest body of a caller who has not signed in, in bytes.
pub(super) const UNSIGNED_BODY_BYTES: usize = 4 * 1024;

/// The routes that need no credential.
pub(super) fn unsigned() -> OpenApiRouter<Doors> {
    let routes = OpenApiRouter::new().routes(routes!(sign_in));
    routes.layer(DefaultBodyLimit::max(UNSIGNED_BODY_BYTES))
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(me))
        .routes(routes!(keys, create_key))
        .routes(routes!(revoke_key))
}

/// Exchange a one-time code for a token.
#[utoipa::path(post, path = "/api/v1/sign-in", request_body = SignIn, security(()), responses(
    (status = 200, body = SignedIn), (status = 401, body = Problem, description = "the code is wrong, spent or expired"), (status = 429, body = Problem, description = "too many wrong codes")))]
pub(crate) async fn sign_in(
    State(doors): State<Doors>,
    Extension(Peer(peer)): Extension<Peer>,
    Body(ask): Body<SignIn>,
) -> Result<Json<SignedIn>, Refused> {
    let access = &doors.app.access;
    // On the heap, so that a stranger whose body does not come takes no room for it.
    let signed_in = Box::pin(access.sign_in(&ask.code, &ask.device, peer.ip()));
    let (token, user) = signed_in.await?;
    Ok(Json(SignedIn {
        token: token.reveal(),
        user: to_user(user),
    }))
}

/// The caller, with the model and the runner that the caller works with.
#[utoipa::path(get, path = "/api/v1/me", responses((status = 200, body = Me), (status = 401, body = Problem)))]
pub(crate) async fn me(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<Me>, Refused> {
    let me = doors.app.access.me(&ctx).await?;
    let model = doors.app.settings.model(&ctx).await?;
    let runner = me.active_runner.as_ref();
    Ok(Json(Me {
        active_runner: runner.map(|runner| runner.id),
        active_runner_removed: runner.is_some_and(|runner| runner.removed),
        active_runner_is_default: runner.is_some_and(|runner| runner.is_default),
        active_workspace: runner.and_then(|runner| runner.workspace.clone()),
        active_runner_name: me.active_runner.map(|runner| runner.name),
        tenant: me.tenant,
        user: to_user(me.user),
        model: Model {
            name: model.name,
            practice: model.practice,
        },
    }))
}

/// The list that cursors of the caller's own keys belong to.
const LIST: &str = "keys";

/// The user's keys and sign-ins, the newest first.
#[utoipa::path(get, path = "/api/v1/keys", params(PageQuery), responses(
    (status = 200, body = Keys), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn keys(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Keys>, Refused> {
    let page = asked(LIST, query)?;
    let (keys, more) = doors.app.access.keys(&ctx, page).await?;
    Ok(Json(to_keys(LIST, keys, more)))
}

/// A page of keys. A place in the list is when a key was made, and its id.
pub(super) fn to_keys(list: &str, keys: Vec<server_app::Key>, more: bool) -> Keys {
    let last = keys.last().filter(|_| more);
    Keys {
        next: last.and_then(|last| cursor(list, &(last.created_at, last.id))),
        keys: keys.into_iter().map(to_key).collect(),
    }
}

/// Make an API key.
#[utoipa::path(post, path = "/api/v1/keys", request_body = CreateKey, responses(
    (status = 201, body = CreatedKey), (status = 401, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem), (status = 429, body = Problem)))]
pub(crate) async fn create_key(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<CreateKey>,
) -> Result<(StatusCode, Json<CreatedKey>), Refused> {
    let (key, entry) = doors.app.access.create_key(&ctx, &terms(ask)?).await?;
    Ok((
        StatusCode::CREATED,
        Json(CreatedKey {
            key: key.reveal(),
            entry: to_key(entry),
        }),
    ))
}

/// Revoke a key or sign-in, and with a key the keys that it made.
#[utoipa::path(delete, path = "/api/v1/keys/{id}", params(("id" = inline(CredentialId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn revoke_key(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<CredentialId>,
) -> Result<StatusCode, Refused> {
    doors.app.access.revoke_key(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn terms(ask: CreateKey) -> Result<KeyTerms, AppError> {
    let from = ask.from.map(|text| text.parse()).transpose();
    Ok(KeyTerms {
        name: ask.name,
        scopes: ask
            .scopes
            .map(|scopes| scopes.into_iter().map(of).collect()),
        valid_for: ask.valid_for_s.map(|s| Duration::from_secs(s.into())),
        from: from.map_err(|error: NotARange| AppError::Invalid(error.to_string()))?,
    })
}

fn of(scope: ScopeName) -> Scope {
    match scope {
        ScopeName::Chat => Scope::Chat,
        ScopeName::Runners => Scope::Runners,
        ScopeName::Exec => Scope::Exec,
        ScopeName::Read => Scope::Read,
        ScopeName::Metrics => Scope::Metrics,
        ScopeName::Admin => Scope::Admin,
    }
}

fn to_scope(scope: Scope) -> ScopeName {
    match scope {
        Scope::Chat => ScopeName::Chat,
        Scope::Runners => ScopeName::Runners,
        Scope::Exec => ScopeName::Exec,
        Scope::Read => ScopeName::Read,
        Scope::Metrics => ScopeName::Metrics,
        Scope::Admin => ScopeName::Admin,
    }
}

pub(super) fn to_user(user: server_app::User) -> User {
    let role = match user.role {
        Role::Owner => "owner",
        Role::Admin => "admin",
        Role::Member => "member",
        Role::Viewer => "viewer",
    };
    User {
        id: user.id,
        name: user.name,
        role: role.to_owned(),
    }
}

pub(super) fn to_key(key: server_app::Key) -> Key {
    let kind = match key.kind {
        CredentialKind::ApiKey => "api_key",
        CredentialKind::SignIn => "sign_in",
        CredentialKind::Browser => "browser",
    };
    Key {
        id: key.id,
        name: key.name,
        kind: kind.to_owned(),
        created_at: key.created_at,
        made_by: key.made_by,
        last_used_at: key.last_used_at,
        scopes: key.scopes.iter().map(to_scope).collect(),
        expires_at: key.expires_at,
        from: key.from.map(|range| range.to_string()),
        last_address: key.last_address.map(|address| address.to_string()),
        is_this: key.is_asking,
    }
}
