//! Server-sent events, bounded (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).

use std::mem;

use crate::{
    McpError,
    bounds::{MAX_MESSAGE_BYTES, MAX_TOKEN_BYTES},
};

/// An event with data, or one that only has a place or a pause.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerEvent {
    /// Its place in the stream.
    pub(super) id: Option<String>,
    /// The pause before the stream is taken up again, in milliseconds.
    pub(super) retry: Option<u64>,
    /// Its data; may be empty.
    pub(super) data: String,
}

/// Reads events from pieces of a stream.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    after_return: bool,
    event: ServerEvent,
    has_data: bool,
}

impl Events {
    /// The events that end in this piece.
    ///
    /// # Errors
    /// One is too large.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<ServerEvent>, McpError> {
        let mut events = Vec::new();
        for byte in piece {
            let after_return = mem::take(&mut self.after_return);
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    let line = mem::take(&mut self.line);
                    events.extend(self.line(&line));
                }
                byte => self.line.push(*byte),
            }
            if self.line.len() + self.event.data.len() > MAX_MESSAGE_BYTES {
                return Err(McpError::TooLarge(MAX_MESSAGE_BYTES));
            }
        }
        Ok(events)
    }

    fn line(&mut self, line: &[u8]) -> Option<ServerEvent> {
        if line.is_empty() {
            self.has_data = false;
            let event = mem::take(&mut self.event);
            return (event != ServerEvent::default()).then_some(event);
        }
        let line = String::from_utf8_lossy(line);
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "id" if value.len() <= MAX_TOKEN_BYTES && !value.contains('\0') => {
                self.event.id = Some(value.to_owned());
            }
            "retry" => self.event.retry = value.parse().ok().or(self.event.retry),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_wherever_the_stream_is_cut() {
        let stream = "\u{feff}: hello\r\nid: 1\nretry: 500\ndata: \n\ndata: a\r\ndata:b\r\n\r\nevent: x\rid: 2\rdata: c\r\r";
        let whole = Events::default().push(stream.as_bytes()).unwrap();
        let data: Vec<_> = whole.iter().map(|event| event.data.as_str()).collect();
        assert_eq!(data, ["", "a\nb", "c"]);
        assert_eq!(
            (whole[0].id.as_deref(), whole[0].retry),
            (Some("1"), Some(500))
        );
        for cut in 0..stream.len() {
            let mut events = Events::default();
            let mut found = events.push(&stream.as_bytes()[..cut]).unwrap();
            found.extend(events.push(&stream.as_bytes()[cut..]).unwrap());
            assert_eq!(found, whole, "cut at {cut}");
        }
    }

    #[test]
    fn an_event_without_end_is_cut_off() {
        let mut events = Events::default();
        let piece = vec![b'x'; 64 * 1024];
        let ended = (0..17).find_map(|_| events.push(&piece).err());
        assert_eq!(ended, Some(McpError::TooLarge(MAX_MESSAGE_BYTES)));
        let mut events = Events::default();
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        let ended = (0..17).find_map(|_| events.push(&line).err());
        assert_eq!(ended, Some(McpError::TooLarge(MAX_MESSAGE_BYTES)));
    }
}
