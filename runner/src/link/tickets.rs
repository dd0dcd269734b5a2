//! Checks the ticket of every order, before anything else looks at it
//! (docs/internals/contracts.md#b6). A party that can send frames, and does not hold the identity
//! key, starts, ends and changes nothing here.
//!
//! Tickets are made under a key that both ends agree on when the link opens. The runner's half is
//! signed in its hello, the server's in its welcome, by the identity key; without that signature
//! there is no link.

use std::time::Duration;

use aws_lc_rs::hmac;
use proto::{
    agreement::{Ephemeral, LinkKey},
    sealing::KeyPlace,
    signing,
    v1::{self, server_frame::Kind},
};
use shared_types::{Entropy, RunnerId};

use crate::key::ServerIdentity;

/// How old a ticket may be when it arrives. Its age is counted from the link's challenge on both
/// sides, so no wall clock is asked.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// How far the two counts may differ, since the challenge takes its time to arrive.
const SKEW: Duration = Duration::from_secs(10);

/// What it takes to check one link's tickets.
pub(super) struct Tickets<'a> {
    identity: &'a ServerIdentity,
    runner: RunnerId,
    /// Where the key goes that the runner seals its own frames with.
    seal: KeyPlace,
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

/// What came is not of the server that the runner is enrolled with, or not for this link. It ends the
/// link, and nothing is answered: whoever speaks in the server's place must not even learn of an
/// operation, still less have its end told. What the server meant comes over the next link.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unproven {
    /// The welcome, or the word that a new journal is to begin.
    #[error(
        "the server's first word is not signed, for this link, by the server that this runner is enrolled with: check what stands between the two"
    )]
    FirstWord,
    /// Something that the runner was to do.
    #[error(
        "an order came without a good ticket of the server that this runner is enrolled with: check what stands between the two"
    )]
    Order,
}

impl<'a> Tickets<'a> {
    pub(super) fn new(identity: &'a ServerIdentity, runner: RunnerId, seal: KeyPlace) -> Self {
        Self {
            identity,
            runner,
            seal,
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

    /// Whether the runner has introduced itself, and is not welcome yet.
    pub(super) fn awaits_welcome(&self) -> bool {
        matches!(self.stage, Stage::Introduced(..))
    }

    /// The welcome came.
    ///
    /// # Errors
    /// If it proves nothing; no ticket of this link is good then.
    fn open(&mut self, welcome: &v1::Welcome) -> Result<(), Unproven> {
        let stage = std::mem::replace(&mut self.stage, Stage::Called);
        let Stage::Introduced(challenged, ephemeral) = stage else {
            return Err(Unproven::FirstWord);
        };
        let (nonce, ours) = (&challenged.nonce, ephemeral.public());
        let signed = signing::welcome(nonce, self.runner, &ours, welcome);
        if !self.identity.signed(&signed, &welcome.signature) {
            return Err(Unproven::FirstWord);
        }
        let (generation, theirs) = (welcome.generation, &welcome.ephemeral_key);
        let info = signing::link_key(generation, self.runner, &ours, theirs);
        let secret = ephemeral.agree(theirs, nonce).ok_or(Unproven::FirstWord)?;
        let key = secret.key(&info);
        let info = signing::seal_key(self.runner, &ours, theirs);
        self.seal.put(secret.seal_key(&info));
        self.stage = Stage::Open(Open {
            challenged,
            generation,
            key,
        });
        Ok(())
    }

    /// Looks at a frame that arrived at `now` (boot-time clock). What it took on its way is taken
    /// from the time in which an operation must start; a good welcome opens the link.
    ///
    /// # Errors
    /// If it needs a ticket or signature, and has no good one.
    pub(super) fn check(
        &mut self,
        frame: &mut v1::ServerFrame,
        now: Duration,
    ) -> Result<(), Unproven> {
        match &mut frame.kind {
            // Elsewhere it is out of turn.
            Some(Kind::Welcome(welcome)) if matches!(self.stage, Stage::Introduced(..)) => {
                self.open(welcome)
            }
            Some(Kind::NewJournal(new_journal)) => self.check_new_journal(new_journal),
            Some(Kind::Operation(operation)) => self.check_operation(operation, now),
            Some(kind) => self.check_order(kind, frame.ticket.as_ref(), now),
            None => Ok(()),
        }
    }

    fn check_new_journal(&self, new_journal: &v1::NewJournal) -> Result<(), Unproven> {
        // Elsewhere it is out of turn, and ends the link for that.
        if let Stage::Introduced(challenged, _) = &self.stage {
            let signed = signing::new_journal(&challenged.nonce, self.runner);
            if !self.identity.signed(&signed, &new_journal.signature) {
                return Err(Unproven::FirstWord);
            }
        }
        Ok(())
    }

    fn check_operation(
        &self,
        operation: &mut v1::Operation,
        now: Duration,
    ) -> Result<(), Unproven> {
        let linked = self.stage.open().zip(operation.ticket.as_ref());
        let (open, ticket) = linked.ok_or(Unproven::Order)?;
        let (nonce, issued_ms) = (&open.challenged.nonce, ticket.issued_ms);
        let message = signing::ticket(nonce, open.generation, self.runner, issued_ms, operation);
        let age = open.age(ticket, &message, now).ok_or(Unproven::Order)?;
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        operation.start_within_ms = operation.start_within_ms.saturating_sub(age);
        Ok(())
    }

    fn check_order(
        &self,
        kind: &Kind,
        ticket: Option<&v1::Ticket>,
        now: Duration,
    ) -> Result<(), Unproven> {
        // Before the link is open every order is out of turn.
        let Some(open) = self.stage.open() else {
            return Ok(());
        };
        let issued_ms = ticket.map_or(0, |ticket| ticket.issued_ms);
        let (nonce, generation) = (&open.challenged.nonce, open.generation);
        let Some(message) = signing::order(nonce, generation, self.runner, issued_ms, kind) else {
            return Ok(());
        };
        let age = ticket.and_then(|ticket| open.age(ticket, &message, now));
        age.map(drop).ok_or(Unproven::Order)
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

#[cfg(test)]
mod tests;
