//! Brace expansion: `{rm,-rf,/}` is three words.

use super::word::{Hole, HoleSource, Word, WordPiece};

/// The most words that one word becomes; a word with more is left to the run.
const MAX_WORDS: usize = 64;

/// A piece of a word before brace expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BraceUnit {
    /// A character without quotes, which may have a meaning.
    Bare(char),
    /// A text in quotes, possibly empty.
    Quoted(String),
    /// A hole.
    Hole(Hole),
}

/// The words that a word becomes by its braces.
pub(super) fn words(units: &[BraceUnit]) -> Vec<Word> {
    let mut done = Vec::new();
    let mut waiting = vec![units.to_vec()];
    while let Some(units) = waiting.pop() {
        if done.len() + waiting.len() >= MAX_WORDS {
            return vec![unknown()];
        }
        match group(&units) {
            None => done.push(word(&units)),
            Some((open, close, parts)) => {
                // The last alternative goes first onto the stack, so that the words keep their order.
                for part in parts.into_iter().rev() {
                    let mut next = units[..open].to_vec();
                    next.extend(part);
                    next.extend_from_slice(&units[close + 1..]);
                    waiting.push(next);
                }
            }
        }
    }
    done
}

/// The word of units, with braces as plain characters.
pub(super) fn word(units: &[BraceUnit]) -> Word {
    let mut word = Word::default();
    let brackets = units.contains(&BraceUnit::Bare(']'));
    for unit in units {
        word.push(match unit {
            BraceUnit::Bare('[') if !brackets => WordPiece::Text("[".to_owned()),
            BraceUnit::Bare(c @ ('*' | '?' | '[')) => WordPiece::Glob(*c),
            BraceUnit::Bare(c) => WordPiece::Text(c.to_string()),
            BraceUnit::Quoted(text) => WordPiece::Text(text.clone()),
            BraceUnit::Hole(hole) => WordPiece::Hole(hole.clone()),
        });
    }
    word
}

/// A word with an unknown text.
fn unknown() -> Word {
    Word(vec![WordPiece::Hole(Hole {
        of: HoleSource::Other,
        quoted: false,
    })])
}

/// The first group of braces that expands: its two ends and its alternatives.
fn group(units: &[BraceUnit]) -> Option<(usize, usize, Vec<Vec<BraceUnit>>)> {
    let opens = units
        .iter()
        .enumerate()
        .filter(|(_, unit)| **unit == BraceUnit::Bare('{'));
    for (open, _) in opens.take(MAX_WORDS) {
        let mut depth = 0;
        let mut commas = vec![open];
        for (at, unit) in units.iter().enumerate().skip(open) {
            match unit {
                BraceUnit::Bare('{') => depth += 1,
                BraceUnit::Bare(',') if depth == 1 => commas.push(at),
                BraceUnit::Bare('}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                if let Some(parts) = alternatives(units, &commas, at) {
                    return Some((open, at, parts));
                }
                break;
            }
        }
    }
    None
}

/// The alternatives of a group: between its commas, or one hole for a sequence.
fn alternatives(
    units: &[BraceUnit],
    commas: &[usize],
    close: usize,
) -> Option<Vec<Vec<BraceUnit>>> {
    if commas.len() > 1 {
        let ends = commas[1..].iter().copied().chain([close]);
        return Some(
            commas
                .iter()
                .zip(ends)
                .map(|(from, to)| units[from + 1..to].to_vec())
                .collect(),
        );
    }
    let inside = &units[commas[0] + 1..close];
    let sequence = inside
        .windows(2)
        .any(|two| two == [BraceUnit::Bare('.'), BraceUnit::Bare('.')]);
    sequence.then(|| {
        vec![vec![BraceUnit::Hole(Hole {
            of: HoleSource::Other,
            quoted: false,
        })]]
    })
}
