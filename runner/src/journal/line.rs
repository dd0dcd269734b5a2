//! One record as a line: the CRC-32 (IEEE) of its JSON in eight digits, a space, the JSON.

use serde::{Serialize, de::DeserializeOwned};

use super::{JournalError, MAX_LINE_BYTES};

/// Digits of the checksum, and the space behind them.
const CHECKSUM_BYTES: usize = 9;

/// The record as its line, with the line's end.
pub(super) fn to_line<R: Serialize>(record: &R) -> Result<Vec<u8>, JournalError> {
    let json = serde_json::to_string(record).map_err(JournalError::NotJson)?;
    let line = format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()));
    if line.len() > MAX_LINE_BYTES {
        return Err(JournalError::TooLong { bytes: line.len() });
    }
    Ok(line.into_bytes())
}

/// The lines of all records, in their order.
pub(super) fn of_all<R: Serialize>(records: &[R]) -> Result<Vec<u8>, JournalError> {
    let mut lines = Vec::new();
    for record in records {
        lines.append(&mut to_line(record)?);
    }
    Ok(lines)
}

/// The record in a line without its end, or what is wrong with it.
pub(super) fn from_line<R: DeserializeOwned>(line: &[u8]) -> Result<R, &'static str> {
    let (checksum, json) = line
        .split_at_checked(CHECKSUM_BYTES)
        .ok_or("it is too short")?;
    if checksum != format!("{:08x} ", crc32fast::hash(json)).as_bytes() {
        return Err("its checksum does not fit");
    }
    serde_json::from_slice(json).map_err(|_| "this runner does not know what it says")
}
