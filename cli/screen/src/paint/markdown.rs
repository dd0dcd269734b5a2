//! Markdown as styled rows.
//!
//! Text from a model arrives in pieces, and rows above the last block are never drawn again. So
//! the looks of a block may depend on nothing that follows it. Definitions of references
//! (`[name]: url`) break this rule, because links anywhere use them; they stay plain text.

mod inline;
mod open;
mod table;

#[cfg(test)]
mod tests;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use shared_types::clean::clean;

use self::inline::Inline;
pub use self::open::{LONG_BLOCK, Open, open_block, open_part};
use self::table::Table;
use super::{code, palette, wrap};

/// Columns that the text of a quote or an item needs; below, its mark stands in its own row.
const NARROWEST: usize = 4;

/// Columns before each line of a code block.
const CODE_INDENT: usize = 2;

/// Stands for the `:` of a definition while the text is parsed. Clean text does not contain it.
const MASK: char = '\u{1}';

/// Paints Markdown in rows of at most so many columns.
///
/// There is one blank row between blocks, and none at the ends. Control characters are removed.
pub fn markdown(text: &str, columns: usize) -> Vec<Line<'static>> {
    let text = masked(&clean(text));
    let mut painter = Painter::new(columns.max(1));
    for event in Parser::new_ext(&text, options()) {
        painter.event(event);
    }
    painter.rows
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The text, in which no definition of a reference is seen by the parser; of the same length.
fn masked(text: &str) -> String {
    text.replace("]:", "]\u{1}")
}

/// Text of the parser, which may have decoded control characters (`&#27;`), made harmless.
fn unmasked(text: &str) -> String {
    let harmless = |letter| match letter {
        MASK => ':',
        '\t' => ' ',
        letter if shared_types::clean::is_harmless(letter) => letter,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(letter)).unwrap_or(' '),
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(harmless).collect()
}

/// The inside of a quote or an item: what stands before its rows.
struct Container {
    /// Before the first row, until that is painted.
    first: Option<Span<'static>>,
    /// Before each other row.
    rest: Span<'static>,
    width: usize,
    is_item: bool,
    /// The rows before it, if it is too narrow for a margin.
    begin: usize,
}

/// A list that is open.
struct List {
    /// The number of the next item, if items are numbered.
    number: Option<u64>,
    /// True if blank rows stand between its items.
    is_loose: bool,
}

/// A block whose text is taken as it stands.
enum Verbatim {
    Code { language: String },
    Html,
}

struct Painter {
    columns: usize,
    rows: Vec<Line<'static>>,
    containers: Vec<Container>,
    /// Those of the containers that take columns; text may nest much deeper.
    wide: Vec<usize>,
    lists: Vec<List>,
    /// True if a blank row stands before the next block.
    gap: bool,
    inline: Inline,
    verbatim: Option<(Verbatim, String)>,
    table: Option<Table>,
}

impl Painter {
    fn new(columns: usize) -> Self {
        Painter {
            columns,
            rows: Vec::new(),
            containers: Vec::new(),
            wide: Vec::new(),
            lists: Vec::new(),
            gap: false,
            inline: Inline::default(),
            verbatim: None,
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) => match &mut self.verbatim {
                Some((_, verbatim)) => verbatim.push_str(&text),
                None => self.inline.push(&unmasked(&text)),
            },
            Event::InlineHtml(tag) if is_break(&tag) => self.inline.break_tag(&tag),
            Event::Code(text) => self.inline.code(&unmasked(&text)),
            Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.inline.push(&unmasked(&text)),
            Event::SoftBreak => self.inline.push(" "),
            Event::HardBreak => self.inline.hard_break(),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.width());
                self.emit(Line::styled(rule, palette::DIM));
                self.gap = true;
            }
            Event::TaskListMarker(is_done) => self.task(is_done),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                self.begin_block();
                let in_item = self.containers.last().is_some_and(|last| last.is_item);
                if let (true, Some(list)) = (in_item, self.lists.last_mut()) {
                    list.is_loose = true;
                }
            }
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.inline.open(heading_style(level));
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = Span::styled("│ ", palette::DIM);
                self.open_container(bar.clone(), bar, false);
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => language_of(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                self.verbatim = Some((Verbatim::Code { language }, String::new()));
            }
            Tag::HtmlBlock => {
                self.begin_block();
                self.verbatim = Some((Verbatim::Html, String::new()));
            }
            Tag::List(number) => {
                self.begin_block();
                self.lists.push(List {
                    number,
                    is_loose: false,
                });
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            Tag::Emphasis => self.inline.open(palette::ITALIC),
            Tag::Strong => self.inline.open(palette::BOLD),
            Tag::Strikethrough => self.inline.open(palette::STRUCK),
            Tag::Link { dest_url, .. } => self.inline.open_link(unmasked(&dest_url)),
            Tag::Image { dest_url, .. } => self.inline.open_image(unmasked(&dest_url)),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.paragraph();
                self.gap = true;
            }
            TagEnd::Heading(level) => {
                self.inline.close();
                self.heading(level);
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => self.close_container(),
            TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                match self.verbatim.take() {
                    Some((Verbatim::Code { language }, text)) => self.code(&text, &language),
                    Some((Verbatim::Html, text)) => self.html(&text),
                    None => {}
                }
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = true;
            }
            TagEnd::Item => {
                self.tight_text();
                self.close_container();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let rows = table.rows(self.width());
                    rows.into_iter().for_each(|row| self.emit(row));
                }
                self.gap = true;
            }
            TagEnd::TableCell => {
                let cell = self.inline.take();
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.inline.close(),
            TagEnd::Link => self.inline.close_link(),
            TagEnd::Image => self.inline.close_image(),
            _ => {}
        }
    }

    /// Ends the text before a block, and puts a blank row between blocks.
    fn begin_block(&mut self) {
        self.tight_text();
        self.space();
    }

    fn space(&mut self) {
        if std::mem::take(&mut self.gap) {
            self.emit(Line::default());
        }
    }

    /// Paints the text of an item that is no paragraph of its own.
    fn tight_text(&mut self) {
        if !self.inline.is_empty() {
            self.paragraph();
            self.gap = false;
        }
    }

    fn start_item(&mut self) {
        let depth = self.lists.len();
        let Some(list) = self.lists.last_mut() else {
            return;
        };
        let mark = match &mut list.number {
            Some(number) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            None => ["• ", "◦ ", "▪ "][depth.clamp(1, 3) - 1].to_owned(),
        };
        if list.is_loose {
            self.space();
        }
        self.gap = false;
        let rest = " ".repeat(wrap::width(&mark));
        self.open_container(Span::styled(mark, palette::DIM), Span::raw(rest), true);
    }

    fn task(&mut self, is_done: bool) {
        let mark = if is_done { "☑ " } else { "☐ " };
        let is_numbered = self.lists.last().is_some_and(|list| list.number.is_some());
        match self.containers.last_mut() {
            Some(Container {
                first: Some(first), ..
            }) if !is_numbered => {
                *first = Span::raw(mark);
            }
            _ => self.inline.push(mark),
        }
    }

    fn open_container(&mut self, first: Span<'static>, rest: Span<'static>, is_item: bool) {
        let width = wrap::width(&rest.content);
        let mut container = Container {
            first: Some(first),
            rest,
            width,
            is_item,
            begin: 0,
        };
        if self.width() >= width + NARROWEST {
            self.wide.push(self.containers.len());
        } else {
            container.width = 0;
            container.begin = self.rows.len();
            if is_item {
                self.emit_mark(container.first.take());
            }
        }
        self.containers.push(container);
    }

    fn close_container(&mut self) {
        let is_wide = self
            .wide
            .last()
            .is_some_and(|last| last + 1 == self.containers.len());
        match self.containers.last_mut() {
            Some(Container { first: Some(_), .. }) if is_wide => self.emit(Line::default()),
            // A narrow quote shows its mark only if it is empty.
            Some(Container { first, begin, .. }) if *begin == self.rows.len() => {
                let mark = first.take();
                self.emit_mark(mark);
            }
            _ => {}
        }
        self.containers.pop();
        if is_wide {
            self.wide.pop();
        }
        self.gap = true;
    }

    fn emit_mark(&mut self, mark: Option<Span<'static>>) {
        let rows = mark.map(|mark| wrap::wrap(&Line::from(mark), self.width(), 0));
        rows.into_iter().flatten().for_each(|row| self.emit(row));
    }

    /// Columns that are left inside the containers.
    fn width(&self) -> usize {
        let taken: usize = self
            .wide
            .iter()
            .map(|index| self.containers[*index].width)
            .sum();
        self.columns.saturating_sub(taken).max(1)
    }

    /// Adds a row inside the containers.
    fn emit(&mut self, row: Line<'static>) {
        let mut spans = Vec::new();
        for index in &self.wide {
            let container = &mut self.containers[*index];
            let before = container.first.take();
            spans.push(before.unwrap_or_else(|| container.rest.clone()));
        }
        for mut span in row.spans {
            span.style = row.style.patch(span.style);
            spans.push(span);
        }
        trim_end(&mut spans);
        self.rows.push(Line::from(spans));
    }

    fn paragraph(&mut self) {
        let width = self.width();
        for line in self.inline.take() {
            wrap::wrap(&line, width, 0)
                .into_iter()
                .for_each(|row| self.emit(row));
        }
    }

    fn heading(&mut self, level: HeadingLevel) {
        let width = self.width();
        let mark = Span::styled("#".repeat(level as usize), palette::DIM);
        if self.inline.is_empty() {
            let mark = wrap::fold(&Line::from(mark), width);
            mark.into_iter().for_each(|row| self.emit(row));
            return;
        }
        for mut line in self.inline.take() {
            let mut indent = 0;
            if level >= HeadingLevel::H3 {
                line.spans.splice(0..0, [mark.clone(), Span::raw(" ")]);
                indent = level as usize + 1;
            }
            wrap::wrap(&line, width, indent)
                .into_iter()
                .for_each(|row| self.emit(row));
        }
    }

    fn code(&mut self, text: &str, language: &str) {
        let text = text.replace(MASK, ":");
        let text = without_blank_ends(&text);
        if text.is_empty() {
            self.emit_folded(&Line::styled("```", palette::DIM), 0);
            return;
        }
        let indent = if self.width() >= CODE_INDENT + NARROWEST {
            CODE_INDENT
        } else {
            0
        };
        for line in code::highlight(text, language) {
            self.emit_folded(&line, indent);
        }
    }

    fn emit_folded(&mut self, line: &Line<'static>, indent: usize) {
        for mut row in wrap::fold(line, self.width() - indent) {
            if indent > 0 {
                row.spans.insert(0, Span::raw(" ".repeat(indent)));
            }
            self.emit(row);
        }
    }

    fn html(&mut self, text: &str) {
        let text = text.replace(MASK, ":");
        let width = self.width();
        for line in without_blank_ends(&text).lines() {
            let line = Line::raw(line.to_owned());
            wrap::wrap(&line, width, 0)
                .into_iter()
                .for_each(|row| self.emit(row));
        }
    }
}

fn heading_style(level: HeadingLevel) -> Style {
    match level {
        HeadingLevel::H1 => palette::BOLD.patch(palette::UNDERLINED),
        _ => palette::BOLD,
    }
}

fn is_break(tag: &str) -> bool {
    matches!(tag, "<br>" | "<br/>" | "<br />")
}

/// The language in the first line of a fence: `rust,ignore`, `{.python}`, `src/main.rs`.
fn language_of(info: &str) -> String {
    let info = info
        .replace(MASK, ":")
        .trim_start_matches(['{', '.'])
        .to_owned();
    let word = info
        .split(|letter: char| letter.is_whitespace() || ",{}:".contains(letter))
        .next();
    let word = word.unwrap_or_default();
    match code::language_of(word) {
        "" => word.to_owned(),
        language => language.to_owned(),
    }
}

/// The text without blank lines at its beginning and its end.
fn without_blank_ends(text: &str) -> &str {
    let text = text.trim_end();
    let first = text.len() - text.trim_start().len();
    let start = text[..first].rfind('\n').map_or(0, |end| end + 1);
    &text[start..]
}

/// Removes blanks at the end of a row.
fn trim_end(spans: &mut Vec<Span<'static>>) {
    while let Some(last) = spans.last_mut() {
        let kept = last.content.trim_end_matches(' ').len();
        last.content.to_mut().truncate(kept);
        if kept > 0 {
            return;
        }
        spans.pop();
    }
}
