//! The connections to model servers, and the places of tenants that ask them.
//!
//! A connection outlives the call: it keeps open sockets, and its breaker knows how the server fared. Those that were
//! not used for long go first.

use std::sync::{Arc, Mutex, PoisonError};

use hashlink::LruCache;
use server_llm::Breaker;
use shared_types::{ModelAccountId, RunnerId, TenantId, Timestamp};
use tokio::sync::Semaphore;

/// Most connections that are kept.
const CONNECTIONS: usize = 1024;

/// Most kinds of places that are kept, of all tenants.
const PLACES: usize = 8192;

/// Most calls of a tenant at the same time with accounts that it shares with others, or among its people.
const SHARED_AT_ONCE: usize = 5;

/// Most calls of a tenant at the same time with its people's own accounts, and with one runner.
const OWN_AT_ONCE: usize = 3;

/// The calls that share places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Calls {
    /// With the accounts of the operator and of the tenant.
    Shared,
    /// With people's own accounts.
    Own,
    /// With a runner's model server: one that hangs holds up no other place.
    Runner(RunnerId),
}

/// The account or runner of a connection, and its model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Of {
    /// Of an account as it was at this time, for this model.
    Account(ModelAccountId, Timestamp, String),
    /// Of a runner's model server, under the name that the runner has now, for this model.
    Runner(RunnerId, String, String),
}

/// See the module. Clones are the same.
#[derive(Clone)]
pub(super) struct Connections {
    kept: Arc<Mutex<ConnectionCache>>,
}

struct ConnectionCache {
    connections: LruCache<Of, Arc<Breaker>>,
    places: LruCache<(TenantId, Calls), Arc<Semaphore>>,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self {
            kept: Arc::new(Mutex::new(ConnectionCache {
                connections: LruCache::new(CONNECTIONS),
                places: LruCache::new(PLACES),
            })),
        }
    }

    /// The connection, if it is kept.
    pub(super) fn get(&self, of: &Of) -> Option<Arc<Breaker>> {
        self.with(|kept| kept.connections.get(of).cloned())
    }

    /// Keeps the connection. If another call has kept one since, returns that one.
    pub(super) fn keep(&self, of: Of, connection: Breaker) -> Arc<Breaker> {
        self.with(|kept| match kept.connections.get(&of) {
            Some(known) => known.clone(),
            None => {
                let connection = Arc::new(connection);
                kept.connections.insert(of, connection.clone());
                connection
            }
        })
    }

    /// The places of the tenant for such calls.
    pub(super) fn places(&self, tenant: TenantId, calls: Calls) -> Arc<Semaphore> {
        self.with(|kept| match kept.places.get(&(tenant, calls)) {
            Some(known) => known.clone(),
            None => {
                let at_once = match calls {
                    Calls::Shared => SHARED_AT_ONCE,
                    Calls::Own | Calls::Runner(_) => OWN_AT_ONCE,
                };
                let places = Arc::new(Semaphore::new(at_once));
                kept.places.insert((tenant, calls), places.clone());
                places
            }
        })
    }

    /// Forgets all connections: what is known of their providers has changed.
    pub(super) fn forget(&self) {
        self.with(|kept| kept.connections.clear());
    }

    fn with<T>(&self, act: impl FnOnce(&mut ConnectionCache) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
