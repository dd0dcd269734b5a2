//! Browsers: a person signs in with a one-time code, and the browser shows a cookie from then on.
//!
//! A cookie is replaced after [`REPLACED_AFTER`] of use. The one before it holds until [`GRACE`] after its
//! successor was first seen, because an answer may be lost, and requests may be under way. A browser
//! that shows it later, or the one that shows the successor, has a copy. The server cannot know which, so the session
//! ends.

use std::{net::IpAddr, time::Duration};

use server_store::{AuditOrigin, CookieRow, CredentialKind, SubjectRow};
use shared_types::{Digest, Timestamp, Token, TokenKind};

use super::{Access, User};
use crate::{AppError, OpContext, rights::Action};

/// The longest time that a browser stays signed in, even if it is in use.
pub(super) const VALID_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The longest time that it stays signed in without a request.
pub(super) const IDLE_AT_MOST: Duration = Duration::from_secs(12 * 60 * 60);
/// The age at which a cookie that is used is replaced.
pub(super) const REPLACED_AFTER: Duration = Duration::from_secs(15 * 60);
/// The time for which a cookie stays good after its successor was seen.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// The answer to every cookie that does not hold.
pub(super) const SIGNED_OUT: AppError = AppError::Unauthenticated(
    "this browser is not signed in, or not any more; sign in again with a code",
);

/// A browser that was signed in.
#[derive(Debug)]
pub struct SignedInBrowser {
    /// The cookie's value.
    pub cookie: Token,
    /// The time for which it can be used, together with the cookies that take its place.
    pub valid_for: Duration,
    /// The end of that time.
    pub expires_at: Timestamp,
    /// The person.
    pub user: User,
}

/// A request with a cookie that holds.
#[derive(Debug)]
pub struct BrowserSession {
    /// The caller's context.
    pub ctx: OpContext,
    /// The next cookie of the browser and the time for which it is good, if it changes.
    pub fresh: Option<(Token, Duration)>,
}

impl Access {
    /// Exchanges a code for a cookie, as [`Access::sign_in`] does for a terminal's token.
    ///
    /// # Errors
    /// The same as of [`Access::sign_in`].
    pub async fn sign_in_browser(
        &self,
        code: &str,
        device: &str,
        address: IpAddr,
    ) -> Result<SignedInBrowser, AppError> {
        let cookie = Token::generate(TokenKind::Browser, &*self.entropy);
        let mut made = self.credential(CredentialKind::Browser, device, &cookie)?;
        let expires_at = self.clock.now().after(VALID_FOR);
        made.expires_at = Some(expires_at);
        let user = self.redeem(code, made, address).await?;
        Ok(SignedInBrowser {
            cookie,
            valid_for: VALID_FOR,
            expires_at,
            user,
        })
    }

    /// The context of the person whose browser shows this cookie.
    ///
    /// # Errors
    /// If the cookie is none, is not known, has expired, was revoked, or was replaced: they are not told
    /// apart.
    pub async fn authenticate_browser(
        &self,
        cookie: &str,
        from: Option<IpAddr>,
    ) -> Result<BrowserSession, AppError> {
        let cookie: Token = cookie.parse().map_err(|_| SIGNED_OUT)?;
        let second = cookie.second_hash().ok_or(SIGNED_OUT)?;
        let found = self.store.subject_by_hash(&cookie.hash()).await?;
        let row = found.ok_or(SIGNED_OUT)?;
        let known = row.cookie.as_ref().ok_or(SIGNED_OUT)?;
        let ctx = self.let_in(&row, from)?;
        let fresh = match known {
            CookieRow { second: newest, .. } if *newest == second => {
                self.newest_is_shown(&row, known, &cookie).await
            }
            CookieRow {
                replaced: Some(before),
                taken_up_at,
                ..
            } if before.second == second => {
                let now = self.clock.now();
                match taken_up_at {
                    None => Some(cookie.replaced(&before.salt)),
                    Some(at) if now.since(*at) <= GRACE => None,
                    Some(_) => return Err(self.copied(&ctx).await),
                }
            }
            _ => return Err(self.copied(&ctx).await),
        };
        self.used.note(&row, from, &self.store, &*self.clock);
        let left = row.expires_at.map(|at| at.since(self.clock.now()));
        let fresh = fresh.map(|token| (token, left.unwrap_or(VALID_FOR)));
        Ok(BrowserSession { ctx, fresh })
    }

    /// Signs the asking browser out.
    ///
    /// # Errors
    /// If it is no browser that asks.
    pub async fn sign_out(&self, ctx: &OpContext) -> Result<(), AppError> {
        let row = self
            .gate
            .key(ctx, Action::RevokeKey, ctx.credential)
            .await?;
        if row.kind != CredentialKind::Browser {
            return Err(AppError::Invalid(
                "only a browser signs out here; end a key or a terminal's sign-in with: gantry keys remove ID"
                    .to_owned(),
            ));
        }
        self.revoke_key(ctx, ctx.credential).await
    }

    /// True if the browser was signed in for too long, or has sent no request for too long.
    pub(super) fn is_over(&self, row: &SubjectRow) -> bool {
        is_over(
            row.created_at,
            row.last_used_at,
            row.expires_at,
            self.clock.now(),
        )
    }

    /// Returns the cookie's successor, where it is time for one.
    async fn newest_is_shown(
        &self,
        row: &SubjectRow,
        known: &CookieRow,
        cookie: &Token,
    ) -> Option<Token> {
        let now = self.clock.now();
        if known.taken_up_at.is_none() {
            let seen = self
                .store
                .cookie_taken_up(row.tenant, row.credential, &known.second, now);
            if let Err(error) = seen.await {
                tracing::warn!(%error, "it is not recorded that a browser has its new cookie");
            }
            return None;
        }
        if now.since(known.made_at) < REPLACED_AFTER {
            return None;
        }
        let mut random = [0; 32];
        self.entropy.fill(&mut random);
        let salt = Digest::of(&random);
        let next = cookie.replaced(&salt);
        let second = next.second_hash()?;
        let replaced = self.store.replace_cookie(
            row.tenant,
            row.credential,
            &known.second,
            &second,
            &salt,
            now,
        );
        match replaced.await {
            Ok(true) => Some(next),
            // Another request has done it; the next one gets what that one made.
            Ok(false) => None,
            Err(error) => {
                tracing::warn!(%error, "a browser's cookie is not replaced");
                None
            }
        }
    }

    /// Two have this cookie: ends the session.
    async fn copied(&self, ctx: &OpContext) -> AppError {
        let origin = AuditOrigin {
            credential: Some(ctx.credential),
            address: ctx.from,
        };
        let ended =
            self.store
                .end_copied_cookie(ctx.tenant, ctx.credential, origin, self.clock.now());
        tracing::warn!(
            credential.id = %ctx.credential,
            "a browser's cookie was used after it was replaced; its session ends"
        );
        match ended.await {
            Ok(()) => SIGNED_OUT,
            Err(error) => error.into(),
        }
    }
}

/// See [`Access::is_over`].
fn is_over(
    created_at: Timestamp,
    last_used_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> bool {
    ends_at(created_at, last_used_at, expires_at).is_some_and(|at| at <= now)
}

/// The time at which a browser is signed out if it sends no further request.
pub(super) fn ends_at(
    created_at: Timestamp,
    last_used_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
) -> Option<Timestamp> {
    let idle = last_used_at.unwrap_or(created_at).after(IDLE_AT_MOST);
    expires_at.into_iter().chain([idle]).min()
}

#[cfg(test)]
mod tests;
