//! Requests with an idempotency key: the same one is carried out once.

use std::{sync::Arc, time::Duration};

use server_store::{KnownRequest, RequestAnswer, RequestKey, Store};
use shared_types::{Clock, Digest};

use crate::{AppError, OpContext, Parts, gate::Gate, rights::Action};

/// The longest time that a request may be carried out. A key without an answer after it is of a server
/// that died.
const UNDER_WAY_FOR: Duration = Duration::from_secs(60);

/// The fate of a request with a key.
#[derive(Debug)]
pub enum Keyed {
    /// It is to be carried out, and then told of here.
    Once(TakenKey),
    /// It was answered so.
    Again(RequestAnswer),
    /// Another request was sent under the key.
    OtherRequest,
    /// It is being carried out.
    UnderWay,
    /// The server does not know whether it was carried out.
    Unknown,
}

/// A key that was taken for one request.
#[derive(Debug)]
pub struct TakenKey {
    ctx: OpContext,
    request: RequestKey,
}

/// The use cases of this file.
#[derive(Clone)]
pub struct Requests {
    pub(crate) store: Store,
    pub(crate) gate: Gate,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Requests {
    pub(crate) fn of(parts: &Parts, gate: &Gate) -> Self {
        Self {
            store: parts.store.clone(),
            gate: gate.clone(),
            clock: parts.clock.clone(),
        }
    }

    /// Takes a key for a request that does this, or says what is known of the key.
    ///
    /// # Errors
    /// If the subject may do this to nothing at all, or has too many keys.
    pub async fn take(
        &self,
        ctx: &OpContext,
        action: Action,
        key: String,
        digest: Digest,
    ) -> Result<Keyed, AppError> {
        self.gate.anything(ctx, action)?;
        let (request, now) = (
            RequestKey {
                user: ctx.user,
                key,
                digest,
            },
            self.clock.now(),
        );
        let known = self.store.take_request_key(ctx.tenant, &request, now);
        Ok(match known.await? {
            KnownRequest::New => Keyed::Once(TakenKey {
                ctx: ctx.clone(),
                request,
            }),
            KnownRequest::Answered(answer) => Keyed::Again(answer),
            KnownRequest::Other => Keyed::OtherRequest,
            KnownRequest::Begun(at) if now.since(at) < UNDER_WAY_FOR => Keyed::UnderWay,
            KnownRequest::Begun(_) => Keyed::Unknown,
        })
    }

    /// Stores the answer, so that the same request gets it again.
    ///
    /// # Errors
    /// If the store does not take it.
    pub async fn answered(&self, key: &TakenKey, answer: &RequestAnswer) -> Result<(), AppError> {
        let (tenant, request) = (key.ctx.tenant, &key.request);
        let stored = self.store.answer_request(tenant, request, answer);
        Ok(stored.await?)
    }

    /// Gives the key back: nothing was done.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn came_to_nothing(&self, key: &TakenKey) -> Result<(), AppError> {
        let (tenant, request) = (key.ctx.tenant, &key.request);
        Ok(self.store.forget_request_key(tenant, request).await?)
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{SystemClock, clock::ManualClock};

    use super::*;
    use crate::testing::Fixture;

    #[tokio::test]
    async fn a_request_whose_server_died_is_not_carried_out_again() {
        let fixture = Fixture::practice().await;
        let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
        let requests = Requests {
            clock: clock.clone(),
            ..fixture.app.requests.clone()
        };
        let take = async || {
            let (action, digest) = (Action::BeginSession, Digest::of(b"{}"));
            let taken = requests.take(&fixture.ctx, action, "one".to_owned(), digest);
            taken.await.expect("the owner may")
        };
        assert!(matches!(take().await, Keyed::Once(_)));
        assert!(matches!(take().await, Keyed::UnderWay));
        clock.advance(UNDER_WAY_FOR);
        assert!(matches!(take().await, Keyed::Unknown));
    }
}
