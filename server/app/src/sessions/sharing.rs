//! Links by which a session is read without signing in. A bearer of the link may read the session,
//! and nothing else, until the link expires or all links to the session are ended. Secrets of a known form are
//! redacted in all that a bearer reads.

mod redacted;

use std::{ops::RangeInclusive, time::Duration};

use server_guard::leaks;
use server_store::NewSessionLink;
use shared_types::{SessionEvent, SessionId, TenantId, Timestamp, Token, TokenKind};

use super::{Session, Sessions};
use crate::{AppError, OpContext, gate::Gate, rights::Action};

/// The lifetimes that a link can have: a minute to ten years.
const VALID_FOR: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(10 * 366 * 24 * 60 * 60);

/// A link that was made.
#[derive(Debug)]
pub struct SessionLink {
    /// Its secret, which is shown once.
    pub token: Token,
    /// Until when it can be read; without an end, if absent.
    pub expires_at: Option<Timestamp>,
}

/// A session, as the bearer of a link to it sees it.
#[derive(Debug, Clone)]
pub struct SharedSession {
    tenant: TenantId,
    session: Session,
}

impl SharedSession {
    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl Sessions {
    /// Makes a link by which every bearer reads the session.
    ///
    /// # Errors
    /// If the user has no such session or may not share it, the time is out of range, the session has
    /// too many links, or the user made too many things lately.
    pub async fn share(
        &self,
        ctx: &OpContext,
        session: SessionId,
        valid_for: Option<Duration>,
    ) -> Result<SessionLink, AppError> {
        self.gate
            .session(ctx, Action::ShareSession, session)
            .await?;
        if valid_for.is_some_and(|time| !VALID_FOR.contains(&time)) {
            return Err(AppError::Invalid(
                "a link is valid for a minute at least, and 3660 days at most".to_owned(),
            ));
        }
        self.allowance.one_more(ctx)?;
        let (token, now) = (
            Token::generate(TokenKind::Share, &*self.entropy),
            self.clock.now(),
        );
        let link = NewSessionLink {
            hash: token.hash(),
            expires_at: valid_for.map(|time| now.after(time)),
        };
        let by = ctx.by();
        let shared = self
            .store
            .share_session(ctx.tenant, session, &link, &by, now);
        shared.await?;
        Ok(SessionLink {
            token,
            expires_at: link.expires_at,
        })
    }

    /// Ends all links to the session, and says how many there were.
    ///
    /// # Errors
    /// If the user has no such session, or may not share it.
    pub async fn unshare(&self, ctx: &OpContext, session: SessionId) -> Result<u64, AppError> {
        self.gate
            .session(ctx, Action::ShareSession, session)
            .await?;
        let (by, now) = (ctx.by(), self.clock.now());
        let ended = self.store.unshare_session(ctx.tenant, session, &by, now);
        Ok(ended.await?)
    }

    /// The session to which this link leads.
    ///
    /// # Errors
    /// If it leads to none: what was ended, expired or never there is not told apart.
    pub async fn shared(&self, link: &str) -> Result<SharedSession, AppError> {
        const NOUN: &str = "session";
        let token: Result<Token, _> = link.parse();
        let token = token.ok().filter(|token| token.kind() == TokenKind::Share);
        let token = token.ok_or(AppError::NotFound(NOUN))?;
        let (hash, now) = (token.hash(), self.clock.now());
        let found = self.store.session_by_link(&hash, now).await?;
        let (tenant, mut session) = found.ok_or(AppError::NotFound(NOUN))?;
        let owner = self.store.user(tenant, session.user).await?;
        if !Gate::may_still(&owner, Action::ShareSession) {
            return Err(AppError::NotFound(NOUN));
        }
        session.title = leaks::redact(&session.title).into_owned();
        Ok(SharedSession { tenant, session })
    }

    /// A page of the log of a shared session after that event, and whether there is more.
    ///
    /// # Errors
    /// If the store does not answer, or an event cannot be redacted.
    pub async fn shared_events(
        &self,
        shared: &SharedSession,
        after: u64,
        limit: u32,
    ) -> Result<(Vec<SessionEvent>, bool), AppError> {
        let session = &shared.session;
        let page = self.page_of_log(shared.tenant, session, after, limit);
        let (events, more) = page.await?;
        let events: Result<_, _> = events.iter().map(redacted::event).collect();
        let events = events.map_err(AppError::unavailable)?;
        Ok((events, more))
    }
}
