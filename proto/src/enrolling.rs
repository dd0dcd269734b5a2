//! The sealing of an enrolment (docs/internals/contracts.md#b2). A proxy that ends TLS reads neither the join token nor
//! the runner's key, name or labels. It can change, replace or repeat nothing.
//! The server gives an X25519 key with each challenge, signed by the identity key that the join token pins. The runner
//! makes one for this request. From the two, both ends derive two keys of AES-256-GCM, which each seal one message: the
//! request and its reply. `enrolment.proto` defines their inputs. The join token in the request proves that the runner
//! sent it.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use prost::Message;
use shared_types::Entropy;

use crate::{agreement::Ephemeral, signing, v1};

/// The version of the calls of enrolment that this build speaks. Version 1 sealed nothing.
pub const VERSION: u32 = 2;

/// The sealing key of a runner's request.
pub struct Envelope {
    challenge: Vec<u8>,
    ephemeral_key: Vec<u8>,
    keys: EnrolmentKeys,
}

impl Envelope {
    /// For a request with this challenge, to the holder of the key that came with it. Nothing where
    /// that is no public key, or one that makes no secret.
    pub fn to(challenge: &[u8], sealing_key: &[u8], entropy: &dyn Entropy) -> Option<Self> {
        let ephemeral = Ephemeral::generate(entropy);
        let ephemeral_key = ephemeral.public();
        let (ours, theirs) = (&ephemeral_key, sealing_key);
        let keys = EnrolmentKeys::agreed(ephemeral, theirs, challenge, [ours, theirs])?;
        Some(Self {
            challenge: challenge.to_vec(),
            ephemeral_key,
            keys,
        })
    }

    /// The ephemeral key, which the runner signs in the content.
    pub fn ephemeral_key(&self) -> &[u8] {
        &self.ephemeral_key
    }

    /// The request, and what its reply is opened with.
    pub fn seal(self, content: &v1::EnrolContent) -> (v1::EnrolRequest, ReplyKey) {
        let request = v1::EnrolRequest {
            sealed: seal(&self.keys.request, content),
            challenge: self.challenge,
            ephemeral_key: self.ephemeral_key,
        };
        (request, ReplyKey(self.keys.reply))
    }
}

/// Opens a request, and makes the key of its reply. `ours` is the private half of the key that came with the request's
/// challenge.
///
/// # Errors
/// Fails if the request was not sealed to that key, or was changed.
pub fn open(
    ours: Ephemeral,
    request: &v1::EnrolRequest,
) -> Result<(v1::EnrolContent, ReplyKey), NotOpened> {
    let (theirs, servers) = (&request.ephemeral_key, ours.public());
    let keys = EnrolmentKeys::agreed(ours, theirs, &request.challenge, [theirs, &servers]);
    let keys = keys.ok_or(NotOpened)?;
    let content = unseal(&keys.request, &request.sealed)?;
    Ok((content, ReplyKey(keys.reply)))
}

/// Seals the reply to one request, or opens it.
pub struct ReplyKey([u8; 32]);

impl ReplyKey {
    /// The reply to the request; there is one.
    pub fn seal(self, answer: v1::enrol_answer::Answer) -> v1::EnrolReply {
        let answer = v1::EnrolAnswer {
            answer: Some(answer),
        };
        v1::EnrolReply {
            sealed: seal(&self.0, &answer),
        }
    }

    /// Opens the reply.
    ///
    /// # Errors
    /// Fails if the opener of the request did not send it, or if it was changed.
    pub fn open(&self, reply: &v1::EnrolReply) -> Result<v1::enrol_answer::Answer, NotOpened> {
        let answer: v1::EnrolAnswer = unseal(&self.0, &reply.sealed)?;
        answer.answer.ok_or(NotOpened)
    }
}

/// The message was sealed for another end or another request, or it was changed on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message is not what the other end of this enrolment sealed")]
pub struct NotOpened;

/// The keys of one enrolment.
struct EnrolmentKeys {
    request: [u8; 32],
    reply: [u8; 32],
}

impl EnrolmentKeys {
    fn agreed(
        ours: Ephemeral,
        theirs: &[u8],
        challenge: &[u8],
        [runners, servers]: [&[u8]; 2],
    ) -> Option<Self> {
        let secret = ours.agree(theirs, challenge)?;
        let [request, reply] =
            signing::enrol_keys(runners, servers).map(|info| secret.expand(&info));
        Some(Self { request, reply })
    }
}

fn cipher(key: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key);
    LessSafeKey::new(key.expect("a key of AES-256 has 32 bytes"))
}

/// The key seals nothing else, so that its only nonce may be zero.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn seal(key: &[u8; 32], message: &impl Message) -> Vec<u8> {
    let mut sealed = message.encode_to_vec();
    let done = cipher(key).seal_in_place_append_tag(nonce(), Aad::empty(), &mut sealed);
    done.expect("a message is not too long for a seal");
    sealed
}

fn unseal<T: Message + Default>(key: &[u8; 32], sealed: &[u8]) -> Result<T, NotOpened> {
    let mut opened = sealed.to_vec();
    let message = cipher(key).open_in_place(nonce(), Aad::empty(), &mut opened);
    T::decode(&*message.map_err(|_| NotOpened)?).map_err(|_| NotOpened)
}

#[cfg(test)]
mod tests;
