//! Hooks that are sent to addresses. The values of their headers are read when they are sent, and no log has them: those
//! of registered hooks are sealed, and those of a project's file are read again from that file.

use server_agent::{HookPost, ServerPlace};
use server_records::ExtensionKind;
use shared_extensions::{HookSecrets, check_headers, hidden_headers};
use shared_types::{
    TenantId, UserId,
    event::{Hook, HookHandler, ShownValue},
};

use crate::{
    operations::Operations,
    tool_servers::{
        access::Grants,
        values::{file_of, host_of, whole},
    },
};

/// The header with the id of a hook's run, by which an address can tell a request that it has had.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Sends a hook of this person to its address once, and returns the text of the answer. The values of a project's file
/// are read at this place.
///
/// # Errors
/// There is no answer of success; the words say why, and have no value of a header.
pub(crate) async fn post(
    grants: &Grants,
    operations: Option<&Operations>,
    of: (TenantId, UserId),
    (hook, place): (&Hook, Option<&ServerPlace>),
    post: HookPost,
) -> Result<String, String> {
    let HookHandler::Http { url, headers } = &hook.handler else {
        return Err("it has no address".to_owned());
    };
    let hides = headers.values().any(|value| *value == ShownValue::Hidden);
    let mut secrets = match hides {
        true => secrets(grants, operations, of, (hook, place)).await?,
        false => HookSecrets::default(),
    };
    let mut headers = whole(headers, secrets.of(hook.in_file, url))?;
    check_headers(&headers).map_err(|error| error.to_string())?;
    let (mut address, host) = (url.clone(), host_of(url)?);
    for text in headers.values_mut().chain([&mut address]) {
        *text = grants.filled(of, text, &host).await?;
    }
    headers.insert(IDEMPOTENCY_KEY.to_owned(), post.run);
    let HookPost { json, within, .. } = post;
    let posted = grants.web.post(&address, &headers, json, within).await;
    posted.map_err(|error| error.to_string())
}

/// The hidden values of the file of a hook.
async fn secrets(
    grants: &Grants,
    operations: Option<&Operations>,
    of: (TenantId, UserId),
    (hook, place): (&Hook, Option<&ServerPlace>),
) -> Result<HookSecrets, String> {
    let unread = |error: shared_extensions::Invalid| format!("its values cannot be read: {error}");
    if hook.from.layer.is_on_runner() {
        let text = file_of(operations, of, &hook.from, place).await?;
        return hidden_headers(&text).map_err(unread);
    }
    let row = grants
        .registered(of, ExtensionKind::Hooks, &hook.from)
        .await?;
    if let Some(id) = row.secret {
        return grants.secrets(of.0, id).await;
    }
    // Of an earlier release, which kept the values in the text; or their master key is lost.
    let secrets = hidden_headers(&row.text).map_err(unread)?;
    match secrets.has_open() {
        true => Err("its values are lost; add it again: gantry hooks add".to_owned()),
        false => Ok(secrets),
    }
}
