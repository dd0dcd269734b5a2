//! The tokens by which people's tool servers are asked. A token is of one person, and goes to one address.
//!
//! Tokens stand in the database alone, sealed: each request reads them there. So an end counts at once on all replicas.
//! A renewal spends the token that it renews, and of two renewals at once the authorization server would take the second
//! one for a theft. So a replica takes the renewal in the database first, and the others wait for what it brings.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use server_mcp::{
    McpError,
    sign_in::{Access, AccessToken, Challenge, Grant, SignIns},
};
use server_store::{NewToolGrant, SealedSecret, Store, StoreError};
use server_web::Web;
use shared_types::{Clock, TenantId, Timestamp, UserId, clean::clean_line};

use crate::{
    Parts,
    vault::{Plain, Vault, VaultError},
};

/// A token that ends within this time is renewed before it is sent.
const RENEW_BEFORE: Duration = Duration::from_secs(30);

/// The time for a renewal. After it another replica may try.
const RENEW_WITHIN: Duration = Duration::from_secs(30);

/// The pause between two looks for the tokens that another replica renews.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The longest that a token is taken to be good, whatever its server says.
const GOOD_AT_MOST: Duration = Duration::from_secs(400 * 24 * 60 * 60);

/// Longest list of scopes in words for people, in characters.
const MAX_SHOWN: usize = 120;

/// The stored tokens of all people; cheap to clone.
#[derive(Clone)]
pub(crate) struct Grants {
    pub(crate) store: Store,
    pub(crate) vault: Vault,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) web: Arc<Web>,
}

/// The tool server of one person.
#[derive(Debug, Clone)]
pub(crate) struct GrantOf {
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
    /// Its address, as it is declared.
    pub(crate) url: String,
    /// Its name.
    pub(crate) name: String,
    /// The issuer of the authorization server that is declared for it, if one is. Tokens of another one are not used.
    pub(crate) issuer: Option<String>,
}

/// Tokens as they are stored, and opened.
struct Stored {
    sealed: SealedSecret,
    grant: Grant,
    ends_at: Option<Timestamp>,
}

/// The right of one person to ask one tool server.
pub(super) struct PersonAccess {
    pub(super) grants: Grants,
    pub(super) of: GrantOf,
}

impl Grants {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self {
            store: parts.store.clone(),
            vault: parts.vault.clone(),
            clock: parts.clock.clone(),
            web: parts.web.clone(),
        }
    }

    pub(crate) fn sign_ins(&self) -> SignIns {
        SignIns::new(self.web.client().clone())
    }

    /// The time at which a token of this grant ends, if it was given at this time.
    pub(crate) fn ends_at(grant: &Grant, given: Timestamp) -> Option<Timestamp> {
        let good_for = grant.good_for.map(Duration::from_secs)?;
        Some(given.after(good_for.min(GOOD_AT_MOST)))
    }

    /// Opens what is kept of a sign-in.
    pub(crate) async fn opened<T: serde::de::DeserializeOwned>(
        &self,
        tenant: TenantId,
        sealed: &SealedSecret,
    ) -> Result<T, VaultError> {
        let plain = self.vault.open(tenant, sealed).await?;
        serde_json::from_slice(plain.expose()).map_err(|_| VaultError::Damaged("sign-in"))
    }

    async fn stored(&self, of: &GrantOf) -> Result<Option<Stored>, McpError> {
        for _ in 0..3 {
            match self.store.tool_grant(of.tenant, of.user, &of.url).await {
                Ok((row, Some(sealed))) => {
                    let grant: Grant = self.opened(of.tenant, &sealed).await.map_err(unread)?;
                    let declared = of.issuer.as_deref();
                    let is_of_declared = declared.is_none_or(|issuer| issuer == grant.issuer());
                    return Ok(is_of_declared.then_some(Stored {
                        sealed,
                        grant,
                        ends_at: row.ends_at,
                    }));
                }
                Ok((_, None)) | Err(StoreError::NotFound) => return Ok(None),
                // It was replaced while it was read.
                Err(StoreError::Conflict(_)) => {}
                Err(error) => return Err(unread(error)),
            }
        }
        Ok(None)
    }

    /// The tokens that come after these: renewed here, or by another replica.
    async fn renewed(&self, of: &GrantOf, stored: Stored) -> Result<Grant, McpError> {
        let begun = self.clock.now();
        loop {
            let now = self.clock.now();
            let tokens = (of.url.as_str(), &stored.sealed);
            let until = now.after(RENEW_WITHIN);
            let taken = self
                .store
                .take_tool_renewal(of.tenant, of.user, tokens, until, now);
            if taken.await.map_err(unread)? {
                let (grants, of) = (self.clone(), of.clone());
                // A task of its own: the renewal has spent the old tokens, even if its caller does not wait for the new ones.
                let renewing = tokio::spawn(async move { grants.renew(&of, stored).await });
                return renewing
                    .await
                    .unwrap_or_else(|_| Err(McpError::SignIn("the renewal broke off".to_owned())));
            }
            match self.stored(of).await? {
                None => return Err(wanted(of)),
                Some(other) if other.sealed != stored.sealed => return Ok(other.grant),
                Some(_) if now.since(begun) > RENEW_WITHIN => {
                    return Err(McpError::SignIn(
                        "another server renews its sign-in; try again".to_owned(),
                    ));
                }
                Some(_) => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }

    async fn renew(&self, of: &GrantOf, stored: Stored) -> Result<Grant, McpError> {
        let tokens = (of.url.as_str(), &stored.sealed);
        let given = self.clock.now();
        let grant = match self.sign_ins().refresh(&stored.grant).await {
            Ok(grant) => grant,
            Err(error) => {
                let ends = error.ends_grant();
                tracing::info!(user.id = %of.user, %error, ends, "the sign-in to a tool server is not renewed");
                let dropped = self
                    .store
                    .drop_tool_renewal(of.tenant, of.user, tokens, ends);
                dropped.await.map_err(unread)?;
                return Err(match ends {
                    true => wanted(of),
                    false => {
                        McpError::SignIn(format!("its sign-in cannot be renewed now: {error}"))
                    }
                });
            }
        };
        let (id, version) = (stored.sealed.id, stored.sealed.version + 1);
        let plain = plain(&grant).map_err(unread)?;
        let sealed = self.vault.seal(of.tenant, id, version, &plain).await;
        let sealed = sealed.map_err(unread)?;
        let new = NewToolGrant {
            url: &of.url,
            secret: &sealed,
            issuer: grant.issuer(),
            scopes: &joined(grant.scopes()),
            ends_at: Self::ends_at(&grant, given),
        };
        let renewed = self.store.renew_tool_grant(of.tenant, of.user, new, given);
        match renewed.await {
            Ok(()) => Ok(grant),
            // The person has since signed out, or signed in again.
            Err(StoreError::NotFound | StoreError::Conflict(_)) => Err(wanted(of)),
            Err(error) => Err(unread(error)),
        }
    }

    /// Notes that the server wants a sign-in with these scopes.
    async fn want(&self, of: &GrantOf, scopes: &BTreeSet<String>) -> Result<(), McpError> {
        let (scopes, now) = (joined(scopes), self.clock.now());
        let noted = self
            .store
            .want_tool_grant(of.tenant, of.user, &of.url, &scopes, now);
        noted.await.map_err(unread)
    }
}

#[async_trait]
impl Access for PersonAccess {
    async fn token(&self) -> Result<Option<AccessToken>, McpError> {
        let Some(stored) = self.grants.stored(&self.of).await? else {
            return Ok(None);
        };
        let soon = self.grants.clock.now().after(RENEW_BEFORE);
        let ends = stored.ends_at.is_some_and(|ends| ends <= soon);
        let grant = match ends && stored.grant.can_be_refreshed() {
            true => self.grants.renewed(&self.of, stored).await?,
            false => stored.grant,
        };
        Ok(Some(grant.access()))
    }

    async fn refused(
        &self,
        token: Option<&AccessToken>,
        challenge: &Challenge,
    ) -> Result<bool, McpError> {
        let stored = self.grants.stored(&self.of).await?;
        let mut scopes: BTreeSet<_> = challenge.scopes();
        match stored {
            // It has changed since the request was sent.
            Some(stored) if token.is_none_or(|token| *token != stored.grant.access()) => {
                return Ok(true);
            }
            Some(stored) if challenge.wants_more() => {
                scopes.extend(stored.grant.scopes().iter().cloned());
            }
            Some(stored) if stored.grant.can_be_refreshed() => {
                self.grants.renewed(&self.of, stored).await?;
                return Ok(true);
            }
            _ => {}
        }
        self.grants.want(&self.of, &scopes).await?;
        Err(match challenge.wants_more() {
            true => McpError::SignIn(format!(
                "it wants more rights ({}); sign in again: gantry mcp login {}",
                clean_line(&joined(&scopes), MAX_SHOWN),
                self.of.name
            )),
            false => wanted(&self.of),
        })
    }
}

/// The bytes to seal.
pub(crate) fn plain(value: &impl serde::Serialize) -> Result<Plain, serde_json::Error> {
    serde_json::to_string(value).map(Plain::new)
}

/// The scopes in one text.
pub(crate) fn joined(scopes: &BTreeSet<String>) -> String {
    let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    scopes.join(" ")
}

fn wanted(of: &GrantOf) -> McpError {
    McpError::SignIn(format!(
        "it wants a sign-in: gantry mcp login {}, or Settings, Extensions in the web console",
        of.name
    ))
}

fn unread(error: impl std::fmt::Display) -> McpError {
    McpError::SignIn(format!("its sign-in cannot be read: {error}"))
}
