//! The words of messages and answers, and searches over those of a user's own sessions.
//!
//! Both databases search in the same way: they go through the user's texts, the newest first, and compare words. An
//! index of words would be no help on PostgreSQL: its row-level security evaluates `@@` only once the policy of the
//! table has let a row through.

mod words;

use server_records::{ChatHit, ChatQuery, ChatSpeaker};
use shared_types::{
    Event, SessionEvent, SessionId, TenantId,
    event::{EventBody, Part, Parts},
};

use self::words::{excerpt, pattern, stored};
use crate::{
    Store, StoreError,
    columns::{Columns as _, damaged, integer},
    database::{Connection, Row, query},
};

/// Most bytes of one text that are searched: its beginning.
const TEXT_BYTES: usize = 16 * 1024;

/// Most words of a query that count, and most bytes of one.
const WORDS_AT_MOST: usize = 8;
const WORD_BYTES: usize = 200;

/// Most texts that one search returns.
const HITS_AT_MOST: u32 = 20;

impl Store {
    /// The texts with all of these words in the sessions of this session's owner, the newest first. A word of the query
    /// is also the beginning of a longer one. The session itself is searched only if the query names it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no such session.
    pub async fn search_chats(
        &self,
        tenant: TenantId,
        session: SessionId,
        asked: &ChatQuery,
    ) -> Result<Vec<ChatHit>, StoreError> {
        let user = self.session_owner(tenant, session).await?;
        let wanted = asked.words.split_whitespace();
        let wanted = wanted.map(|word| &word[..word.floor_char_boundary(WORD_BYTES)]);
        let mut wanted: Vec<_> = wanted.filter_map(pattern).take(WORDS_AT_MOST).collect();
        let Some(first) = wanted.first().cloned() else {
            return Ok(Vec::new());
        };
        wanted.resize(WORDS_AT_MOST, "%".to_owned());
        let mut statement = query(
            "SELECT t.session_id, t.at, t.speaker, s.title, e.body
             FROM chat_texts t
             JOIN sessions s ON s.tenant_id = t.tenant_id AND s.id = t.session_id
             JOIN events e ON e.tenant_id = t.tenant_id AND e.session_id = t.session_id AND e.seq = t.seq
             WHERE t.tenant_id = $1 AND t.user_id = $2 AND s.user_id = $2 AND s.deleted_at IS NULL
                 AND (t.session_id = $3 OR ($3 = '' AND t.session_id <> $4))
                 AND t.words LIKE $6 AND t.words LIKE $7 AND t.words LIKE $8 AND t.words LIKE $9
                 AND t.words LIKE $10 AND t.words LIKE $11 AND t.words LIKE $12 AND t.words LIKE $13
             ORDER BY t.at DESC, t.session_id, t.seq DESC LIMIT $5",
        )
        .bind(tenant.to_string())
        .bind(user.to_string())
        .bind(asked.within.map(|id| id.to_string()).unwrap_or_default())
        .bind(session.to_string())
        .bind(integer(asked.at_most.min(HITS_AT_MOST).into()));
        for pattern in wanted {
            statement = statement.bind(pattern);
        }
        let rows = statement.fetch_all(&mut self.read(tenant).await?).await?;
        let hits = rows.iter().map(|row| hit(row, &first));
        Ok(hits.collect::<Result<_, sqlx::Error>>()?)
    }
}

fn hit(row: &Row, first: &str) -> Result<ChatHit, sqlx::Error> {
    let body: EventBody = (row.text("body")?.parse()).map_err(|error| damaged("body", error))?;
    let said = match &body {
        EventBody::Known(event) => said(event).map(|(_, text)| text),
        EventBody::Unknown(_) => None,
    };
    Ok(ChatHit {
        session: row.parsed("session_id")?,
        title: row.text("title")?,
        at: row.time("at")?,
        speaker: match row.text("speaker")?.as_str() {
            MODEL => ChatSpeaker::Model,
            _ => ChatSpeaker::User,
        },
        excerpt: excerpt(&said.unwrap_or_default(), first),
    })
}

const USER: &str = "user";
const MODEL: &str = "model";

/// Keeps the words of the event, if it is a message or an answer.
pub(crate) async fn keep(
    tx: &mut Connection,
    tenant: TenantId,
    session: SessionId,
    event: &SessionEvent,
) -> Result<(), StoreError> {
    let Some((speaker, text)) = event.known().and_then(said) else {
        return Ok(());
    };
    let words = stored(&text[..text.floor_char_boundary(TEXT_BYTES)]);
    if words.is_empty() {
        return Ok(());
    }
    query(
        "INSERT INTO chat_texts (tenant_id, session_id, seq, user_id, at, speaker, words)
         SELECT tenant_id, id, $3, user_id, $4, $5, $6 FROM sessions WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tenant.to_string())
    .bind(session.to_string())
    .bind(integer(event.seq))
    .bind(event.at.as_micros())
    .bind(speaker)
    .bind(words)
    .execute(tx)
    .await?;
    Ok(())
}

/// The speaker and the text of a message or an answer. A wish to compact is neither.
fn said(event: &Event) -> Option<(&'static str, String)> {
    match event {
        Event::InputAccepted {
            parts,
            compacts: None,
            ..
        }
        | Event::InputSteered { parts, .. } => Some((USER, texts(parts))),
        Event::AnswerRecorded { parts, .. } => Some((MODEL, texts(parts))),
        _ => None,
    }
}

fn texts(parts: &Parts) -> String {
    let texts = parts.0.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
