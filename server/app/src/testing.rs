//! A whole server without doors, in a temporary folder, with its owner signed in.

use std::{net::Ipv4Addr, path::Path, sync::Arc, time::Duration};

use server_llm::{Catalogue, Model, Models, Offer, Practice, Reach};
use server_store::{Outputs, Store};
use server_web::{Web, WebOptions};
use shared_types::{
    Clock, Entropy, Event, OsEntropy, ReplicaId, SessionEvent, SessionId, SystemClock,
    event::TurnOutcome,
};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    App, Followed, OpContext, Parts, SessionTerms,
    keys::{LinkKeys, SigningKey},
    vault::{MasterKeySource, Vault},
};

/// Far above what is needed: only a failure reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Fixture {
    pub(crate) app: App,
    pub(crate) ctx: OpContext,
    pub(crate) stop: CancellationToken,
    folder: TempDir,
}

impl Fixture {
    pub(crate) async fn practice() -> Self {
        Self::with(Arc::new(Practice)).await
    }

    pub(crate) async fn with(model: Arc<dyn Model>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let stop = CancellationToken::new();
        let app = start(folder.path(), model, &stop).await;
        let ctx = sign_in(&app).await;
        Self {
            app,
            ctx,
            stop,
            folder,
        }
    }

    /// The same server after a restart.
    pub(crate) async fn restarted(self) -> Self {
        self.stop.cancel();
        self.app.idle().await;
        self.app.close().await;
        Copy {
            folder: self.folder,
            ctx: self.ctx,
        }
        .start()
        .await
    }

    /// The same server after a restart, and a copy of all that it kept then, to be restored.
    pub(crate) async fn copied(self) -> (Self, Copy) {
        self.stop.cancel();
        self.app.idle().await;
        self.app.close().await;
        let copy = Copy {
            folder: tempfile::tempdir().expect("a temporary folder"),
            ctx: self.ctx.clone(),
        };
        for name in ["identity.pem", "link.pem", "gantry.db"] {
            let (from, to) = (self.folder.path().join(name), copy.folder.path().join(name));
            std::fs::copy(from, to).expect("a file");
        }
        let (folder, ctx) = (self.folder, self.ctx);
        (Copy { folder, ctx }.start().await, copy)
    }

    /// The folder with its keys and its database.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn session(&self) -> SessionId {
        let session = self
            .app
            .sessions
            .create(&self.ctx, &SessionTerms::default())
            .await;
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

/// The files of a server, without a server.
pub(crate) struct Copy {
    folder: TempDir,
    ctx: OpContext,
}

impl Copy {
    /// A server that goes on with it.
    pub(crate) async fn start(self) -> Fixture {
        let stop = CancellationToken::new();
        let app = start(self.folder.path(), Arc::new(Practice), &stop).await;
        Fixture {
            app,
            ctx: self.ctx,
            stop,
            folder: self.folder,
        }
    }
}

async fn start(folder: &Path, model: Arc<dyn Model>, stop: &CancellationToken) -> App {
    let store = Store::open(&folder.join("gantry.db")).await;
    let store = store.expect("a database");
    start_on(store, folder, "a test", model, stop).await
}

/// A server on this database, which has its keys in the folder.
pub(crate) async fn start_on(
    store: Store,
    folder: &Path,
    place: &str,
    model: Arc<dyn Model>,
    stop: &CancellationToken,
) -> App {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let key = |name| {
        let key = SigningKey::load_or_create(&folder.join(name), &OsEntropy);
        key.expect("a key")
    };
    let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
    let own = MasterKeySource::Own(folder.join("master"));
    let vault = Vault::unlock(store.clone(), own, clock.clone(), entropy.clone()).await;
    let outputs = Outputs::open(folder, &store).await;
    let parts = Parts {
        store,
        vault: vault.expect("a master key"),
        outputs: outputs.expect("a folder"),
        models: Models::new(Offer::Whole(model), []),
        catalogue: Catalogue::built_in().expect("it is sound"),
        reach: Reach::Everywhere,
        web: Arc::new(Web::new(WebOptions::default()).expect("it is off")),
        operator: crate::OperatorSettings::default(),
        prompt: None,
        model_window: None,
        rules: Vec::new(),
        identity: key("identity.pem"),
        link_keys: LinkKeys::new(key("link.pem")),
        link: server_router::links::LinkOptions::default(),
        ephemeral_silence: Duration::from_secs(24 * 60 * 60),
        isolation: Arc::default(),
        turns: crate::TurnLimits::default(),
        user_limits: crate::UserLimits::default(),
        replica: ReplicaId::generate(&*clock, &OsEntropy),
        place: place.to_owned(),
        peer_address: None,
        version: "0.0.0".to_owned(),
        clock,
        database_clock: None,
        entropy,
        stop: stop.clone(),
    };
    App::start(parts).await.expect("it starts")
}

pub(crate) async fn sign_in(app: &App) -> OpContext {
    let first = app.access.bootstrap().await.expect("the first owner");
    let code = app.access.issue_code(first.tenant, first.owner).await;
    let code = code.expect("a code");
    let signed_in = app
        .access
        .sign_in(&code, "test", Ipv4Addr::LOCALHOST.into());
    let (token, _) = signed_in.await.expect("the code holds");
    let context = app.access.authenticate(&token.reveal(), None).await;
    context.expect("the token holds")
}
