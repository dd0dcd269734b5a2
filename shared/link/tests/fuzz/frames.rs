//! What a link carries, as bytes: each frame behind its length (u32, little endian).

use std::path::PathBuf;

use prost::Message;
use shared_fuzz::Dice;
use shared_types::limits::MAX_FRAME_BYTES;

/// What a link may hold beyond what it was sent, in bytes: windows of output, tables, queues.
const HELD_BYTES: usize = 8 * 1024 * 1024;

/// What one byte of a frame may become once it is read: an entry of a list is two bytes on the
/// wire, and at most a hundred in memory.
const HELD_BYTES_PER_BYTE: usize = 64;

/// Where the corpus for one end of the link lies.
pub(crate) fn corpus(end: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus", end]
        .iter()
        .collect()
}

/// The frames as one input.
pub(crate) fn to_bytes<F: Message>(frames: &[F]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        let frame = frame.encode_to_vec();
        bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&frame);
    }
    bytes
}

/// The frames of an input, as far as the transport would hand them on; every other time in
/// another order, some twice and some not at all.
pub(crate) fn from_bytes<F: Message + Default>(
    bytes: &[u8],
    dice: &mut Dice,
) -> impl Iterator<Item = F> + use<F> {
    let mut frames: Vec<&[u8]> = split(bytes).collect();
    let changes = dice.below(6).saturating_sub(2);
    for _ in 0..changes {
        if let Some(last) = frames.len().checked_sub(1) {
            let mut place = || dice.below(last as u64 + 1) as usize;
            let (one, other) = (place(), place());
            match dice.below(3) {
                0 => frames.swap(one, other),
                1 => frames.insert(one, frames[other]),
                _ => drop(frames.remove(one)),
            }
        }
    }
    let decoded = frames.into_iter().map_while(|frame| F::decode(frame).ok());
    decoded.collect::<Vec<_>>().into_iter()
}

fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME_BYTES {
            return None;
        }
        let (frame, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        Some(frame)
    })
}

/// Most that may be held for an input.
pub(crate) fn bound(input: &[u8]) -> usize {
    HELD_BYTES + HELD_BYTES_PER_BYTE * input.len()
}
