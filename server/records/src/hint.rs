//! Hints between replicas: after a commit, which rows the others should look at.
//!
//! A hint carries nothing of the rows. It may be lost, come twice, late or in another order: that costs time only.

use std::collections::BTreeSet;

use async_trait::async_trait;
use shared_types::{ReplicaId, RunnerId, TenantId};
use tokio::sync::mpsc;

use crate::{Change, PortError, SessionKey};

mod text;

pub use text::MAX_HINT_TEXT_BYTES;

/// Rows that may be different since a commit of another replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// All of them: hints may have been lost.
    All,
    /// The log of the session has grown. Its followers read on. The worker of its turn looks if there is a message for
    /// the turn, or a wish to stop it: each of these is an event too.
    Session(SessionKey),
    /// An operation's end, a runner's link or the wait of a turn: a wait may be over, or is due sooner.
    Waits,
    /// A runner has another link, or none, or was removed or locked.
    Link(RunnerId),
    /// An operation is to stop: the replica that has the link of its runner sends that.
    Cancels,
    /// A turn of the session waits for a worker, and the replica that sends this begins none: begin one.
    Turn(SessionKey),
    /// A replica has stopped, or is to drain or to work again.
    Replicas,
    /// A credential or runner was revoked, a runner was locked or is shared with other people, or a role has changed, in
    /// this tenant or in any.
    Rights(Option<TenantId>),
    /// A list that people read.
    List(Change),
}

/// The hints of one replica that go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintBatch {
    /// The replica, which ignores its own hints. `None` where a newer release wrote it in another way.
    pub from: Option<ReplicaId>,
    /// The hints.
    pub hints: BTreeSet<Hint>,
}

/// News of the way by which hints come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintNews {
    /// From now on it is heard. What was sent before is lost.
    Listens,
    /// The text of a batch.
    Heard(String),
}

/// The way of hints between replicas.
#[async_trait]
pub trait HintWire: Send + Sync {
    /// Sends the texts of a batch ([`HintBatch::texts`]).
    ///
    /// # Errors
    /// The store did not answer. Some of them may have been sent.
    async fn send(&self, texts: Vec<String>) -> Result<(), PortError>;

    /// Hands on the news for as long as `to` has a receiver. Connects again where the connection is lost.
    async fn listen(&self, to: mpsc::Sender<HintNews>);
}
