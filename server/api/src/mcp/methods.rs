//! The methods of the protocol.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{
    Client,
    era::{Era, LEGACY, supported},
    message::{Fault, INVALID_PARAMS, METHOD_NOT_FOUND, Request},
    tools::{self, Call},
};

/// The time for which a client may keep the list of tools, in milliseconds. The list depends on the credential alone.
const LIST_KEPT_MS: u64 = 300_000;

/// The words on the whole server, for the model of a client.
const INSTRUCTIONS: &str = "Gantry runs commands and works on files on the machines of its user, called runners. \
list_runners shows them; each tool takes the name of one as \"runner\", and works on the user's active runner \
without it. Paths are relative to the workspace of the runner. A command that outlasts its call goes on: read_task \
reads it, stop_task stops it. start_task gives work to an agent of Gantry, whose answer read_task waits for.";

/// The answer to a request.
pub(super) enum Answer {
    /// The result, with which a client of the older era begins.
    Begun(Value),
    /// The result.
    Result(Value),
    /// A tool has to be called first.
    Call(Box<Call>),
}

/// Carries out a request, as far as that needs no tool.
///
/// # Errors
/// If there is no such method or tool, or the parameters are wrong.
pub(super) fn carry_out(client: &Client, request: Request) -> Result<Answer, Fault> {
    let is_modern = client.era == Era::Modern;
    match (request.method.as_str(), is_modern) {
        ("initialize", false) => Ok(Answer::Begun(initialized(client, &request))),
        ("ping", false) => Ok(Answer::Result(json!({}))),
        ("server/discover", true) => Ok(Answer::Result(cached(json!({
            "supportedVersions": supported(),
            "capabilities": capabilities(),
            "instructions": INSTRUCTIONS,
        })))),
        ("tools/list", true) => Ok(Answer::Result(cached(tools::list(client)))),
        ("tools/list", false) => Ok(Answer::Result(tools::list(client))),
        ("tools/call", _) => {
            let call = tools::call(client, request);
            Ok(Answer::Call(Box::new(call.map_err(|why| {
                Fault::bad(INVALID_PARAMS, why).with_status(of_era(is_modern, 400))
            })?)))
        }
        (method, _) => {
            let message = format!("there is no method {method:?} here");
            Err(Fault::bad(METHOD_NOT_FOUND, message).with_status(of_era(is_modern, 404)))
        }
    }
}

/// In the older era each answer to a request that can be read has the status 200.
fn of_era(is_modern: bool, status: u16) -> StatusCode {
    match is_modern {
        true => StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
        false => StatusCode::OK,
    }
}

fn initialized(client: &Client, request: &Request) -> Value {
    let asked = request.params.get("protocolVersion");
    let asked = asked.and_then(Value::as_str).unwrap_or_default();
    let version = LEGACY.into_iter().find(|version| *version == asked);
    json!({
        "protocolVersion": version.unwrap_or(LEGACY[0]),
        "capabilities": capabilities(),
        "serverInfo": server_info(client.doors.version),
        "instructions": INSTRUCTIONS,
    })
}

/// The name of this program and its version.
pub(super) fn server_info(version: &str) -> Value {
    json!({ "name": "gantry", "title": "Gantry", "version": version })
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn cached(mut result: Value) -> Value {
    result["ttlMs"] = LIST_KEPT_MS.into();
    result["cacheScope"] = "private".into();
    result
}
