//! Stored secrets, found in a text as they are and in the encodings in which programs print them.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// Shorter secrets are not looked for, since ordinary texts would have them.
pub const MIN_SECRET_CHARS: usize = 8;

/// Stored secrets that texts are searched for.
pub struct Secrets {
    names: Vec<String>,
    /// The secret of each pattern, as its place in `names`.
    owners: Vec<usize>,
    matcher: AhoCorasick,
}

impl Secrets {
    /// Secrets as (name, secret). Those of fewer than [`MIN_SECRET_CHARS`] characters are left out.
    ///
    /// # Errors
    /// If the secrets together are too long to search for at once, in the gigabytes.
    pub fn new<'a>(
        secrets: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, BuildError> {
        let (mut names, mut owners, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        for (name, secret) in secrets {
            if secret.chars().count() < MIN_SECRET_CHARS {
                continue;
            }
            for form in forms(secret) {
                owners.push(names.len());
                patterns.push(form);
            }
            names.push(name.to_owned());
        }
        let matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns)?;
        Ok(Self {
            names,
            owners,
            matcher,
        })
    }

    /// The text with `[secret NAME redacted]` in place of each secret.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = String::new();
        let mut from = 0;
        for found in self.matcher.find_iter(text) {
            let name = &self.names[self.owners[found.pattern().as_usize()]];
            redacted.push_str(&text[from..found.start()]);
            redacted.push_str(&format!("[secret {name} redacted]"));
            from = found.end();
        }
        match from {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(redacted + &text[from..]),
        }
    }
}

/// The secret as it is, and in base64, base64url, hex and percent encoding.
fn forms(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![
        secret.to_owned(),
        STANDARD_NO_PAD.encode(bytes),
        URL_SAFE_NO_PAD.encode(bytes),
        hex.to_uppercase(),
        hex,
        percent(bytes),
    ];
    forms.sort();
    forms.dedup();
    forms
}

/// Percent encoding (RFC 3986): all but the unreserved characters.
fn percent(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) => {
            char::from(*byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_secret_is_found_as_it_is_and_encoded() {
        let secret = "pa ss/w?rd>>1";
        let secrets = Secrets::new([("DB", secret)]).expect("it builds");
        let encoded = forms(secret);
        assert_eq!(encoded.len(), 6, "{encoded:?}");
        for form in encoded {
            let told = secrets.redact(&format!("a {form} b")).into_owned();
            assert_eq!(told, "a [secret DB redacted] b");
        }
    }

    #[test]
    fn short_secrets_and_other_texts_stay() {
        let secrets = Secrets::new([("PIN", "1234567"), ("KEY", "12345678")]).expect("it builds");
        assert_eq!(secrets.redact("1234567 and 1234"), "1234567 and 1234");
        assert_eq!(secrets.redact("12345678"), "[secret KEY redacted]");
    }
}
