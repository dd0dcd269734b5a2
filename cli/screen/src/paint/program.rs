//! The output of programs as styled rows.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::{palette, wrap};
use crate::transcript::output::{OutputLine, SgrStyle};

/// The colours of a terminal's theme, by their number.
const COLOURS: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

/// Paints what a program wrote in rows of at most so many columns.
///
/// Text is dim where the program gave it no colour of its own.
pub fn program(lines: &[OutputLine], columns: usize) -> Vec<Line<'static>> {
    let rows = |line: &OutputLine| match line {
        OutputLine::Text(_) => wrap::fold(&painted(line), columns),
        _ => wrap::wrap(&painted(line), columns, 2),
    };
    lines.iter().flat_map(rows).collect()
}

fn painted(line: &OutputLine) -> Line<'static> {
    match line {
        OutputLine::Text(runs) => Line::from_iter(
            runs.iter()
                .map(|run| Span::styled(run.0.clone(), style(run.1))),
        ),
        OutputLine::Skipped { lines: 1 } => note("… 1 line is not shown".to_owned()),
        OutputLine::Skipped { lines } => note(format!("… {lines} lines are not shown")),
        OutputLine::Gap { bytes } => note(format!("… {bytes} bytes did not arrive")),
    }
}

fn note(text: String) -> Line<'static> {
    Line::styled(text, palette::DIM.patch(palette::ITALIC))
}

fn style(sgr: SgrStyle) -> Style {
    let colour = sgr
        .colour
        .and_then(|number| COLOURS.get(usize::from(number)));
    let mut style = match colour {
        Some(colour) => Style::new().fg(*colour),
        None if sgr.bold => palette::PLAIN,
        None => palette::DIM,
    };
    let modifiers = [
        (sgr.bold, Modifier::BOLD),
        (sgr.dim, Modifier::DIM),
        (sgr.italic, Modifier::ITALIC),
        (sgr.underlined, Modifier::UNDERLINED),
    ];
    for (wanted, modifier) in modifiers {
        if wanted {
            style = style.add_modifier(modifier);
        }
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::shown::shown;
    use crate::transcript::output::Output;

    #[test]
    fn text_is_dim_where_the_program_gave_no_colour() {
        let mut output = Output::default();
        output.push("plain \x1b[31mred\x1b[0m \x1b[1mbold\x1b[0m\n");
        output.gap(3);
        assert_eq!(
            shown(&program(&output.lines(), 8)),
            "<dim>plain </><red>re</>\n<red>d</><dim> </><bold>bold</>\n\
             <dim italic>… 3</>\n<dim italic>  bytes</>\n<dim italic>  did</>\n<dim italic>  not</>\n<dim italic>  arrive</>"
        );
    }
}
