//! The join state on disk: two slots, written over in turn.
//!
//! Every connect moves it on, so that has to work on a full disk as well: once the file is there, no
//! write needs room. Each slot is a block of its own, and a death in the middle leaves the other.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

/// Where the second slot begins; no file system writes a smaller block than it can lose.
const SLOT_BYTES: usize = 4096;

/// What the file holds before any is written over: both slots.
pub(super) fn of(state: u64) -> String {
    slot(state).repeat(2)
}

/// The newest state that a file holds; `None` where it holds none.
pub(super) fn newest(text: &str) -> Option<u64> {
    if let Ok(alone) = text.trim().parse() {
        // So earlier runners wrote it.
        return Some(alone);
    }
    slots(text).into_iter().flatten().max()
}

/// Writes over the older slot of this file; `false` where it has no slots. On disk when this returns.
pub(super) fn write_over(path: &Path, text: &str, state: u64) -> io::Result<bool> {
    if text.len() != 2 * SLOT_BYTES {
        return Ok(false);
    }
    let [first, second] = slots(text);
    let older = usize::from(first > second);
    let file = File::options().write(true).open(path)?;
    file.write_all_at(slot(state).as_bytes(), (older * SLOT_BYTES) as u64)?;
    file.sync_data()?;
    Ok(true)
}

fn slots(text: &str) -> [Option<u64>; 2] {
    [0, SLOT_BYTES].map(|start| {
        let (state, checksum) = text.get(start..)?.lines().next()?.split_once(' ')?;
        (checksum == checksum_of(state))
            .then(|| state.parse().ok())
            .flatten()
    })
}

fn slot(state: u64) -> String {
    let state = state.to_string();
    let mut slot = format!("{state} {}\n", checksum_of(&state));
    slot.extend(std::iter::repeat_n('\n', SLOT_BYTES - slot.len()));
    slot
}

fn checksum_of(state: &str) -> String {
    format!("{:08x}", crc32fast::hash(state.as_bytes()))
}
