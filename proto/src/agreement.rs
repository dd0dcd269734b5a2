//! The agreement on the keys of a seal (docs/internals/contracts.md#b6): X25519 between two keys that
//! serve one link or one enrolment only, then HKDF-SHA256. What goes into a key is in
//! [`crate::signing`].

use aws_lc_rs::{
    agreement::{self, PrivateKey, UnparsedPublicKey, X25519},
    hkdf, hmac,
};
use shared_types::Entropy;

/// A key pair of one end.
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

/// The secret that only the two ends know.
pub struct Secret(hkdf::Prk);

impl Secret {
    /// The key that this info names.
    pub(crate) fn expand(&self, info: &[u8]) -> [u8; 32] {
        let (mut key, info) = ([0; 32], [info]);
        let material = self.0.expand(&info, hmac::HMAC_SHA256);
        let filled = material.and_then(|material| material.fill(&mut key));
        filled.expect("HKDF gives more than 32 bytes");
        key
    }
}

#[cfg(test)]
mod tests {
    use shared_types::{Digest, entropy::SeededEntropy};

    use super::*;

    #[test]
    fn both_ends_agree_on_the_key_that_another_implementation_makes() {
        let (runner, server) = (Ephemeral::of([1; 32]), Ephemeral::of([2; 32]));
        let (runners, servers) = (runner.public(), server.public());
        // Python's `cryptography`.
        let key = "eb94c4a1a362f719282b8e3947c6dfaac4e9034608ac26aa3e740208a1323e72";
        let key = Digest::from_hex(key).expect("32 bytes");
        for (ours, theirs) in [(runner, servers), (server, runners)] {
            let secret = ours.agree(&theirs, &[9; 32]).expect("a secret");
            assert_eq!(secret.expand(b"info"), *key.as_bytes());
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
