//! Strangers: connections that have not shown a valid credential yet, and, behind a proxy that names addresses,
//! requests without one.
//!
//! All strangers share one budget of memory and a part of the descriptors, and each address has a bounded number of
//! them. If there are too many, or they hold too much, one is cut off. That is the oldest which has been there for a
//! second and has no request under way, else the oldest. A peer with a credential is a stranger for milliseconds, so it
//! is hardly ever one of those.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::visit::VisitSignals;

/// The age after which a connection without a request counts as idle.
const ASKS_WITHIN: Duration = Duration::from_secs(1);

/// Bytes of memory for each received byte: buffers grow ahead of the reads, and a header is copied.
const COPIES: usize = 2;

/// The most that strangers may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct StrangerBounds {
    /// The most strangers.
    pub(super) strangers: usize,
    /// The most strangers of one address.
    pub(super) per_address: usize,
    /// Bytes that they hold, all together.
    pub(super) bytes: usize,
}

/// All strangers of a door.
#[derive(Debug)]
pub(super) struct Strangers {
    bounds: StrangerBounds,
    table: Mutex<StrangerTable>,
}

/// A stranger's number; older ones have lower numbers.
pub(super) type Number = u64;

#[derive(Debug, Default)]
struct StrangerTable {
    next: Number,
    /// In the order in which they came.
    strangers: BTreeMap<Number, Stranger>,
    /// The number of places that each address takes.
    addresses: HashMap<IpAddr, usize>,
    /// Bytes that all of them hold.
    held: usize,
}

#[derive(Debug)]
struct Stranger {
    /// The address that it counts for; `None` if a proxy names one with each request.
    address: Option<IpAddr>,
    /// Bytes that it takes beside its received bytes: its buffers, and its requests that are carried out.
    base: usize,
    /// Bytes that came from it and are held.
    held: usize,
    since: Instant,
    signals: Arc<VisitSignals>,
}

impl Stranger {
    /// Bytes of memory that it takes, all together.
    fn takes(&self) -> usize {
        self.base + COPIES * self.held
    }
}

impl Strangers {
    pub(super) fn new(bounds: StrangerBounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            table: Mutex::default(),
        })
    }

    fn table(&self) -> MutexGuard<'_, StrangerTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in one more, and cuts others off where there are too many.
    pub(super) fn comes(
        &self,
        address: Option<IpAddr>,
        base: usize,
        signals: Arc<VisitSignals>,
    ) -> Number {
        let address = address.map(network);
        let mut table = self.table();
        let number = table.next;
        table.next += 1;
        if let Some(address) = address
            && table.addresses.get(&address).copied().unwrap_or(0) >= self.bounds.per_address
        {
            table.shed(|stranger| stranger.address == Some(address));
        }
        if table.strangers.len() >= self.bounds.strangers {
            table.shed(|_| true);
        }
        if let Some(address) = address {
            *table.addresses.entry(address).or_default() += 1;
        }
        let stranger = Stranger {
            address,
            base,
            held: 0,
            since: Instant::now(),
            signals,
        };
        table.held += base;
        table.strangers.insert(number, stranger);
        self.keep_within(&mut table);
        number
    }

    /// Counts what a stranger holds from now on, and cuts others off where it is too much.
    pub(super) fn holds(&self, number: Number, more: usize) {
        let mut table = self.table();
        let Some(stranger) = table.strangers.get_mut(&number) else {
            return;
        };
        stranger.held += more;
        table.held += COPIES * more;
        self.keep_within(&mut table);
    }

    /// Counts memory that a stranger takes beside its received bytes, and cuts off others if it is too much.
    pub(super) fn takes(&self, number: Number, more: usize) {
        let mut table = self.table();
        let Some(stranger) = table.strangers.get_mut(&number) else {
            return;
        };
        stranger.base += more;
        table.held += more;
        self.keep_within(&mut table);
    }

    /// Returns memory that [`Self::takes`] has counted.
    pub(super) fn gives_back(&self, number: Number, bytes: usize) {
        let mut table = self.table();
        if let Some(stranger) = table.strangers.get_mut(&number) {
            stranger.base -= bytes;
            table.held -= bytes;
        }
    }

    /// The bytes that a stranger holds beyond its base; `None` if it is no stranger any more.
    pub(super) fn held(&self, number: Number) -> Option<usize> {
        let table = self.table();
        Some(table.strangers.get(&number)?.held)
    }

    /// A stranger holds so much less, at most all of it beyond its base.
    pub(super) fn lets_go(&self, number: Number, bytes: usize) {
        let mut table = self.table();
        if let Some(stranger) = table.strangers.get_mut(&number) {
            let freed = stranger.held.min(bytes);
            stranger.held -= freed;
            table.held -= COPIES * freed;
        }
    }

    /// It was let in, or is gone.
    pub(super) fn leaves(&self, number: Number) {
        self.table().remove(number);
    }

    /// Cuts one off, because descriptors are needed.
    pub(super) fn shed_one(&self) {
        self.table().shed(|_| true);
    }

    /// Cuts off until the rest is within the budget.
    fn keep_within(&self, table: &mut StrangerTable) {
        while table.held > self.bounds.bytes && table.strangers.len() > 1 {
            table.shed(|_| true);
        }
    }
}

impl StrangerTable {
    /// Cuts off one of those; see the module.
    fn shed(&mut self, of: impl Fn(&Stranger) -> bool) {
        let mut those = self.strangers.iter().filter(|(_, stranger)| of(stranger));
        let oldest = those.clone().next();
        let idle = those.find(|(_, stranger)| {
            stranger.signals.requests() == 0 && stranger.since.elapsed() >= ASKS_WITHIN
        });
        if let Some((&number, stranger)) = idle.or(oldest) {
            stranger.signals.cut_off();
            self.remove(number);
        }
    }

    fn remove(&mut self, number: Number) {
        if let Some(stranger) = self.strangers.remove(&number) {
            self.held -= stranger.takes();
            if let Some(address) = stranger.address {
                self.forget(address);
            }
        }
    }

    fn forget(&mut self, address: IpAddr) {
        if let Some(count) = self.addresses.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.addresses.remove(&address);
            }
        }
    }
}

/// The part of an address that counts as one: of IPv6 a network of 64 bits, because a host has a whole one.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(prefix).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests;
