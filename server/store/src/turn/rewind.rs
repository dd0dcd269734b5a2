//! Going back to before a message. The log keeps the turns that are gone; the conversation and the search over
//! messages do not.

use shared_types::{
    Event, SessionEvent, SessionId, TenantId, Timestamp, TurnId, UserId,
    clean::clean_line,
    event::{EventBody, Parts},
};

use super::{find, oldest_unfinished};
use crate::{
    Store, StoreError,
    columns::{Columns as _, damaged, integer},
    database::{Connection, Row, query, retried},
    event, session,
};

/// Longest beginning of the message that the event names, in characters.
const BEFORE_AT_MOST: usize = 80;

/// The first version of a claim that an engine without steps back cannot read, so that it leaves the session alone.
const FENCING_CLAIM: i64 = 3;

/// A conversation that went back.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewound {
    /// The event.
    pub event: SessionEvent,
    /// The message before which it went.
    pub message: Parts,
}

impl Store {
    /// Takes this turn and all later ones out of the session's conversation, in the name of this user. The log keeps
    /// them. Their words are not found any more by [`Store::search_chats`].
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the session has no such turn; [`StoreError::Conflict`] if a turn of it works, waits or
    /// is queued, if the turn is no part of the conversation any more, or if only earlier releases worked in the
    /// session.
    pub async fn rewind(
        &self,
        tenant: TenantId,
        session: SessionId,
        (turn, by): (TurnId, UserId),
        now: Timestamp,
    ) -> Result<Rewound, StoreError> {
        retried!({
            let mut tx = self.write(tenant).await?;
            let seq = session::next(&mut tx, tenant, session, 1, now).await?.seq;
            if oldest_unfinished(&mut tx, tenant, session).await?.is_some() {
                return Err(StoreError::Conflict(
                    "a turn of the session works or waits; stop it first: /stop, or gantry cancel SESSION",
                ));
            }
            let row = find(&mut tx, tenant, turn).await?;
            if row.session != session {
                return Err(StoreError::NotFound);
            }
            let place = (tenant, session);
            if is_gone(&mut tx, place, row.input_seq).await? {
                return Err(StoreError::Conflict(
                    "the message is no part of the conversation any more; choose another one: /rewind",
                ));
            }
            require_fence(&mut tx, place).await?;
            let message = message(&mut tx, place, row.input_seq).await?;
            let rewound = Event::ConversationRewound {
                turn,
                by,
                before: clean_line(&message.words(), BEFORE_AT_MOST),
            };
            forget_words(&mut tx, place, (turn, row.input_seq)).await?;
            let event = event::insert(&mut tx, tenant, session, seq, &rewound, now).await?;
            tx.commit().await?;
            self.appended(tenant, session, std::slice::from_ref(&event))
                .await;
            Ok(Rewound { event, message })
        })
    }
}

/// True if a person went back, after this message, to before it or an earlier one.
async fn is_gone(
    tx: &mut Connection,
    (tenant, session): (TenantId, SessionId),
    input_seq: u64,
) -> Result<bool, StoreError> {
    let rows: Vec<Row> = query(
        "SELECT body FROM events WHERE tenant_id = $1 AND session_id = $2 AND seq > $3
             AND kind = 'conversation.rewound'",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(integer(input_seq))
    .fetch_all(&mut *tx)
    .await?;
    for row in rows {
        let EventBody::Known(Event::ConversationRewound { turn, .. }) = body(&row)? else {
            return Err(StoreError::Conflict(
                "a newer server went back in this session; use that one",
            ));
        };
        if find(tx, tenant, turn).await?.input_seq <= input_seq {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses a session in which a server of an earlier release may work on: it passes over the event, and would send the
/// model what is gone.
async fn require_fence(
    tx: &mut Connection,
    (tenant, session): (TenantId, SessionId),
) -> Result<(), StoreError> {
    let fence: Option<Row> = query(
        "SELECT seq FROM events WHERE tenant_id = $1 AND session_id = $2
             AND kind = 'turn.claimed' AND version >= $3 LIMIT 1",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(FENCING_CLAIM)
    .fetch_optional(tx)
    .await?;
    match fence {
        Some(_) => Ok(()),
        None => Err(StoreError::Conflict(
            "only an earlier release worked in this session; send a message in it first",
        )),
    }
}

async fn message(
    tx: &mut Connection,
    (tenant, session): (TenantId, SessionId),
    input_seq: u64,
) -> Result<Parts, StoreError> {
    let row: Row =
        query("SELECT body FROM events WHERE tenant_id = $1 AND session_id = $2 AND seq = $3")
            .bind(tenant.to_string())
            .bind(session.to_string())
            .bind(integer(input_seq))
            .fetch_one(tx)
            .await?;
    match body(&row)? {
        EventBody::Known(Event::InputAccepted { parts, .. }) => Ok(parts),
        _ => Err(StoreError::Conflict(
            "a newer server took this message; use that one",
        )),
    }
}

fn body(row: &Row) -> Result<EventBody, StoreError> {
    let body = row.text("body")?.parse();
    Ok(body.map_err(|error| damaged("body", error))?)
}

/// Takes the words of this turn and of all later ones out of the search. Since its claim all words are theirs: before it
/// all earlier turns had ended. Before that there are only their messages.
async fn forget_words(
    tx: &mut Connection,
    (tenant, session): (TenantId, SessionId),
    (turn, input_seq): (TurnId, u64),
) -> Result<(), StoreError> {
    query(
        "DELETE FROM chat_texts WHERE tenant_id = $1 AND session_id = $2 AND seq >= $3 AND (
             seq IN (SELECT input_seq FROM turns WHERE tenant_id = $1 AND session_id = $2
                 AND input_seq >= $3)
             OR seq > (SELECT MIN(seq) FROM events WHERE tenant_id = $1 AND session_id = $2
                 AND seq > $3 AND kind = 'turn.claimed' AND body LIKE $4))",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(integer(input_seq))
    .bind(format!("%\"{turn}\"%"))
    .execute(tx)
    .await?;
    Ok(())
}
