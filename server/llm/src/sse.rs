//! Server-sent events from bytes that arrive in any pieces.
//!
//! Follows the WHATWG rules for lines (LF, CR, CRLF), comments, `event` and `data`, with three
//! differences: an event has a size limit, because the sender is not trusted with our memory,
//! the last event counts even without its empty line, because servers forget it, and so does each
//! one before it: data that is a whole JSON document ends where the next field begins.

/// Largest event, in bytes of its lines. A whole answer may come as one, in escaped form.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The `event` field; empty where there was none.
    pub(crate) name: String,
    /// The `data` lines, joined by line feeds. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) data: String,
}

/// An event was larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Cuts bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The line that has no end yet.
    line: Vec<u8>,
    /// True if the last byte was a CR: an LF right after it belongs to the same line end.
    after_cr: bool,
    /// True once a line was seen: a byte order mark may stand only before the first.
    past_first_line: bool,
    name: Vec<u8>,
    data: Option<Vec<u8>>,
}

impl Decoder {
    /// The events that these bytes complete.
    ///
    /// # Errors
    /// Fails if an event is too large; the decoder is then of no further use.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<SseEvent>, TooLarge> {
        let mut events = Vec::new();
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend_line(&bytes[..end])?;
            events.extend(self.end_line());
            let after = &bytes[end + 1..];
            bytes = match (bytes[end], after) {
                (b'\r', []) => {
                    self.after_cr = true;
                    after
                }
                (b'\r', [b'\n', rest @ ..]) => rest,
                _ => after,
            };
        }
        self.extend_line(bytes)?;
        Ok(events)
    }

    /// The events that the end of the stream left without their empty lines.
    pub(crate) fn finish(mut self) -> Vec<SseEvent> {
        let before = match self.line.is_empty() {
            true => None,
            false => self.field(),
        };
        before.into_iter().chain(self.dispatch()).collect()
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let held = self.line.len() + self.name.len() + self.data.as_ref().map_or(0, Vec::len);
        if held + bytes.len() > MAX_EVENT_BYTES {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        if self.line.is_empty() {
            self.past_first_line = true;
            return self.dispatch();
        }
        self.field()
    }

    /// Takes the line as a field; gives the event before it, where that had no empty line.
    fn field(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !self.past_first_line {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        self.past_first_line = true;
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let begins =
            matches!(field, b"event" | b"data") && self.data.as_deref().is_some_and(is_document);
        let before = begins.then(|| self.dispatch()).flatten();
        match field {
            b"event" => self.name = value.to_vec(),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            // A comment has an empty field; `id` and `retry` are for clients that reconnect.
            _ => {}
        }
        before
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some(SseEvent {
            name: String::from_utf8_lossy(&name).into_owned(),
            data: String::from_utf8_lossy(&data).into_owned(),
        })
    }
}

/// True if these bytes are a whole JSON object.
fn is_document(data: &[u8]) -> bool {
    data.trim_ascii_start().starts_with(b"{")
        && data.trim_ascii_end().ends_with(b"}")
        && serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

#[cfg(test)]
mod tests;
