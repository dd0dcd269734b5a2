//! The other servers of the database, as far as this one asks them and answers them.
//!
//! The text and output of a turn that is under way are in the memory of the server that works on it. Its peers ask it
//! for them: `relays` decides from the stored turns what is relayed, and `relay` does it for one session. The calls
//! themselves are a port ([`PeerCalls`]). A server that is asked does not ask for a user: every server of the database
//! has all its rights anyway, and the one that asks has checked its own user.

mod known;
mod relay;
mod relays;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use proto::v1::ServerFrame;
use server_agent::{
    Live,
    feed::{HereFeed, LiveHub},
};
use server_records::{LinkHolder, SessionKey};
use server_router::links::{LentAnswer, LentLink, Links, NotLent};
use server_store::Store;
use shared_types::{Entropy, Generation, ReplicaId, RunnerId, SecretId, TenantId};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{known::KnownPeers, relays::Relays};
use crate::{
    Access, AppError, Parts,
    commits::Commits,
    hints::SeenLogs,
    vault::{Plain, Vault},
};

/// The id of the secret with the cluster key. Ids that are made have the time of their making in them.
const CLUSTER_KEY: SecretId = SecretId::from_u128(1);

/// The way to other servers.
pub trait PeerCalls: Send + Sync {
    /// The server with this id at this host and port. Connects once it is asked something, and again where the
    /// connection is lost.
    fn at(&self, replica: ReplicaId, address: &str) -> Arc<dyn Peer>;
}

/// Another server.
#[async_trait]
pub trait Peer: Send + Sync {
    /// Follows what is under way there in a session.
    ///
    /// # Errors
    /// If it cannot be reached, is not the one it should be, or refuses.
    async fn follow(&self, of: SessionKey) -> Result<Pieces, FollowError>;

    /// Borrows a link that it holds ([`LinkHolders::borrow`]).
    ///
    /// # Errors
    /// Likewise.
    async fn borrow(
        &self,
        link: &LinkHolder,
        orders: mpsc::Receiver<Box<ServerFrame>>,
    ) -> Result<LentAnswers, NotLent>;
}

/// The answers over a borrowed link.
pub type LentAnswers = BoxStream<'static, LentAnswer>;

/// The pieces of work under way at another server.
pub type Pieces = BoxStream<'static, Result<Live, FollowError>>;

/// The reason why the work at another server cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("follow a session at another server: {0}")]
pub struct FollowError(pub String);

/// See the module.
#[derive(Clone)]
pub struct Peers {
    store: Store,
    access: Access,
    vault: Vault,
    hub: LiveHub,
    seen: SeenLogs,
    links: Links,
    replica: ReplicaId,
    entropy: Arc<dyn Entropy>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Peers {
    pub(crate) fn of(
        parts: &Parts,
        access: &Access,
        commits: &Commits,
        links: &Links,
        tasks: &TaskTracker,
    ) -> Self {
        Self {
            store: parts.store.clone(),
            access: access.clone(),
            vault: parts.vault.clone(),
            hub: commits.hub.clone(),
            seen: commits.seen.clone(),
            links: links.clone(),
            replica: parts.replica,
            entropy: parts.entropy.clone(),
            tasks: tasks.clone(),
            stop: parts.stop.clone(),
        }
    }

    /// The key by which the servers of this database know one another, as the first of them has made it. It is a
    /// secret of the first tenant.
    ///
    /// # Errors
    /// If the store does not answer, or its secrets cannot be sealed or opened.
    pub async fn cluster_key(&self, make: impl FnOnce() -> Plain) -> Result<Plain, AppError> {
        let first = self.access.bootstrap().await?;
        let key = self.vault.kept_or(first.tenant, CLUSTER_KEY, make);
        Ok(key.await?)
    }

    /// From now on relays the work of other servers to those who follow it here, and borrows their links.
    pub async fn ask_by(&self, calls: Arc<dyn PeerCalls>) {
        let known = Arc::new(KnownPeers::new(calls));
        self.links.borrow_by(known.clone()).await;
        self.seen.begin_relays();
        let relays = Relays::new(self, known);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled_owned(relays.run()).await;
        });
    }

    /// Lends the link of this generation; none if this server does not hold it.
    pub async fn lend(
        &self,
        tenant: TenantId,
        runner: RunnerId,
        generation: Generation,
    ) -> Option<LentLink> {
        self.links.lend(tenant, runner, generation).await
    }

    /// Follows what is under way here in a session, for another server.
    ///
    /// # Errors
    /// If the tenant has no such session, or the server stops.
    pub async fn follow(&self, of: SessionKey) -> Result<HereFeed, AppError> {
        self.store.session(of.tenant, of.session).await?;
        let feed = HereFeed::start(self.hub.clone(), of.session).await;
        feed.ok_or_else(|| AppError::unavailable(std::io::Error::other("the server is stopping")))
    }
}
