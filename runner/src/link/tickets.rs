//! Checks the server's signature over every operation, before anything else looks at it (contract
//! B6): whoever can send frames but does not hold the identity key starts nothing here.

use std::time::Duration;

use proto::{
    signing,
    v1::{self, runner_frame, server_frame},
};
use shared_types::{Refusal, RefusalCode, RunnerId};

use crate::key::ServerIdentity;

/// How old a ticket may be when it arrives. Its age is counted from the link's challenge on both
/// sides, so no wall clock is asked.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// How far the two counts may differ, since the challenge takes its time to arrive.
const SKEW: Duration = Duration::from_secs(10);

/// What one link's tickets are signed over.
pub(super) struct Tickets<'a> {
    identity: &'a ServerIdentity,
    runner: RunnerId,
    nonce: Vec<u8>,
    challenged: Duration,
    generation: u64,
}

impl<'a> Tickets<'a> {
    pub(super) fn new(identity: &'a ServerIdentity, runner: RunnerId) -> Self {
        Self {
            identity,
            runner,
            nonce: Vec::new(),
            challenged: Duration::ZERO,
            generation: 0,
        }
    }

    /// Looks at a frame that arrived at `now` (of the link): the refusal to send instead of acting
    /// on it, if it is an operation without a good ticket.
    pub(super) fn check(
        &mut self,
        frame: &v1::ServerFrame,
        now: Duration,
    ) -> Option<v1::RunnerFrame> {
        match &frame.kind {
            Some(server_frame::Kind::Challenge(challenge)) => {
                self.nonce.clone_from(&challenge.nonce);
                self.challenged = now;
                None
            }
            Some(server_frame::Kind::Welcome(welcome)) => {
                self.generation = welcome.generation;
                None
            }
            Some(server_frame::Kind::Operation(operation)) if !self.holds(operation, now) => {
                tracing::error!(
                    operation.id = operation.operation,
                    "an operation came without a good ticket and was refused"
                );
                Some(refusal(operation))
            }
            _ => None,
        }
    }

    fn holds(&self, operation: &v1::Operation, now: Duration) -> bool {
        let Some(ticket) = &operation.ticket else {
            return false;
        };
        let issued = Duration::from_millis(ticket.issued_ms);
        let elapsed = now.saturating_sub(self.challenged);
        let signed = signing::ticket(
            &self.nonce,
            self.generation,
            self.runner,
            ticket.issued_ms,
            operation,
        );
        issued <= elapsed + SKEW
            && elapsed <= issued + GOOD_FOR
            && self.identity.signed(&signed, &ticket.signature)
    }
}

fn refusal(operation: &v1::Operation) -> v1::RunnerFrame {
    let refused = Refusal::new(
        RefusalCode::Unauthenticated,
        "the operation carries no good ticket of the server",
    );
    v1::RunnerFrame {
        kind: Some(runner_frame::Kind::Ended(v1::Ended {
            operation: operation.operation.chars().take(64).collect(),
            outcome: Some(v1::ended::Outcome::Refused(refused.into())),
        })),
    }
}

#[cfg(test)]
mod tests {
    use shared_types::entropy::SeededEntropy;

    use super::*;
    use crate::key::RunnerKey;

    const RUNNER: RunnerId = RunnerId::from_u128(1);

    fn setting() -> (RunnerKey, ServerIdentity) {
        let key = RunnerKey::generate(&SeededEntropy::new(1));
        let identity = ServerIdentity(key.public().try_into().expect("32 bytes"));
        (key, identity)
    }

    fn linked(identity: &ServerIdentity) -> Tickets<'_> {
        let mut tickets = Tickets::new(identity, RUNNER);
        let challenge = server_frame::Kind::Challenge(v1::Challenge { nonce: vec![9; 32] });
        let welcome = server_frame::Kind::Welcome(v1::Welcome {
            generation: 3,
            ..v1::Welcome::default()
        });
        for kind in [challenge, welcome] {
            let frame = v1::ServerFrame { kind: Some(kind) };
            assert_eq!(tickets.check(&frame, Duration::from_secs(1)), None);
        }
        tickets
    }

    fn ordered(key: &RunnerKey, issued_ms: u64) -> v1::Operation {
        let mut operation = v1::Operation {
            operation: "op_1".to_owned(),
            digest: vec![1; 32],
            epoch: 4,
            ..v1::Operation::default()
        };
        let signed = signing::ticket(&[9; 32], 3, RUNNER, issued_ms, &operation);
        operation.ticket = Some(v1::Ticket {
            issued_ms,
            signature: key.sign(&signed),
        });
        operation
    }

    fn passes(tickets: &mut Tickets<'_>, operation: v1::Operation, at_s: u64) -> bool {
        let kind = Some(server_frame::Kind::Operation(Box::new(operation)));
        let frame = v1::ServerFrame { kind };
        tickets.check(&frame, Duration::from_secs(at_s)).is_none()
    }

    #[test]
    fn an_operation_that_the_server_signed_for_this_link_passes_while_it_is_young() {
        let (key, identity) = setting();
        let mut tickets = linked(&identity);
        assert!(passes(&mut tickets, ordered(&key, 5_000), 6));
        assert!(passes(&mut tickets, ordered(&key, 5_000), 65));
        assert!(!passes(&mut tickets, ordered(&key, 5_000), 67), "too old");
        assert!(
            !passes(&mut tickets, ordered(&key, 500_000), 6),
            "from the future"
        );
    }

    #[test]
    fn an_operation_without_a_ticket_or_with_another_links_or_changed_is_refused() {
        let (key, identity) = setting();
        let mut tickets = linked(&identity);
        let none = v1::Operation {
            ticket: None,
            ..ordered(&key, 0)
        };
        assert!(!passes(&mut tickets, none, 1));
        let other = v1::Operation {
            digest: vec![2; 32],
            ..ordered(&key, 0)
        };
        assert!(!passes(&mut tickets, other, 1));
        let longer = v1::Operation {
            run_for_ms: 1 << 40,
            ..ordered(&key, 0)
        };
        assert!(!passes(&mut tickets, longer, 1));
        let stranger = RunnerKey::generate(&SeededEntropy::new(2));
        assert!(!passes(&mut tickets, ordered(&stranger, 0), 1));
        tickets.generation = 4;
        assert!(
            !passes(&mut tickets, ordered(&key, 0), 1),
            "of an older link"
        );
    }
}
