//! Conversations that a call of another session begins for its user.
//!
//! The session, its first turn and the event of the call are written in one transaction, under the epoch of the call's
//! worker. The ids are derived from the call, so no call begins two.

use server_records::NewChat;
use shared_types::{
    Event, SessionEvent, SessionId, TenantId, Timestamp, TurnId,
    event::{CallOfSession, Parts},
    limits::MAX_MESSAGE_BYTES,
};

use crate::{
    SettingChange, SettingName, SettingsOf, Store, StoreError,
    agent::Calling,
    columns::integer,
    database::{Connection, lock_user, query, retried},
    error::bounded,
    event, session, setting, turn,
};

impl Store {
    /// Begins a conversation of the user for a call: makes its session and its first turn, at the place of the calling turn
    /// and under its credential. Returns [`Event::ChatStarted`] at its place in the caller's log.
    ///
    /// # Errors
    /// [`StoreError::StaleEpoch`] if another worker took the session since; [`StoreError::Conflict`] if the turn does not
    /// run, or the call has begun one; [`StoreError::Full`] for as many turns as a user may have waiting;
    /// [`StoreError::TooLarge`]; [`StoreError::NotFound`] if the session was deleted.
    pub async fn start_chat(
        &self,
        tenant: TenantId,
        caller: SessionId,
        held: shared_types::Epoch,
        new: &NewChat,
        now: Timestamp,
    ) -> Result<SessionEvent, StoreError> {
        bounded("the message", &new.message, MAX_MESSAGE_BYTES)?;
        bounded("the title", &new.title, MAX_MESSAGE_BYTES)?;
        let chat = SessionId::of_chat(new.turn, new.step, new.ordinal);
        let chat_turn = TurnId::of_chat(new.turn, new.step, new.ordinal);
        retried!({
            let mut tx = self.write(tenant).await?;
            let calling = Calling::read(&mut tx, tenant, caller, new.turn).await?;
            lock_user(&mut tx, tenant, calling.user).await?;
            session::require_room(&mut tx, tenant, calling.user, new.sessions_at_most).await?;
            let seq = session::next_under(&mut tx, tenant, caller, held, 1, now).await?;
            turn::require_room_of_user(&mut tx, tenant, caller).await?;
            let parent = CallOfSession {
                session: caller,
                turn: new.turn,
                step: new.step,
                ordinal: new.ordinal,
            };
            let events = [
                Event::SessionCreated {
                    title: new.title.clone(),
                    model: new.model.clone().unwrap_or_else(|| calling.model.clone()),
                    directory: calling.directory.clone(),
                },
                Event::ChatOrigin { parent },
                Event::InputAccepted {
                    turn: chat_turn,
                    by: calling.user,
                    client_id: None,
                    parts: Parts::text(new.message.clone()),
                    compacts: None,
                    terms: new.terms.clone(),
                },
            ];
            insert_chat(&mut tx, tenant, chat, &calling, new, now).await?;
            query(
                "INSERT INTO turns (tenant_id, id, session_id, input_seq, state, created_at, traceparent,
                     credential_id)
                 SELECT $1, $2, $3, $4, 'queued', $5, traceparent, credential_id
                 FROM turns WHERE tenant_id = $1 AND id = $6",
            )
            .bind(tenant.to_string())
            .bind(chat_turn.to_string())
            .bind(chat.to_string())
            .bind(integer(events.len() as u64))
            .bind(now.as_micros())
            .bind(new.turn.to_string())
            .execute(&mut tx)
            .await?;
            let mut of_chat = Vec::with_capacity(events.len());
            for (seq, event) in (1..).zip(&events) {
                of_chat.push(event::insert(&mut tx, tenant, chat, seq, event, now).await?);
            }
            if new.model.is_some() {
                let (name, value) = (SettingName::Model, new.model.clone());
                let (of, change) = (SettingsOf::Session(chat), SettingChange { name, value });
                setting::put(&mut tx, tenant, of, &change, calling.user, now).await?;
            }
            let started = Event::ChatStarted {
                turn: new.turn,
                step: new.step,
                ordinal: new.ordinal,
                session: chat,
                title: new.title.clone(),
            };
            let started = event::insert(&mut tx, tenant, caller, seq, &started, now).await?;
            tx.commit().await?;
            self.appended(tenant, chat, &of_chat).await;
            self.appended(tenant, caller, std::slice::from_ref(&started))
                .await;
            Ok(started)
        })
    }
}

async fn insert_chat(
    tx: &mut Connection,
    tenant: TenantId,
    chat: SessionId,
    calling: &Calling,
    new: &NewChat,
    now: Timestamp,
) -> Result<(), StoreError> {
    query(
        "INSERT INTO sessions (tenant_id, id, user_id, title, directory, created_at, updated_at, last_seq,
             epoch, pinned_runner_id, pinned_runner_at, pinned_sandbox_id)
         SELECT $1, $2, $3, $4, $5, $6, $6, 3, 0,
             chosen_runner_id, CASE WHEN chosen_runner_id IS NULL THEN NULL ELSE $6 END, chosen_sandbox_id
         FROM turns WHERE tenant_id = $1 AND id = $7",
    )
    .bind(tenant.to_string())
    .bind(chat.to_string())
    .bind(calling.user.to_string())
    .bind(&new.title)
    .bind(&calling.directory)
    .bind(now.as_micros())
    .bind(new.turn.to_string())
    .execute(tx)
    .await?;
    Ok(())
}
