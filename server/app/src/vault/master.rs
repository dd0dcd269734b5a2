//! Master keys: texts of 32 bytes in base64 or hexadecimal, one a line. The first one is current and wraps, the others
//! only unwrap.

use std::fmt;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use server_store::DataKeyRow;
use shared_types::{Digest, Entropy, TenantId};
use zeroize::Zeroizing;

use super::{
    VaultError,
    sealing::{self, KEY_BYTES},
};

/// Most master keys of a source.
const KEYS_AT_MOST: usize = 32;

/// Base64 with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The master keys of a source.
pub struct MasterKeys {
    /// The current one is the first; there is at least one.
    keys: Vec<MasterKey>,
}

struct MasterKey {
    id: String,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl MasterKeys {
    /// Reads keys from a text with one key a line; empty lines do not count.
    ///
    /// # Errors
    /// A sentence about the first fault, without the text. `from` names the source.
    pub fn parse(text: &str, from: &dyn fmt::Display) -> Result<Self, VaultError> {
        let wrong = |fault: String| VaultError::Source(format!("{from} {fault}"));
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let bytes = key_bytes(line).ok_or_else(|| {
                wrong(format!(
                    "has no master key on line {}: write 32 random bytes there, in base64 or hexadecimal, as \"openssl rand -base64 32\" prints them",
                    number + 1
                ))
            })?;
            keys.push(MasterKey::new(bytes));
        }
        match keys.len() {
            0 => Err(wrong(
                "is empty: write a master key, which \"openssl rand -base64 32\" makes".to_owned(),
            )),
            1..=KEYS_AT_MOST => Ok(Self { keys }),
            _ => Err(wrong(format!(
                "has more than {KEYS_AT_MOST} master keys: remove the last ones, once gantry-server secrets rotate says so"
            ))),
        }
    }

    /// A new key alone.
    pub(super) fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        entropy.fill(&mut *bytes);
        let keys = vec![MasterKey::new(bytes)];
        Self { keys }
    }

    /// Puts the keys of the other behind these.
    pub(super) fn before(mut self, older: Self) -> Self {
        self.keys.extend(older.keys);
        self
    }

    /// The current key alone.
    pub(super) fn current_only(mut self) -> Self {
        self.keys.truncate(1);
        self
    }

    /// The text that [`MasterKeys::parse`] reads.
    pub(super) fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(self.keys.len() * 2 * KEY_BYTES));
        for key in &self.keys {
            let line = Zeroizing::new(STANDARD.encode(*key.bytes));
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// False: there is at least one.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The id of the current key.
    pub(super) fn current(&self) -> &str {
        &self.keys[0].id
    }

    /// True if the key with this id is among them.
    pub fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    /// The ids of the keys, for people.
    pub(super) fn ids(&self) -> String {
        let ids: Vec<_> = self.keys.iter().map(|key| key.id.as_str()).collect();
        ids.join(", ")
    }

    /// Wraps a data key with the current master key.
    pub(super) fn wrap(
        &self,
        tenant: TenantId,
        version: u32,
        key: &[u8; KEY_BYTES],
        entropy: &dyn Entropy,
    ) -> DataKeyRow {
        let master = &self.keys[0];
        let place = sealing::of_data_key(tenant, version, &master.id);
        DataKeyRow {
            tenant,
            version,
            master_key: master.id.clone(),
            wrapped: sealing::seal(&master.bytes, &place, key, entropy),
        }
    }

    /// Unwraps a data key.
    ///
    /// # Errors
    /// If none of these keys has wrapped it, or it was changed.
    pub(super) fn unwrap(
        &self,
        row: &DataKeyRow,
    ) -> Result<Zeroizing<[u8; KEY_BYTES]>, VaultError> {
        let master = self.keys.iter().find(|key| key.id == row.master_key);
        let master = master.ok_or_else(|| VaultError::DoesNotFit {
            from: "this server".to_owned(),
            there: self.ids(),
            id: row.master_key.clone(),
            data_keys: 1,
        })?;
        let place = sealing::of_data_key(row.tenant, row.version, &master.id);
        let opened = sealing::open(&master.bytes, &place, &row.wrapped);
        let opened = opened.map_err(|why| why.of("data key"))?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if opened.len() != KEY_BYTES {
            return Err(VaultError::Damaged("data key"));
        }
        key.copy_from_slice(&opened);
        Ok(key)
    }
}

impl MasterKey {
    fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let mut named = Zeroizing::new(b"gantry.master_key".to_vec());
        named.reserve_exact(KEY_BYTES);
        named.extend_from_slice(&*bytes);
        let digest = Digest::of(&named).to_string();
        let id = format!("mk_{}", &digest[..16]);
        Self { id, bytes }
    }
}

/// The bytes of a key in one of its text forms.
fn key_bytes(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    if let Some(bytes) = Digest::from_hex(text) {
        return Some(Zeroizing::new(*bytes.as_bytes()));
    }
    let decoded = Zeroizing::new(LENIENT.decode(text).ok()?);
    let bytes: [u8; KEY_BYTES] = decoded.as_slice().try_into().ok()?;
    Some(Zeroizing::new(bytes))
}

/// Names the keys by their ids.
impl fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKeys({})", self.ids())
    }
}
