//! The key of the model server: it goes out in one header, and is taken out of all that comes back.

use std::{fmt, fs, os::unix::fs::PermissionsExt as _, path::Path};

use bytes::Bytes;
use http::HeaderValue;
use shared_types::clean::{is_clean_line, without_mark};

use super::ModelServerError;

/// Longest key, in bytes.
const MAX_KEY_BYTES: u64 = 4096;

/// A shorter key is a placeholder such as `none`: to take it out of a text would only mangle words.
const SECRET_FROM_BYTES: usize = 8;

/// The text in place of the key.
const REDACTED: &[u8] = b"[key]";

/// See the module. It does not print.
#[derive(Clone)]
pub(super) struct ModelServerKey(String);

impl ModelServerKey {
    /// The key in this file.
    pub(super) fn load(path: &Path) -> Result<Self, ModelServerError> {
        let unreadable = |source| ModelServerError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let about = fs::metadata(path).map_err(unreadable)?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(ModelServerError::Exposed(path.to_owned()));
        }
        let no_key = || ModelServerError::NoKey(path.to_owned());
        if about.len() > MAX_KEY_BYTES {
            return Err(no_key());
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let key = Self(without_mark(&text).trim().to_owned());
        match !key.0.is_empty() && is_clean_line(&key.0) && key.header().is_some() {
            true => Ok(key),
            false => Err(no_key()),
        }
    }

    /// The header that carries it; none if it has a character that no header can carry.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("Bearer {}", self.0)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

impl fmt::Debug for ModelServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Takes the key out of bytes that come in pieces.
#[derive(Debug)]
pub(super) struct Redactor {
    key: Option<ModelServerKey>,
    /// The end of what came, which may be the beginning of the key.
    held: Vec<u8>,
}

impl Redactor {
    pub(super) fn new(key: Option<&ModelServerKey>) -> Self {
        Self {
            key: key.filter(|key| key.0.len() >= SECRET_FROM_BYTES).cloned(),
            held: Vec::new(),
        }
    }

    /// The next piece, without the key.
    pub(super) fn take(&mut self, data: Bytes) -> Bytes {
        let Some(ModelServerKey(key)) = &self.key else {
            return data;
        };
        let key = key.as_bytes();
        let bytes = [std::mem::take(&mut self.held), data.to_vec()].concat();
        let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), &bytes[..]);
        while let Some(first) = rest.iter().position(|byte| *byte == key[0]) {
            let (before, from) = rest.split_at(first);
            out.extend_from_slice(before);
            if let Some(behind) = from.strip_prefix(key) {
                out.extend_from_slice(REDACTED);
                rest = behind;
            } else if key.starts_with(from) {
                self.held = from.to_vec();
                return out.into();
            } else {
                out.push(from[0]);
                rest = &from[1..];
            }
        }
        out.extend_from_slice(rest);
        out.into()
    }

    /// The bytes that were held back, at the end.
    pub(super) fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }

    /// A whole text, without the key.
    pub(super) fn text(&self, text: &str) -> String {
        match &self.key {
            Some(ModelServerKey(key)) => text.replace(key, "[key]"),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_taken_out_however_the_bytes_are_cut() {
        let key = ModelServerKey("sk-sk-abcdef".to_owned());
        let said = "no sk-sk-sk-abcdef, sk-sk-abcdef and sk-sk-abcde";
        for cut in 0..=said.len() {
            let mut redactor = Redactor::new(Some(&key));
            let (before, behind) = said.as_bytes().split_at(cut);
            let pieces = [before, behind].map(|piece| redactor.take(Bytes::copy_from_slice(piece)));
            let all = [&pieces.concat()[..], &redactor.finish()[..]].concat();
            assert_eq!(
                String::from_utf8_lossy(&all),
                "no sk-[key], [key] and sk-sk-abcde"
            );
        }
        let placeholder = ModelServerKey("none".to_owned());
        assert_eq!(
            Redactor::new(Some(&placeholder)).text("none of it"),
            "none of it"
        );
    }
}
