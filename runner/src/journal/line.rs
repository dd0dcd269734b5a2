//! One record as a line: a checksum in eight digits, a space, its JSON.
//!
//! The checksum is the CRC-32 (IEEE) of the JSON of this line and of all before it. So a line that
//! is missing, doubled or in another place is noticed as well.

use serde::{Serialize, de::DeserializeOwned};

use super::{JournalError, MAX_LINE_BYTES};

/// Digits of the checksum, and the space behind them.
const CHECKSUM_BYTES: usize = 9;

/// The end of a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct JournalEnd {
    /// Its size.
    pub(super) bytes: u64,
    /// The last line's checksum.
    checksum: u32,
}

impl JournalEnd {
    /// The record as the next line, with the line's end; it ends behind that from now on.
    pub(super) fn write<R: Serialize>(&mut self, record: &R) -> Result<Vec<u8>, JournalError> {
        let json = serde_json::to_string(record).map_err(JournalError::NotJson)?;
        let checksum = self.with(json.as_bytes());
        let line = format!("{checksum:08x} {json}\n");
        if line.len() > MAX_LINE_BYTES {
            return Err(JournalError::TooLong { bytes: line.len() });
        }
        self.bytes += line.len() as u64;
        self.checksum = checksum;
        Ok(line.into_bytes())
    }

    /// The record in the next line, which comes with its end; or what is wrong with it.
    pub(super) fn read<R: DeserializeOwned>(&mut self, line: &[u8]) -> Result<R, &'static str> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let (digits, json) = text
            .split_at_checked(CHECKSUM_BYTES)
            .ok_or("it is too short")?;
        let checksum = self.with(json);
        if digits != format!("{checksum:08x} ").as_bytes() {
            return Err("its checksum does not fit");
        }
        self.bytes += line.len() as u64;
        self.checksum = checksum;
        serde_json::from_slice(json).map_err(|_| "this runner does not know what it says")
    }

    fn with(self, json: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.checksum);
        hasher.update(json);
        hasher.finalize()
    }
}
