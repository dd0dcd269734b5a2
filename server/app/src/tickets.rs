//! Signs every operation that leaves over a link (contract B6).
//!
//! The door does it as the last thing, behind the router: a frame that the router, a hint or another
//! replica brought is worth nothing to a runner without a signature made here.

use std::sync::Arc;

use proto::v1::{self, server_frame};
use shared_types::{Clock, RunnerId};

use crate::enrolment::{Enrolment, LinkChallenge};

/// Signs the operations of one link.
pub struct Tickets {
    pub(crate) enrolment: Enrolment,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) runner: RunnerId,
    pub(crate) challenge: LinkChallenge,
    /// What the welcome said, which comes before any operation.
    pub(crate) generation: u64,
}

impl Tickets {
    /// Gives an operation its ticket. It has to see every frame, in their order.
    pub fn sign(&mut self, frame: &mut v1::ServerFrame) {
        match &mut frame.kind {
            Some(server_frame::Kind::Welcome(welcome)) => self.generation = welcome.generation,
            Some(server_frame::Kind::Operation(operation)) => {
                operation.ticket = Some(self.ticket(operation));
            }
            _ => {}
        }
    }

    fn ticket(&self, operation: &v1::Operation) -> v1::Ticket {
        let issued = self.clock.monotonic().saturating_sub(self.challenge.issued);
        let issued_ms = u64::try_from(issued.as_millis()).unwrap_or(u64::MAX);
        let signed = proto::signing::ticket(
            &self.challenge.nonce,
            self.generation,
            self.runner,
            issued_ms,
            operation,
        );
        v1::Ticket {
            issued_ms,
            signature: self.enrolment.sign(&signed),
        }
    }
}
