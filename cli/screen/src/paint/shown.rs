//! Painted rows as text that a test can compare.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

/// The rows, in which a styled span stands in tags: `<bold cyan>text</>`.
pub(crate) fn shown(rows: &[Line<'static>]) -> String {
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// The rows without their styles.
pub(crate) fn plain(rows: &[Line<'static>]) -> String {
    let plain = |row: &Line<'static>| row.spans.iter().map(|span| span.content.as_ref()).collect();
    rows.iter().map(plain).collect::<Vec<String>>().join("\n")
}

fn row(line: &Line<'static>) -> String {
    let mut text = String::new();
    for span in &line.spans {
        let tag = tag(line.style.patch(span.style));
        if tag.is_empty() || span.content.is_empty() {
            text += &span.content;
        } else {
            text += &format!("<{tag}>{}</>", span.content);
        }
    }
    text
}

fn tag(style: Style) -> String {
    let modifiers = [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::ITALIC, "italic"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
        (Modifier::CROSSED_OUT, "struck"),
    ];
    let set = modifiers
        .iter()
        .filter(|(modifier, _)| style.add_modifier.contains(*modifier));
    let mut words: Vec<String> = set.map(|(_, name)| (*name).to_owned()).collect();
    if let Some(colour) = style.fg.filter(|colour| *colour != Color::Reset) {
        words.push(colour.to_string().to_lowercase());
    }
    words.join(" ")
}
