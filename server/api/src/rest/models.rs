//! Models, and the accounts at providers that pay for them.

use std::time::Duration;

use axum::{Json, extract::State, http::StatusCode};
use server_app::models::{
    Account, AccountOf, Health, ListedModel, ModelState as Known, NewAccount, PaidBy, Probed,
};
use shared_api::{
    AddModelAccount, AddedModelAccount, ModelAccount, ModelPrice, ModelProbe, ModelProvider,
    ModelState, Models, OfferedModel, Payer, Problem, TestModel,
};
use shared_types::ModelAccountId;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    id::Id,
    problem::{Body, Refused},
};
use crate::Doors;

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(models))
        .routes(routes!(add))
        .routes(routes!(test))
        .routes(routes!(remove))
}

/// The models that the user may use, and the accounts that offer them.
#[utoipa::path(get, path = "/api/v1/models", operation_id = "list_models", responses(
    (status = 200, body = Models), (status = 401, body = Problem)))]
pub(crate) async fn models(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<Models>, Refused> {
    let models = doors.app.models.list(&ctx).await?;
    let accounts = doors.app.models.accounts(&ctx).await?;
    Ok(Json(Models {
        models: models.into_iter().map(to_model).collect(),
        accounts: accounts.into_iter().map(to_account).collect(),
        providers: (doors.app.models.providers().into_iter())
            .map(|(name, needs_key)| ModelProvider { name, needs_key })
            .collect(),
    }))
}

/// Add an account at a provider, or replace the one of this name, once its model answers a small request. Nothing is
/// stored where it does not. To send it again replaces the account with itself.
#[utoipa::path(post, path = "/api/v1/model-accounts", operation_id = "add_model_account", request_body = AddModelAccount, responses(
    (status = 200, body = AddedModelAccount), (status = 401, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn add(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<AddModelAccount>,
) -> Result<Json<AddedModelAccount>, Refused> {
    let new = NewAccount {
        provider: ask.provider,
        name: ask.name,
        format: ask.format,
        base_url: ask.base_url,
        models: ask.models,
        key: ask.key,
        of_tenant: ask.of_tenant,
    };
    let (account, probed) = doors.app.models.add(&ctx, new).await?;
    let added = AddedModelAccount {
        account: to_account(account),
        probe: to_probe(probed),
    };
    Ok(Json(added))
}

/// Ask a model, or the first model of an account, one small thing.
#[utoipa::path(post, path = "/api/v1/models/test", operation_id = "test_model", request_body = TestModel, responses(
    (status = 200, body = ModelProbe), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn test(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<TestModel>,
) -> Result<Json<ModelProbe>, Refused> {
    let probed = doors.app.models.test(&ctx, &ask.name).await?;
    Ok(Json(to_probe(probed)))
}

/// Remove an account, with its key.
#[utoipa::path(delete, path = "/api/v1/model-accounts/{id}", operation_id = "remove_model_account", params(("id" = inline(ModelAccountId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn remove(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<ModelAccountId>,
) -> Result<StatusCode, Refused> {
    doors.app.models.remove(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn to_model(model: ListedModel) -> OfferedModel {
    let (state, reason, ready_in) = match model.state {
        Known::Vendor(Health::Ready) => (ModelState::Ready, None, None),
        Known::Vendor(Health::CoolingDown(left, error)) => {
            (ModelState::CoolingDown, Some(error.to_string()), Some(left))
        }
        Known::Vendor(Health::Refused(error)) => {
            (ModelState::Refused, Some(error.to_string()), None)
        }
        Known::Away(reason) => (ModelState::Away, Some(reason), None),
    };
    OfferedModel {
        name: model.name,
        account: model.account,
        provider: model.profile.provider,
        paid_by: payer(model.paid_by),
        practice: model.practice,
        is_default: model.is_default,
        window: model.profile.window.map(|window| window as u64),
        sees: model.profile.sees,
        price: model.profile.price.map(|price| ModelPrice {
            input: price.input,
            cached: price.cached,
            cache_written: price.cache_written,
            output: price.output,
            date: price.date,
        }),
        state,
        reason,
        ready_in_s: ready_in.map(|left| left.as_secs().max(1)),
    }
}

fn to_account(account: Account) -> ModelAccount {
    let Account { row, models } = account;
    ModelAccount {
        id: row.id,
        name: row.terms.name,
        provider: row.provider,
        paid_by: match row.of {
            AccountOf::Tenant => Payer::Tenant,
            AccountOf::User(_) => Payer::Own,
        },
        base_url: row.terms.base_url,
        format: row.terms.format,
        models,
        has_key: row.key.is_some(),
        changed_at: row.changed_at,
    }
}

fn to_probe(probed: Probed) -> ModelProbe {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    ModelProbe {
        model: probed.model,
        answered: probed.answered,
        streams: probed.streams,
        calls_tools: probed.calls_tools,
        thinks: probed.thinks,
        sees: probed.sees,
        duration_ms: millis(probed.duration),
    }
}

fn payer(paid_by: PaidBy) -> Payer {
    match paid_by {
        PaidBy::Own(_) => Payer::Own,
        PaidBy::Tenant(_) => Payer::Tenant,
        PaidBy::Operator => Payer::Operator,
        PaidBy::Runner(_) => Payer::Runner,
    }
}
