//! Permissions: the rules about what agents may do.

use axum::{Json, extract::State, http::StatusCode};
use server_app::{
    AppError, Decision as Decided, NewRule, Probe, ProbeDeed, ProposedRules as Proposed, RuleBy,
    RuleRow, SetRule, TrustedFile as Trusted,
};
use shared_api::{
    AddPermissionRule, Decision, PermissionRule, PermissionRules, PermissionVerdict, Problem,
    ProposedRule, ProposedRules, RuleSetBy, TestPermission, TestedDeed, TrustProject, TrustedFile,
};
use shared_types::{Isolation, RuleId, SessionId};
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
        .routes(routes!(list, add))
        .routes(routes!(remove))
        .routes(routes!(test))
        .routes(routes!(proposed))
        .routes(routes!(trust))
        .routes(routes!(untrust))
}

/// The rules that count for the caller's agents. A rule that denies goes before one that asks, and that before one that
/// allows.
#[utoipa::path(get, path = "/api/v1/permissions", operation_id = "list_permissions", responses(
    (status = 200, body = PermissionRules), (status = 401, body = Problem)))]
pub(crate) async fn list(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
) -> Result<Json<PermissionRules>, Refused> {
    let known = doors.app.permissions.list(&ctx).await?;
    let operator = known.operator.into_iter().map(of_operator);
    let stored = known.stored.into_iter().map(to_rule);
    let of_files = known.files.iter().flat_map(of_file);
    let rules = operator.chain(stored).chain(of_files).collect();
    Ok(Json(PermissionRules { rules }))
}

/// Set a rule for the caller's agents, or for everyone's.
#[utoipa::path(post, path = "/api/v1/permissions", operation_id = "add_permission", request_body = AddPermissionRule, responses(
    (status = 201, body = PermissionRule), (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn add(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<AddPermissionRule>,
) -> Result<(StatusCode, Json<PermissionRule>), Refused> {
    let new = NewRule {
        rule: ask.rule,
        decision: match ask.decision {
            Decision::Allow => Decided::Allow,
            Decision::Ask => Decided::Ask,
            Decision::Deny => Decided::Deny,
        },
        for_everyone: ask.for_everyone,
    };
    let row = doors.app.permissions.add(&ctx, new).await?;
    Ok((StatusCode::CREATED, Json(to_rule(row))))
}

/// Remove a rule.
#[utoipa::path(delete, path = "/api/v1/permissions/{id}", operation_id = "remove_permission", params(("id" = inline(RuleId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn remove(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RuleId>,
) -> Result<StatusCode, Refused> {
    doors.app.permissions.remove(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tell what would be decided about something that an agent might do, and why.
#[utoipa::path(post, path = "/api/v1/permissions/test", operation_id = "test_permission", request_body = TestPermission, responses(
    (status = 200, body = PermissionVerdict), (status = 401, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn test(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<TestPermission>,
) -> Result<Json<PermissionVerdict>, Refused> {
    let isolation = ask.isolation.as_deref().map(str::parse::<Isolation>);
    let isolation = isolation.transpose();
    let isolation = isolation.map_err(|wrong| AppError::Invalid(wrong.to_string()))?;
    let probe = Probe {
        text: ask.text,
        deed: match ask.deed {
            TestedDeed::Shell => ProbeDeed::Shell,
            TestedDeed::Read => ProbeDeed::Read,
            TestedDeed::Write => ProbeDeed::Write,
            TestedDeed::Fetch => ProbeDeed::Fetch,
        },
        mode: ask.mode,
        isolation: isolation.unwrap_or_else(Isolation::none),
    };
    let told = doors.app.permissions.probe(&ctx, probe).await?;
    Ok(Json(PermissionVerdict {
        decision: to_decision(told.decision),
        risk: told.risk,
        why: told.why,
        reasons: told.reasons,
        rule: told.rule.map(|set| set.rule.to_string()),
        suggestion: told.suggestion.map(|rule| rule.to_string()),
        mode: told.mode,
    }))
}

/// The rules that the project's file proposes which the session's last look at its place found. They do not count before
/// the file is trusted.
#[utoipa::path(get, path = "/api/v1/sessions/{id}/permissions", operation_id = "proposed_permissions", params(("id" = inline(SessionId), Path)), responses(
    (status = 200, body = ProposedRules), (status = 401, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn proposed(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<SessionId>,
) -> Result<Json<ProposedRules>, Refused> {
    Ok(Json(to_proposed(
        doors.app.permissions.proposed(&ctx, id).await?,
    )))
}

/// Trust the project's file with rules that a session's last look at its place found, if its text has this digest. The
/// rules count for the caller's agents that work in the folder of the file, until it changes.
#[utoipa::path(post, path = "/api/v1/permissions/projects", operation_id = "trust_project", request_body = TrustProject, responses(
    (status = 201, body = TrustedFile), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn trust(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Body(ask): Body<TrustProject>,
) -> Result<(StatusCode, Json<TrustedFile>), Refused> {
    let permissions = &doors.app.permissions;
    let trusted = permissions.trust(&ctx, ask.session, ask.digest).await?;
    Ok((StatusCode::CREATED, Json(to_file(&trusted))))
}

/// Trust a project's file with rules no more.
#[utoipa::path(delete, path = "/api/v1/permissions/projects/{id}", operation_id = "untrust_project", params(("id" = inline(RuleId), Path)), responses(
    (status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn untrust(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    Id(id): Id<RuleId>,
) -> Result<StatusCode, Refused> {
    doors.app.permissions.untrust(&ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn to_proposed(found: Proposed) -> ProposedRules {
    let trusted = found
        .trusted
        .is_some_and(|file| file.digest == found.digest);
    let (rules, problem) = match found.rules {
        Ok(rules) => (Some(rules.counting(true)), None),
        Err(problem) => (None, Some(problem)),
    };
    let rules = rules.into_iter().flatten();
    let rules = rules.map(|(decision, rule)| ProposedRule {
        rule: rule.to_string(),
        decision: to_decision(decision),
    });
    ProposedRules {
        path: found.path,
        runner: found.runner,
        digest: found.digest,
        rules: rules.collect(),
        problem,
        trusted,
    }
}

fn to_file(trusted: &Trusted) -> TrustedFile {
    TrustedFile {
        id: trusted.id,
        path: trusted.path(),
        runner: trusted.runner_name.clone(),
        workspace: trusted.workspace.clone(),
        changed: trusted.changed,
        since: trusted.at,
    }
}

/// All rules of a file, also those that allow while it is changed.
fn of_file(trusted: &Trusted) -> impl Iterator<Item = PermissionRule> {
    trusted.counting(true).map(|set| PermissionRule {
        id: None,
        rule: set.rule.to_string(),
        decision: to_decision(set.decision),
        set_by: RuleSetBy::Project,
        who: None,
        since: Some(trusted.at),
        file: Some(to_file(trusted)),
    })
}

fn of_operator(set: SetRule) -> PermissionRule {
    PermissionRule {
        id: None,
        rule: set.rule.to_string(),
        decision: to_decision(set.decision),
        set_by: match set.by {
            RuleBy::Tenant { .. } => RuleSetBy::Tenant,
            RuleBy::User { .. } | RuleBy::Message => RuleSetBy::User,
            RuleBy::Project { .. } => RuleSetBy::Project,
            RuleBy::Operator => RuleSetBy::Operator,
        },
        who: None,
        since: None,
        file: None,
    }
}

fn to_rule(row: RuleRow) -> PermissionRule {
    PermissionRule {
        id: Some(row.id),
        rule: row.rule.to_string(),
        decision: to_decision(row.decision),
        set_by: match row.user {
            Some(_) => RuleSetBy::User,
            None => RuleSetBy::Tenant,
        },
        who: Some(row.by_name),
        since: Some(row.at),
        file: None,
    }
}

fn to_decision(decision: Decided) -> Decision {
    match decision {
        Decided::Allow => Decision::Allow,
        Decided::Ask => Decision::Ask,
        Decided::Deny => Decision::Deny,
    }
}
