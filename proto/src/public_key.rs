//! Ed25519 public keys that prove nothing: for a point of small order a signature can be made without
//! a private key, over every message. (An X25519 key of small order makes no secret, and
//! [`crate::agreement`] refuses it for that.)

/// The encodings of the eight points of small order, the ones that are not canonical included, without
/// the highest bit, which is the sign of x.
const OF_SMALL_ORDER: [[u8; 32]; 7] = [
    // Order 4, 1, 8 and 8.
    [0; 32],
    first(1, 0),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
    // p - 1 (order 2), p and p + 1 (read as 0 and 1).
    first(0xec, 0x7f),
    first(0xed, 0x7f),
    first(0xee, 0x7f),
];

/// True if a signature under this key can prove something: the key has 32 bytes and no small order. The key is public,
/// so that the comparison need not take constant time.
pub fn is_sound(public_key: &[u8]) -> bool {
    let Ok(mut point) = <[u8; 32]>::try_from(public_key) else {
        return false;
    };
    point[31] &= 0x7f;
    !OF_SMALL_ORDER.contains(&point)
}

/// A small number, or one shortly below 2^255: the first byte, the last one, and what lies between.
const fn first(first: u8, last: u8) -> [u8; 32] {
    let mut point = [if last == 0 { 0 } else { 0xff }; 32];
    point[0] = first;
    point[31] = last;
    point
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
    use shared_types::Digest;

    use super::*;

    /// Computed from the curve's equation: the multiples of a point of order 8, encoded with y and,
    /// where it has room, with y + p.
    const POINTS: [&str; 7] = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];

    #[test]
    fn no_key_of_small_order_is_sound_with_either_sign() {
        for point in POINTS {
            let mut point = *Digest::from_hex(point).expect("32 bytes").as_bytes();
            assert!(!is_sound(&point), "{point:02x?}");
            point[31] |= 0x80;
            assert!(!is_sound(&point), "{point:02x?}");
        }
        for none in [&[7; 31][..], &[7; 33], &[]] {
            assert!(!is_sound(none));
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("32 bytes are a seed");
        assert!(is_sound(pair.public_key().as_ref()));
    }

    #[test]
    fn the_library_alone_believes_a_signature_that_has_no_private_key() {
        let mut nobody = [0; 32];
        nobody[0] = 1;
        let signature = [&nobody[..], &[0; 32]].concat();
        let believed = UnparsedPublicKey::new(&ED25519, nobody).verify(b"anything", &signature);
        assert!(believed.is_ok() && !is_sound(&nobody));
    }
}
