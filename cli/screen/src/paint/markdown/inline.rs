//! The text of one block, with its styles.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::paint::palette;

/// Text that is gathered until its block ends.
#[derive(Default)]
pub(super) struct Inline {
    lines: Vec<Line<'static>>,
    /// The styles that are open; each contains those before it.
    styles: Vec<Style>,
    link: Option<Link>,
    images: Vec<Image>,
}

struct Link {
    url: String,
    /// The text of the link so far.
    text: String,
}

struct Image {
    url: String,
    has_text: bool,
}

impl Inline {
    /// Adds text in the styles that are open.
    pub(super) fn push(&mut self, text: &str) {
        self.styled(text, self.style());
    }

    /// Adds code.
    pub(super) fn code(&mut self, text: &str) {
        self.styled(text, self.style().patch(palette::ACCENT));
    }

    /// Begins another line.
    pub(super) fn hard_break(&mut self) {
        self.line();
        self.lines.push(Line::default());
    }

    /// Takes a tag that begins another line; where there is no text before it, it is shown.
    pub(super) fn break_tag(&mut self, tag: &str) {
        match self.lines.last() {
            Some(last) if !is_blank(last) => self.hard_break(),
            _ => self.push(tag),
        }
    }

    /// Opens a style, which adds to those that are open.
    pub(super) fn open(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    /// Closes the style that was opened last.
    pub(super) fn close(&mut self) {
        self.styles.pop();
    }

    /// Opens a link.
    pub(super) fn open_link(&mut self, url: String) {
        self.open(palette::UNDERLINED);
        self.link = Some(Link {
            url,
            text: String::new(),
        });
    }

    /// Closes the link, and shows its address unless its text does.
    pub(super) fn close_link(&mut self) {
        self.close();
        let Some(Link { url, text }) = self.link.take() else {
            return;
        };
        if text.is_empty() {
            self.push(&url);
        } else if !is_address(&text, &url) {
            self.styled(&format!(" ({url})"), self.style().patch(palette::DIM));
        }
    }

    /// Opens an image, whose description follows.
    pub(super) fn open_image(&mut self, url: String) {
        self.push("[image: ");
        self.images.push(Image {
            url,
            has_text: false,
        });
    }

    /// Closes the image; its address stands for an absent description.
    pub(super) fn close_image(&mut self) {
        if let Some(Image {
            url,
            has_text: false,
        }) = self.images.pop()
        {
            self.push(&url);
        }
        self.push("]");
    }

    /// True if no text was added.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines so far, which are taken out, without blank ones at the ends; at least one.
    pub(super) fn take(&mut self) -> Vec<Line<'static>> {
        let is_text = |line: &Line<'static>| !is_blank(line);
        let first = self.lines.iter().position(is_text).unwrap_or(0);
        let last = self.lines.iter().rposition(is_text).unwrap_or(0);
        self.lines.truncate(last + 1);
        self.lines.drain(..first);
        self.line();
        std::mem::take(&mut self.lines)
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn styled(&mut self, text: &str, style: Style) {
        if let Some(link) = &mut self.link {
            link.text.push_str(text);
        }
        if let Some(image) = self.images.last_mut() {
            image.has_text |= !text.is_empty();
        }
        let spans = &mut self.line().spans;
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => spans.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn line(&mut self) -> &mut Line<'static> {
        if self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let last = self.lines.len() - 1;
        &mut self.lines[last]
    }
}

/// True if the text of a link already shows its address.
fn is_address(text: &str, url: &str) -> bool {
    let bare = ["mailto:", "https://", "http://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let bare = bare.unwrap_or(url);
    let text = text.trim();
    url.is_empty() || text == url || text == bare || text == bare.trim_end_matches('/')
}

fn is_blank(line: &Line<'static>) -> bool {
    line.spans.iter().all(|span| span.content.trim().is_empty())
}
