//! HTML and XML: tags, attributes, comments.

use super::Paint;
use crate::paint::palette;

/// Colours the tags of a page.
pub(super) fn scan(code: &str, paint: &mut Paint) {
    let mut rest = code;
    while !rest.is_empty() {
        let text = rest.find('<').unwrap_or(rest.len());
        paint.push(&rest[..text], palette::PLAIN);
        rest = &rest[text..];
        if rest.starts_with("<!--") {
            let end = rest.find("-->").map_or(rest.len(), |end| end + 3);
            paint.push(&rest[..end], palette::COMMENT);
            rest = &rest[end..];
        } else if !rest.is_empty() {
            rest = tag(rest, paint);
        }
    }
}

/// Colours one tag, and returns what follows it.
fn tag<'a>(text: &'a str, paint: &mut Paint) -> &'a str {
    let is_name = |letter: char| letter.is_alphanumeric() || "_-:.".contains(letter);
    let signs = text
        .find(|letter: char| !"</?!".contains(letter))
        .unwrap_or(text.len());
    let name = signs
        + text[signs..]
            .find(|letter| !is_name(letter))
            .unwrap_or(text.len() - signs);
    if name == signs {
        // No tag: `a < b`.
        paint.push(&text[..signs], palette::PLAIN);
        return &text[signs..];
    }
    paint.push(&text[..name], palette::KEYWORD);
    let mut rest = &text[name..];
    while let Some(letter) = rest.chars().next() {
        let (length, style) = match letter {
            '>' => {
                paint.push(">", palette::KEYWORD);
                return &rest[1..];
            }
            // The tag was never closed.
            '<' => return rest,
            '"' | '\'' => {
                let end = rest[1..]
                    .find([letter, '<'])
                    .map_or(rest.len(), |end| end + 1);
                let quote = usize::from(rest[end..].starts_with(letter));
                (end + quote, palette::STRING)
            }
            letter if is_name(letter) => {
                let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
                (end, palette::TYPE)
            }
            '/' | '?' => (1, palette::KEYWORD),
            letter => (letter.len_utf8(), palette::PLAIN),
        };
        paint.push(&rest[..length], style);
        rest = &rest[length..];
    }
    rest
}
