//! The log of one session.

use async_trait::async_trait;
use bytes::Bytes;
use server_records::{
    Appended, CallEnd, ChatHit, ChatQuery, LogRows, ModelCall, NewAgent, NewChat, SessionError,
    SessionKey, StandingExtensions, StandingRules, StoredEvent, TrustedFile, WholeSkill,
};
use shared_types::{
    Digest, Epoch, Event, RunnerId, SessionEvent, SessionId, Timestamp, TurnId,
    event::{Layer, TodoItem},
};

use crate::Store;

/// See the module.
pub(super) struct SessionLogRows {
    pub(super) store: Store,
    pub(super) of: SessionKey,
}

#[async_trait]
impl LogRows for SessionLogRows {
    async fn read_from(&self, seq: u64) -> Result<Vec<StoredEvent>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.log_from(tenant, session, seq).await?)
    }

    async fn steers(&self, turn: TurnId, after: u32) -> Result<Vec<SessionEvent>, SessionError> {
        Ok(self.store.steers(self.of.tenant, turn, after).await?)
    }

    async fn append(
        &self,
        epoch: Epoch,
        events: &[Event],
        calls: &[ModelCall],
        now: Timestamp,
    ) -> Result<Appended, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let appended = (self.store).append_paid(tenant, session, epoch, events, calls, now);
        Ok(appended.await?)
    }

    async fn images(&self, digests: &[Digest]) -> Result<Vec<(Digest, Bytes)>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let images = self.store.images(tenant, session, digests).await?;
        let images = images.into_iter();
        Ok(images
            .map(|image| (image.digest, image.bytes.into()))
            .collect())
    }

    async fn keep_image(
        &self,
        media_type: &str,
        bytes: Bytes,
        now: Timestamp,
    ) -> Result<Digest, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let image = (media_type, &bytes[..]);
        Ok(self.store.put_image(tenant, session, image, now).await?)
    }

    async fn text(&self, digest: Digest) -> Result<Option<Bytes>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let text = self.store.text(tenant, session, digest).await?;
        Ok(text.map(Bytes::from))
    }

    async fn keep_text(&self, text: Bytes, now: Timestamp) -> Result<Digest, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.put_text(tenant, session, &text, now).await?)
    }

    async fn todo_of_place(&self, place: &str) -> Result<Vec<TodoItem>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.todo_of_place(tenant, session, place).await?)
    }

    async fn rules(&self) -> Result<StandingRules, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.rules_of_session(tenant, session).await?)
    }

    async fn trusted_files(&self, runner: RunnerId) -> Result<Vec<TrustedFile>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let user = self.store.session_owner(tenant, session).await?;
        let mut files = self.store.trusted_files(tenant, user).await?;
        files.retain(|file| file.runner == runner);
        Ok(files)
    }

    async fn extensions(&self) -> Result<StandingExtensions, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.extensions_of_session(tenant, session).await?)
    }

    async fn skill(&self, layer: Layer, name: &str) -> Result<Option<WholeSkill>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self
            .store
            .skill_of_session(tenant, session, layer, name)
            .await?)
    }

    async fn search_chats(&self, query: &ChatQuery) -> Result<Vec<ChatHit>, SessionError> {
        let SessionKey { tenant, session } = self.of;
        Ok(self.store.search_chats(tenant, session, query).await?)
    }

    async fn start_agent(
        &self,
        epoch: Epoch,
        new: &NewAgent,
        now: Timestamp,
    ) -> Result<SessionEvent, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let started = self.store.start_agent(tenant, session, epoch, new, now);
        Ok(started.await?)
    }

    async fn stop_agent(
        &self,
        agent: SessionId,
        turn: TurnId,
        now: Timestamp,
    ) -> Result<(), SessionError> {
        Ok(self
            .store
            .stop_agent(self.of.tenant, agent, turn, now)
            .await?)
    }

    async fn start_chat(
        &self,
        epoch: Epoch,
        new: &NewChat,
        now: Timestamp,
    ) -> Result<SessionEvent, SessionError> {
        let SessionKey { tenant, session } = self.of;
        let started = self.store.start_chat(tenant, session, epoch, new, now);
        Ok(started.await?)
    }

    async fn append_end(
        &self,
        epoch: Epoch,
        end: &CallEnd<'_>,
        now: Timestamp,
    ) -> Result<(), SessionError> {
        let SessionKey { tenant, session } = self.of;
        let appended = self.store.append_end(tenant, session, epoch, end, now);
        Ok(appended.await?)
    }
}
