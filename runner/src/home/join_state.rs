//! The join state on disk: two slots, written over in turn.
//!
//! Every connect moves it on, so that has to work on a full disk as well: once the file is there, no
//! write needs room. Each slot is a block of its own, and a death in the middle leaves the other.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The offset of the second slot; no file system writes a smaller block than it can lose.
const SLOT_BYTES: usize = 4096;

/// The longest signature that a slot has room for, in bytes: an Ed25519 signature has 64.
const MAX_SIGNATURE_BYTES: usize = 1024;

/// The state that tells a runner from a copy of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JoinState {
    /// A number that only grows; 0 before the first connect.
    pub(crate) number: u64,
    /// The server's over it, with which it believes later that it gave it; empty where none came.
    pub(crate) signature: Vec<u8>,
}

/// The content of the file before any part is written over: both slots. Nothing where the signature
/// is longer than any server's.
pub(super) fn of(state: &JoinState) -> Option<String> {
    slot(state).map(|slot| slot.repeat(2))
}

/// The newest state that a file holds; `None` where it holds none.
pub(super) fn newest(text: &str) -> Option<JoinState> {
    if let Ok(alone) = text.trim().parse() {
        // So earlier runners wrote it.
        return Some(JoinState {
            number: alone,
            signature: Vec::new(),
        });
    }
    let slots = slots(text).into_iter().flatten();
    slots.max_by_key(|state| state.number)
}

/// Writes over the older slot of this file; `false` where it has no slots. On disk when this returns.
pub(super) fn write_over(path: &Path, text: &str, state: &JoinState) -> io::Result<bool> {
    let Some(slot) = slot(state).filter(|_| text.len() == 2 * SLOT_BYTES) else {
        return Ok(false);
    };
    let [first, second] = slots(text).map(|slot| slot.map(|state| state.number));
    let older = usize::from(first > second);
    let file = File::options().write(true).open(path)?;
    file.write_all_at(slot.as_bytes(), (older * SLOT_BYTES) as u64)?;
    file.sync_data()?;
    Ok(true)
}

fn slots(text: &str) -> [Option<JoinState>; 2] {
    [0, SLOT_BYTES].map(|start| {
        let line = text.get(start..)?.lines().next()?;
        let (said, checksum) = line.rsplit_once(' ')?;
        if checksum != checksum_of(said) {
            return None;
        }
        // Without a signature where an earlier runner wrote it.
        let (number, signature) = said.split_once(' ').unwrap_or((said, ""));
        Some(JoinState {
            number: number.parse().ok()?,
            signature: STANDARD.decode(signature).ok()?,
        })
    })
}

fn slot(state: &JoinState) -> Option<String> {
    if state.signature.len() > MAX_SIGNATURE_BYTES {
        return None;
    }
    let said = format!("{} {}", state.number, STANDARD.encode(&state.signature));
    let mut slot = format!("{said} {}\n", checksum_of(&said));
    slot.extend(std::iter::repeat_n('\n', SLOT_BYTES - slot.len()));
    Some(slot)
}

fn checksum_of(said: &str) -> String {
    format!("{:08x}", crc32fast::hash(said.as_bytes()))
}
