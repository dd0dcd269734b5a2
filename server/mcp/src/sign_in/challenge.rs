//! The refusal of a server: `WWW-Authenticate` (RFC 9110, section 11.6.1, and RFC 6750, section 3).

use std::collections::BTreeSet;

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use shared_types::clean::peer_words;

use super::{MAX_WORD_BYTES, scopes_of};

/// The words of a refusal about the token that would be accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The status of HTTP.
    pub status: u16,
    /// The address at which the server is described.
    pub resource_metadata: Option<String>,
    /// The scopes that are needed, parted by spaces.
    pub scope: Option<String>,
    /// The code of the error.
    pub error: Option<String>,
    /// The words for people.
    pub words: Option<String>,
}

impl Challenge {
    /// The refusal in an answer with this status and these headers.
    pub fn of(status: u16, headers: &HeaderMap) -> Self {
        let mut challenge = Self {
            status,
            ..Self::default()
        };
        let written = headers.get_all(WWW_AUTHENTICATE).iter();
        let written = written.filter_map(|value| value.to_str().ok());
        for (name, value) in written.flat_map(bearer) {
            let field = match name.as_str() {
                "resource_metadata" => &mut challenge.resource_metadata,
                "scope" => &mut challenge.scope,
                "error" => &mut challenge.error,
                "error_description" => &mut challenge.words,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        challenge
    }

    /// True if a token with more scopes would be accepted.
    pub fn wants_more(&self) -> bool {
        self.status == 403 && self.error.as_deref() == Some("insufficient_scope")
    }

    /// True if a token, or another one, would be accepted.
    pub fn wants_token(&self) -> bool {
        self.status == 401 || self.wants_more()
    }

    /// The scopes that are needed.
    pub fn scopes(&self) -> BTreeSet<String> {
        self.scope.as_deref().map(scopes_of).unwrap_or_default()
    }

    /// The refusal in words for people, if it has any.
    pub fn told(&self) -> Option<String> {
        let told = self.words.as_deref().or(self.error.as_deref());
        told.map(peer_words)
    }
}

/// The parameters of the challenges of the scheme Bearer, with their names in small letters.
fn bearer(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_bearer = false;
    let mut rest = header.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() && header.len() <= MAX_WORD_BYTES {
        let end = rest.find([' ', '\t', '=', ',']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let after = after.trim_start_matches([' ', '\t']);
        rest = match after.strip_prefix('=') {
            Some(after) => {
                let (value, after) = value(after.trim_start_matches([' ', '\t']));
                if is_bearer {
                    found.push((word.to_ascii_lowercase(), value));
                }
                after
            }
            // A word alone names the scheme of what follows.
            None => {
                is_bearer = word.eq_ignore_ascii_case("bearer");
                after
            }
        };
        rest = rest.trim_start_matches([' ', '\t', ',', '=']);
    }
    found
}

/// A value, and the rest behind it: a word, or a text in quotes.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut letters) = (String::new(), quoted.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            letter => value.push(letter),
        }
    }
    (value, "")
}
