//! A whole server without doors, in a temporary folder, with its owner signed in.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use server_agent::Live;
use server_llm::{Model, Practice};
use server_store::{Outputs, Store};
use shared_types::{
    Clock, Event, OsEntropy, ReplicaId, SessionEvent, SessionId, SystemClock, event::TurnOutcome,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{App, Followed, OpContext, Parts, keys::SigningKey};

/// Far above what is needed: only a failure reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Fixture {
    pub(crate) app: App,
    pub(crate) ctx: OpContext,
    pub(crate) stop: CancellationToken,
    _folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) async fn practice() -> Self {
        Self::with(Arc::new(Practice)).await
    }

    pub(crate) async fn with(model: Arc<dyn Model>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("gantry.db");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let stop = CancellationToken::new();
        let parts = Parts {
            store: Store::open(&path).await.expect("a new database"),
            outputs: Outputs::start(folder.path()).expect("a folder"),
            model,
            identity: SigningKey::generate(&OsEntropy),
            link_keys: vec![SigningKey::generate(&OsEntropy)],
            certificate: None,
            link: server_router::links::LinkOptions::default(),
            ephemeral_silence: Duration::from_secs(24 * 60 * 60),
            replica: ReplicaId::generate(&*clock, &OsEntropy),
            clock,
            entropy: Arc::new(OsEntropy),
            stop: stop.clone(),
        };
        let app = App::start(parts).await.expect("it starts");
        let ctx = sign_in(&app).await;
        Self {
            app,
            ctx,
            stop,
            _folder: folder,
        }
    }

    pub(crate) async fn session(&self) -> SessionId {
        let session = self.app.sessions.create(&self.ctx, "").await;
        session.expect("it is made").id
    }

    /// Follows the session until a turn ends; returns how, and all that was in the log before.
    ///
    /// # Panics
    /// If none ends within [`PATIENCE`].
    pub(crate) async fn until_ended(&self, session: SessionId) -> (TurnOutcome, Vec<SessionEvent>) {
        let ended = timeout(PATIENCE, self.ended(session)).await;
        ended.expect("the turn ends")
    }

    async fn ended(&self, session: SessionId) -> (TurnOutcome, Vec<SessionEvent>) {
        let mut log = Vec::new();
        let following = self.app.sessions.follow(&self.ctx, session, 0).await;
        let mut following = following.expect("it is there");
        loop {
            if let Followed::Event(event) = following.next().await.expect("the store answers") {
                log.push(event);
            }
            let last = log.last().and_then(SessionEvent::known);
            if let Some(Event::TurnEnded { outcome, .. }) = last {
                return (*outcome, log);
            }
        }
    }
}

async fn sign_in(app: &App) -> OpContext {
    let first = app.access.bootstrap().await.expect("the first owner");
    let code = app.access.issue_code(first.tenant, first.owner).await;
    let code = code.expect("a code");
    let signed_in = app
        .access
        .sign_in(&code, "test", Ipv4Addr::LOCALHOST.into());
    let (token, _) = signed_in.await.expect("the code holds");
    let context = app.access.authenticate(&token.reveal()).await;
    context.expect("the token holds")
}

/// A piece of output.
pub(crate) fn output(offset: u64, data: bytes::Bytes) -> Live {
    Live::Output {
        turn: shared_types::TurnId::from_u128(1),
        step: 1,
        ordinal: 0,
        operation: shared_types::OperationId::from_u128(1),
        stream: shared_sandbox::OutputStream::Stdout,
        offset,
        data,
    }
}
