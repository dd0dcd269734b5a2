//! The calls between servers, which a test cuts, refuses or stalls.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use futures_util::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use proto::v1;
use server_records::LinkHolder;
use shared_types::ReplicaId;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{FRAMES, World};
use crate::links::{LentAnswer, LinkHolders, Links, NotLent};

/// The way from one server to the others. Clones are the same.
#[derive(Clone)]
pub(in crate::tests) struct Peers {
    servers: Arc<Mutex<HashMap<ReplicaId, Links>>>,
    /// Cancelled when the calls that are there are cut.
    cut: Arc<Mutex<CancellationToken>>,
    /// The links that were asked for.
    asked: Arc<Mutex<Vec<LinkHolder>>>,
    way: watch::Sender<Way>,
}

/// What becomes of calls and of what they carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tests) enum Way {
    Open,
    /// No call is taken.
    Refused,
    /// Nothing comes through, and no end is noticed.
    Stalled,
}

impl Peers {
    /// Between these.
    pub(in crate::tests) async fn among(worlds: &[&World]) -> Self {
        let peers = Self {
            servers: Arc::default(),
            cut: Arc::default(),
            asked: Arc::default(),
            way: watch::Sender::new(Way::Open),
        };
        for world in worlds {
            let mut servers = peers.servers.lock().expect("no panic");
            servers.insert(world.store.replica(), world.links.clone());
        }
        for world in worlds {
            world.links.borrow_by(Arc::new(peers.clone())).await;
        }
        peers
    }

    pub(in crate::tests) fn be(&self, way: Way) {
        self.way.send_replace(way);
    }

    /// The calls that are there end at both ends, and what is on its way is lost.
    pub(in crate::tests) fn cut(&self) {
        std::mem::take(&mut *self.token()).cancel();
    }

    /// The links that were asked for so far.
    pub(in crate::tests) fn asked(&self) -> Vec<LinkHolder> {
        self.asked.lock().expect("no panic").clone()
    }

    fn server(&self, replica: ReplicaId) -> Option<Links> {
        let servers = self.servers.lock().expect("no panic");
        servers.get(&replica).cloned()
    }

    fn token(&self) -> MutexGuard<'_, CancellationToken> {
        self.cut.lock().expect("no panic")
    }
}

#[async_trait]
impl LinkHolders for Peers {
    async fn borrow(
        &self,
        link: &LinkHolder,
        orders: mpsc::Receiver<Box<v1::ServerFrame>>,
    ) -> Result<BoxStream<'static, LentAnswer>, NotLent> {
        self.asked.lock().expect("no panic").push(link.clone());
        let cut = self.token().clone();
        until_open(&mut self.way.subscribe()).await;
        if *self.way.borrow() == Way::Refused {
            return Err(NotLent("the call is refused".to_owned()));
        }
        let holder = self.server(link.replica);
        let holder = holder.ok_or_else(|| NotLent("there is no such server".to_owned()))?;
        let lent = holder.lend(link.tenant, link.runner, link.generation).await;
        let lent = lent.ok_or_else(|| NotLent("it does not hold that link".to_owned()))?;
        // Over once the answers are, in either direction.
        let call = cut.child_token();
        let (to_holder, ordered) = mpsc::channel(FRAMES);
        let (answers, answered) = mpsc::channel(FRAMES);
        let (to_asker, told) = mpsc::channel(FRAMES);
        let way = || self.way.subscribe();
        tokio::spawn(
            cut.clone()
                .run_until_cancelled_owned(carry(orders, to_holder, way())),
        );
        let ordered = received(ordered).map(|order| *order);
        tokio::spawn(
            call.clone()
                .run_until_cancelled_owned(lent.serve(ordered, answers)),
        );
        let carried = carry(answered, to_asker, way());
        tokio::spawn(cut.clone().run_until_cancelled_owned(async move {
            carried.await;
            call.cancel();
        }));
        Ok(received(told).take_until(cut.cancelled_owned()).boxed())
    }
}

/// Carries all of it until either end is gone.
async fn carry<T>(mut from: mpsc::Receiver<T>, to: mpsc::Sender<T>, mut way: watch::Receiver<Way>) {
    loop {
        let item = tokio::select! {
            item = from.recv() => item,
            () = to.closed() => return,
        };
        let Some(item) = item else { return };
        until_open(&mut way).await;
        if to.send(item).await.is_err() {
            return;
        }
    }
}

async fn until_open(way: &mut watch::Receiver<Way>) {
    // A test that is over opens nothing.
    let _ = way.wait_for(|way| *way != Way::Stalled).await;
}

fn received<T: Send + 'static>(mut from: mpsc::Receiver<T>) -> impl Stream<Item = T> + Send {
    stream::poll_fn(move |context| from.poll_recv(context))
}
