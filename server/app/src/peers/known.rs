//! The other servers that are asked now: one connection to each, whatever it is asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use proto::v1::ServerFrame;
use server_records::LinkHolder;
use server_router::links::{LinkHolders, NotLent};
use shared_types::ReplicaId;
use tokio::sync::mpsc;

use super::{LentAnswers, Peer, PeerCalls};

/// See the module.
pub(super) struct KnownPeers {
    calls: Arc<dyn PeerCalls>,
    in_use: Mutex<HashMap<(ReplicaId, String), Weak<dyn Peer>>>,
}

impl KnownPeers {
    pub(super) fn new(calls: Arc<dyn PeerCalls>) -> Self {
        Self {
            calls,
            in_use: Mutex::default(),
        }
    }

    /// The server with this id at this address. Its connection lasts as long as what is returned.
    pub(super) fn at(&self, replica: ReplicaId, address: &str) -> Arc<dyn Peer> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (replica, address.to_owned());
        if let Some(peer) = in_use.get(&name).and_then(Weak::upgrade) {
            return peer;
        }
        in_use.retain(|_, peer| peer.strong_count() > 0);
        let peer = self.calls.at(replica, address);
        in_use.insert(name, Arc::downgrade(&peer));
        peer
    }
}

#[async_trait]
impl LinkHolders for KnownPeers {
    async fn borrow(
        &self,
        link: &LinkHolder,
        orders: mpsc::Receiver<Box<ServerFrame>>,
    ) -> Result<LentAnswers, NotLent> {
        let address = link.address.as_deref();
        let address = address.ok_or_else(|| NotLent("it answers no other server".to_owned()))?;
        let peer = self.at(link.replica, address);
        let answers = peer.borrow(link, orders).await?;
        // The connection lasts as long as the link is borrowed.
        let answers = answers.map(move |answer| {
            let _ = &peer;
            answer
        });
        Ok(answers.boxed())
    }
}
