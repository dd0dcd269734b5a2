//! One styled line as bytes for the terminal.

use std::{borrow::Cow, fmt::Write as _};

use ratatui_core::{
    style::{Color, Modifier, Style},
    text::Line,
};
use shared_types::clean::is_harmless;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::Colours;

/// A line as it is written: its bytes without any movement, and the columns that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Row {
    pub(super) text: String,
    pub(super) columns: usize,
}

/// Renders a line, cut at `most` columns. Characters that could drive the terminal are left out.
pub(super) fn render(line: &Line<'_>, most: usize, colours: Colours) -> Row {
    let mut row = Row::default();
    let mut current = Style::new();
    'line: for span in &line.spans {
        let style = line.style.patch(span.style);
        for cluster in span.content.graphemes(true) {
            let cluster = harmless(cluster);
            if cluster.is_empty() {
                continue;
            }
            let columns = cluster.width();
            if row.columns + columns > most {
                break 'line;
            }
            if style != current {
                change(&mut row.text, current, style, colours);
                current = style;
            }
            row.text.push_str(&cluster);
            row.columns += columns;
        }
    }
    change(&mut row.text, current, Style::new(), colours);
    row
}

/// The columns that a line takes.
pub(super) fn columns(line: &Line<'_>) -> usize {
    let columns = |text: &str| {
        let clusters = text.graphemes(true);
        clusters
            .map(|cluster| harmless(cluster).width())
            .sum::<usize>()
    };
    line.spans.iter().map(|span| columns(&span.content)).sum()
}

fn harmless(cluster: &str) -> Cow<'_, str> {
    match cluster.chars().all(is_harmless) {
        true => Cow::Borrowed(cluster),
        false if cluster == "\t" => Cow::Borrowed(" "),
        false => Cow::Owned(
            cluster
                .chars()
                .filter(|letter| is_harmless(*letter))
                .collect(),
        ),
    }
}

/// Writes the sequence that leads from one style to another, if they look different.
fn change(text: &mut String, from: Style, to: Style, colours: Colours) {
    let (from, to) = (attributes(from, colours), attributes(to, colours));
    if from == to {
        return;
    }
    text.push_str("\x1b[0");
    for code in to {
        let _ = write!(text, ";{code}");
    }
    text.push('m');
}

fn attributes(style: Style, colours: Colours) -> Vec<u8> {
    let is_set =
        |modifier| style.add_modifier.contains(modifier) && !style.sub_modifier.contains(modifier);
    let modifiers = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ];
    let mut codes: Vec<u8> = modifiers
        .into_iter()
        .filter_map(|(modifier, code)| is_set(modifier).then_some(code))
        .collect();
    if colours == Colours::Full {
        codes.extend(style.fg.and_then(colour).map(|code| 30 + code));
        codes.extend(style.bg.and_then(colour).map(|code| 40 + code));
    }
    codes
}

/// A colour's distance from black, for the 16 colours that follow the person's own theme. Others are left out.
fn colour(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 60,
        Color::LightRed => 61,
        Color::LightGreen => 62,
        Color::LightYellow => 63,
        Color::LightBlue => 64,
        Color::LightMagenta => 65,
        Color::LightCyan => 66,
        Color::White => 67,
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => return None,
    })
}
