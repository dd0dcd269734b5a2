//! Surfaces by what stands on the screen of a terminal that cuts, and of one that reflows.

use std::num::NonZeroU16;

use proptest::prelude::*;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::*;

/// A terminal. `reflows` says whether it wraps wide lines after a resize, as most do; vt100 cuts, as xterm does.
struct Tty {
    parser: vt100::Parser,
    reflows: bool,
}

const SCROLLBACK: usize = 10_000;

fn number(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a screen has cells")
}

impl Tty {
    fn new(size: Size, reflows: bool) -> Self {
        let parser = vt100::Parser::new(number(size.rows), number(size.columns), SCROLLBACK);
        Self { parser, reflows }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    /// All rows from the beginning, and for each whether it continues on the next row.
    fn rows_and_wraps(&mut self) -> Vec<(String, bool)> {
        let columns = self.parser.screen().size().1.get();
        let back = self.parser.screen().scrollback_len();
        let mut all = Vec::new();
        for offset in (0..=back).rev() {
            let screen = self.parser.screen_mut();
            screen.set_scrollback(offset);
            let rows = screen.rows(0, columns).enumerate();
            let rows = rows.map(|(at, row)| (row, screen.row_wrapped(u16::try_from(at).unwrap())));
            all.extend(rows.take(if offset == 0 { usize::MAX } else { 1 }));
        }
        // An old row that wrapped, and whose second half was overwritten, still has its mark in some terminals. The
        // join is harmless, but would hide where a printed line begins.
        let begins: Vec<_> = all.iter().map(|(row, _)| row.starts_with('#')).collect();
        for (wraps, begins) in all.iter_mut().map(|(_, wraps)| wraps).zip(&begins[1..]) {
            *wraps &= !begins;
        }
        all
    }

    /// All rows from the beginning, without blank ones at the end.
    fn rows(&mut self) -> Vec<String> {
        let rows = self.rows_and_wraps().into_iter();
        let mut rows: Vec<_> = rows.map(|(row, _)| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// The cursor's row and column, counted from the beginning of the scrollback.
    fn cursor(&self) -> (usize, usize) {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        (screen.scrollback_len() + usize::from(row), column.into())
    }

    fn resize(&mut self, size: Size) {
        let (rows, columns) = (number(size.rows), number(size.columns));
        if !self.reflows {
            self.parser.set_size(rows, columns);
            return;
        }
        let width = usize::from(self.parser.screen().size().1.get());
        let (cursor_row, cursor_column) = self.cursor();
        // Rows that continue each other are one line, in which the cursor has a place.
        let mut lines = vec![String::new()];
        let (mut line, mut place, mut continues) = (0, 0, 0);
        for (at, (row, wraps)) in self.rows_and_wraps().into_iter().enumerate() {
            lines.last_mut().expect("a line").push_str(&row);
            if at == cursor_row {
                (line, place) = (lines.len() - 1, continues * width + cursor_column);
            }
            continues += 1;
            if !wraps {
                lines.push(String::new());
                continues = 0;
            }
        }
        let mut new = vt100::Parser::new(rows, columns, SCROLLBACK);
        let mut cursor = (0, 0);
        let last = lines.iter().rposition(|line| !line.trim_end().is_empty());
        for (at, text) in lines
            .iter()
            .enumerate()
            .take(last.unwrap_or(0).max(line) + 1)
        {
            let begin =
                new.screen().scrollback_len() + usize::from(new.screen().cursor_position().0);
            if at == line {
                let place = place.min(text.trim_end().width().max(place % width));
                let columns = usize::from(size.columns);
                cursor = (begin + place / columns, place % columns);
            }
            if at > line && begin + 1 >= cursor.0 + usize::from(size.rows) {
                break;
            }
            new.process(text.trim_end().as_bytes());
            new.process(b"\r\n");
        }
        // The cursor's line may be followed by so much that the cursor would leave the screen.
        let row = cursor.0.saturating_sub(new.screen().scrollback_len());
        new.process(format!("\x1b[{};{}H", row + 1, cursor.1 + 1).as_bytes());
        self.parser = new;
    }
}

const SIZE: Size = Size {
    columns: 20,
    rows: 6,
};

fn lines(texts: &[&str]) -> Vec<Line<'static>> {
    texts
        .iter()
        .map(|text| Line::raw((*text).to_owned()))
        .collect()
}

fn bottom(texts: &[&str], row: u16, column: u16) -> Bottom {
    Bottom {
        lines: lines(texts),
        cursor: Some(Position { row, column }),
    }
}

fn begun() -> (Surface, Tty) {
    (Surface::new(SIZE, Colours::Full), Tty::new(SIZE, false))
}

#[test]
fn printed_lines_stand_above_the_bottom_lines_and_scroll_away() {
    let (mut surface, mut tty) = begun();
    tty.take(&surface.frame(&bottom(&["box", "hint"], 0, 2)));
    assert_eq!(tty.cursor(), (0, 2));
    for printed in ["a", "b", "c", "d", "e", "f"] {
        surface.print(&lines(&[printed]));
        tty.take(&surface.frame(&bottom(&["box", "hint"], 1, 4)));
    }
    assert_eq!(tty.rows(), ["a", "b", "c", "d", "e", "f", "box", "hint"]);
    assert_eq!(tty.cursor(), (7, 4));
    assert_eq!(tty.parser.screen().scrollback_len(), 2);
}

#[test]
fn the_bottom_grows_and_shrinks_in_its_place() {
    let (mut surface, mut tty) = begun();
    surface.print(&lines(&["above"]));
    for texts in [
        &["1"][..],
        &["1", "2", "3", "4"],
        &["1", "x", "3"],
        &[],
        &["2", "1"],
    ] {
        tty.take(&surface.frame(&bottom(texts, 1, 0)));
        assert_eq!(tty.rows(), [&["above"], texts].concat());
        assert!(surface.frame(&bottom(texts, 1, 0)).is_empty());
    }
}

#[test]
fn a_bottom_that_is_too_high_is_cut_from_the_top() {
    let (mut surface, mut tty) = begun();
    surface.print(&lines(&["above"]));
    let texts = ["1", "2", "3", "4", "5", "6", "7"];
    tty.take(&surface.frame(&bottom(&texts, 6, 1)));
    assert_eq!(tty.rows(), ["above", "3", "4", "5", "6", "7"]);
    assert_eq!(tty.cursor(), (5, 1));
}

#[test]
fn a_cleared_surface_leaves_printed_lines_and_a_shown_cursor() {
    let (mut surface, mut tty) = begun();
    tty.take(&surface.frame(&Bottom {
        lines: lines(&["1", "2"]),
        cursor: None,
    }));
    assert!(tty.parser.screen().hide_cursor());
    surface.print(&lines(&["last"]));
    tty.take(&surface.clear());
    assert_eq!(
        (tty.rows(), tty.cursor()),
        (vec!["last".to_owned()], (1, 0))
    );
    assert!(!tty.parser.screen().hide_cursor());
    tty.take(b"an editor's words\r\n");
    surface.reset();
    tty.take(&surface.frame(&bottom(&["box"], 0, 0)));
    assert_eq!(tty.rows(), ["last", "an editor's words", "box"]);
}

#[test]
fn bottom_lines_that_were_written_over_are_drawn_again_in_their_place() {
    let (mut surface, mut tty) = begun();
    surface.print(&lines(&["above"]));
    tty.take(&surface.frame(&bottom(&["1", "2", "3"], 1, 0)));
    tty.take(b"xxxx\x1b[B\rxxxx\x1b[A\r");
    assert!(surface.frame(&bottom(&["1", "2", "3"], 1, 0)).is_empty());
    surface.redraw();
    tty.take(&surface.frame(&bottom(&["1", "2", "3"], 1, 0)));
    assert_eq!(tty.rows(), ["above", "1", "2", "3"]);
    assert_eq!(tty.cursor(), (2, 0));
}

#[test]
fn wide_printed_lines_are_whole_and_wide_bottom_lines_are_cut() {
    let (mut surface, mut tty) = begun();
    let wide = "0123456789".repeat(3);
    let full = "f".repeat(20);
    surface.print(&lines(&["", &wide, &full, "日本語日本語日本語日本"]));
    tty.take(&surface.frame(&bottom(
        &["日本語日本語日本語x日", "e\u{301}\u{200b}", &wide],
        1,
        99,
    )));
    let rows = tty.rows();
    assert_eq!(rows[..4], ["", &wide[..20], &wide[20..], &full]);
    assert_eq!(rows[4..6], ["日本語日本語日本語日", "本"]);
    assert_eq!(
        rows[6..],
        ["日本語日本語日本語x", "e\u{301}\u{200b}", &wide[..20]]
    );
    assert_eq!(tty.cursor(), (7, 19));
}

#[test]
fn text_cannot_drive_the_terminal() {
    let (mut surface, mut tty) = begun();
    surface.print(&lines(&["a\x1b[2Jb\r\nc\u{202e}\td\u{9b}5n"]));
    tty.take(&surface.frame(&bottom(&["\x1b[?1049h"], 0, 0)));
    assert_eq!(tty.rows(), ["a[2Jbc d5n", "[?1049h"]);
}

#[test]
fn styles_end_with_their_span_and_colours_can_be_off() {
    let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    let line = Line::from(vec![Span::styled("red", red), Span::raw(" plain")]);
    for (colours, colour) in [
        (Colours::Full, vt100::Color::Idx(1)),
        (Colours::None, vt100::Color::Default),
    ] {
        let mut surface = Surface::new(SIZE, colours);
        let mut tty = Tty::new(SIZE, false);
        surface.print(std::slice::from_ref(&line));
        tty.take(&surface.frame(&bottom(&["box"], 0, 0)));
        let cell = |column| tty.parser.screen().cell(0, column).expect("a cell");
        assert_eq!((cell(2).fgcolor(), cell(2).bold()), (colour, true));
        assert_eq!(
            (cell(4).fgcolor(), cell(4).bold()),
            (vt100::Color::Default, false)
        );
    }
}

#[test]
fn a_change_of_one_row_of_twenty_is_few_bytes() {
    let size = Size {
        columns: 120,
        rows: 40,
    };
    let mut surface = Surface::new(size, Colours::Full);
    let text = |last: &str| {
        let mut texts = vec!["word ".repeat(24); 20];
        texts[10] = format!("{}{last}", "word ".repeat(20));
        Bottom {
            lines: texts.into_iter().map(Line::raw).collect(),
            cursor: Some(Position { row: 18, column: 2 }),
        }
    };
    let whole = surface.frame(&text("")).len();
    let changed = surface.frame(&text("token")).len();
    assert!(whole > 2_000 && changed < 300, "{whole} {changed}");
    assert!(surface.frame(&text("token")).is_empty());
}

#[test]
fn a_frame_is_synchronized_and_does_not_wrap() {
    let mut surface = Surface::new(SIZE, Colours::Full);
    let frame = String::from_utf8(surface.frame(&bottom(&["box"], 0, 0))).expect("text");
    assert!(frame.starts_with("\x1b[?2026h\x1b[?25l"), "{frame:?}");
    assert!(frame.ends_with("\x1b[?25h\x1b[?2026l"), "{frame:?}");
    let row = frame.find("box").expect("it is drawn");
    assert!(frame[..row].contains("\x1b[?7l") && frame[row..].contains("\x1b[?7h"));
    assert!(!frame.contains("\x1b[6n"));
}

#[test]
fn a_terminal_that_reflows_keeps_no_old_rows_if_the_caller_knows() {
    let narrow = Size {
        columns: 7,
        rows: 12,
    };
    let texts = [
        "────────────────────",
        "> input that is long",
        "────────────────────",
    ];
    for (reflow, is_settled, old) in [
        (Reflow::Wraps, true, 0),
        (Reflow::Wraps, false, 4),
        (Reflow::Unknown, true, 4),
    ] {
        let mut surface = Surface::new(SIZE, Colours::Full);
        surface.set_reflow(reflow);
        let mut tty = Tty::new(SIZE, true);
        surface.print(&lines(&["above"]));
        tty.take(&surface.frame(&bottom(&texts, 1, 15)));
        if is_settled {
            surface.settle();
        }
        tty.resize(narrow);
        surface.resize(narrow);
        tty.take(&surface.frame(&bottom(&["new"], 0, 0)));
        let rows = tty.rows();
        assert_eq!(
            (rows.len(), rows[0].as_str(), rows[rows.len() - 1].as_str()),
            (2 + old, "above", "new")
        );
    }
}

#[test]
fn terminals_that_reflow_are_known_by_their_variables() {
    let of = |set: &[(&str, &str)]| {
        Reflow::of(|name| {
            let value = set.iter().find(|(set, _)| *set == name);
            value.map(|(_, value)| (*value).to_owned())
        })
    };
    assert_eq!(of(&[("TERM", "xterm-256color")]), Reflow::Unknown);
    assert_eq!(of(&[("TERM", "xterm-kitty")]), Reflow::Wraps);
    assert_eq!(of(&[("TMUX", "/tmp/tmux,1,0")]), Reflow::Wraps);
    // xterm, started from a terminal that reflows.
    assert_eq!(
        of(&[("VTE_VERSION", "7600"), ("XTERM_VERSION", "XTerm(390)")]),
        Reflow::Unknown
    );
}

/// Text of so many columns: of wide letters in every third case.
fn text(columns: usize, narrow: &str) -> String {
    match columns % 3 {
        0 => "日".repeat(columns / 2),
        _ => narrow.repeat(columns),
    }
}

#[derive(Debug, Clone)]
enum Step {
    Print(Vec<usize>),
    Frame {
        widths: Vec<usize>,
        cursor: Option<(u16, u16)>,
    },
    Resize(u16, u16),
    Settle,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let cursor = prop::option::of((0..8u16, 0..60u16));
    prop_oneof![
        2 => prop::collection::vec(0..70usize, 0..5).prop_map(Step::Print),
        4 => (prop::collection::vec(0..70usize, 0..8), cursor)
            .prop_map(|(widths, cursor)| Step::Frame { widths, cursor }),
        3 => (8..60u16, 1..12u16).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        3 => Just(Step::Settle),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn every_printed_line_stands_once_and_in_order(
        steps in prop::collection::vec(step(), 1..30),
        reflows: bool,
        is_known: bool,
    ) {
        let mut surface = Surface::new(SIZE, Colours::None);
        if reflows && is_known {
            surface.set_reflow(Reflow::Wraps);
        }
        let mut tty = Tty::new(SIZE, reflows);
        let mut count = 0;
        for step in steps {
            match step {
                Step::Print(widths) => for width in widths {
                    surface.print(&[Line::raw(format!("#{count} {}", text(width, ".")))]);
                    count += 1;
                },
                Step::Frame { widths, cursor } => {
                    let bottom = Bottom {
                        lines: widths.iter().map(|width| Line::raw(text(*width, "="))).collect(),
                        cursor: cursor.map(|(row, column)| Position { row, column }),
                    };
                    tty.take(&surface.frame(&bottom));
                    prop_assert!(surface.frame(&bottom).is_empty());
                }
                Step::Resize(columns, rows) => {
                    tty.resize(Size { columns, rows });
                    surface.resize(Size { columns, rows });
                }
                Step::Settle => surface.settle(),
                Step::Clear => tty.take(&surface.clear()),
            }
        }
        tty.take(&surface.clear());
        let rows = tty.rows();
        let numbers: Vec<_> = rows
            .iter()
            .filter_map(|row| row.strip_prefix('#')?.split(' ').next()?.parse::<usize>().ok())
            .collect();
        prop_assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "{:#?}", rows);
    }
}
