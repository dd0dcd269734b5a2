//! Characters that people do not see and models read.

use shared_types::event::FindingCategory;

use super::Finding;

/// The fewest invisible characters in a row that can carry a text. Emoji and scripts need fewer.
const LONG_RUN: usize = 8;
/// The flag before the tag characters of a region's flag, which are ordinary.
const BLACK_FLAG: char = '\u{1f3f4}';

/// A class of characters that people do not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hidden {
    Tag,
    Override,
    ZeroWidth,
}

/// The runs of hidden characters.
pub(super) fn findings(text: &str) -> impl Iterator<Item = Finding> + '_ {
    let mut chars = text.char_indices().peekable();
    let mut before = None;
    std::iter::from_fn(move || {
        loop {
            let (start, first) = chars.next()?;
            let Some(class) = class_of(first) else {
                before = Some(first);
                continue;
            };
            let (mut end, mut count) = (start + first.len_utf8(), 1);
            while let Some((at, next)) = chars.next_if(|(_, next)| class_of(*next) == Some(class)) {
                end = at + next.len_utf8();
                count += 1;
            }
            let is_flag = before.replace(first) == Some(BLACK_FLAG) && count <= LONG_RUN;
            if let Some(score) = score(class, count, is_flag) {
                return Some(Finding {
                    category: FindingCategory::HiddenText,
                    score,
                    range: start..end,
                });
            }
        }
    })
}

fn class_of(letter: char) -> Option<Hidden> {
    match letter {
        '\u{e0000}'..='\u{e007f}' => Some(Hidden::Tag),
        '\u{202d}' | '\u{202e}' => Some(Hidden::Override),
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => Some(Hidden::ZeroWidth),
        _ => None,
    }
}

/// The score of a run; without one, if it is ordinary.
fn score(class: Hidden, count: usize, is_flag: bool) -> Option<u8> {
    match class {
        Hidden::Tag if is_flag => None,
        Hidden::Tag => Some(95),
        Hidden::Override => Some(70),
        Hidden::ZeroWidth => (count >= LONG_RUN).then_some(75),
    }
}
