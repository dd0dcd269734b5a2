//! Checks the ticket of every order, before anything else looks at it (contract B6): whoever can
//! send frames but does not hold the identity key starts, ends and changes nothing here.
//!
//! Tickets are made under a key that both ends agree on when the link opens. The runner's half is
//! signed in its hello, the server's in its welcome, by the identity key; without that signature
//! there is no link.

use std::time::Duration;

use aws_lc_rs::hmac;
use proto::{
    signing,
    v1::{self, runner_frame, server_frame::Kind},
};
use shared_types::{Entropy, Refusal, RefusalCode, RunnerId};

use super::agreement::{Ephemeral, LinkKey};
use crate::key::ServerIdentity;

/// How old a ticket may be when it arrives. Its age is counted from the link's challenge on both
/// sides, so no wall clock is asked.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// How far the two counts may differ, since the challenge takes its time to arrive.
const SKEW: Duration = Duration::from_secs(10);

/// What is to be done with a frame.
#[derive(Debug, PartialEq)]
pub(super) enum Checked {
    /// What it says.
    Passes,
    /// Nothing, and this is to be answered.
    Refused(v1::RunnerFrame),
    /// Nothing.
    Ignored,
}

/// What it takes to check one link's tickets.
pub(super) struct Tickets<'a> {
    identity: &'a ServerIdentity,
    runner: RunnerId,
    stage: Stage,
}

/// How far the link has come. Before it is open, no ticket is good.
enum Stage {
    Called,
    Introduced(Challenged, Ephemeral),
    Open(Open),
}

struct Challenged {
    nonce: Vec<u8>,
    at: Duration,
}

struct Open {
    challenged: Challenged,
    generation: u64,
    key: LinkKey,
}

/// What the server said first is not of the server that the runner is enrolled with, or not for
/// this link.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server's first word is not signed, for this link, by the server that this runner is enrolled with: check what stands between the two"
)]
pub(crate) struct Unproven;

impl<'a> Tickets<'a> {
    pub(super) fn new(identity: &'a ServerIdentity, runner: RunnerId) -> Self {
        Self {
            identity,
            runner,
            stage: Stage::Called,
        }
    }

    /// The challenge came at `now` (boot-time clock): returns the ephemeral key for the hello.
    pub(super) fn introduce(
        &mut self,
        nonce: &[u8],
        now: Duration,
        entropy: &dyn Entropy,
    ) -> Vec<u8> {
        let ephemeral = Ephemeral::generate(entropy);
        let ours = ephemeral.public();
        let challenged = Challenged {
            nonce: nonce.to_vec(),
            at: now,
        };
        self.stage = Stage::Introduced(challenged, ephemeral);
        ours
    }

    /// The welcome came, with this ephemeral key and this signature of the server's.
    ///
    /// # Errors
    /// If it proves nothing; no ticket of this link is good then.
    pub(super) fn open(
        &mut self,
        generation: u64,
        theirs: &[u8],
        signature: &[u8],
    ) -> Result<(), Unproven> {
        let stage = std::mem::replace(&mut self.stage, Stage::Called);
        let Stage::Introduced(challenged, ephemeral) = stage else {
            return Err(Unproven);
        };
        let (nonce, ours) = (&challenged.nonce, ephemeral.public());
        let signed = signing::welcome(nonce, generation, self.runner, &ours, theirs);
        if !self.identity.signed(&signed, signature) {
            return Err(Unproven);
        }
        let info = signing::link_key(generation, self.runner, &ours, theirs);
        let key = ephemeral.agree(theirs, nonce, &info).ok_or(Unproven)?;
        self.stage = Stage::Open(Open {
            challenged,
            generation,
            key,
        });
        Ok(())
    }

    /// Looks at a frame that arrived at `now` (boot-time clock). What it took on its way is taken
    /// from the time in which an operation must start.
    ///
    /// # Errors
    /// If it bids the runner begin a new journal, and the server has not signed that.
    pub(super) fn check(
        &self,
        frame: &mut v1::ServerFrame,
        now: Duration,
    ) -> Result<Checked, Unproven> {
        match &mut frame.kind {
            Some(Kind::NewJournal(new_journal)) => self.check_new_journal(new_journal),
            Some(Kind::Operation(operation)) => Ok(self.check_operation(operation, now)),
            Some(kind) => Ok(self.check_order(kind, frame.ticket.as_ref(), now)),
            None => Ok(Checked::Passes),
        }
    }

    fn check_new_journal(&self, new_journal: &v1::NewJournal) -> Result<Checked, Unproven> {
        // Elsewhere it is out of turn, and ends the link for that.
        if let Stage::Introduced(challenged, _) = &self.stage {
            let signed = signing::new_journal(&challenged.nonce, self.runner);
            if !self.identity.signed(&signed, &new_journal.signature) {
                return Err(Unproven);
            }
        }
        Ok(Checked::Passes)
    }

    fn check_operation(&self, operation: &mut v1::Operation, now: Duration) -> Checked {
        let good = self.stage.open().zip(operation.ticket.as_ref());
        let age = good.and_then(|(open, ticket)| {
            let (nonce, issued_ms) = (&open.challenged.nonce, ticket.issued_ms);
            let message =
                signing::ticket(nonce, open.generation, self.runner, issued_ms, operation);
            open.age(ticket, &message, now)
        });
        if let Some(age) = age {
            let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            operation.start_within_ms = operation.start_within_ms.saturating_sub(age);
            return Checked::Passes;
        }
        tracing::error!(
            operation.id = operation.operation,
            "an operation came without a good ticket and was refused"
        );
        Checked::Refused(refusal(operation))
    }

    fn check_order(&self, kind: &Kind, ticket: Option<&v1::Ticket>, now: Duration) -> Checked {
        // Before the link is open every order is out of turn.
        let Some(open) = self.stage.open() else {
            return Checked::Passes;
        };
        let issued_ms = ticket.map_or(0, |ticket| ticket.issued_ms);
        let (nonce, generation) = (&open.challenged.nonce, open.generation);
        let Some(message) = signing::order(nonce, generation, self.runner, issued_ms, kind) else {
            return Checked::Passes;
        };
        let age = ticket.and_then(|ticket| open.age(ticket, &message, now));
        if age.is_some() {
            return Checked::Passes;
        }
        tracing::error!("an order came without a good ticket and was ignored");
        Checked::Ignored
    }
}

impl Stage {
    fn open(&self) -> Option<&Open> {
        match self {
            Self::Open(open) => Some(open),
            Self::Called | Self::Introduced(..) => None,
        }
    }
}

impl Open {
    /// How old this ticket is, if it is young, and made for this message.
    fn age(&self, ticket: &v1::Ticket, message: &[u8], now: Duration) -> Option<Duration> {
        let issued = Duration::from_millis(ticket.issued_ms);
        let elapsed = now.saturating_sub(self.challenged.at);
        let good = issued <= elapsed + SKEW
            && elapsed <= issued + GOOD_FOR
            && hmac::verify(&self.key.hmac(), message, &ticket.mac).is_ok();
        good.then(|| elapsed.saturating_sub(issued))
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
mod tests;
