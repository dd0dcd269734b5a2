//! Signs every operation that leaves over a link (contract B6).
//!
//! It stands at the very edge, behind the router: a frame that the router, a hint or another
//! replica brought is worth nothing to a runner without a signature made here.

use std::sync::Arc;

use proto::v1::{self, server_frame};
use shared_types::{Clock, RunnerId};
use tokio::sync::mpsc;

use crate::enrolment::{Enrolment, LinkChallenge};

/// Signs the operations of one link.
pub(crate) struct Tickets {
    pub(crate) enrolment: Enrolment,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) runner: RunnerId,
    pub(crate) challenge: LinkChallenge,
}

impl Tickets {
    /// Passes frames on, operations with their ticket, until either end is gone.
    pub(crate) async fn pump(
        &self,
        mut from_router: mpsc::Receiver<v1::ServerFrame>,
        to_runner: mpsc::Sender<v1::ServerFrame>,
    ) {
        let mut generation = 0;
        while let Some(mut frame) = from_router.recv().await {
            match &mut frame.kind {
                Some(server_frame::Kind::Welcome(welcome)) => generation = welcome.generation,
                Some(server_frame::Kind::Operation(operation)) => {
                    operation.ticket = Some(self.ticket(generation, operation));
                }
                _ => {}
            }
            if to_runner.send(frame).await.is_err() {
                return;
            }
        }
    }

    fn ticket(&self, generation: u64, operation: &v1::Operation) -> v1::Ticket {
        let issued = self.clock.monotonic().saturating_sub(self.challenge.issued);
        let issued_ms = u64::try_from(issued.as_millis()).unwrap_or(u64::MAX);
        let signed = proto::signing::ticket(
            &self.challenge.nonce,
            generation,
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
