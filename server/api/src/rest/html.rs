//! Pages for people: no script, no other files.

use std::fmt::{self, Display, Write as _};

use axum::http::{HeaderName, HeaderValue, header};

const STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
header p, .note { opacity: .7; font-size: .9rem; }
article { white-space: pre-wrap; overflow-wrap: anywhere; margin: 1rem 0; }
.you { border-left: 3px solid; padding-left: .8rem; }
details { margin: .5rem 0; font-size: .9rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 24rem; overflow-y: auto; padding: .6rem; \
border: 1px solid; border-radius: .3rem; }";

/// The headers of a page, beside those of all answers: they permit its own style and nothing else.
pub(crate) const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
    ),
    (
        HeaderName::from_static("x-robots-tag"),
        HeaderValue::from_static("noindex"),
    ),
];

/// A whole page with this title; the body is HTML.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\
         <style>{STYLE}</style></head>\n<body>\n{body}</body></html>\n",
        Escaped(title),
    )
}

/// Text that stays text in HTML, in and out of attributes.
pub(crate) struct Escaped<T>(pub(crate) T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escape<'a, 'b>(&'a mut fmt::Formatter<'b>);

        impl fmt::Write for Escape<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for letter in text.chars() {
                    match letter {
                        '&' => self.0.write_str("&amp;")?,
                        '<' => self.0.write_str("&lt;")?,
                        '>' => self.0.write_str("&gt;")?,
                        '"' => self.0.write_str("&quot;")?,
                        '\'' => self.0.write_str("&#39;")?,
                        letter => self.0.write_char(letter)?,
                    }
                }
                Ok(())
            }
        }

        write!(Escape(f), "{}", self.0)
    }
}
