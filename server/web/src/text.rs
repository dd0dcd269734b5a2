//! The text of a page, by its content type.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use shared_types::clean::clean;
use url::Url;

use crate::{WebError, markdown};

/// The part of a page in which it may name its own encoding, in bytes
/// (<https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding>).
const NAMED_WITHIN_BYTES: usize = 1024;

/// Longest content type that is shown.
const SHOWN_LETTERS: usize = 80;

/// The kind of a page's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentType {
    /// The type in small letters, such as `text/html`; empty where none is known.
    name: String,
    charset: Option<String>,
}

impl ContentType {
    /// The kind that a header states.
    pub(crate) fn of(header: Option<&str>) -> Self {
        let mut parts = header.unwrap_or_default().split(';');
        let name = parts.next().unwrap_or_default();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim().trim_matches(['"', '\'']);
            (name.trim().eq_ignore_ascii_case("charset")).then(|| value.to_owned())
        });
        Self {
            name: name.trim().to_ascii_lowercase(),
            charset,
        }
    }

    /// True if the content is text, or its kind is not known.
    pub(crate) fn may_be_text(&self) -> bool {
        let name = self.name.as_str();
        let is_named = matches!(
            name,
            "" | "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/x-ndjson"
        );
        is_named || name.starts_with("text/") || name.ends_with("+json") || name.ends_with("+xml")
    }

    fn is_html(&self, content: &str) -> bool {
        let begin: String = content.trim_start().chars().take(14).collect();
        let begin = begin.to_ascii_lowercase();
        match self.name.as_str() {
            "text/html" | "application/xhtml+xml" => true,
            "" => begin.starts_with("<!doctype html") || begin.starts_with("<html"),
            _ => false,
        }
    }

    /// The refusal of content that is no text.
    pub(crate) fn no_text(&self, bytes: Option<u64>) -> WebError {
        let kind = match self.name.as_str() {
            "" => "data without a type".to_owned(),
            name => shared_types::clean::clean_line(name, SHOWN_LETTERS),
        };
        WebError::NoText {
            kind,
            size: match bytes {
                Some(bytes) => format!("{bytes} bytes"),
                None => "of unknown size".to_owned(),
            },
        }
    }

    /// The content as text, with the title first where it has one; HTML as Markdown.
    ///
    /// # Errors
    /// Fails if it is no text after all.
    pub(crate) fn text(&self, bytes: &[u8], url: &Url) -> Result<String, WebError> {
        let content = self.decoded(bytes);
        if content.contains('\0') {
            return Err(self.no_text(Some(bytes.len() as u64)));
        }
        if !self.is_html(&content) {
            return Ok(clean(&content));
        }
        let document = markdown::of_html(&content, url);
        let text = match document.title.as_str() {
            "" => document.text,
            title => format!("Title: {title}\n\n{}", document.text),
        };
        Ok(clean(&text))
    }

    /// The letters. A mark at the beginning counts first, then the header, then the page's own word. Without any it is
    /// UTF-8, or Latin-1 where it cannot be that.
    fn decoded(&self, bytes: &[u8]) -> String {
        let stated = self.charset.as_deref();
        let stated = stated.and_then(|name| Encoding::for_label(name.as_bytes()));
        let encoding = stated.or_else(|| named_in(bytes));
        let encoding = encoding.unwrap_or(match std::str::from_utf8(bytes) {
            Ok(_) => UTF_8,
            Err(_) => WINDOWS_1252,
        });
        encoding.decode(bytes).0.into_owned()
    }
}

/// The encoding that a page names in its head.
fn named_in(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(NAMED_WITHIN_BYTES)]);
    let head = head.to_ascii_lowercase();
    let (_, behind) = head
        .split_once("<meta")
        .and_then(|(_, behind)| behind.split_once("charset="))?;
    let name = behind.trim_start_matches(['"', '\'']);
    let end = name.find(|letter: char| !(letter.is_ascii_alphanumeric() || "-_:".contains(letter)));
    let named = Encoding::for_label(&name.as_bytes()[..end.unwrap_or(name.len())])?;
    // A page that can name its encoding in these bytes is not in two bytes a letter.
    Some(named.output_encoding())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(header: Option<&str>, bytes: &[u8]) -> Result<String, WebError> {
        let url = Url::parse("https://example.org/").expect("a URL");
        let kind = ContentType::of(header);
        match kind.may_be_text() {
            true => kind.text(bytes, &url),
            false => Err(kind.no_text(Some(bytes.len() as u64))),
        }
    }

    #[test]
    fn html_becomes_markdown_and_other_text_stays_as_it_is() {
        let page = b"<title>T</title><h1>Hi</h1>";
        for kind in [
            "text/html",
            "Text/HTML; charset=utf-8",
            "application/xhtml+xml",
        ] {
            let text = text(Some(kind), page).expect("it is text");
            assert_eq!(text, "Title: T\n\n# Hi", "{kind}");
        }
        for kind in [
            "text/plain",
            "text/markdown",
            "application/json",
            "application/ld+json; charset=utf-8",
            "application/xml",
            "image/svg+xml",
            "application/yaml",
        ] {
            let text = text(Some(kind), page).expect("it is text");
            assert_eq!(text.as_bytes(), page, "{kind}");
        }
    }

    #[test]
    fn a_content_without_a_type_is_known_by_its_bytes() {
        assert_eq!(text(None, b"{\"a\": 1}").as_deref(), Ok("{\"a\": 1}"));
        assert_eq!(text(None, b" <!DOCTYPE HTML><p>x").as_deref(), Ok("x"));
        assert_eq!(text(None, b"<html><p>x").as_deref(), Ok("x"));
        let error = text(None, b"\x7fELF\0\0").expect_err("it is no text");
        assert!(
            error.to_string().contains("data without a type, 6 bytes"),
            "{error}"
        );
    }

    #[test]
    fn content_that_is_no_text_is_told_by_type_and_size() {
        for kind in [
            "application/pdf",
            "image/png",
            "application/octet-stream",
            "video/mp4",
        ] {
            let error = text(Some(kind), b"12345")
                .expect_err("it is no text")
                .to_string();
            assert!(
                error.contains(&format!("no text but {kind}, 5 bytes")),
                "{error}"
            );
        }
        let error = text(Some("text/plain"), b"a\0b").expect_err("it is no text");
        assert!(error.to_string().contains("text/plain, 3 bytes"), "{error}");
        let unknown = ContentType::of(Some("a/b\x1b[2J"))
            .no_text(None)
            .to_string();
        assert!(
            unknown.contains("of unknown size") && !unknown.contains('\x1b'),
            "{unknown}"
        );
    }

    #[test]
    fn the_letters_are_those_of_the_mark_the_header_the_page_or_a_guess() {
        for (header, bytes, expected) in [
            ("text/plain; charset=iso-8859-1", &b"caf\xe9"[..], "café"),
            ("text/plain; Charset=\"windows-1251\"", b"\xcf\xf0", "Пр"),
            ("text/plain; charset=shift_jis", b"\x93\xfa", "日"),
            ("text/plain", b"caf\xe9", "café"),
            ("text/plain", "café".as_bytes(), "café"),
            ("text/plain; charset=nonsense", "café".as_bytes(), "café"),
            (
                "text/plain; charset=latin1",
                b"\xef\xbb\xbfcaf\xc3\xa9",
                "café",
            ),
            ("text/plain", b"\xff\xfea\0b\0", "ab"),
            ("text/html", b"<meta charset='iso-8859-1'>caf\xe9", "café"),
            (
                "text/html",
                b"<meta http-equiv=Content-Type content=\"text/html; charset=windows-1251\">\xcf",
                "П",
            ),
            (
                "text/html; charset=utf-8",
                b"<meta charset=latin1>caf\xc3\xa9",
                "café",
            ),
            ("text/html", b"<meta charset=utf-16>caf\xc3\xa9", "café"),
        ] {
            assert_eq!(
                text(Some(header), bytes).as_deref(),
                Ok(expected),
                "{header}"
            );
        }
    }

    #[test]
    fn a_text_cannot_drive_a_terminal() {
        let text = text(Some("text/plain"), b"a\x1b[2Jb").expect("it is text");
        assert!(!text.contains('\x1b'), "{text}");
    }
}
