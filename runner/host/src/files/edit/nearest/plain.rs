//! The plain form of a text: in lower case, with one space for each run of white space, without characters that are
//! not seen, and with ASCII for the characters that look like it.

use std::ops::Range;

/// The plain form of a text, without white space at its ends.
pub(super) fn plain(text: &str) -> String {
    let mut form = String::with_capacity(text.len());
    for letter in text.trim().chars() {
        add(letter, &mut form);
    }
    form.truncate(form.trim_end().len());
    form
}

fn add(letter: char, form: &mut String) {
    if letter.is_whitespace() {
        if !form.ends_with(' ') && !form.is_empty() {
            form.push(' ');
        }
    } else if !is_unseen(letter) {
        match look_alike(letter) {
            Some(ascii) => form.push_str(ascii),
            None => match full_width(letter) {
                Some(ascii) => form.push(ascii.to_ascii_lowercase()),
                None => form.extend(letter.to_lowercase()),
            },
        }
    }
}

/// The plain form of a whole file, and where each byte of it comes from.
pub(super) struct Plain {
    pub(super) text: String,
    from: Vec<u32>,
}

impl Plain {
    /// The form of a file, which has less than 4 GiB.
    pub(super) fn of(file: &str) -> Self {
        let mut form = Self {
            text: String::with_capacity(file.len()),
            from: Vec::with_capacity(file.len()),
        };
        for (at, letter) in file.char_indices() {
            add(letter, &mut form.text);
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            form.from.resize(form.text.len(), at);
        }
        form
    }

    /// The place in the file of this part of the form, which is not empty.
    pub(super) fn place_of(&self, file: &str, part: Range<usize>) -> Range<usize> {
        let at = |byte: usize| self.from[byte] as usize;
        let last = at(part.end - 1);
        let letter = file[last..].chars().next().map_or(0, char::len_utf8);
        at(part.start)..last + letter
    }
}

/// True if the character takes no room where text is shown.
pub(super) fn is_unseen(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
    )
}

/// The ASCII text that the character looks like.
fn look_alike(letter: char) -> Option<&'static str> {
    Some(match letter {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{b4}' | '`' => "'",
        '\u{201c}'..='\u{201f}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '\u{2026}' => "...",
        '\u{2044}' => "/",
        '\u{d7}' => "x",
        // Cyrillic and Greek letters.
        'а' | 'А' => "a",
        'е' | 'Е' => "e",
        'о' | 'О' | 'ο' | 'Ο' => "o",
        'р' | 'Р' => "p",
        'с' | 'С' => "c",
        'у' | 'У' => "y",
        'х' | 'Х' => "x",
        'і' | 'І' => "i",
        _ => return None,
    })
}

fn full_width(letter: char) -> Option<char> {
    let code = u32::from(letter);
    let is_wide = (0xff01..=0xff5e).contains(&code);
    is_wide.then(|| char::from_u32(code - 0xfee0)).flatten()
}

/// The name of a character, with its code where it is not ASCII.
pub(super) fn named(letter: char) -> String {
    let code = u32::from(letter);
    let name = match letter {
        ' '..='~' => return letter.to_string(),
        '\u{2018}'..='\u{201f}' => "the curly quote",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "the dash",
        '\u{2026}' => "the ellipsis",
        '\u{ff01}'..='\u{ff5e}' => "the full-width character",
        '\u{feff}' => return "the unseen mark U+FEFF (BOM)".to_owned(),
        '\u{ad}' => return "the unseen soft hyphen U+00AD".to_owned(),
        letter if is_unseen(letter) || letter.is_control() => {
            return format!("the unseen character U+{code:04X}");
        }
        _ => "the character",
    };
    format!("{name} {letter} (U+{code:04X})")
}
