//! The mutations of an input.

use crate::Dice;

/// The most changes of one input.
const MOST_CHANGES: u64 = 4;

/// The most bytes to insert or repeat at once.
const MOST_BYTES: usize = 4096;

/// Values at the edges of integer types and limits.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x10_0000,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes the input at a few places; pieces of `other` may be inserted.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    for _ in 0..=dice.below(MOST_CHANGES) {
        let at = dice.below(input.len() as u64 + 1) as usize;
        let until = at + dice.up_to((input.len() - at).min(MOST_BYTES));
        match dice.below(8) {
            0 => flip(input, at, dice),
            1 => drop(input.drain(at..until)),
            2 => input.truncate(at),
            3 => repeat(input, at, until, dice),
            4 => input[at..until].fill(*dice.pick(&[0, 0xff, b'\n', b' ', b'9'])),
            5 => write_edge(input, at, dice),
            6 => splice(input, at, until, other, dice),
            _ => insert_noise(input, at, dice),
        }
    }
}

fn flip(input: &mut [u8], at: usize, dice: &mut Dice) {
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << dice.below(8);
    }
}

fn repeat(input: &mut Vec<u8>, at: usize, until: usize, dice: &mut Dice) {
    let piece = input[at..until].to_vec();
    for _ in 0..=dice.up_to(8) {
        input.splice(at..at, piece.iter().copied());
    }
}

fn write_edge(input: &mut [u8], at: usize, dice: &mut Dice) {
    let value = dice.pick(&EDGES).wrapping_sub(dice.below(2));
    let width = *dice.pick(&[1, 2, 4, 8]);
    let bytes = if dice.one_in(2) {
        value.to_le_bytes()[..width].to_vec()
    } else {
        value.to_be_bytes()[8 - width..].to_vec()
    };
    for (place, byte) in input[at..].iter_mut().zip(bytes) {
        *place = byte;
    }
}

fn splice(input: &mut Vec<u8>, at: usize, until: usize, other: &[u8], dice: &mut Dice) {
    let from = dice.below(other.len() as u64 + 1) as usize;
    let to = from + dice.up_to((other.len() - from).min(MOST_BYTES));
    input.splice(at..until, other[from..to].iter().copied());
}

fn insert_noise(input: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let noise: Vec<u8> = (0..dice.up_to(64)).map(|_| dice.below(256) as u8).collect();
    input.splice(at..at, noise);
}
