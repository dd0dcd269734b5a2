//! Makes the tickets of all that leaves over a link and changes something there
//! (docs/internals/contracts.md#b6).
//!
//! The door does it as the last thing, behind the router: a frame that the router, a hint or another
//! replica brought is worth nothing to a runner without a ticket made here. Tickets are made under
//! a key that this end and the runner agree on when the link opens, and the identity key signs this
//! half of the agreement: a signature for each operation would cost thirty times as much.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::hmac;
use proto::{
    agreement::{Ephemeral, LinkKey, Secret},
    sealing::Opener,
    signing,
    v1::{self, server_frame},
};
use server_router::links::Gate;
use shared_types::{Clock, Entropy, RunnerId};
use tokio::sync::oneshot;

use crate::keys::SigningKey;

/// What a link is bound to, until its runner has answered.
pub struct LinkChallenge {
    nonce: [u8; 32],
    /// When it was made, on the server's boot-time clock.
    issued: Duration,
    clock: Arc<dyn Clock>,
    gate: Gate,
    agreed: oneshot::Sender<Agreed>,
}

impl LinkChallenge {
    /// A new one, and the tickets of its link. To be sent at once: their age is counted from here.
    pub fn issue(clock: Arc<dyn Clock>, entropy: &dyn Entropy) -> (Self, Tickets) {
        let mut nonce = [0; 32];
        entropy.fill(&mut nonce);
        let (agreed, agreement) = oneshot::channel();
        let challenge = Self {
            nonce,
            issued: clock.boot_time(),
            clock,
            gate: Gate::open(),
            agreed,
        };
        (challenge, Tickets(Stage::Challenged(agreement)))
    }

    /// What its runner signs.
    pub fn nonce(&self) -> &[u8; 32] {
        &self.nonce
    }

    /// The tickets of its link have to pass this gate.
    #[must_use]
    pub fn behind(self, gate: Gate) -> Self {
        Self { gate, ..self }
    }

    /// Agrees with the runner that has proved itself on the secret behind its tickets, and behind what
    /// it says: that is opened with what is returned.
    ///
    /// # Errors
    /// If `runners_key` is not an X25519 public key, or one that makes no secret; there will be no
    /// tickets then.
    pub fn agree(
        self,
        runner: RunnerId,
        runners_key: &[u8],
        identity: Arc<SigningKey>,
        entropy: &dyn Entropy,
    ) -> Result<Opener, NotAKey> {
        let ephemeral = Ephemeral::generate(entropy);
        let servers_key = ephemeral.public();
        let secret = ephemeral.agree(runners_key, &self.nonce).ok_or(NotAKey)?;
        let info = signing::seal_key(runner, runners_key, &servers_key);
        let opener = Opener::new(secret.seal_key(&info));
        let agreed = Agreed {
            link: Link {
                runner,
                nonce: self.nonce,
                issued: self.issued,
                clock: self.clock,
                gate: self.gate,
            },
            identity,
            runners_key: runners_key.to_vec(),
            servers_key,
            secret,
        };
        // Nobody takes it where the link is gone.
        let _ = self.agreed.send(agreed);
        Ok(opener)
    }
}

/// A runner's ephemeral key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hello's ephemeral key is no X25519 public key: upgrade gantry-runner")]
pub struct NotAKey;

/// Makes the tickets of one link.
pub struct Tickets(Stage);

/// How far the link has come. Without a welcome that followed an agreement there are no tickets.
enum Stage {
    Challenged(oneshot::Receiver<Agreed>),
    Welcomed(Box<Maker>),
    /// Somebody was welcomed who had agreed on nothing, or a second time.
    Nobody,
}

impl Tickets {
    /// Signs a welcome, and gives an operation or another order its ticket. It has to see every
    /// frame, in their order. Of what is to be sent to a runner that is about to be removed it leaves
    /// the last word, and signs of life in place of everything else.
    pub fn sign(&mut self, frame: &mut v1::ServerFrame) {
        let gate = match &self.0 {
            Stage::Welcomed(maker) => Some(maker.link.gate.clone()),
            Stage::Challenged(_) | Stage::Nobody => None,
        };
        let passed = match gate {
            Some(gate) => gate.while_open(|| self.complete(frame)).is_some(),
            None => {
                self.complete(frame);
                true
            }
        };
        if !passed && !matches!(frame.kind, Some(server_frame::Kind::Goodbye(_))) {
            *frame = server_frame::Kind::Heartbeat(v1::Heartbeat {}).into();
        }
    }

    fn complete(&mut self, frame: &mut v1::ServerFrame) {
        frame.ticket = match (&self.0, &frame.kind) {
            (Stage::Welcomed(maker), Some(kind)) => maker.order(kind),
            _ => None,
        };
        match &mut frame.kind {
            Some(server_frame::Kind::Welcome(welcome)) => {
                let agreed = match &mut self.0 {
                    Stage::Challenged(agreement) => agreement.try_recv().ok(),
                    Stage::Welcomed(_) | Stage::Nobody => None,
                };
                self.0 = match agreed {
                    Some(agreed) => Stage::Welcomed(Box::new(agreed.open(welcome))),
                    None => Stage::Nobody,
                };
            }
            Some(server_frame::Kind::NewJournal(new_journal)) => {
                if let Stage::Challenged(agreement) = &mut self.0
                    && let Ok(agreed) = agreement.try_recv()
                {
                    new_journal.signature = agreed.refuse();
                }
                self.0 = Stage::Nobody;
            }
            Some(server_frame::Kind::Operation(operation)) => {
                operation.ticket = match &self.0 {
                    Stage::Welcomed(maker) => Some(maker.ticket(operation)),
                    Stage::Challenged(_) | Stage::Nobody => None,
                };
            }
            _ => {}
        }
    }
}

/// What both ends have agreed on.
struct Agreed {
    link: Link,
    identity: Arc<SigningKey>,
    runners_key: Vec<u8>,
    servers_key: Vec<u8>,
    secret: Secret,
}

/// What every ticket of a link is made of.
struct Link {
    runner: RunnerId,
    nonce: [u8; 32],
    issued: Duration,
    clock: Arc<dyn Clock>,
    gate: Gate,
}

impl Agreed {
    /// Signs the welcome, and makes the link's key.
    fn open(self, welcome: &mut v1::Welcome) -> Maker {
        let (runner, nonce) = (self.link.runner, &self.link.nonce);
        let generation = welcome.generation;
        let (theirs, ours) = (&self.runners_key, &self.servers_key);
        let info = signing::link_key(generation, runner, theirs, ours);
        welcome.ephemeral_key = self.servers_key;
        let signed = signing::welcome(nonce, runner, theirs, welcome);
        welcome.signature = self.identity.sign(&signed);
        Maker {
            link: self.link,
            generation,
            key: self.secret.key(&info),
        }
    }
}

impl Agreed {
    /// The signature under the word that its runner is to begin a new journal.
    fn refuse(self) -> Vec<u8> {
        let Link { runner, nonce, .. } = &self.link;
        self.identity.sign(&signing::new_journal(nonce, *runner))
    }
}

/// Makes the tickets of a link that is open.
struct Maker {
    link: Link,
    generation: u64,
    key: LinkKey,
}

impl Maker {
    fn ticket(&self, operation: &v1::Operation) -> v1::Ticket {
        let Link { runner, nonce, .. } = &self.link;
        let issued_ms = self.issued_ms();
        let message = signing::ticket(nonce, self.generation, *runner, issued_ms, operation);
        self.seal(issued_ms, &message)
    }

    fn order(&self, kind: &server_frame::Kind) -> Option<v1::Ticket> {
        let Link { runner, nonce, .. } = &self.link;
        let issued_ms = self.issued_ms();
        let message = signing::order(nonce, self.generation, *runner, issued_ms, kind)?;
        Some(self.seal(issued_ms, &message))
    }

    fn issued_ms(&self) -> u64 {
        let issued = self.link.clock.boot_time().saturating_sub(self.link.issued);
        u64::try_from(issued.as_millis()).unwrap_or(u64::MAX)
    }

    fn seal(&self, issued_ms: u64, message: &[u8]) -> v1::Ticket {
        let mac = hmac::sign(&self.key.hmac(), message);
        v1::Ticket {
            issued_ms,
            mac: mac.as_ref().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests;
