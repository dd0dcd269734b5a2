//! Text in a tool's result that looks like instructions to the model.
//!
//! A result is data. A page or a file of a stranger can still speak to the model. The findings do not stop that: they
//! let the model be warned, and people see it. Scores are a table ([`phrase::PHRASES`]): of [`TOLD`] and more the
//! model and people are told; lower ones stand in ordinary text as well.

mod hidden;
mod phrase;
#[cfg(test)]
mod tests;

use std::{ops::Range, sync::LazyLock};

use shared_types::event::FindingCategory;

use crate::table::PatternTable;
use phrase::PHRASES;

/// The most bytes of a text that are searched.
pub const MAX_SEARCHED_BYTES: usize = 1024 * 1024;
/// The most findings of one text.
pub const MAX_FINDINGS: usize = 32;
/// The lowest score that the model and people are told.
pub const TOLD: u8 = 60;

/// A place that looks like instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of instruction.
    pub category: FindingCategory,
    /// The likelihood that the text addresses the model, from 0 to 100.
    pub score: u8,
    /// Its bytes in the text.
    pub range: Range<usize>,
}

/// The findings in the first [`MAX_SEARCHED_BYTES`] of the text, [`MAX_FINDINGS`] at most. Those of [`TOLD`] and more
/// come first, so that others cannot crowd them out.
pub fn findings(text: &str) -> Vec<Finding> {
    static TABLE: LazyLock<PatternTable> =
        LazyLock::new(|| PatternTable::new(PHRASES.iter().map(|phrase| phrase.pattern)));
    let text = &text[..text.floor_char_boundary(MAX_SEARCHED_BYTES)];
    let phrases = TABLE.find(text, |_, _| true).map(|(row, range)| Finding {
        category: PHRASES[row].category,
        score: PHRASES[row].score,
        range,
    });
    let (mut told, mut others) = (Vec::new(), Vec::new());
    for finding in hidden::findings(text).chain(phrases) {
        let list = match finding.score >= TOLD {
            true => &mut told,
            false => &mut others,
        };
        if list.len() < MAX_FINDINGS {
            list.push(finding);
        }
    }
    told.extend(others);
    told.truncate(MAX_FINDINGS);
    told
}
