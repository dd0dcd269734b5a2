//! The agreement on a link's key (docs/internals/contracts.md#b6): X25519 between two keys that
//! serve one link only, then HKDF-SHA256. What goes into the key is in [`crate::signing`] and
//! `link.proto`.

use aws_lc_rs::{
    agreement::{self, PrivateKey, UnparsedPublicKey, X25519},
    hkdf, hmac,
};
use shared_types::Entropy;

use crate::sealing::SealKey;

/// A key pair of one end of one link.
pub struct Ephemeral(PrivateKey);

impl Ephemeral {
    /// A new one.
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut secret = [0; 32];
        entropy.fill(&mut secret);
        Self::of(secret)
    }

    /// The one whose private half is this.
    pub fn of(secret: [u8; 32]) -> Self {
        let key = PrivateKey::from_private_key(&X25519, &secret);
        Self(key.expect("any 32 bytes are an X25519 private key"))
    }

    /// The public half, 32 bytes.
    pub fn public(&self) -> Vec<u8> {
        let public = self.0.compute_public_key();
        let public = public.expect("a private key has a public half");
        public.as_ref().to_vec()
    }

    /// The secret that is shared with the holder of `theirs`. Nothing if that is not a public key,
    /// or one with which every secret is zero.
    pub fn agree(self, theirs: &[u8], nonce: &[u8]) -> Option<Secret> {
        let theirs = UnparsedPublicKey::new(&X25519, theirs);
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, nonce);
        agreement::agree(&self.0, theirs, (), |secret| Ok(salt.extract(secret)))
            .ok()
            .map(Secret)
    }
}

/// What both ends of a link know, and nobody else.
pub struct Secret(hkdf::Prk);

impl Secret {
    /// The key of the link that `info` (of [`crate::signing::link_key`]) tells of.
    pub fn key(&self, info: &[u8]) -> LinkKey {
        LinkKey(self.expand(info))
    }

    /// The key of its runner's frames; `info` is of [`crate::signing::seal_key`].
    pub fn seal_key(&self, info: &[u8]) -> SealKey {
        SealKey(self.expand(info))
    }

    pub(crate) fn expand(&self, info: &[u8]) -> [u8; 32] {
        let (mut key, info) = ([0; 32], [info]);
        let material = self.0.expand(&info, hmac::HMAC_SHA256);
        let filled = material.and_then(|material| material.fill(&mut key));
        filled.expect("HKDF gives more than 32 bytes");
        key
    }
}

/// The key of a link: 32 bytes, and not the state that HMAC makes of them. That has more than a
/// kibibyte, and most links are idle; making it anew for a ticket costs less than a microsecond.
pub struct LinkKey([u8; 32]);

impl LinkKey {
    /// Ready for one message.
    pub fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{Digest, RunnerId, entropy::SeededEntropy};

    use super::*;

    /// Computed by another implementation (Python's `cryptography`).
    const MAC: &str = "a6a05c883aacdbf805fe397749ce139678d9604b28b9425f422b26d64b53b426";

    #[test]
    fn both_ends_agree_on_the_same_key() {
        let runner = Ephemeral::generate(&SeededEntropy::new(1));
        let server = Ephemeral::generate(&SeededEntropy::new(2));
        let (runners, servers) = (runner.public(), server.public());
        let info = crate::signing::link_key(3, RunnerId::from_u128(1), &runners, &servers);
        for (ours, theirs) in [(runner, servers), (server, runners)] {
            let secret = ours.agree(&theirs, &[9; 32]).expect("a secret");
            let mac = hmac::sign(&secret.key(&info).hmac(), b"message");
            let hexadecimal = mac.as_ref().iter().map(|byte| format!("{byte:02x}"));
            assert_eq!(hexadecimal.collect::<String>(), MAC);
        }
    }

    #[test]
    fn there_is_no_agreement_with_what_makes_no_secret() {
        let agrees = |theirs: &[u8]| {
            let ours = Ephemeral::generate(&SeededEntropy::new(1));
            ours.agree(theirs, &[9; 32]).is_some()
        };
        // The points of small order and those that are read as one of them (RFC 7748, section 6.1; the
        // list is of <https://cr.yp.to/ecdh.html>), and what is no key at all.
        let points = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ];
        for point in points {
            let mut point = *Digest::from_hex(point).expect("32 bytes").as_bytes();
            assert!(!agrees(&point), "{point:02x?}");
            // The highest bit is not read.
            point[31] |= 0x80;
            assert!(!agrees(&point), "{point:02x?}");
        }
        for none in [&[7; 31][..], &[7; 33], &[]] {
            assert!(!agrees(none), "{none:?}");
        }
        assert!(agrees(
            &Ephemeral::generate(&SeededEntropy::new(2)).public()
        ));
    }
}
