//! Going back to before a message. The log keeps the turns that are gone; the conversation and the search over
//! messages do not.

use std::collections::BTreeMap;

use shared_types::{
    Event, SessionEvent, SessionId, TenantId, Timestamp, TurnId, UserId,
    clean::clean_line,
    event::{EventBody, Parts, TodoItem},
};

use super::{find, oldest_unfinished};
use crate::{
    Store, StoreError,
    columns::{Columns as _, damaged, integer},
    database::{Connection, Row, query, retried},
    event, session, todo,
};

/// Longest beginning of the message that the event names, in characters.
const BEFORE_AT_MOST: usize = 80;

/// The first version of a claim that an engine without steps back cannot read, so that it leaves the session alone.
const FENCING_CLAIM: i64 = 3;

impl Store {
    /// Takes this turn and all later ones out of the session's conversation, in the name of this user. The log keeps
    /// them. Their words are not found any more by [`Store::search_chats`], and the to-do lists of their folders are as
    /// before.
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
    ) -> Result<SessionEvent, StoreError> {
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
            let gone = Gone::read(&mut tx, place).await?;
            if gone.has(row.input_seq) {
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
            let back = gone.and_from(row.input_seq, seq);
            put_lists_back(&mut tx, place, &back, now).await?;
            let event = event::insert(&mut tx, tenant, session, seq, &rewound, now).await?;
            tx.commit().await?;
            self.appended(tenant, session, std::slice::from_ref(&event))
                .await;
            Ok(event)
        })
    }
}

/// The messages that are no part of the conversation: for each step back the numbers of the first one's event and of its
/// own.
struct Gone(Vec<(u64, u64)>);

impl Gone {
    async fn read(
        tx: &mut Connection,
        (tenant, session): (TenantId, SessionId),
    ) -> Result<Self, StoreError> {
        let rows: Vec<Row> = query(
            "SELECT seq, body FROM events WHERE tenant_id = $1 AND session_id = $2
                 AND kind = 'conversation.rewound'",
        )
        .bind(tenant.to_string())
        .bind(session.to_string())
        .fetch_all(&mut *tx)
        .await?;
        let mut gone = Vec::with_capacity(rows.len());
        for row in rows {
            let EventBody::Known(Event::ConversationRewound { turn, .. }) = body(&row)? else {
                return Err(StoreError::Conflict(
                    "a newer server went back in this session; use that one",
                ));
            };
            let first = find(tx, tenant, turn).await?.input_seq;
            gone.push((first, row.count("seq")?));
        }
        Ok(Self(gone))
    }

    /// True if a person went back, after this message, to before it or an earlier one.
    fn has(&self, input_seq: u64) -> bool {
        let mut gone = self.0.iter();
        gone.any(|(first, back)| (*first..*back).contains(&input_seq))
    }

    /// Those, and the messages from this one on up to a step back at `seq`.
    fn and_from(mut self, input_seq: u64, seq: u64) -> Self {
        self.0.push((input_seq, seq));
        self
    }
}

/// Puts the to-do lists of folders back that the turns which are gone have changed, unless another session has changed
/// them since. Else the next message would find them as what an earlier session left.
async fn put_lists_back(
    tx: &mut Connection,
    (tenant, session): (TenantId, SessionId),
    gone: &Gone,
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows: Vec<Row> = query(
        "SELECT body FROM events WHERE tenant_id = $1 AND session_id = $2
             AND kind = 'todo.changed' ORDER BY seq",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .fetch_all(&mut *tx)
    .await?;
    let mut lists: BTreeMap<String, Lists> = BTreeMap::new();
    let mut known: Option<(TurnId, bool)> = None;
    for row in rows {
        let EventBody::Known(Event::TodoChanged {
            turn,
            items,
            place,
            found,
        }) = body(&row)?
        else {
            continue;
        };
        let is_gone = match known.filter(|(of, _)| *of == turn) {
            Some((_, is_gone)) => is_gone,
            None => gone.has(find(tx, tenant, turn).await?.input_seq),
        };
        known = Some((turn, is_gone));
        let of_place = lists.entry(place).or_default();
        if !is_gone || (found && of_place.before.is_none()) {
            of_place.before = Some(items.clone());
        }
        if !found {
            of_place.last = items;
            of_place.is_gone = is_gone;
        }
    }
    lists.remove("");
    for (place, list) in lists.iter().filter(|(_, list)| list.is_gone) {
        let (now_there, of) = (&list.last, (session, place.as_str()));
        let before = list.before.as_deref().unwrap_or_default();
        todo::put_back(tx, tenant, of, (now_there, before), now).await?;
    }
    Ok(())
}

/// The to-do lists of one folder.
#[derive(Default)]
struct Lists {
    /// The one that stays: of the turns that stay, or else as an earlier session left it.
    before: Option<Vec<TodoItem>>,
    /// The last one that the session wrote.
    last: Vec<TodoItem>,
    /// True if a turn that is gone wrote that.
    is_gone: bool,
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
