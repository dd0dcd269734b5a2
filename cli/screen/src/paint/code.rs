//! Code as styled lines.
//!
//! One table says for each language how its words, strings and comments look. That is enough for
//! a reader, it takes linear time, and code that is not finished yet has colours too.

mod by_line;
mod languages;
mod markup;
mod scan;

#[cfg(test)]
mod tests;

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use self::languages::{Kind, LANGUAGES, Language};
use super::wrap;

/// The longest code that is coloured, in bytes; longer code is plain.
const MAX_COLOURED: usize = 1 << 20;

/// The language of a file by its name, or of a word such as `py`; empty if it is not known.
pub fn language_of(path: &str) -> &'static str {
    let name = path
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(path)
        .to_lowercase();
    let extension = name.rsplit('.').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    // `Dockerfile.debian` is known by its first part.
    let known = [name.as_str(), extension, stem]
        .into_iter()
        .find_map(language);
    known.map_or("", |language| language.name)
}

/// Colours code: one line for each of its lines, not wrapped.
///
/// The language is a name, an extension or an alias; code of an unknown one is plain. Control
/// characters are removed, and tabs become spaces.
pub fn highlight(code: &str, language: &str) -> Vec<Line<'static>> {
    let code = shared_types::clean::clean(code);
    if code.is_empty() {
        return Vec::new();
    }
    let code = wrap::untabbed(code.strip_suffix('\n').unwrap_or(&code));
    let known = self::language(&language.to_lowercase());
    let mut paint = Paint::default();
    match known.filter(|_| code.len() <= MAX_COLOURED) {
        Some(language) => match language.kind {
            Kind::Words => scan::scan(&code, language, &mut paint),
            Kind::Markup => markup::scan(&code, &mut paint),
            Kind::Diff => by_line::diff(&code, &mut paint),
            Kind::Markdown => by_line::markdown(&code, &mut paint),
        },
        None => paint.push(&code, Style::new()),
    }
    paint.finish()
}

fn language(alias: &str) -> Option<&'static Language> {
    let is_known = |language: &&Language| {
        language.name == alias || language.aliases.split(' ').any(|other| other == alias)
    };
    LANGUAGES
        .iter()
        .find(is_known)
        .filter(|_| !alias.is_empty())
}

/// The lines that are coloured so far.
#[derive(Default)]
struct Paint {
    lines: Vec<Line<'static>>,
    line: Vec<Span<'static>>,
}

impl Paint {
    /// Adds text, which may have several lines.
    fn push(&mut self, text: &str, style: Style) {
        for (index, part) in text.split('\n').enumerate() {
            if index > 0 {
                self.lines.push(Line::from(std::mem::take(&mut self.line)));
            }
            match self.line.last_mut() {
                _ if part.is_empty() => {}
                Some(last) if last.style == style => last.content.to_mut().push_str(part),
                _ => self.line.push(Span::styled(part.to_owned(), style)),
            }
        }
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.lines.push(Line::from(self.line));
        self.lines
    }
}
