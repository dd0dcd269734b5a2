//! The elements of HTML by their effect on the text.

/// An element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    Title,
    Base,
    Main,
    Break,
    Rule,
    /// A paragraph, or another element that stands on lines of its own.
    Block,
    /// Of this level, from 1.
    Heading(u8),
    Preformatted,
    Quote,
    List {
        is_numbered: bool,
    },
    Item,
    Table,
    Row,
    Cell,
    Strong,
    Emphasis,
    Code,
    Link,
    Image,
    /// An element whose content is no text for readers.
    Skipped(&'static str),
    /// An element that does not change its text.
    Other,
}

impl Tag {
    /// The element of this name, which is in small letters.
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"title" => Self::Title,
            b"base" => Self::Base,
            b"main" => Self::Main,
            b"br" => Self::Break,
            b"hr" => Self::Rule,
            b"p" | b"div" | b"section" | b"article" | b"header" | b"footer" | b"aside" | b"nav"
            | b"figure" | b"figcaption" | b"form" | b"fieldset" | b"details" | b"summary"
            | b"address" | b"caption" | b"dl" | b"dt" | b"dd" | b"body" | b"hgroup" => Self::Block,
            b"h1" => Self::Heading(1),
            b"h2" => Self::Heading(2),
            b"h3" => Self::Heading(3),
            b"h4" => Self::Heading(4),
            b"h5" => Self::Heading(5),
            b"h6" => Self::Heading(6),
            b"pre" | b"listing" | b"xmp" => Self::Preformatted,
            b"blockquote" => Self::Quote,
            b"ul" | b"menu" => Self::List { is_numbered: false },
            b"ol" => Self::List { is_numbered: true },
            b"li" => Self::Item,
            b"table" => Self::Table,
            b"tr" => Self::Row,
            b"td" | b"th" => Self::Cell,
            b"strong" | b"b" => Self::Strong,
            b"em" | b"i" => Self::Emphasis,
            b"code" | b"kbd" | b"samp" | b"tt" => Self::Code,
            b"a" => Self::Link,
            b"img" => Self::Image,
            b"script" => Self::Skipped("script"),
            b"style" => Self::Skipped("style"),
            b"noscript" => Self::Skipped("noscript"),
            b"template" => Self::Skipped("template"),
            b"iframe" => Self::Skipped("iframe"),
            b"svg" => Self::Skipped("svg"),
            b"select" => Self::Skipped("select"),
            _ => Self::Other,
        }
    }
}
