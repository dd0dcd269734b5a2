//! How many connections and requests one credential may have waiting for its operations.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::response::{IntoResponse, Response};
use shared_api::Problem;
use shared_types::CredentialId;

use crate::rest::respond;

/// WebSockets of operations, and requests that pass input or wait, of one credential at one time. Each
/// may hold a mebibyte.
const SEATS: usize = 64;

/// Counts what is open. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<HashMap<CredentialId, usize>>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Seats,
    of: CredentialId,
}

/// The credential has as many open as it may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AllTaken;

impl Seats {
    /// # Errors
    /// There is none left.
    pub(crate) fn take(&self, of: CredentialId) -> Result<Seat, AllTaken> {
        let mut taken = self.lock();
        let number = taken.entry(of).or_default();
        if *number >= SEATS {
            return Err(AllTaken);
        }
        *number += 1;
        Ok(Seat {
            seats: self.clone(),
            of,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CredentialId, usize>> {
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
        let detail = format!(
            "this credential has {SEATS} streams and waiting requests of operations open; close one, \
             or use another credential"
        );
        let mut response = respond(Problem {
            code: "too_many".to_owned(),
            status: 429,
            detail,
        });
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
        let mut taken: Vec<_> = (0..SEATS).map(|_| seats.take(one)).collect();
        assert!(taken.iter().all(Result::is_ok));
        assert_eq!(seats.take(one).err(), Some(AllTaken));
        assert!(seats.take(other).is_ok(), "another one has its own");
        taken.pop();
        assert!(seats.take(one).is_ok());
        drop(taken);
        assert!(seats.lock().is_empty(), "what is given back is forgotten");
    }
}
