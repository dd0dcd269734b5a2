//! The way of hints between the replicas that share a database: PostgreSQL's notifications.
//!
//! A notification is sent by a statement of its own, never in the transaction that it tells of: PostgreSQL commits
//! transactions with notifications one after the other.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use server_records::{HintNews, HintWire, PortError};
use tokio::{sync::mpsc, time::sleep};

use crate::{
    Store, StoreError,
    database::{NotificationListener, query},
};

/// The channel of the notifications. A later form of them may have another one.
const CHANNEL: &str = "gantry_hints";

const WHY: &str = "hints are of all tenants";

/// The pause before another connection is tried.
const CONNECT_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// See the module.
struct Notifications {
    store: Store,
}

#[async_trait]
impl HintWire for Notifications {
    async fn send(&self, texts: Vec<String>) -> Result<(), PortError> {
        Ok(self.store.notify(CHANNEL, texts).await?)
    }

    async fn listen(&self, to: mpsc::Sender<HintNews>) {
        while !to.is_closed() {
            match self.store.listen(CHANNEL).await {
                Ok(listener) => hand_on(listener, &to).await,
                Err(error) => {
                    tracing::warn!(%error, "the hints of other servers cannot be heard; trying again");
                }
            }
            tokio::select! {
                () = to.closed() => {}
                () = sleep(CONNECT_AGAIN_AFTER) => {}
            }
        }
    }
}

/// Hands on what is heard until the connection is lost, or `to` has no receiver.
async fn hand_on(mut listener: NotificationListener, to: &mpsc::Sender<HintNews>) {
    let mut news = Some(HintNews::Listens);
    while let Some(one) = news
        && to.send(one).await.is_ok()
    {
        news = tokio::select! {
            heard = listener.next() => heard.map(HintNews::Heard),
            () = to.closed() => None,
        };
    }
}

impl Store {
    /// The way of hints to and from the other replicas; `None` for a database that is a file, which has one server.
    pub fn hints(&self) -> Option<Arc<dyn HintWire>> {
        let store = self.clone();
        (store.is_shared()).then(|| Arc::new(Notifications { store }) as Arc<dyn HintWire>)
    }

    /// Notifies the listeners of the channel. Nothing of it depends on a tenant, and nothing is written.
    async fn notify(&self, channel: &str, texts: Vec<String>) -> Result<(), StoreError> {
        let mut connection = self.read_any(WHY).await?;
        for text in texts {
            let notified = query("SELECT pg_notify($1, $2)").bind(channel).bind(text);
            notified.execute(&mut connection).await?;
        }
        Ok(())
    }
}
