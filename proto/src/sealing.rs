//! The seal of a link's frames (docs/internals/contracts.md#b6): all that follows challenge and proof
//! is encrypted and numbered with keys that only the two ends of this link know, one for each direction.
//! So nothing that stands between them can read a frame, make one up, change, repeat, reorder or leave
//! one out, or bring one from another link or from the other direction.
//!
//! The bytes of a whole frame are sealed as they leave, so that there is no list of what is covered. The
//! one thing that AES-GCM asks for is a number that never comes twice under a key, which frames have.
//! `link.proto` says what goes into the keys.

use std::{
    marker::PhantomData,
    sync::{Arc, OnceLock},
};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use prost::{Message, bytes::Bytes};
use shared_types::RunnerId;

use crate::{
    agreement::Ephemeral,
    signing,
    v1::{self, RunnerFrame, Sealed, ServerFrame, runner_frame, server_frame},
};

/// Bytes of a seal.
const TAG_BYTES: usize = 16;

/// The bytes of unknown fields up to which a frame's memory is shared, for fields of a newer version.
const UNKNOWN_BYTES: usize = 1024;

/// A frame of one of the two directions.
pub trait SealedFrame: Message + Default {
    /// True for the first frame, which is not sealed because its own signature proves it.
    fn opens_a_link(&self) -> bool;
    /// The frame that carries this.
    fn of(sealed: Sealed) -> Self;
    /// The sealed content, if the frame is sealed.
    fn sealed(self) -> Option<Sealed>;
}

impl SealedFrame for RunnerFrame {
    fn opens_a_link(&self) -> bool {
        matches!(self.kind, Some(runner_frame::Kind::Proof(_)))
    }

    fn of(sealed: Sealed) -> Self {
        let kind = Some(runner_frame::Kind::Sealed(sealed));
        Self { kind }
    }

    fn sealed(self) -> Option<Sealed> {
        match self.kind {
            Some(runner_frame::Kind::Sealed(sealed)) => Some(sealed),
            _ => None,
        }
    }
}

impl SealedFrame for ServerFrame {
    fn opens_a_link(&self) -> bool {
        matches!(self.kind, Some(server_frame::Kind::Challenge(_)))
    }

    fn of(sealed: Sealed) -> Self {
        server_frame::Kind::Sealed(sealed).into()
    }

    fn sealed(self) -> Option<Sealed> {
        match self.kind {
            Some(server_frame::Kind::Sealed(sealed)) => Some(sealed),
            _ => None,
        }
    }
}

/// The keys of one link.
pub struct LinkKeys {
    /// The key for the runner's frames.
    pub from_runner: SealKey<RunnerFrame>,
    /// The key for the server's frames.
    pub from_server: SealKey<ServerFrame>,
}

impl LinkKeys {
    /// The runner's, whose own half is `ours`. Nothing where the challenge has no X25519 public key, or
    /// one that makes no secret.
    pub fn of_runner(runner: RunnerId, ours: Ephemeral, challenge: &v1::Challenge) -> Option<Self> {
        let (runners, servers) = (ours.public(), &challenge.ephemeral_key);
        let [from_runner, from_server] = signing::seal_keys(runner, &runners, servers);
        let secret = ours.agree(servers, &challenge.nonce)?;
        Some(Self {
            from_runner: SealKey::new(secret.expand(&from_runner)),
            from_server: SealKey::new(secret.expand(&from_server)),
        })
    }

    /// The server's, whose own half is `ours`. Nothing where the proof has no X25519 public key, or one
    /// that makes no secret.
    pub fn of_server(
        runner: RunnerId,
        ours: Ephemeral,
        nonce: &[u8],
        proof: &v1::Proof,
    ) -> Option<Self> {
        let (runners, servers) = (&proof.ephemeral_key, ours.public());
        let [from_runner, from_server] = signing::seal_keys(runner, runners, &servers);
        let secret = ours.agree(runners, nonce)?;
        Some(Self {
            from_runner: SealKey::new(secret.expand(&from_runner)),
            from_server: SealKey::new(secret.expand(&from_server)),
        })
    }
}

/// The key of one direction of a link. It is stored as 32 bytes, because most links are idle. The expanded AES key has
/// ten times as many, and expanding it for each frame takes less than a microsecond.
pub struct SealKey<F> {
    key: [u8; 32],
    of: PhantomData<fn() -> F>,
}

impl<F: SealedFrame> SealKey<F> {
    fn new(key: [u8; 32]) -> Self {
        let of = PhantomData;
        Self { key, of }
    }

    /// Seals what a runner's proof carries: the first thing that it says.
    pub fn seal_first(&self, frame: &F) -> Sealed {
        self.seal(0, frame)
    }

    fn cipher(&self) -> LessSafeKey {
        let key = UnboundKey::new(&AES_256_GCM, &self.key);
        LessSafeKey::new(key.expect("a key of AES-256 has 32 bytes"))
    }

    fn seal(&self, number: u64, frame: &F) -> Sealed {
        let mut encoded = Vec::with_capacity(frame.encoded_len() + TAG_BYTES);
        frame.encode(&mut encoded).expect("a vector grows");
        self.seal_bytes(number, encoded)
    }

    fn seal_bytes(&self, number: u64, mut sealed: Vec<u8>) -> Sealed {
        let cipher = self.cipher();
        let done = cipher.seal_in_place_append_tag(nonce(number), Aad::empty(), &mut sealed);
        done.expect("a frame is not too long for a seal");
        let sealed = sealed.into();
        Sealed { sealed }
    }

    fn open(&self, number: u64, Sealed { sealed }: &Sealed) -> Result<F, NotSealed> {
        // A copy: new memory full of zeroes costs more, because jemalloc asks the kernel for it.
        let mut frame = sealed.to_vec();
        let (cipher, nonce) = (self.cipher(), nonce(number));
        let opened = cipher.open_in_place(nonce, Aad::empty(), &mut frame);
        let bytes = opened.map_err(|_| NotSealed)?.len();
        frame.truncate(bytes);
        // The parts of a decoded frame share the frame's memory. If a frame has more unknown bytes than a newer version
        // may add, its content is copied, so that the rest is freed.
        let frame = Bytes::from(frame);
        let opened = F::decode(frame.clone()).map_err(|_| NotSealed)?;
        match frame.len().saturating_sub(opened.encoded_len()) > UNKNOWN_BYTES {
            false => Ok(opened),
            true => F::decode(&frame[..]).map_err(|_| NotSealed),
        }
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The place for a direction's key, which both ends fill once they have agreed on it.
pub struct KeyPlace<F>(Arc<OnceLock<SealKey<F>>>);

impl<F> KeyPlace<F> {
    /// Everything behind the first frame is sealed with it from now on; the first key stays.
    pub fn put(&self, key: SealKey<F>) {
        // There is one agreement on a link.
        let _ = self.0.set(key);
    }
}

impl<F> Clone for KeyPlace<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> Default for KeyPlace<F> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// Seals what one end says on one link; it has to see every frame, in their order.
pub struct Sealer<F> {
    key: KeyPlace<F>,
    /// Frames that left.
    number: u64,
}

impl<F: SealedFrame> Sealer<F> {
    /// Of a link whose key will be here.
    pub fn new(key: KeyPlace<F>) -> Self {
        Self { key, number: 0 }
    }

    /// The frame as it is to leave. The first one has to be what opens a link, and the others need a
    /// key: nothing else leaves.
    pub fn seal(&mut self, frame: F) -> Option<F> {
        let leaves = match self.number {
            0 => frame.opens_a_link().then_some(frame)?,
            number => F::of(self.key.0.get()?.seal(number, &frame)),
        };
        self.number += 1;
        Some(leaves)
    }
}

/// Opens what the other end says on one link.
pub struct Opener<F> {
    key: SealKey<F>,
    number: u64,
}

impl<F: SealedFrame> Opener<F> {
    /// Of a link with this key, whose first frame came.
    pub fn new(key: SealKey<F>) -> Self {
        Self { key, number: 1 }
    }

    /// Opens the hello in a runner's proof.
    ///
    /// # Errors
    /// Fails if the runner did not seal it, or not on this link.
    pub fn first(&self, sealed: &Sealed) -> Result<F, NotSealed> {
        self.key.open(0, sealed)
    }

    /// Opens the next frame of the other end.
    ///
    /// # Errors
    /// Fails if the other end did not seal it, or not as its next frame here. The link can then no longer be trusted.
    pub fn open(&mut self, frame: F) -> Result<F, NotSealed> {
        let sealed = frame.sealed().ok_or(NotSealed)?;
        let frame = self.key.open(self.number, &sealed)?;
        self.number += 1;
        Ok(frame)
    }
}

/// The error for a frame that is not the other end's next one on this link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "what came is not the next frame that the other end sealed on this link: check what stands between the two"
)]
pub struct NotSealed;

#[cfg(test)]
mod tests;
