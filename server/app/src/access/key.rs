//! Keys and sign-ins: listing, making and ending them; one's own, and those of service accounts.

use std::{net::IpAddr, ops::RangeInclusive, time::Duration};

use server_store::{CredentialKind, CredentialRow, NewCredential, Page, Scopes};
use shared_types::{AddressRange, CredentialId, Timestamp, Token, TokenKind, UserId};

use super::{Access, browser};
use crate::{
    AppError, OpContext,
    pages::{and_one, cut},
    rights::Action,
};

/// The lifetimes that a key can have: a second to ten years.
const KEY_VALID_FOR: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// A key or sign-in, without its secret.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its id.
    pub id: CredentialId,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: CredentialKind,
    /// When it was made.
    pub created_at: Timestamp,
    /// The key or sign-in with which it was made, where that is known.
    pub made_by: Option<CredentialId>,
    /// The time of its last recorded use.
    pub last_used_at: Option<Timestamp>,
    /// The scopes that it grants.
    pub scopes: Scopes,
    /// Until when it can be used; for a browser, where it does not ask again before.
    pub expires_at: Option<Timestamp>,
    /// From where it can be used; from anywhere, if absent.
    pub from: Option<AddressRange>,
    /// The address from which it was last used, as far as that was recorded.
    pub last_address: Option<IpAddr>,
    /// True if the caller uses this key for the request.
    pub is_asking: bool,
}

/// The terms of a new key.
#[derive(Debug, Clone, Default)]
pub struct KeyTerms {
    /// Its name in lists.
    pub name: String,
    /// Its scopes; the usual ones, if absent.
    pub scopes: Option<Scopes>,
    /// For how long it can be used; without an end, if absent.
    pub valid_for: Option<Duration>,
    /// From where it can be used; from anywhere, if absent.
    pub from: Option<AddressRange>,
}

/// A place in a list of keys is when a key was made, and its id.
type PageOfKeys = Page<(Timestamp, CredentialId)>;

impl Access {
    /// The user's keys and sign-ins, the newest first, and whether there are more.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn keys(
        &self,
        ctx: &OpContext,
        page: PageOfKeys,
    ) -> Result<(Vec<Key>, bool), AppError> {
        self.gate.own(ctx, Action::SeeKeys)?;
        self.keys_of(ctx, ctx.user, page).await
    }

    /// The keys of a service account, the newest first, and whether there are more.
    ///
    /// # Errors
    /// If there is none, or the user may not manage its keys.
    pub async fn service_keys(
        &self,
        ctx: &OpContext,
        id: UserId,
        page: PageOfKeys,
    ) -> Result<(Vec<Key>, bool), AppError> {
        let action = Action::ManageServiceKeys;
        let account = self.gate.service_account(ctx, action, id).await?;
        self.keys_of(ctx, account.user.id, page).await
    }

    async fn keys_of(
        &self,
        ctx: &OpContext,
        user: UserId,
        page: PageOfKeys,
    ) -> Result<(Vec<Key>, bool), AppError> {
        let (limit, page) = (page.limit, and_one(page));
        let rows = self.store.list_credentials(ctx.tenant, user, page);
        let (rows, more) = cut(rows.await?, limit);
        Ok((rows.into_iter().map(|row| key(ctx, row)).collect(), more))
    }

    /// Makes an API key. Made with a key, it ends with that one, at the latest when that one expires,
    /// and is good for no other addresses.
    ///
    /// # Errors
    /// If the terms are out of bounds, the key would be good for more than the user or the credential that
    /// makes it, or the user has too many keys or made too many lately.
    pub async fn create_key(
        &self,
        ctx: &OpContext,
        terms: &KeyTerms,
    ) -> Result<(Token, Key), AppError> {
        let scopes = self.gate.key_scopes(ctx, terms.scopes)?;
        self.make_key(ctx, ctx.user, scopes, terms).await
    }

    /// Makes an API key of a service account, as [`Access::create_key`] makes one's own.
    ///
    /// # Errors
    /// The same as of [`Access::create_key`]; also if there is no such service account, or the user
    /// may not manage its keys.
    pub async fn create_service_key(
        &self,
        ctx: &OpContext,
        id: UserId,
        terms: &KeyTerms,
    ) -> Result<(Token, Key), AppError> {
        let action = Action::ManageServiceKeys;
        let account = self.gate.service_account(ctx, action, id).await?;
        let role = account.user.role;
        let scopes = self.gate.service_key_scopes(ctx, role, terms.scopes)?;
        self.make_key(ctx, account.user.id, scopes, terms).await
    }

    async fn make_key(
        &self,
        ctx: &OpContext,
        user: UserId,
        scopes: Scopes,
        terms: &KeyTerms,
    ) -> Result<(Token, Key), AppError> {
        let maker = self.store.credential(ctx.tenant, ctx.credential).await?;
        let now = self.clock.now();
        // What was made in a browser does not end with the browser's sign-in.
        let is_key = maker.kind == CredentialKind::ApiKey;
        let makers_end = maker.expires_at.filter(|_| is_key);
        let expires_at = match terms.valid_for {
            Some(valid_for) if !KEY_VALID_FOR.contains(&valid_for) => {
                return Err(AppError::Invalid(format!(
                    "a key cannot be valid for {} s: ask for {} to {} s",
                    valid_for.as_secs(),
                    KEY_VALID_FOR.start().as_secs(),
                    KEY_VALID_FOR.end().as_secs()
                )));
            }
            valid_for => valid_for.map(|valid_for| now.after(valid_for)),
        };
        let token = Token::generate(TokenKind::ApiKey, &*self.entropy);
        let made = self.credential(CredentialKind::ApiKey, &terms.name, &token)?;
        let credential = NewCredential {
            scopes: Some(scopes),
            expires_at: expires_at.into_iter().chain(makers_end).min(),
            from: maker.from.or(terms.from),
            made_by: Some(ctx.credential),
            origin: ctx.by().origin,
            maker: Some(ctx.user),
            ..made
        };
        self.allowance.one_more(ctx)?;
        let made = self
            .store
            .insert_credential(ctx.tenant, user, &credential, now);
        Ok((token, key(ctx, made.await?)))
    }

    /// Ends a key or sign-in of the user's own, or a key of a service account; and with a key the keys that
    /// it made: for requests at once, for a WebSocket that is open within five seconds. What was queued or is
    /// under way under it is stopped, unless the person signs out with that very one.
    ///
    /// # Errors
    /// If the user has no such key.
    pub async fn revoke_key(&self, ctx: &OpContext, id: CredentialId) -> Result<(), AppError> {
        self.gate.key(ctx, Action::RevokeKey, id).await?;
        let revoked = self
            .store
            .revoke_credential(ctx.tenant, id, ctx.by(), self.clock.now());
        revoked.await?;
        self.revoked.notify_one();
        Ok(())
    }
}

fn key(ctx: &OpContext, row: CredentialRow) -> Key {
    Key {
        last_used_at: row.last_used_at,
        scopes: row.scopes,
        expires_at: match row.kind {
            CredentialKind::Browser => {
                browser::ends_at(row.created_at, row.last_used_at, row.expires_at)
            }
            _ => row.expires_at,
        },
        from: row.from,
        last_address: row.last_address,
        is_asking: row.id == ctx.credential,
        id: row.id,
        name: row.name,
        kind: row.kind,
        created_at: row.created_at,
        made_by: row.made_by,
    }
}
