//! The server's half of the agreement on a link's keys (docs/internals/contracts.md#b6). Its challenge
//! carries it under the identity key's signature; the runner's proof answers it.

use proto::{
    agreement::Ephemeral,
    sealing::{KeyPlace, LinkKeys, Opener},
    signing, v1,
};
use shared_types::{Entropy, RunnerId};

use crate::keys::SigningKey;

/// A link's challenge, until its runner has answered.
pub struct LinkChallenge {
    said: v1::Challenge,
    ours: Ephemeral,
    key: KeyPlace<v1::ServerFrame>,
}

impl LinkChallenge {
    /// A new one, for the bearer of this access token.
    pub fn issue(access_token: &str, identity: &SigningKey, entropy: &dyn Entropy) -> Self {
        let mut nonce = vec![0; 32];
        entropy.fill(&mut nonce);
        let ours = Ephemeral::generate(entropy);
        let mut said = v1::Challenge {
            nonce,
            ephemeral_key: ours.public(),
            signature: Vec::new(),
        };
        said.signature = identity.sign(&signing::challenge(access_token, &said));
        let key = KeyPlace::default();
        Self { said, ours, key }
    }

    /// The server's first frame, to be sent at once.
    pub fn said(&self) -> &v1::Challenge {
        &self.said
    }

    /// The place of the key under which the server seals everything behind that frame.
    pub fn key(&self) -> KeyPlace<v1::ServerFrame> {
        self.key.clone()
    }

    /// Agrees with the runner that has proved itself: the server seals from now on, and what the runner
    /// says is opened with what is returned.
    ///
    /// # Errors
    /// If the proof has no X25519 public key, or one that makes no secret.
    pub fn agree(
        self,
        runner: RunnerId,
        proof: &v1::Proof,
    ) -> Result<Opener<v1::RunnerFrame>, NotAKey> {
        let keys = LinkKeys::of_server(runner, self.ours, &self.said.nonce, proof);
        let keys = keys.ok_or(NotAKey)?;
        self.key.put(keys.from_server);
        Ok(Opener::new(keys.from_runner))
    }
}

/// A runner's ephemeral key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proof's ephemeral key is no X25519 public key: upgrade gantry-runner")]
pub struct NotAKey;
