//! A whole file, as it comes.

use bytes::{Bytes, BytesMut};

/// The bytes of a file that is read as a whole, up to a bound.
#[derive(Debug, Clone, Default)]
pub struct WholeFile {
    bytes: BytesMut,
    at_most: usize,
}

impl WholeFile {
    /// Nothing yet, of a file of at most so many bytes.
    pub fn of_at_most(bytes: u64) -> Self {
        Self {
            bytes: BytesMut::new(),
            at_most: usize::try_from(bytes).unwrap_or(usize::MAX),
        }
    }

    /// Takes in bytes at their offset. Repeats, and what lies behind a gap or beyond the bound, are dropped.
    pub fn push(&mut self, offset: u64, data: &[u8]) {
        let known = self.bytes.len();
        let Some(repeated) = usize::try_from(offset)
            .ok()
            .and_then(|offset| known.checked_sub(offset))
        else {
            return;
        };
        let new = data.get(repeated..).unwrap_or_default();
        let room = self.at_most - known;
        self.bytes.extend_from_slice(&new[..new.len().min(room)]);
    }

    /// All of it, if it came whole: so many bytes.
    pub fn all(&self, bytes: u64) -> Option<Bytes> {
        (self.bytes.len() as u64 == bytes).then(|| self.bytes.clone().freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_gaps_and_what_is_too_much_are_dropped() {
        let mut file = WholeFile::of_at_most(6);
        for (offset, data) in [
            (0, "ab"),
            (0, "abc"),
            (5, "gap"),
            (2, "cd"),
            (4, "efgh"),
            (6, "i"),
        ] {
            file.push(offset, data.as_bytes());
        }
        assert_eq!(file.all(6).as_deref(), Some(&b"abcdef"[..]));
        assert_eq!(file.all(9), None);
    }
}
