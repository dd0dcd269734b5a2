//! Extensions: those that people registered at the server, and the files on runners that they trust.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use server_records::{ExtensionKind, RegisteredExtension, WholeSkill};
use server_store::{NewExtension, SealedSecret, Store, StoreError};
use server_web::Web;
use shared_extensions::{
    HookSecrets, ServerSecrets, hidden_headers, read_hooks, read_role, read_servers, read_skill,
    secrets_of, split, split_hooks,
};
use shared_types::{
    Clock, Digest, Entropy, Event, ExtensionId, SandboxId, SecretId, SessionId,
    event::{Extensions as Found, Layer, Provenance, ToolServer, ToolServerTransport},
};

use crate::{
    AppError, OpContext, Parts,
    gate::Gate,
    rights::Action,
    vault::{Plain, Vault},
};

/// Longest file of an extension, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Most bytes of the packed files of a skill.
const MAX_PACKED_BYTES: usize = 2 * 1024 * 1024;

/// Most bytes of a download, which may hold more than the one skill.
const MAX_DOWNLOAD_BYTES: usize = 4 * 1024 * 1024;

/// Longest name, and longest source, in bytes.
const MAX_NAME: usize = 256;
const MAX_SOURCE: usize = 2048;

/// An extension to be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRegistered {
    /// Its kind.
    pub kind: ExtensionKind,
    /// Its name.
    pub name: String,
    /// Its file.
    pub text: String,
    /// The other files of a skill's folder, as a tar archive; empty without any.
    pub packed: Bytes,
    /// Its source: a path or an address; may be empty.
    pub source: String,
    /// True for all people of the tenant.
    pub for_everyone: bool,
    /// The digest of the one in whose place it is put, where the caller names it.
    pub replaces: Option<Digest>,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Extensions {
    store: Store,
    gate: Gate,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    vault: Vault,
    web: Arc<Web>,
}

impl Extensions {
    pub(crate) fn of(parts: &Parts, gate: &Gate) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
            vault: parts.vault.clone(),
            web: parts.web.clone(),
        }
    }

    /// The extensions that are registered for the user: the tenant's, then the user's own. Of a skill only the beginning
    /// of its text is there.
    ///
    /// # Errors
    /// If the user may not see settings.
    pub async fn list(&self, ctx: &OpContext) -> Result<Vec<RegisteredExtension>, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        let mut rows = self.store.extensions(ctx.tenant, ctx.user).await?;
        for row in &mut rows {
            // An earlier release kept the values in the text.
            let shown = match row.kind {
                ExtensionKind::Mcp => split(&row.text, &row.name).map(|(text, _)| text),
                ExtensionKind::Hooks => split_hooks(&row.text).map(|(text, _)| text),
                ExtensionKind::Skill | ExtensionKind::Agent => Ok(std::mem::take(&mut row.text)),
            };
            // What is not read may have values anywhere.
            row.text = shown.unwrap_or_else(|error| format!("it is not shown: {error}"));
        }
        Ok(rows)
    }

    /// An extension with its whole text and its packed files.
    ///
    /// # Errors
    /// If there is none, or the user may not see settings.
    pub async fn show(
        &self,
        ctx: &OpContext,
        id: ExtensionId,
    ) -> Result<(RegisteredExtension, Bytes), AppError> {
        let all = self.list(ctx).await?;
        let found = all.into_iter().find(|extension| extension.id == id);
        let mut found = found.ok_or(AppError::NotFound("extension"))?;
        if found.kind != ExtensionKind::Skill {
            return Ok((found, Bytes::new()));
        }
        let (layer, name) = (found.layer(), found.name.clone());
        let whole = self
            .store
            .whole_skill(ctx.tenant, ctx.user, layer, &name)
            .await?;
        let WholeSkill { text, packed } = whole.ok_or(AppError::NotFound("extension"))?;
        found.text = text;
        Ok((found, packed.unwrap_or_default()))
    }

    /// Registers an extension. It takes the place of the one of the same kind, owner and name.
    ///
    /// # Errors
    /// If it cannot be used, the user may not register it, there are too many, or it replaces another one than was named.
    pub async fn put(
        &self,
        ctx: &OpContext,
        new: NewRegistered,
    ) -> Result<RegisteredExtension, AppError> {
        self.may_change(ctx, new.for_everyone)?;
        check(&new).map_err(AppError::Invalid)?;
        let mut new = new;
        let secret = match new.kind {
            ExtensionKind::Mcp => self.sealed_values(ctx, &mut new).await?,
            ExtensionKind::Hooks => self.sealed_headers(ctx, &mut new).await?,
            ExtensionKind::Skill | ExtensionKind::Agent => None,
        };
        let mut all = [new.text.as_bytes(), &new.packed[..]].concat();
        if let Some(secret) = &secret {
            // Other values are another extension, and a digest of them would tell of them.
            all.extend_from_slice(secret.id.to_string().as_bytes());
        }
        let digest = Digest::of(&all);
        let row = NewExtension {
            id: ExtensionId::generate(&*self.clock, &*self.entropy),
            kind: new.kind,
            user: (!new.for_everyone).then_some(ctx.user),
            name: &new.name,
            text: &new.text,
            digest,
            source: &new.source,
            packed: &new.packed,
            secret: secret.as_ref(),
            replaces: new.replaces,
        };
        let (by, now) = (ctx.by(), self.clock.now());
        Ok(self.store.put_extension(ctx.tenant, row, &by, now).await?)
    }

    /// The bytes of a skill at an address of the web: its `SKILL.md`, or an archive. Nothing is registered.
    ///
    /// # Errors
    /// If the user may not register extensions, or the address does not give it; the text says why.
    pub async fn download(&self, ctx: &OpContext, address: &str) -> Result<Bytes, AppError> {
        self.may_change(ctx, false)?;
        // Another machine in between could put instructions of its own into plain text.
        let is_private = ["https://", "http://127.0.0.1:", "http://localhost:"]
            .iter()
            .any(|begin| address.starts_with(begin));
        if address.len() > MAX_SOURCE || !is_private {
            return Err(AppError::Invalid(format!(
                "the address of a skill begins with https:// and has at most {MAX_SOURCE} bytes"
            )));
        }
        let read = self.web.download(address, MAX_DOWNLOAD_BYTES).await;
        let read = read.map_err(|error| AppError::Invalid(error.to_string()))?;
        Ok(Bytes::from(read))
    }

    /// Takes the hidden values out of the text of a tool server, and seals them.
    async fn sealed_values(
        &self,
        ctx: &OpContext,
        new: &mut NewRegistered,
    ) -> Result<Option<SealedSecret>, AppError> {
        let (text, mut secrets) = split(&new.text, &new.name).map_err(invalid)?;
        new.text = text;
        if secrets.is_none() {
            return Ok(None);
        }
        if secrets.has_open() {
            let before = self.row_before(ctx, new).await?;
            let same = |row: &RegisteredExtension| is_same_way(&row.text, &new.text, &new.name);
            // Whoever may not read a value may not send it to another address either.
            if before.as_ref().is_some_and(|row| !same(row)) {
                return Err(AppError::Invalid(
                    "its address or its command is another one: write its values again".to_owned(),
                ));
            }
            let before: ServerSecrets = match before {
                Some(row) => match row.secret {
                    Some(id) => self.opened(ctx, id).await?,
                    None => secrets_of(&row.text, &row.name).unwrap_or_default(),
                },
                None => ServerSecrets::default(),
            };
            secrets.keep(&before).map_err(invalid)?;
        }
        self.seal(ctx, &secrets).await.map(Some)
    }

    /// Takes the hidden values of headers out of the text of hooks, and seals them.
    async fn sealed_headers(
        &self,
        ctx: &OpContext,
        new: &mut NewRegistered,
    ) -> Result<Option<SealedSecret>, AppError> {
        let (text, mut secrets) = split_hooks(&new.text).map_err(invalid)?;
        new.text = text;
        if secrets.is_none() {
            return Ok(None);
        }
        if secrets.has_open() {
            let before: HookSecrets = match self.row_before(ctx, new).await? {
                Some(row) => match row.secret {
                    Some(id) => self.opened(ctx, id).await?,
                    None => hidden_headers(&row.text).unwrap_or_default(),
                },
                None => HookSecrets::default(),
            };
            secrets.keep(&before).map_err(invalid)?;
        }
        self.seal(ctx, &secrets).await.map(Some)
    }

    /// The extension in whose place a new one is put.
    async fn row_before(
        &self,
        ctx: &OpContext,
        new: &NewRegistered,
    ) -> Result<Option<RegisteredExtension>, AppError> {
        let rows = self.store.extensions(ctx.tenant, ctx.user).await?;
        let is_it = |row: &RegisteredExtension| {
            row.kind == new.kind && row.name == new.name && row.user.is_none() == new.for_everyone
        };
        Ok(rows.into_iter().find(is_it))
    }

    async fn opened<T: DeserializeOwned>(
        &self,
        ctx: &OpContext,
        id: SecretId,
    ) -> Result<T, AppError> {
        let sealed = self.store.secret(ctx.tenant, id).await?;
        let plain = self.vault.open(ctx.tenant, &sealed).await?;
        serde_json::from_slice(plain.expose()).map_err(AppError::unavailable)
    }

    async fn seal(
        &self,
        ctx: &OpContext,
        secrets: &impl Serialize,
    ) -> Result<SealedSecret, AppError> {
        let id = SecretId::generate(&*self.clock, &*self.entropy);
        let plain = serde_json::to_string(secrets).map_err(AppError::unavailable)?;
        let sealed = self.vault.seal(ctx.tenant, id, 1, &Plain::new(plain)).await;
        sealed.map_err(|error| AppError::Conflict(error.to_string()))
    }

    /// Removes an extension of the user's, or of the tenant's.
    ///
    /// # Errors
    /// If there is none, or the user may not remove it.
    pub async fn remove(&self, ctx: &OpContext, id: ExtensionId) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        let all = self.store.extensions(ctx.tenant, ctx.user).await?;
        let row = all.into_iter().find(|extension| extension.id == id);
        let row = row.ok_or(AppError::NotFound("extension"))?;
        self.may_change(ctx, row.user.is_none())?;
        let (by, now) = (ctx.by(), self.clock.now());
        let removed = self
            .store
            .remove_extension(ctx.tenant, id, row.user, &by, now);
        match removed.await {
            Err(StoreError::NotFound) => Err(AppError::NotFound("extension")),
            removed => Ok(removed.map(drop)?),
        }
    }

    /// The extensions that the last turn of a session found, with the trust in their files as it is now.
    ///
    /// # Errors
    /// If the user has no such session, or may not see settings.
    pub async fn found(&self, ctx: &OpContext, session: SessionId) -> Result<Found, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        self.gate.session_row(ctx, session).await?;
        let last = self
            .store
            .last_event(ctx.tenant, session, "extensions.found");
        let Some(Event::ExtensionsFound { mut extensions, .. }) = last.await? else {
            return Ok(Found::default());
        };
        let sandbox = self.sandbox(ctx, session).await?;
        let trusted = self.store.trusted_extensions(ctx.tenant, ctx.user).await?;
        let hooks = extensions.hooks.iter_mut().map(|hook| &mut hook.from);
        let servers = extensions.servers.iter_mut().map(|server| &mut server.from);
        let plugins = extensions.plugins.iter_mut().map(|plugin| &mut plugin.from);
        for from in hooks.chain(servers).chain(plugins) {
            if from.layer.is_on_runner() {
                from.trusted = trusted.iter().any(|file| {
                    file.sandbox == sandbox && file.path == from.at && file.digest == from.digest
                });
            }
        }
        Ok(*extensions)
    }

    /// True if a turn of the session has looked at its place.
    ///
    /// # Errors
    /// If the user has no such session.
    pub(crate) async fn has_looked(
        &self,
        ctx: &OpContext,
        session: SessionId,
    ) -> Result<bool, AppError> {
        self.gate.session_row(ctx, session).await?;
        let last = self.store.last_event(ctx.tenant, session, "place.surveyed");
        Ok(last.await?.is_some())
    }

    /// Trusts a file with hooks, tool servers or plugins that the last look of a session found, if its text has this
    /// digest. It counts from the next turn on, until it changes.
    ///
    /// # Errors
    /// If the last look did not find it, the user has no such session, or trusts too many files.
    pub async fn trust(
        &self,
        ctx: &OpContext,
        session: SessionId,
        path: &str,
        digest: Digest,
    ) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        let found = self.found(ctx, session).await?;
        let is_it = |from: &&Provenance| {
            from.layer.is_on_runner() && from.at == path && from.digest == digest
        };
        let hooks = found.hooks.iter().map(|hook| &hook.from);
        let servers = found.servers.iter().map(|server| &server.from);
        let plugins = found.plugins.iter().map(|plugin| &plugin.from);
        if hooks.chain(servers).chain(plugins).find(is_it).is_none() {
            return Err(AppError::Conflict(
                "the last look of this session did not find this file with this text; look again: gantry extensions"
                    .to_owned(),
            ));
        }
        let sandbox = self.sandbox(ctx, session).await?;
        self.set_trust(ctx, (sandbox, path), Some(digest)).await
    }

    /// Trusts a file no more.
    ///
    /// # Errors
    /// If the user has no such session, or its place was never looked at.
    pub async fn untrust(
        &self,
        ctx: &OpContext,
        session: SessionId,
        path: &str,
    ) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        self.gate.session_row(ctx, session).await?;
        let sandbox = self.sandbox(ctx, session).await?;
        self.set_trust(ctx, (sandbox, path), None).await
    }

    async fn set_trust(
        &self,
        ctx: &OpContext,
        file: (SandboxId, &str),
        digest: Option<Digest>,
    ) -> Result<(), AppError> {
        let (by, now) = (ctx.by(), self.clock.now());
        let set = self
            .store
            .trust_extension(ctx.tenant, ctx.user, file, digest, &by, now);
        Ok(set.await?)
    }

    /// The workspace that the session's last look was at.
    async fn sandbox(&self, ctx: &OpContext, session: SessionId) -> Result<SandboxId, AppError> {
        let last = self.store.last_event(ctx.tenant, session, "place.surveyed");
        match last.await? {
            Some(Event::PlaceSurveyed {
                place: Some(place), ..
            }) => Ok(place.sandbox),
            _ => Err(AppError::NotFound("place of this session")),
        }
    }

    fn may_change(&self, ctx: &OpContext, for_everyone: bool) -> Result<(), AppError> {
        let action = match for_everyone {
            true => Action::ChangeTenantSettings,
            false => Action::ChangeSettings,
        };
        self.gate.own(ctx, action)
    }
}

fn invalid(error: shared_extensions::Invalid) -> AppError {
    AppError::Invalid(error.to_string())
}

/// True if two files declare a tool server of this name with the same address or command, and the same client
/// of the same authorization server.
fn is_same_way(before: &str, new: &str, name: &str) -> bool {
    let way = |text: &str| {
        let file: serde_json::Value = serde_json::from_str(text).ok()?;
        let server = file.get("mcpServers")?.get(name)?;
        let of = |part: &str| server.get(part).cloned().unwrap_or_default();
        Some([
            of("url"),
            of("command"),
            of("args"),
            of("oauth")["clientId"].clone(),
            of("oauth")["issuer"].clone(),
        ])
    };
    way(before).is_some_and(|before| way(new) == Some(before))
}

/// The words on a client secret without an authorization server.
const UNBOUND: &str = "its client secret goes to one authorization server alone, and none is named: add --issuer URL, or \"issuer\" in its \"oauth\"; gantry mcp login names it where the server is registered without the client";

/// False for a tool server with a client secret that names no authorization server for it.
fn is_bound(server: &ToolServer, text: &str) -> bool {
    let has_issuer = match &server.transport {
        ToolServerTransport::Http { issuer, .. } => issuer.is_some(),
        ToolServerTransport::Stdio { .. } => true,
    };
    let secrets = secrets_of(text, &server.name).unwrap_or_default();
    has_issuer || secrets.client_secret.is_none()
}

/// Checks that an extension can be used.
fn check(new: &NewRegistered) -> Result<(), String> {
    let NewRegistered {
        kind,
        name,
        text,
        packed,
        source,
        ..
    } = new;
    let what = format!("{} {name:?}", kind.word());
    let is_plain =
        |text: &str, at_most: usize| text.len() <= at_most && !text.contains(char::is_control);
    if name.is_empty() || !is_plain(name, MAX_NAME) || !is_plain(source, MAX_SOURCE) {
        return Err(
            "a name has 1 to 256 bytes, a source at most 2,048, and none has control characters"
                .to_owned(),
        );
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "{what} has {} bytes; at most {MAX_TEXT_BYTES} are taken",
            text.len()
        ));
    }
    if !packed.is_empty() && *kind != ExtensionKind::Skill {
        return Err(format!(
            "{what} has one file; only a skill has others beside it"
        ));
    }
    if packed.len() > MAX_PACKED_BYTES {
        return Err(format!(
            "the other files of {what} have {} bytes; at most {MAX_PACKED_BYTES} are taken",
            packed.len()
        ));
    }
    let from = Provenance {
        layer: Layer::User,
        at: name.clone(),
        digest: Digest::of(b""),
        trusted: true,
    };
    let read = match kind {
        ExtensionKind::Skill => read_skill(text, name).map(|_| Vec::new()),
        ExtensionKind::Agent => read_role(text, name, from).map(|role| match role.name == *name {
            true => Vec::new(),
            false => vec![format!("its file names it {:?}", role.name)],
        }),
        ExtensionKind::Hooks => {
            read_hooks(text, &from).map(|(hooks, unread)| match hooks.is_empty() {
                true if unread.is_empty() => vec!["it has no hooks".to_owned()],
                _ => unread,
            })
        }
        ExtensionKind::Mcp => {
            read_servers(text, &from).map(|(servers, unread)| match servers.as_slice() {
                [server] if server.name == *name => match is_bound(server, text) {
                    true => unread,
                    false => vec![UNBOUND.to_owned()],
                },
                [] if !unread.is_empty() => unread,
                _ => vec!["it must have one server, of this name".to_owned()],
            })
        }
    };
    match read {
        Err(why) => Err(format!("{what} cannot be used: {why}")),
        Ok(unread) if !unread.is_empty() => {
            Err(format!("{what} cannot be used: {}", unread.join("; ")))
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
