//! Approvals: the questions of the caller's agents, and the answers.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use server_app::{ApprovalRow, GivenAnswer, Page};
use shared_api::{AnswerApproval, Approval, ApprovalOutcome, Approvals, Problem};
use shared_types::ApprovalId;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Signed,
    id::Id,
    page::{self, cursor},
    problem::{Body, Refused},
};
use crate::{Doors, words};

/// The name of the list in its cursors.
const LIST: &str = "approvals";

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalsQuery {
    /// True for all questions, false for those that wait for an answer.
    #[serde(default)]
    all: bool,
    /// At most this many, from 1 to 500.
    #[serde(default = "page::usual")]
    #[param(minimum = 1, maximum = 500)]
    limit: u32,
    /// The value of `next` of the page before.
    #[serde(default)]
    #[param(max_length = 1024)]
    after: Option<String>,
}

/// The routes of this file, with their entries in the OpenAPI document.
pub(super) fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(answer))
}

/// A page of the questions of the caller's agents, the newest first.
#[utoipa::path(get, path = "/api/v1/approvals", operation_id = "list_approvals", params(ApprovalsQuery), responses(
    (status = 200, body = Approvals), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn list(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    query: Result<Query<ApprovalsQuery>, QueryRejection>,
) -> Result<Json<Approvals>, Refused> {
    let Query(query) = query.map_err(words::of_query)?;
    let page = Page {
        limit: page::limit(query.limit)?,
        after: page::place(LIST, query.after.as_deref())?,
    };
    let (rows, more) = doors.app.approvals.list(&ctx, query.all, page).await?;
    let last = rows.last().filter(|_| more);
    Ok(Json(Approvals {
        next: last.and_then(|last| cursor(LIST, &last.id)),
        approvals: rows.into_iter().map(to_approval).collect(),
    }))
}

/// One question.
#[utoipa::path(get, path = "/api/v1/approvals/{id}", operation_id = "read_approval", params(("id" = inline(ApprovalId), Path)), responses(
    (status = 200, body = Approval), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn one(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<ApprovalId>,
) -> Result<Json<Approval>, Refused> {
    let row = doors.app.approvals.get(&ctx, id).await?;
    Ok(Json(to_approval(row)))
}

/// Answer a question. The first answer counts, and none after the deadline. It is 409 if another answer came first.
#[utoipa::path(post, path = "/api/v1/approvals/{id}/answer", operation_id = "answer_approval", params(("id" = inline(ApprovalId), Path)), request_body = AnswerApproval, responses(
    (status = 200, body = Approval), (status = 401, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn answer(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<ApprovalId>,
    Body(ask): Body<AnswerApproval>,
) -> Result<Json<Approval>, Refused> {
    let given = GivenAnswer {
        shown: ask.digest,
        answer: ask.answer,
    };
    let row = doors.app.approvals.answer(&ctx, id, given).await?;
    Ok(Json(to_approval(row)))
}

fn to_approval(row: ApprovalRow) -> Approval {
    Approval {
        id: row.id,
        session: row.session,
        session_title: row.session_title,
        turn: row.turn,
        step: row.step,
        ordinal: row.ordinal,
        digest: row.question.digest(),
        question: row.question,
        asked_at: row.asked_at,
        until: row.until,
        outcome: row.outcome.map(|outcome| ApprovalOutcome {
            answer: outcome.answer,
            by: outcome.by,
            at: outcome.at,
        }),
    }
}
