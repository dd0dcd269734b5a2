//! Tickets: a page opens a WebSocket with one, because a browser sends no header of the page's along, and a
//! cookie alone would let every page of the same site open one.

use std::{net::IpAddr, time::Duration};

use server_store::NewStreamTicket;
use shared_types::{OperationId, Timestamp, Token, TokenKind};

use super::Access;
use crate::{AppError, OpContext, rights::Action};

/// The time for which a ticket can be used.
const VALID_FOR: Duration = Duration::from_secs(30);

/// The answer to every ticket that does not hold.
const NO_TICKET: AppError = AppError::Unauthenticated(
    "this ticket is not good: it opens once, within 30 s, the stream that it was made for; make another: \
     POST /api/v1/stream-tickets",
);

/// A ticket that was made.
#[derive(Debug)]
pub struct StreamTicket {
    /// Its secret, which is shown once.
    pub token: Token,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

impl Access {
    /// Makes a ticket for the stream of this operation; without one, for the stream of sessions. The stream
    /// asks for its rights again.
    ///
    /// # Errors
    /// If the user may not open that stream, or the credential has too many tickets.
    pub async fn create_ticket(
        &self,
        ctx: &OpContext,
        operation: Option<OperationId>,
    ) -> Result<StreamTicket, AppError> {
        match operation {
            None => self.gate.own(ctx, Action::ReadSession)?,
            Some(id) => {
                self.gate
                    .operation(ctx, Action::FollowOperation, id)
                    .await?;
            }
        }
        let (token, now) = (
            Token::generate(TokenKind::Ticket, &*self.entropy),
            self.clock.now(),
        );
        let ticket = NewStreamTicket {
            credential: ctx.credential,
            hash: token.hash(),
            operation,
            expires_at: now.after(VALID_FOR),
        };
        let made = self
            .store
            .insert_stream_ticket(ctx.tenant, ctx.user, &ticket, now);
        made.await?;
        Ok(StreamTicket {
            token,
            expires_at: ticket.expires_at,
        })
    }

    /// The context of the credential that made this ticket for this stream. The ticket is used up.
    ///
    /// # Errors
    /// If it is none, was used, has expired, is for another stream, or its credential does not hold any
    /// more: they are not told apart.
    pub async fn take_ticket(
        &self,
        ticket: &str,
        operation: Option<OperationId>,
        from: Option<IpAddr>,
    ) -> Result<OpContext, AppError> {
        let token = ticket.parse::<Token>().ok();
        let token = token.filter(|token| token.kind() == TokenKind::Ticket);
        let hash = token.ok_or(NO_TICKET)?.hash();
        let taken = self
            .store
            .take_stream_ticket(&hash, operation, self.clock.now());
        let (tenant, credential) = taken.await?.ok_or(NO_TICKET)?;
        let row = self.store.subject(tenant, credential).await?;
        self.let_in(&row.ok_or(NO_TICKET)?, from)
    }
}
