//! The look of one grapheme cluster. Text is drawn as it is typed, except for characters that could drive the
//! terminal, hide, or change the order in which text reads: a visible substitute stands for them.

use super::pastes::Pastes;
use shared_types::clean::is_harmless;
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Most characters of one cluster that are drawn. The longest emoji have about a dozen.
const MAX_IN_CLUSTER: usize = 16;

/// Columns of a tab.
const TAB: &str = "    ";

/// The reason why a cluster has a style of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Text as it stands.
    Plain,
    /// A substitute for a character that is not drawn.
    Substitute,
    /// The label of a paste.
    Label,
}

/// A cluster as it is drawn.
#[derive(Debug)]
pub(super) struct Glyph<'a> {
    pub(super) text: Cow<'a, str>,
    /// In columns; at least 1, and at most the columns that were asked for.
    pub(super) width: usize,
    pub(super) look: Look,
}

/// Gives the look of a cluster in at most so many columns.
pub(super) fn glyph<'a>(cluster: &'a str, pastes: &Pastes, columns: usize) -> Glyph<'a> {
    if let [b' '..=b'~'] = cluster.as_bytes() {
        return Glyph {
            text: Cow::Borrowed(cluster),
            width: 1,
            look: Look::Plain,
        };
    }
    if cluster == "\t" {
        let width = TAB.len().min(columns.max(1));
        return Glyph {
            text: Cow::Borrowed(&TAB[..width]),
            width,
            look: Look::Plain,
        };
    }
    if let Some(label) = cluster.chars().next().and_then(|mark| pastes.label(mark)) {
        let label = fit(&label, columns);
        return Glyph {
            width: label.width(),
            text: Cow::Owned(label),
            look: Look::Label,
        };
    }
    other(cluster, columns)
}

/// The text on one row of at most so many columns, with substitutes; ends with … if it was cut.
pub(super) fn fit(text: &str, columns: usize) -> String {
    let nothing = Pastes::default();
    let mut row = String::new();
    let mut width = 0;
    // The length of the row, and its width, as long as the mark of a cut still fits.
    let mut last = 0;
    for cluster in text.graphemes(true) {
        let cluster = if cluster == "\n" { " " } else { cluster };
        let glyph = glyph(cluster, &nothing, columns);
        if width + glyph.width > columns {
            row.truncate(last);
            if columns > 0 {
                row.push('…');
            }
            return row;
        }
        row.push_str(&glyph.text);
        width += glyph.width;
        if width < columns {
            last = row.len();
        }
    }
    row
}

fn other(cluster: &str, columns: usize) -> Glyph<'_> {
    let first = cluster.chars().next().unwrap_or(' ');
    let drawn = cluster.chars().take(MAX_IN_CLUSTER);
    let is_short = drawn.clone().map(char::len_utf8).sum::<usize>() == cluster.len();
    let is_plain = is_short && drawn.clone().all(|letter| !is_hidden(letter, first));
    let mut text = if is_plain {
        Cow::Borrowed(cluster)
    } else {
        let rest = (!is_short).then_some('\u{fffd}');
        let drawn = drawn.map(|letter| substitute(letter, first));
        Cow::Owned(drawn.chain(rest).collect())
    };
    if text.width() == 0 {
        // A mark that has no letter to stand on.
        text = Cow::Owned(format!("\u{25cc}{text}"));
    }
    if text.width() == 0 || text.width() > columns {
        text = Cow::Borrowed("\u{fffd}");
    }
    Glyph {
        width: text.width(),
        text,
        look: if is_plain {
            Look::Plain
        } else {
            Look::Substitute
        },
    }
}

fn substitute(letter: char, first: char) -> char {
    match letter {
        '\0'..='\x1f' => char::from_u32(0x2400 + letter as u32).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        letter if is_hidden(letter, first) => '\u{fffd}',
        letter => letter,
    }
}

/// True if a character of a cluster that begins with `first` would not be seen, or must not reach a terminal.
fn is_hidden(letter: char, first: char) -> bool {
    match letter {
        // Joiners shape emoji and the letters of many scripts; next to ASCII they only hide.
        '\u{200c}' | '\u{200d}' => first.is_ascii() || first == letter,
        // Selectors choose the look of emoji and of letters with several forms.
        '\u{fe00}'..='\u{fe0d}' => first.is_ascii(),
        // Tags spell the flags of regions behind a black flag.
        '\u{e0020}'..='\u{e007f}' => first != '\u{1f3f4}',
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{2028}' | '\u{2029}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' => true,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        letter => !is_harmless(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(cluster: &str) -> (String, usize) {
        let glyph = glyph(cluster, &Pastes::default(), 20);
        (glyph.text.into_owned(), glyph.width)
    }

    #[test]
    fn what_hides_or_turns_text_is_drawn_as_a_substitute() {
        for hidden in ["\u{202e}", "\u{200b}", "\u{feff}", "\u{e0041}", "\u{2066}"] {
            assert_eq!(look(hidden), ("\u{fffd}".to_owned(), 1), "{hidden:?}");
        }
        assert_eq!(look("\x1b"), ("␛".to_owned(), 1));
        assert_eq!(look("\u{301}"), ("\u{25cc}\u{301}".to_owned(), 1));
        for many in [
            "a\u{200d}".to_owned(),
            format!("a{}", "\u{301}".repeat(100)),
        ] {
            let (drawn, _) = look(&many);
            assert!(drawn.contains('\u{fffd}') && drawn.len() < 40, "{drawn:?}");
        }
    }

    #[test]
    fn emoji_and_letters_with_marks_are_drawn_as_they_are() {
        for (plain, width) in [
            ("👩‍👩‍👧", 2),
            ("e\u{301}", 1),
            ("🏴\u{e0067}\u{e0062}\u{e007f}", 2),
            ("世", 2),
        ] {
            assert_eq!(look(plain), (plain.to_owned(), width));
        }
    }

    #[test]
    fn text_on_one_row_ends_with_a_mark_where_it_was_cut() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("世界世", 4), "世…");
        assert_eq!(fit("a\nb\x1b", 9), "a b␛");
        assert_eq!(fit("abc", 0), "");
    }
}
