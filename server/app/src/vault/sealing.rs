//! The sealed form of secrets and keys: one byte for the format, a random nonce of 96 bits, and the text encrypted with
//! AES-256-GCM (NIST SP 800-38D) with its tag of 128 bits.
//!
//! The *place* is authenticated with it and not stored: a domain, and the ids of its row, each with its length before
//! it. So no row can be put in the place of another.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use shared_types::{Entropy, SecretId, TenantId};
use zeroize::Zeroizing;

/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 32;

const TAG_BYTES: usize = 16;

/// The format that this program writes, and the newest that it opens.
const FORMAT: u8 = 1;

/// The reason why something was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotOpened {
    /// It was changed, has another place, or another key sealed it.
    Damaged,
    /// Its format is newer.
    Newer,
}

/// The place of a secret.
pub(super) fn of_secret(tenant: TenantId, id: SecretId, version: u32) -> Vec<u8> {
    place(
        "gantry.secret",
        &[
            tenant.to_string().as_bytes(),
            id.to_string().as_bytes(),
            &version.to_be_bytes(),
        ],
    )
}

/// The place of a data key.
pub(super) fn of_data_key(tenant: TenantId, version: u32, master_key: &str) -> Vec<u8> {
    place(
        "gantry.data_key",
        &[
            tenant.to_string().as_bytes(),
            &version.to_be_bytes(),
            master_key.as_bytes(),
        ],
    )
}

fn place(domain: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut place = vec![FORMAT];
    for part in std::iter::once(domain.as_bytes()).chain(parts.iter().copied()) {
        place.extend_from_slice(&(part.len() as u64).to_be_bytes());
        place.extend_from_slice(part);
    }
    place
}

/// Seals a text for a place.
pub(super) fn seal(
    key: &[u8; KEY_BYTES],
    place: &[u8],
    text: &[u8],
    entropy: &dyn Entropy,
) -> Vec<u8> {
    let mut nonce = [0; NONCE_LEN];
    entropy.fill(&mut nonce);
    // All of it at once: a vector that grows leaves the text behind in memory.
    let mut sealed = Vec::with_capacity(1 + NONCE_LEN + text.len() + TAG_BYTES);
    sealed.push(FORMAT);
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(text);
    let tag = cipher(key)
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(place),
            &mut sealed[1 + NONCE_LEN..],
        )
        .expect("a text below 64 GiB can be sealed");
    sealed.extend_from_slice(tag.as_ref());
    sealed
}

/// Opens what was sealed for this place.
pub(super) fn open(
    key: &[u8; KEY_BYTES],
    place: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, NotOpened> {
    let (format, rest) = sealed.split_first().ok_or(NotOpened::Damaged)?;
    match *format {
        FORMAT => {}
        newer if newer > FORMAT => return Err(NotOpened::Newer),
        _ => return Err(NotOpened::Damaged),
    }
    let (nonce, encrypted) = rest
        .split_first_chunk::<NONCE_LEN>()
        .ok_or(NotOpened::Damaged)?;
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let mut text = Zeroizing::new(encrypted.to_vec());
    let length = cipher(key)
        .open_in_place(nonce, Aad::from(place), &mut text)
        .map_err(|_| NotOpened::Damaged)?
        .len();
    text.truncate(length);
    Ok(text)
}

fn cipher(key: &[u8; KEY_BYTES]) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key);
    LessSafeKey::new(key.expect("a key of AES-256 has 32 bytes"))
}
