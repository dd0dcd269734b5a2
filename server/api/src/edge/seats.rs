//! The number of connections that one credential may have open, and of requests that wait for its operations.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::response::{IntoResponse, Response};
use shared_types::CredentialId;

use crate::rest::{Code, respond};

/// The kinds of things that are limited for each credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A WebSocket of an operation, or a request that passes input or waits. Each may hold a mebibyte.
    Operation,
    /// A WebSocket that follows sessions.
    Sessions,
}

impl Kind {
    fn at_most(self) -> usize {
        match self {
            Self::Operation => 64,
            Self::Sessions => 256,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Operation => "streams and waiting requests of operations",
            Self::Sessions => "streams of sessions",
        }
    }
}

/// The key of a count: the credential and the kind.
type Whose = (CredentialId, Kind);

/// The counts of all open seats. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<HashMap<Whose, usize>>>);

/// One seat, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Seats,
    of: Whose,
}

/// The credential has as many open as it may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AllTaken(Kind);

impl Seats {
    /// # Errors
    /// Fails if no seat is free.
    pub(crate) fn take(&self, of: CredentialId, kind: Kind) -> Result<Seat, AllTaken> {
        let of = (of, kind);
        let mut taken = self.lock();
        let number = taken.entry(of).or_default();
        if *number >= kind.at_most() {
            return Err(AllTaken(kind));
        }
        *number += 1;
        Ok(Seat {
            seats: self.clone(),
            of,
        })
    }

    /// The number of seats that all credentials have taken.
    pub(crate) fn taken(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Whose, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Entry::Occupied(mut taken) = self.seats.lock().entry(self.of) {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }
}

impl IntoResponse for AllTaken {
    fn into_response(self) -> Response {
        let Self(kind) = self;
        let detail = format!(
            "this credential has {most} of {most} {open} open; close one, or use another credential",
            most = kind.at_most(),
            open = kind.name()
        );
        let mut response = respond(Code::TooMany.problem(detail));
        let headers = response.headers_mut();
        headers.insert(http::header::RETRY_AFTER, 1.into());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_has_so_many_seats_and_gets_each_of_them_back() {
        let seats = Seats::default();
        let (one, other) = (CredentialId::from_u128(1), CredentialId::from_u128(2));
        for kind in [Kind::Operation, Kind::Sessions] {
            let take = |of| seats.take(of, kind);
            let mut taken: Vec<_> = (0..kind.at_most()).map(|_| take(one)).collect();
            assert!(taken.iter().all(Result::is_ok));
            assert_eq!(take(one).err(), Some(AllTaken(kind)));
            assert!(take(other).is_ok(), "another one has its own");
            taken.pop();
            assert!(take(one).is_ok());
            assert_eq!(seats.taken(), kind.at_most() - 1);
        }
        assert!(seats.lock().is_empty(), "what is given back is forgotten");
    }
}
