//! Lines of a terminal: how wide text is, and where it breaks.
//!
//! Widths are columns, counted by grapheme cluster, so that an emoji of several characters stays
//! whole. Text breaks between words. Wide clusters (CJK, emoji) may break on either side.

#[cfg(test)]
mod tests;

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::palette;

/// Columns from one tab stop to the next.
const TAB: usize = 4;

/// The columns that a text takes in one row.
pub fn width(text: &str) -> usize {
    let mut column = 0;
    for cluster in text.graphemes(true) {
        column += cluster_width(cluster, column);
    }
    column
}

/// The text, or its beginning and `…`, in at most so many columns.
pub fn cut(text: &str, columns: usize) -> String {
    let (mut column, mut kept) = (0, 0);
    for (start, cluster) in text.grapheme_indices(true) {
        column += cluster_width(cluster, column);
        if column < columns {
            kept = start + cluster.len();
        }
        if column > columns {
            let ellipsis = if columns == 0 { "" } else { "…" };
            return format!("{}{ellipsis}", &text[..kept]);
        }
    }
    text.to_owned()
}

/// Breaks a line between words into rows of at most so many columns.
///
/// Rows after the first are indented by `indent` columns. Blanks at a break are dropped, and tabs
/// become spaces. A word longer than a row is cut. Only a cluster that is itself wider than
/// `columns` makes a row that is wider. There is always at least one row.
pub fn wrap(line: &Line<'static>, columns: usize, indent: usize) -> Vec<Line<'static>> {
    let clusters = clusters(line);
    let mut rows = Rows::new(columns.max(1), indent);
    let mut rest = clusters.as_slice();
    let blanks = rest.iter().take_while(|cluster| cluster.is_blank()).count();
    let (lead, words) = rest.split_at(blanks);
    // An indentation that leaves no room for text is shortened.
    let room = rows.columns.saturating_sub(2);
    rows.put(&lead[..lead.len().min(room)]);
    rows.start = rows.column;
    rest = words;
    while !rest.is_empty() {
        let (word, blanks, after) = next_word(rest);
        rows.word(word);
        rows.blanks = blanks;
        rest = after;
    }
    let left = rows.columns.saturating_sub(rows.column);
    let blanks = &rows.blanks[..rows.blanks.len().min(left)];
    rows.put(blanks);
    rows.finish(line.style)
}

/// Breaks a line exactly at the last column of each row: for code.
///
/// Tabs become spaces. Blanks are kept, but an indentation that fills a row is shortened. There is
/// always at least one row.
pub fn fold(line: &Line<'static>, columns: usize) -> Vec<Line<'static>> {
    let mut rows = Rows::new(columns.max(1), 0);
    let clusters = clusters(line);
    let rest = rows.lead(&clusters);
    rows.cut(rest);
    rows.finish(line.style)
}

/// The text with spaces for its tabs, in each of its lines.
pub fn untabbed(text: &str) -> String {
    if !text.contains('\t') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for cluster in text.graphemes(true) {
        let width = cluster_width(cluster, column);
        match cluster {
            "\t" => out.extend(std::iter::repeat_n(' ', width)),
            cluster => out.push_str(cluster),
        }
        column = if cluster == "\n" { 0 } else { column + width };
    }
    out
}

/// A grapheme cluster with its width in columns.
struct Cluster<'a> {
    text: &'a str,
    width: usize,
    style: Style,
}

impl Cluster<'_> {
    fn is_blank(&self) -> bool {
        self.text == " "
    }

    fn is_wide(&self) -> bool {
        self.width > 1
    }

    /// True for punctuation that does not begin a row.
    fn closes(&self) -> bool {
        matches!(
            self.text,
            "、" | "。"
                | "，"
                | "．"
                | "！"
                | "？"
                | "；"
                | "："
                | "）"
                | "」"
                | "』"
                | "】"
                | "》"
                | "〉"
                | "ー"
                | "."
                | ","
                | "!"
                | "?"
                | ";"
                | ":"
                | ")"
                | "]"
                | "}"
                | "”"
                | "’"
        )
    }

    /// True for punctuation that does not end a row.
    fn opens(&self) -> bool {
        matches!(
            self.text,
            "（" | "「" | "『" | "【" | "《" | "〈" | "(" | "[" | "{" | "“" | "‘"
        )
    }
}

fn cluster_width(cluster: &str, column: usize) -> usize {
    if cluster == "\t" {
        return TAB - column % TAB;
    }
    cluster.width()
}

fn clusters<'a>(line: &'a Line<'static>) -> Vec<Cluster<'a>> {
    let mut clusters = Vec::new();
    let mut column = 0;
    for span in &line.spans {
        for text in span.content.graphemes(true) {
            let width = cluster_width(text, column);
            column += width;
            if text == "\t" {
                let blank = || Cluster {
                    text: " ",
                    width: 1,
                    style: span.style,
                };
                clusters.extend(std::iter::repeat_with(blank).take(width));
            } else {
                clusters.push(Cluster {
                    text,
                    width,
                    style: span.style,
                });
            }
        }
    }
    clusters
}

/// The first word, the blanks behind it, and all that follows them.
fn next_word<'s, 'a>(
    clusters: &'s [Cluster<'a>],
) -> (&'s [Cluster<'a>], &'s [Cluster<'a>], &'s [Cluster<'a>]) {
    let mut end = 0;
    while end < clusters.len() && !clusters[end].is_blank() {
        end += 1;
        if end < clusters.len() && breaks_between(&clusters[end - 1], &clusters[end]) {
            break;
        }
    }
    let (word, rest) = clusters.split_at(end);
    let blanks = rest.iter().take_while(|cluster| cluster.is_blank()).count();
    let (blanks, after) = rest.split_at(blanks);
    (word, blanks, after)
}

fn breaks_between(before: &Cluster<'_>, after: &Cluster<'_>) -> bool {
    (before.is_wide() || after.is_wide()) && !before.opens() && !after.closes()
}

/// The rows made so far, and the one that is being filled.
struct Rows<'s, 'a> {
    columns: usize,
    indent: usize,
    done: Vec<Vec<Span<'static>>>,
    row: Vec<Span<'static>>,
    /// Columns of `row` that are used.
    column: usize,
    /// Columns of `row` that its indentation takes.
    start: usize,
    /// Blanks behind the last word, which are dropped if the row ends there.
    blanks: &'s [Cluster<'a>],
}

impl<'s, 'a> Rows<'s, 'a> {
    fn new(columns: usize, indent: usize) -> Self {
        let indent = indent.min(columns.saturating_sub(2));
        Rows {
            columns,
            indent,
            done: Vec::new(),
            row: Vec::new(),
            column: 0,
            start: 0,
            blanks: &[],
        }
    }

    /// Puts the blanks at the beginning, fewer if they leave no room for text; returns the rest.
    fn lead<'r>(&mut self, clusters: &'r [Cluster<'a>]) -> &'r [Cluster<'a>] {
        let is_text = |cluster: &Cluster<'_>| !cluster.is_blank();
        let blanks = clusters.iter().position(is_text).unwrap_or(clusters.len());
        let (lead, rest) = clusters.split_at(blanks);
        let room = self.columns.saturating_sub(2);
        self.put(&lead[..lead.len().min(room)]);
        self.start = self.column;
        rest
    }

    /// Puts a word and the blanks before it on this row, or the word on the next.
    fn word(&mut self, word: &'s [Cluster<'a>]) {
        let blanks = std::mem::take(&mut self.blanks);
        let wide: usize = word.iter().map(|cluster| cluster.width).sum();
        let before: usize = blanks.iter().map(|cluster| cluster.width).sum();
        let left = self.columns.saturating_sub(self.column + before);
        if self.column + before + wide <= self.columns {
            self.put(blanks);
            self.put(word);
        } else if wide > self.columns - self.indent && left * 2 >= self.columns {
            self.put(blanks);
            self.cut(word);
        } else {
            if self.column > self.start {
                self.end_row();
            }
            self.cut(word);
        }
    }

    /// Puts clusters one by one, and ends a row where the next does not fit.
    fn cut(&mut self, clusters: &[Cluster<'a>]) {
        for cluster in clusters {
            let fits = self.column + cluster.width <= self.columns;
            if !fits && self.column > self.start {
                self.end_row();
            }
            if self.column + cluster.width > self.columns {
                self.drop_indent();
            }
            self.put(std::slice::from_ref(cluster));
        }
    }

    fn put(&mut self, clusters: &[Cluster<'a>]) {
        for cluster in clusters {
            self.column += cluster.width;
            match self.row.last_mut() {
                Some(last) if last.style == cluster.style => {
                    last.content.to_mut().push_str(cluster.text);
                }
                _ => self
                    .row
                    .push(Span::styled(cluster.text.to_owned(), cluster.style)),
            }
        }
    }

    /// Makes room for a cluster that is too wide for an indented row.
    fn drop_indent(&mut self) {
        for span in &mut self.row {
            let kept = span.content.trim_start_matches(' ').to_owned();
            let is_text = !kept.is_empty();
            span.content = kept.into();
            if is_text {
                break;
            }
        }
        self.column = 0;
        self.start = 0;
    }

    fn end_row(&mut self) {
        self.done.push(std::mem::take(&mut self.row));
        if self.indent > 0 {
            self.row
                .push(Span::styled(" ".repeat(self.indent), palette::PLAIN));
        }
        self.column = self.indent;
        self.start = self.indent;
    }

    fn finish(mut self, style: Style) -> Vec<Line<'static>> {
        self.done.push(self.row);
        let line = |spans| Line {
            spans,
            style,
            alignment: None,
        };
        self.done.into_iter().map(line).collect()
    }
}
