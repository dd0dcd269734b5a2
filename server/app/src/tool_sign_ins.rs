//! Sign-ins of people to tool servers of the web.
//!
//! A sign-in is bound to the person who begins it: only a browser in which the same person is signed in to Gantry brings
//! its answer. Else a stranger could send a person the address of a sign-in that the stranger began, and get the person's
//! tokens.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use server_mcp::sign_in::{self, Answer, Begun, Grant, KnownClient, Own};
use server_records::ExtensionKind;
use server_store::{NewToolGrant, NewToolSignIn, StoreError, ToolValueRow};
use shared_extensions::{ServerSecrets, read_servers};
use shared_types::{
    Clock, Digest, Entropy, ExtensionId, SecretId, SessionId, Timestamp,
    event::{Layer, Provenance, ToolServer, ToolServerTransport},
};
use tokio::time::timeout;

use crate::{
    AppError, Extensions, OpContext, Parts,
    gate::Gate,
    rights::Action,
    tool_servers::{
        access::{Grants, joined, plain},
        values::{host_of, is_variable},
    },
    vault::Plain,
};

/// The time in which the person signs in.
const SIGN_IN_WITHIN: Duration = Duration::from_secs(15 * 60);

/// The time in which tokens are given back.
const REVOKE_WITHIN: Duration = Duration::from_secs(10);

/// Longest value of a person, in bytes.
const MAX_VALUE_BYTES: usize = 8 * 1024;

/// The path to which browsers come back, and that of the document about this client.
pub const CALLBACK: &str = "/oauth/callback";
/// See [`CALLBACK`].
pub const DOCUMENT: &str = "/oauth/client.json";

/// A tool server that is registered, and the person's sign-in to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredToolServer {
    /// Its id.
    pub id: ExtensionId,
    /// Its declaration, without its values.
    pub server: ToolServer,
    /// The person's sign-in.
    pub sign_in: SignInState,
}

/// The state of a person's sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInState {
    /// The server has not asked for one.
    None,
    /// It wants one.
    Needed,
    /// The person has signed in.
    SignedIn {
        /// The authorization server.
        issuer: String,
        /// The scopes of the tokens.
        scopes: Vec<String>,
        /// The time of the sign-in, or of the last renewal.
        since: Timestamp,
    },
}

/// A sign-in that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunSignIn {
    /// The address to which the person's browser goes.
    pub url: String,
    /// The authorization server.
    pub issuer: String,
    /// The end of the time in which the person signs in.
    pub ends_at: Timestamp,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct ToolSignIns {
    gate: Gate,
    extensions: Extensions,
    grants: Grants,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl ToolSignIns {
    pub(crate) fn of(parts: &Parts, gate: &Gate, extensions: &Extensions) -> Self {
        Self {
            gate: gate.clone(),
            extensions: extensions.clone(),
            grants: Grants::of(parts),
            clock: parts.clock.clone(),
            entropy: parts.entropy.clone(),
        }
    }

    /// The registered tool servers of the user: the tenant's, then the user's own.
    ///
    /// # Errors
    /// If the user may not see settings.
    pub async fn list(&self, ctx: &OpContext) -> Result<Vec<RegisteredToolServer>, AppError> {
        let registered = self.registered(ctx).await?;
        let grants = self.grants.store.tool_grants(ctx.tenant, ctx.user).await?;
        let listed = registered.into_iter().map(|(id, server, _)| {
            let grant = grants
                .iter()
                .find(|grant| Some(grant.url.as_str()) == address(&server));
            let sign_in = match grant {
                None => SignInState::None,
                Some(grant)
                    if grant.wanted.is_some()
                        || grant.secret.is_none()
                        || declared_issuer(&server)
                            .is_some_and(|issuer| issuer != grant.issuer) =>
                {
                    SignInState::Needed
                }
                Some(grant) => SignInState::SignedIn {
                    issuer: grant.issuer.clone(),
                    scopes: grant.scopes.split(' ').map(str::to_owned).collect(),
                    since: grant.changed_at,
                },
            };
            RegisteredToolServer {
                id,
                server,
                sign_in,
            }
        });
        Ok(listed.collect())
    }

    /// Begins a sign-in to the tool server of this name: the user's own or the tenant's, else the one that a session found
    /// in a project. The browser comes back to the server at this address.
    ///
    /// # Errors
    /// If there is no such server at an address of the web, the user may not change settings, or the server or its
    /// authorization server does not do its part; the words say what to do.
    pub async fn begin(
        &self,
        ctx: &OpContext,
        name: &str,
        session: Option<SessionId>,
        base: &str,
    ) -> Result<BegunSignIn, AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        let (server, secret) = self.named(ctx, name, session).await?;
        let ToolServerTransport::Http {
            url,
            client_id,
            issuer,
            ..
        } = &server.transport
        else {
            return Err(AppError::Invalid(format!(
                "the tool server {name} is a program: it needs no sign-in"
            )));
        };
        let known = match client_id {
            Some(id) => Some(KnownClient {
                id: id.clone(),
                secret: self.secrets(ctx, secret).await?.client_secret,
                issuer: issuer.clone(),
            }),
            None => None,
        };
        if url.contains("${") {
            return Err(AppError::Invalid(format!(
                "the address of the tool server {name} has variables: a sign-in is for one address"
            )));
        }
        let refused = |error: &dyn std::fmt::Display| AppError::Conflict(error.to_string());
        let web = self.grants.web.client();
        let address = web.url(url).map_err(|error| refused(&error))?;
        let sign_ins = self.grants.sign_ins();
        let wanted = match self
            .grants
            .store
            .tool_grant(ctx.tenant, ctx.user, url)
            .await
        {
            Ok((row, _)) => row.wanted,
            Err(StoreError::NotFound | StoreError::Conflict(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let also: BTreeSet<_> = wanted
            .iter()
            .flat_map(|scopes| scopes.split_ascii_whitespace())
            .map(str::to_owned)
            .collect();
        let (redirect, document) = (format!("{base}{CALLBACK}"), format!("{base}{DOCUMENT}"));
        let own = Own {
            redirect: &redirect,
            document: is_public(base).then_some(document.as_str()),
            known: known.as_ref(),
        };
        let beginning = async {
            let challenge = sign_ins.challenge(&address).await?;
            let found = sign_ins
                .find(&address, &challenge, issuer.as_deref())
                .await?;
            let random = |bytes: &mut [u8]| self.entropy.fill(bytes);
            sign_ins
                .begin(&found, &challenge, &also, &own, random)
                .await
        };
        let (to, begun) = beginning.await.map_err(|error| refused(&error))?;
        let id = SecretId::generate(&*self.clock, &*self.entropy);
        let bytes = plain(&begun).map_err(AppError::unavailable)?;
        let sealed = self.grants.vault.seal(ctx.tenant, id, 1, &bytes).await;
        let sealed = sealed.map_err(|error| refused(&error))?;
        let now = self.clock.now();
        let ends_at = now.after(SIGN_IN_WITHIN);
        let new = NewToolSignIn {
            state: Digest::of(begun.state.as_bytes()),
            url,
            name,
            secret: &sealed,
            ends_at,
        };
        let store = &self.grants.store;
        store
            .begin_tool_sign_in(ctx.tenant, ctx.user, new, now)
            .await?;
        Ok(BegunSignIn {
            url: to.into(),
            issuer: begun.issuer().to_owned(),
            ends_at,
        })
    }

    /// Takes the answer that the user's browser brought, and stores the tokens. Returns the tool server's name.
    ///
    /// # Errors
    /// If this user has no sign-in with this state under way, or the answer brings no tokens.
    pub async fn finish(
        &self,
        ctx: &OpContext,
        state: &str,
        answer: &Answer,
    ) -> Result<String, AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        let (store, given) = (&self.grants.store, self.clock.now());
        let state = Digest::of(state.as_bytes());
        let taken = store.take_tool_sign_in(ctx.tenant, ctx.user, state, given);
        let taken = taken.await.map_err(|error| match error {
            StoreError::NotFound => AppError::Conflict(
                "you have begun no such sign-in, or it is over; begin again: gantry mcp login NAME"
                    .to_owned(),
            ),
            error => error.into(),
        })?;
        let begun: Begun = self.grants.opened(ctx.tenant, &taken.secret).await?;
        let redeemed = self.grants.sign_ins().redeem(&begun, answer).await;
        let grant = redeemed.map_err(|error| AppError::Conflict(error.to_string()))?;
        let id = SecretId::generate(&*self.clock, &*self.entropy);
        let bytes = plain(&grant).map_err(AppError::unavailable)?;
        let sealed = self.grants.vault.seal(ctx.tenant, id, 1, &bytes).await?;
        let new = NewToolGrant {
            url: &taken.url,
            secret: &sealed,
            issuer: grant.issuer(),
            scopes: &joined(grant.scopes()),
            ends_at: Grants::ends_at(&grant, given),
        };
        store
            .put_tool_grant(ctx.tenant, ctx.user, new, &ctx.by(), given)
            .await?;
        Ok(taken.name)
    }

    /// Signs the user out of the tool server of this name: its tokens are removed, and given back where that is possible.
    ///
    /// # Errors
    /// If there is no such server, or the user may not change settings.
    pub async fn sign_out(
        &self,
        ctx: &OpContext,
        name: &str,
        session: Option<SessionId>,
    ) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        let (server, _) = self.named(ctx, name, session).await?;
        let Some(url) = address(&server) else {
            return Ok(());
        };
        let (by, now) = (ctx.by(), self.clock.now());
        let ended = self
            .grants
            .store
            .end_tool_grant(ctx.tenant, ctx.user, url, &by, now);
        let Some(sealed) = ended.await? else {
            return Ok(());
        };
        let opened = self.grants.opened::<Grant>(ctx.tenant, &sealed).await;
        if let Ok(grant) = opened {
            let revoking = self.grants.sign_ins();
            let revoking = timeout(REVOKE_WITHIN, async move { revoking.revoke(&grant).await });
            // The tokens are removed here whatever the answer is.
            if !matches!(revoking.await, Ok(Ok(()))) {
                tracing::info!(user.id = %ctx.user, "the tokens of a tool server were not given back");
            }
        }
        Ok(())
    }

    /// The user's values for tool servers, without what they are.
    ///
    /// # Errors
    /// If the user may not see settings.
    pub async fn values(&self, ctx: &OpContext) -> Result<Vec<ToolValueRow>, AppError> {
        self.gate.own(ctx, Action::SeeSettings)?;
        Ok(self.grants.store.tool_values(ctx.tenant, ctx.user).await?)
    }

    /// Sets one of the user's values for tool servers, which may be sent to a host, or removes it.
    ///
    /// # Errors
    /// If the name, the host or the value is none, there are too many or none to remove, or the user may not change settings.
    pub async fn put_value(
        &self,
        ctx: &OpContext,
        name: &str,
        value: Option<(String, String)>,
    ) -> Result<(), AppError> {
        self.gate.own(ctx, Action::ChangeSettings)?;
        if !is_variable(name) {
            return Err(AppError::Invalid(
                "a name has letters, digits and _, at most 64, and begins with no digit".to_owned(),
            ));
        }
        let is_value = |value: &String| {
            (1..=MAX_VALUE_BYTES).contains(&value.len()) && !value.contains(char::is_control)
        };
        let now = self.clock.now();
        let host = value.as_ref().map(|(host, _)| host_of(host)).transpose();
        let host = host.map_err(|_| {
            AppError::Invalid("the host is that of an address, such as api.example.org".to_owned())
        })?;
        let sealed = match value {
            Some((_, value)) if is_value(&value) => {
                let id = SecretId::generate(&*self.clock, &*self.entropy);
                let plain = Plain::new(value);
                let sealed = self.grants.vault.seal(ctx.tenant, id, 1, &plain).await;
                Some(sealed.map_err(|error| AppError::Conflict(error.to_string()))?)
            }
            Some(_) => {
                return Err(AppError::Invalid(
                    "a value has 1 to 8,192 bytes and no control characters".to_owned(),
                ));
            }
            None => None,
        };
        let (store, by) = (&self.grants.store, ctx.by());
        let put = (name, sealed.as_ref().zip(host.as_deref()));
        let put = store.put_tool_value(ctx.tenant, ctx.user, put, &by, now);
        match put.await {
            Err(StoreError::NotFound) => Err(AppError::NotFound("value")),
            put => Ok(put?),
        }
    }

    async fn registered(
        &self,
        ctx: &OpContext,
    ) -> Result<Vec<(ExtensionId, ToolServer, Option<SecretId>)>, AppError> {
        let rows = self.extensions.list(ctx).await?;
        let servers = rows
            .into_iter()
            .filter(|row| row.kind == ExtensionKind::Mcp)
            .filter_map(|row| {
                let from = Provenance {
                    layer: row.layer(),
                    at: row.name.clone(),
                    digest: row.digest,
                    trusted: true,
                };
                let (mut servers, _) = read_servers(&row.text, &from).ok()?;
                Some((row.id, servers.pop()?, row.secret))
            });
        Ok(servers.collect())
    }

    /// The tool server of this name, and its secret. Of two the narrower one counts.
    async fn named(
        &self,
        ctx: &OpContext,
        name: &str,
        session: Option<SessionId>,
    ) -> Result<(ToolServer, Option<SecretId>), AppError> {
        let registered = self.registered(ctx).await?.into_iter();
        let registered = registered.filter(|(_, server, _)| server.name == name);
        let registered = registered.max_by_key(|(_, server, _)| server.from.layer);
        if let Some((_, server, secret)) = registered {
            return Ok((server, secret));
        }
        let Some(session) = session else {
            return Err(AppError::NotFound("tool server"));
        };
        let found = self.extensions.found(ctx, session).await?;
        let is_it = |server: &ToolServer| {
            server.name == name && server.from.trusted && server.from.layer > Layer::User
        };
        let server = found.servers.into_iter().find(is_it);
        Ok((server.ok_or(AppError::NotFound("tool server"))?, None))
    }

    async fn secrets(
        &self,
        ctx: &OpContext,
        secret: Option<SecretId>,
    ) -> Result<ServerSecrets, AppError> {
        let Some(secret) = secret else {
            return Ok(ServerSecrets::default());
        };
        let sealed = self.grants.store.secret(ctx.tenant, secret).await?;
        Ok(self.grants.opened(ctx.tenant, &sealed).await?)
    }
}

/// The document by which authorization servers know the client at this address (OAuth Client ID Metadata Document).
pub fn client_document(base: &str) -> serde_json::Value {
    sign_in::document(&format!("{base}{DOCUMENT}"), &format!("{base}{CALLBACK}"))
}

fn address(server: &ToolServer) -> Option<&str> {
    match &server.transport {
        ToolServerTransport::Http { url, .. } => Some(url),
        ToolServerTransport::Stdio { .. } => None,
    }
}

/// The only authorization server at which people may sign in, where one is declared.
fn declared_issuer(server: &ToolServer) -> Option<&str> {
    match &server.transport {
        ToolServerTransport::Http { issuer, .. } => issuer.as_deref(),
        ToolServerTransport::Stdio { .. } => None,
    }
}

/// True if an authorization server elsewhere may be able to read a document at this address.
fn is_public(base: &str) -> bool {
    let Some(rest) = base.strip_prefix("https://") else {
        return false;
    };
    let host = rest.split(':').next().unwrap_or_default();
    let is_name = host.contains('.') && !rest.starts_with('[');
    is_name && host.parse::<std::net::IpAddr>().is_err() && !host.ends_with(".localhost")
}
