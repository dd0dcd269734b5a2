//! HTML as Markdown.
//!
//! Strangers write the pages, and one process serves all tenants. So the page never becomes a tree: the work is linear
//! in the page, the depth of what is remembered has a bound, and so has the text. A parser of HTML that builds a tree
//! gives none of this for pages that are made to harm it.

mod lines;
mod tags;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use url::Url;

use self::{lines::BoundedText, tags::Tag};

/// Longest Markdown of a page, in bytes. The rest is left out.
const MAX_BYTES: usize = 5 * 1024 * 1024;

/// Longest title that is taken, in bytes.
const MAX_TITLE_BYTES: usize = 512;

/// Longest address of a link that is shown, in bytes. A longer one is no link.
const MAX_LINK_BYTES: usize = 2048;

/// Most marks of text, such as links, that are open at once. Those within are plain text.
const MARKS_AT_MOST: usize = 32;

/// Most lists and quotations, or tables, within one another that are shown as such.
const DEPTH_AT_MOST: usize = 8;

/// Most columns of a table that its head counts.
const COLUMNS_AT_MOST: usize = 64;

/// A page as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// Its title; may be empty.
    pub(crate) title: String,
    /// Its content: the element `main`, where the page has one with a text, else everything.
    pub(crate) text: String,
}

/// The page as Markdown. Relative links are resolved against this address.
pub(crate) fn of_html(html: &str, base: &Url) -> Document {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut writer = MarkdownWriter::new(base.clone());
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        match token {
            Token::StartTag(tag) => writer.start(&tag),
            Token::EndTag(tag) => writer.end(Tag::of(&tag.name)),
            Token::String(text) => writer.text(&String::from_utf8_lossy(&text.value)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    writer.finish()
}

/// The words of a piece of HTML, without marks.
pub(crate) fn words_of_html(html: &str) -> String {
    let mut words = String::new();
    for token in Tokenizer::new(html).flatten() {
        if let Token::String(text) = token {
            words += &String::from_utf8_lossy(&text.value);
        }
    }
    words
}

struct MarkdownWriter {
    base: Url,
    lines: BoundedText,
    title: String,
    in_title: bool,
    /// The element that is left out, and how many of its kind are open.
    skipping: Option<(Tag, u32)>,
    marks: Vec<Mark>,
    /// The number of the next item of each open list, where it is a numbered one.
    lists: Stack<Option<u64>>,
    tables: Stack<OpenTable>,
    /// The first byte of the text in `main`, and the one behind its last.
    main: (Option<usize>, Option<usize>),
}

/// Elements that are open. Of those that are too deep only the number is known.
struct Stack<T> {
    items: Vec<T>,
    beyond: u32,
}

/// A part of a line that a mark ends.
struct Mark {
    tag: Tag,
    begin: &'static str,
    /// The place behind its beginning.
    from: usize,
    end: String,
}

/// A table that is open.
#[derive(Default)]
struct OpenTable {
    in_row: bool,
    in_cell: bool,
    cells: usize,
    rows: usize,
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            beyond: 0,
        }
    }
}

impl<T> Stack<T> {
    fn push(&mut self, item: T) {
        match self.items.len() < DEPTH_AT_MOST {
            true => self.items.push(item),
            false => self.beyond = self.beyond.saturating_add(1),
        }
    }

    fn pop(&mut self) {
        match self.beyond {
            0 => drop(self.items.pop()),
            beyond => self.beyond = beyond - 1,
        }
    }
}

impl MarkdownWriter {
    fn new(base: Url) -> Self {
        Self {
            base,
            lines: BoundedText::new(MAX_BYTES),
            title: String::new(),
            in_title: false,
            skipping: None,
            marks: Vec::new(),
            lists: Stack::default(),
            tables: Stack::default(),
            main: (None, None),
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            let room = MAX_TITLE_BYTES.saturating_sub(self.title.len());
            self.title.push_str(&text[..text.floor_char_boundary(room)]);
        } else if self.skipping.is_none() {
            self.lines.text(text);
        }
    }

    fn start(&mut self, start: &StartTag<()>) {
        let tag = Tag::of(&start.name);
        if let Some((skipped, depth)) = &mut self.skipping {
            *depth += u32::from(*skipped == tag && !start.self_closing);
            return;
        }
        match tag {
            Tag::Skipped("svg") if start.self_closing => {}
            Tag::Skipped(_) => self.skipping = Some((tag, 1)),
            Tag::Title => self.in_title = self.title.is_empty(),
            Tag::Base => {
                let base = attribute(start, "href").and_then(|href| self.base.join(&href).ok());
                self.base = base.unwrap_or_else(|| self.base.clone());
            }
            Tag::Main => {
                self.lines.paragraph();
                self.main.0.get_or_insert(self.lines.len());
            }
            Tag::Break => self.line(),
            Tag::Rule => {
                self.lines.paragraph();
                self.lines.text("---");
                self.lines.paragraph();
            }
            Tag::Block => self.block(),
            Tag::Heading(level) => {
                self.lines.paragraph();
                self.lines.mark(&format!("{} ", "#".repeat(level.into())));
            }
            Tag::Preformatted => self.lines.begin_code(),
            Tag::Quote => self.lines.begin_quote(),
            Tag::List { is_numbered } => {
                self.lines.list(self.lists.items.is_empty());
                let first = attribute(start, "start").and_then(|it| it.parse().ok());
                self.lists.push(is_numbered.then_some(first.unwrap_or(1)));
            }
            Tag::Item => self.item(),
            Tag::Table => {
                self.lines.paragraph();
                self.tables.push(OpenTable::default());
            }
            Tag::Row => self.row(),
            Tag::Cell => self.cell(),
            Tag::Strong | Tag::Emphasis | Tag::Code | Tag::Link => self.mark(tag, start),
            Tag::Image => {
                let alt = attribute(start, "alt").unwrap_or_default();
                if !alt.trim().is_empty() {
                    self.lines.text(&format!("![{}]", alt.trim()));
                }
            }
            Tag::Other => {}
        }
    }

    fn end(&mut self, tag: Tag) {
        if let Some((skipped, depth)) = &mut self.skipping {
            *depth -= u32::from(*skipped == tag);
            if *depth == 0 {
                self.skipping = None;
            }
            return;
        }
        match tag {
            Tag::Title => self.in_title = false,
            Tag::Main => {
                self.main.1.get_or_insert(self.lines.len());
                self.lines.paragraph();
            }
            Tag::Block => self.block(),
            Tag::Heading(_) => self.lines.paragraph(),
            Tag::Preformatted => self.lines.end_code(),
            Tag::Quote => self.lines.end_quote(),
            Tag::List { .. } => {
                self.lists.pop();
                self.lines.end_items(self.lists.items.len());
                self.lines.list(self.lists.items.is_empty());
            }
            Tag::Item => self.end_item(),
            Tag::Table => {
                self.end_row();
                self.tables.pop();
                self.lines.paragraph();
            }
            Tag::Row => self.end_row(),
            Tag::Cell => self.end_cell(),
            Tag::Strong | Tag::Emphasis | Tag::Code | Tag::Link => self.end_mark(tag),
            Tag::Break | Tag::Rule | Tag::Base | Tag::Image | Tag::Skipped(_) | Tag::Other => {}
        }
    }

    /// A paragraph begins or ends. In the cell of a plain table it is only a space.
    fn block(&mut self) {
        match self.is_in_cell() {
            true => self.lines.text(" "),
            false => self.lines.paragraph(),
        }
    }

    fn line(&mut self) {
        match self.is_in_cell() {
            true => self.lines.text(" "),
            false => self.lines.line(),
        }
    }

    fn is_in_cell(&self) -> bool {
        matches!(&self.tables.items[..], [table] if table.in_cell)
    }

    fn item(&mut self) {
        self.end_item();
        match self.lists.items.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                self.lines.begin_item(&marker);
            }
            _ => self.lines.begin_item("- "),
        }
    }

    fn end_item(&mut self) {
        self.lines
            .end_items(self.lists.items.len().saturating_sub(1));
    }

    fn row(&mut self) {
        self.end_row();
        self.lines.line();
        if let Some(table) = self.tables.items.last_mut() {
            (table.in_row, table.cells) = (true, 0);
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        let Some(table) = self.tables.items.last_mut().filter(|table| table.in_row) else {
            return;
        };
        table.in_row = false;
        if table.cells == 0 {
            return;
        }
        table.rows += 1;
        if table.rows == 1 {
            self.lines.line();
            let columns = table.cells.min(COLUMNS_AT_MOST);
            self.lines.text(&format!("|{}", "---|".repeat(columns)));
        }
        self.lines.line();
    }

    fn cell(&mut self) {
        self.end_cell();
        let Some(table) = self.tables.items.last_mut() else {
            return;
        };
        if table.cells == 0 {
            self.lines.text("|");
        }
        self.lines.text(" ");
        (table.in_cell, table.cells) = (true, table.cells + 1);
    }

    fn end_cell(&mut self) {
        if let Some(table) = self.tables.items.last_mut().filter(|table| table.in_cell) {
            table.in_cell = false;
            self.lines.text(" |");
        }
    }

    fn mark(&mut self, tag: Tag, start: &StartTag<()>) {
        if self.lines.is_code() || self.marks.len() >= MARKS_AT_MOST {
            return;
        }
        let (begin, end) = match tag {
            Tag::Strong => ("**", "**".to_owned()),
            Tag::Emphasis => ("*", "*".to_owned()),
            Tag::Code => ("`", "`".to_owned()),
            _ => match self.link(start) {
                Some(link) => ("[", format!("]({link})")),
                None => return,
            },
        };
        self.lines.mark(begin);
        let from = self.lines.len();
        self.marks.push(Mark {
            tag,
            begin,
            from,
            end,
        });
    }

    /// Ends the innermost mark of this tag, and those within it.
    fn end_mark(&mut self, tag: Tag) {
        let Some(place) = self.marks.iter().rposition(|mark| mark.tag == tag) else {
            return;
        };
        for mark in self.marks.drain(place..).rev() {
            self.lines.end_mark(mark.begin, mark.from, &mark.end);
        }
    }

    /// The address of a link to another page.
    fn link(&self, start: &StartTag<()>) -> Option<String> {
        let href = attribute(start, "href").filter(|href| href.len() <= MAX_LINK_BYTES)?;
        let href = href.trim();
        let url = self.base.join(href).ok()?;
        let leads_on =
            matches!(url.scheme(), "http" | "https" | "mailto") && !href.starts_with('#');
        let shown = String::from(url);
        (leads_on && shown.len() <= MAX_LINK_BYTES).then_some(shown)
    }

    fn finish(mut self) -> Document {
        for mark in self.marks.drain(..).rev() {
            self.lines.end_mark(mark.begin, mark.from, &mark.end);
        }
        let text = self.lines.finish();
        let (from, to) = self.main;
        let main = from.and_then(|from| text.get(from..to.unwrap_or(text.len())));
        let main = main.map(str::trim).filter(|main| !main.is_empty());
        let text = main.unwrap_or(text.trim()).to_owned();
        let words: Vec<_> = self.title.split_whitespace().collect();
        Document {
            title: words.join(" "),
            text,
        }
    }
}

fn attribute(start: &StartTag<()>, name: &str) -> Option<String> {
    let value = start.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(&value.value).into_owned())
}

#[cfg(test)]
mod tests;
