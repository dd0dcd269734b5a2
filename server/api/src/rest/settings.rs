//! Settings: the values that count, the layers that set them, and changing them.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use server_app::{AppError, SettingLayer};
use shared_api::{ChangeSettings, LayerName, Problem, SetBy, Setting, SettingName, Settings};
use shared_types::SessionId;

use super::{
    Signed,
    problem::{Body, Refused},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{Doors, words};

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsQuery {
    /// The session whose values to show; absent for those of new sessions.
    #[serde(default)]
    #[param(value_type = Option<SessionId>)]
    session: Option<String>,
    /// True for the values that count for people of the tenant who have set none; not together with a session.
    #[serde(default)]
    #[param(required = false)]
    without_own: bool,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new().routes(routes!(settings, change))
}

/// The values that count for the user, or for one of the user's sessions, with who set them and when.
#[utoipa::path(get, path = "/api/v1/settings", operation_id = "list_settings", params(SettingsQuery), responses(
    (status = 200, body = Settings), (status = 401, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn settings(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<SettingsQuery>, QueryRejection>,
) -> Result<Json<Settings>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let session = query.session.map(|id| id.parse()).transpose();
    let session = session.map_err(|_| AppError::NotFound("session"))?;
    let settings = &doors.app.settings;
    let current = match (query.without_own, session) {
        (false, session) => settings.list(&ctx, session).await?,
        (true, None) => settings.list_without_own(&ctx).await?,
        (true, Some(_)) => {
            return Err(AppError::Invalid(
                "without_own is for no session; leave one of the two out".to_owned(),
            )
            .into());
        }
    };
    Ok(Json(to_settings(current)))
}

/// Change settings of the user, of a session or of the tenant, all of them or none; it counts from the
/// next message. The answer is what counts then.
#[utoipa::path(patch, path = "/api/v1/settings", operation_id = "change_settings", request_body = ChangeSettings, responses(
    (status = 200, body = Settings), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn change(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<ChangeSettings>,
) -> Result<Json<Settings>, Refused> {
    let values = ask.values.given().into_iter();
    let change = server_app::ChangeSettings {
        layer: match ask.layer {
            LayerName::User => SettingLayer::User,
            LayerName::Session => SettingLayer::Session,
            LayerName::Tenant => SettingLayer::Tenant,
        },
        session: ask.session,
        values: values.map(|(name, value)| (of(name), value)).collect(),
        generation: ask.generation,
    };
    let current = doors.app.settings.change(&ctx, change).await?;
    Ok(Json(to_settings(current)))
}

fn to_settings(current: server_app::CurrentSettings) -> Settings {
    Settings {
        generation: current.generation,
        settings: current.settings.into_iter().map(to_setting).collect(),
    }
}

fn to_setting(setting: server_app::Setting) -> Setting {
    Setting {
        name: to_name(setting.name),
        value: setting.value,
        set_by: match setting.set_by {
            server_app::SetBy::Default => SetBy::Default,
            server_app::SetBy::Operator => SetBy::Operator,
            server_app::SetBy::Layer(SettingLayer::Tenant) => SetBy::Tenant,
            server_app::SetBy::Layer(SettingLayer::User) => SetBy::User,
            server_app::SetBy::Layer(SettingLayer::Session) => SetBy::Session,
        },
        who: setting.who,
        since: setting.since,
        in_effect: setting.in_effect,
        note: setting.note.map(str::to_owned),
        allowed: setting.allowed,
    }
}

fn of(name: SettingName) -> server_app::SettingName {
    match name {
        SettingName::Runner => server_app::SettingName::Runner,
        SettingName::Model => server_app::SettingName::Model,
        SettingName::Language => server_app::SettingName::Language,
        SettingName::Steps => server_app::SettingName::Steps,
        SettingName::Mode => server_app::SettingName::Mode,
        SettingName::MaxMode => server_app::SettingName::MaxMode,
        SettingName::Isolation => server_app::SettingName::Isolation,
        SettingName::Sudo => server_app::SettingName::Sudo,
    }
}

fn to_name(name: server_app::SettingName) -> SettingName {
    match name {
        server_app::SettingName::Runner => SettingName::Runner,
        server_app::SettingName::Model => SettingName::Model,
        server_app::SettingName::Language => SettingName::Language,
        server_app::SettingName::Steps => SettingName::Steps,
        server_app::SettingName::Mode => SettingName::Mode,
        server_app::SettingName::MaxMode => SettingName::MaxMode,
        server_app::SettingName::Isolation => SettingName::Isolation,
        server_app::SettingName::Sudo => SettingName::Sudo,
    }
}
