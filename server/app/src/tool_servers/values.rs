//! The values of a tool server's variables and headers, which no log has. They are read when they are needed: those of a
//! registered server from its secret, and those of a project's file from that file, if it is still the one that the
//! person trusts.

use server_agent::ServerPlace;
use server_records::{ExtensionKind, RegisteredExtension};
use server_store::StoreError;
use shared_extensions::{ServerSecrets, secrets_of};
use shared_sandbox::{
    Command, Exec, ExitStatus, OperationEvent, Outcome, OutputStream, Request, Retention,
};
use shared_types::{
    Digest, SecretId, TenantId, UserId,
    clean::clean_line,
    event::{Provenance, ShownValue, ToolServer, ToolServerTransport},
};
use tokio::time::timeout;

use super::{ToolServerPool, access::Grants, command::quoted, variable::Variable};
use crate::operations::{Operations, StartProgram};

/// Largest file that is read, in bytes: that of a look for extensions.
const MAX_FILE_BYTES: usize = 192 * 1024;

/// The time in which it is read.
const READ_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

impl ToolServerPool {
    /// The values of a server that its declaration hides.
    ///
    /// # Errors
    /// They cannot be read; the words say why.
    pub(super) async fn values(
        &self,
        (tenant, user): (TenantId, UserId),
        server: &ToolServer,
        place: Option<&ServerPlace>,
    ) -> Result<ServerSecrets, String> {
        if !hides(server) {
            return Ok(ServerSecrets::default());
        }
        match server.from.layer.is_on_runner() {
            true => self.values_of_file((tenant, user), server, place).await,
            false => self.values_of_registered((tenant, user), server).await,
        }
    }

    async fn values_of_registered(
        &self,
        of: (TenantId, UserId),
        server: &ToolServer,
    ) -> Result<ServerSecrets, String> {
        let grants = &self.0.grants;
        let unread = |error: &dyn std::fmt::Display| format!("its values cannot be read: {error}");
        let row = grants
            .registered(of, ExtensionKind::Mcp, &server.from)
            .await?;
        let Some(id) = row.secret else {
            // Of an earlier release, which kept the values in the text; or their master key is lost.
            let secrets = secrets_of(&row.text, &server.name).map_err(|error| unread(&error))?;
            return match secrets.has_open() {
                true => Err("its values are lost; add it again: gantry mcp add".to_owned()),
                false => Ok(secrets),
            };
        };
        grants.secrets(of.0, id).await
    }

    async fn values_of_file(
        &self,
        of: (TenantId, UserId),
        server: &ToolServer,
        place: Option<&ServerPlace>,
    ) -> Result<ServerSecrets, String> {
        let text = file_of(self.0.operations.get(), of, &server.from, place).await?;
        secrets_of(&text, &server.name).map_err(|error| error.to_string())
    }
}

/// The text of a file of a project that the person trusts, if it is still that text.
///
/// # Errors
/// It cannot be read, or is another one now; the words say why.
pub(crate) async fn file_of(
    operations: Option<&Operations>,
    (tenant, user): (TenantId, UserId),
    from: &Provenance,
    place: Option<&ServerPlace>,
) -> Result<String, String> {
    let operations = operations.ok_or("this server of Gantry is starting")?;
    let place = place.ok_or("its values are in a file of the project, and no runner is there to read it; choose one: /runner NAME")?;
    let start = StartProgram {
        tenant,
        user,
        runner: place.runner,
        sandbox: place.sandbox,
        request: Request::Exec(Exec {
            retention: Retention::None,
            ..Exec::new(Command::Shell(format!("cat ./{}", quoted(&from.at))))
        }),
        run_for: READ_WITHIN,
    };
    let reading = timeout(READ_WITHIN, read(operations, start)).await;
    let late = || Err("it was not read in time".to_owned());
    let text = reading.unwrap_or_else(|_| late());
    let text = text.map_err(|why| format!("{} cannot be read: {why}", from.at))?;
    if Digest::of(&text) != from.digest {
        return Err(format!(
            "{} is not the file any more that you trust; the next turn looks at it again",
            from.at
        ));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// True if a value of it is not in the log.
fn hides(server: &ToolServer) -> bool {
    let (values, has_client) = match &server.transport {
        ToolServerTransport::Stdio { env, .. } => (env, false),
        ToolServerTransport::Http {
            headers, client_id, ..
        } => (headers, client_id.is_some()),
    };
    has_client || values.values().any(|value| *value == ShownValue::Hidden)
}

/// The standard output of a program.
async fn read(operations: &Operations, start: StartProgram) -> Result<Vec<u8>, String> {
    let tenant = start.tenant;
    let program = operations.start_program(start).await;
    let program = program.map_err(|error| error.to_string())?;
    let id = program.id;
    let (mut events, controls, sandbox) = program.into_parts();
    let mut text = Vec::new();
    loop {
        let event = events.next().await;
        match event.map_err(|refusal| refusal.message.to_string())? {
            Some(OperationEvent::Output {
                stream,
                offset,
                data,
            }) => {
                let end = offset.saturating_add(data.len() as u64);
                if stream == OutputStream::Stdout {
                    let known = (text.len() as u64).saturating_sub(offset);
                    let known = usize::try_from(known).unwrap_or(usize::MAX).min(data.len());
                    text.extend_from_slice(&data[known..]);
                }
                controls.commit(stream, end).await;
                if text.len() > MAX_FILE_BYTES {
                    operations.stop_program(tenant, id).await;
                    return Err("it is too long".to_owned());
                }
            }
            Some(OperationEvent::Ended(outcome)) => {
                operations.close_program(tenant, id, &sandbox).await;
                return match outcome {
                    Outcome::Exited(exit) if exit.status == ExitStatus::Code(0) => Ok(text),
                    Outcome::Refused(refusal) => Err(refusal.message.to_string()),
                    _ => Err("it is not there".to_owned()),
                };
            }
            Some(_) => {}
            None => return Err("its runner has gone".to_owned()),
        }
    }
}

/// The values of a map: those that are hidden, from the secrets, and the others as they are declared.
pub(crate) fn whole(
    declared: &std::collections::BTreeMap<String, ShownValue>,
    mut hidden: std::collections::BTreeMap<String, String>,
) -> Result<std::collections::BTreeMap<String, String>, String> {
    let values = declared.iter().map(|(name, value)| {
        let value = match value {
            ShownValue::Hidden => hidden.remove(name),
            reference => Some(String::from(reference.clone())),
        };
        let value = value.ok_or_else(|| format!("the value of {name} is not there"))?;
        Ok((name.clone(), value))
    });
    values.collect()
}

impl Grants {
    /// The row of a registered extension of this origin, as it was when the turn found it.
    ///
    /// # Errors
    /// It is another one now, or cannot be read; the words say why.
    pub(crate) async fn registered(
        &self,
        (tenant, user): (TenantId, UserId),
        kind: ExtensionKind,
        from: &Provenance,
    ) -> Result<RegisteredExtension, String> {
        let rows = self.store.extensions(tenant, user).await;
        let rows = rows.map_err(|error| format!("its values cannot be read: {error}"))?;
        let is_it = |row: &RegisteredExtension| {
            row.kind == kind
                && row.name == from.at
                && row.layer() == from.layer
                && row.digest == from.digest
        };
        let row = rows.into_iter().find(is_it);
        row.ok_or_else(|| "it was changed or removed; the next turn has it as it is now".to_owned())
    }

    /// The sealed values of an extension.
    ///
    /// # Errors
    /// They cannot be read; the words say why.
    pub(crate) async fn secrets<T: serde::de::DeserializeOwned>(
        &self,
        tenant: TenantId,
        id: SecretId,
    ) -> Result<T, String> {
        let unread = |error: &dyn std::fmt::Display| format!("its values cannot be read: {error}");
        let sealed = self.store.secret(tenant, id).await;
        let sealed = sealed.map_err(|error| unread(&error))?;
        let opened = self.opened(tenant, &sealed).await;
        opened.map_err(|error| unread(&error))
    }

    /// The text with the person's values in place of `${NAME}` and `${NAME:-DEFAULT}`, to be sent to this host.
    ///
    /// # Errors
    /// The person has no such value, has it for another host, or it cannot be read.
    pub(crate) async fn filled(
        &self,
        (tenant, user): (TenantId, UserId),
        text: &str,
        host: &str,
    ) -> Result<String, String> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some(variable) = Variable::first(rest) {
            let Variable { name, default, .. } = variable;
            if !is_variable(name) {
                let inner = clean_line(variable.inner, 64);
                return Err(format!("{inner:?} names no variable"));
            }
            filled.push_str(variable.before);
            match (self.store.tool_value(tenant, user, name).await, default) {
                // Whoever declares a server chooses its address; the person chooses the host of the value.
                (Ok((_, known)), _) if known != host => {
                    return Err(format!(
                        "your value of {name} goes to {known} alone; to send one to {} as well, name it otherwise: gantry mcp values set NAME --host {}",
                        clean_line(host, 253),
                        clean_line(host, 253),
                    ));
                }
                (Ok((sealed, _)), _) => {
                    let opened = self.vault.open(tenant, &sealed).await;
                    let opened = opened.map_err(|error| error.to_string())?;
                    filled.push_str(opened.expose_text().unwrap_or_default());
                }
                (Err(StoreError::NotFound), Some(default)) => filled.push_str(default),
                (Err(StoreError::NotFound), None) => {
                    return Err(format!(
                        "it needs your value of {name}: gantry mcp values set {name} --host {}",
                        clean_line(host, 253)
                    ));
                }
                (Err(error), _) => return Err(error.to_string()),
            }
            rest = variable.after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

/// The host of an address, with its port where it has one. A variable may stand behind it alone.
pub(crate) fn host_of(address: &str) -> Result<String, String> {
    let (scheme, behind) = address.split_once("://").unwrap_or(("", address));
    // Of "https:a/x://b" the host is a.
    let is_web = ["", "http", "https"].contains(&scheme);
    let host = behind.split(['/', '?', '#']).next().unwrap_or_default();
    match !is_web || host.is_empty() || host.contains("${") || host.contains('@') {
        true => Err("its address has no host of its own before the first variable".to_owned()),
        false => Ok(host.to_ascii_lowercase()),
    }
}

/// True for a name of a variable.
pub(crate) fn is_variable(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=64).contains(&name.len())
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_host_of_an_address_is_the_one_that_is_asked_or_none() {
        for (address, host) in [
            ("https://A.example/mcp?k=${K}", Some("a.example")),
            ("http://a.example:8080", Some("a.example:8080")),
            ("a.example", Some("a.example")),
            ("https:evil.example/x://a.example/", None),
            ("https://a.example@evil.example/", None),
            ("https://${HOST}/", None),
            ("https:///a.example", None),
        ] {
            assert_eq!(host_of(address).ok().as_deref(), host, "{address}");
        }
    }
}
