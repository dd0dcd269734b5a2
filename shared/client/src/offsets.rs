//! The offsets of an attached operation: a pure state machine, which outlives connections. It passes on each byte of
//! output once and in order, and sends each byte of input until the server has taken it.
//!
//! Output has offsets, and the known part is cut off. An unannounced jump breaks the connection, and the next
//! connection asks for the missing bytes. Input is held until the server has taken it, at most one window. On a new
//! connection it is sent again from the offset that the server names.

use std::collections::VecDeque;

use shared_api::{
    BinaryFrame, Channel, OperationClientMessage, OperationServerMessage, Problem, StreamName,
    TerminalSize,
};
use shared_types::limits::{INPUT_CHUNK_BYTES, INPUT_WINDOW_BYTES};
use tokio_tungstenite::tungstenite::Bytes;

use crate::{Attached, http};

#[cfg(test)]
mod tests;

/// The offsets that one client has reached in an operation's output and input.
#[derive(Debug, Default)]
pub struct Offsets {
    stdout: u64,
    stderr: u64,
    input: UntakenInput,
    resize: Resize,
    /// Output below this offset is stored here for good.
    stored: u64,
    stored_told: u64,
    problem: Option<Problem>,
}

/// A message of the server.
#[derive(Debug, Clone, PartialEq)]
pub enum SocketMessage {
    /// A piece of output.
    Frame(BinaryFrame),
    /// Anything else.
    Message(OperationServerMessage),
}

/// A message of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Outgoing {
    /// A piece of input.
    Frame(BinaryFrame),
    /// Anything else.
    Message(OperationClientMessage),
}

/// A piece of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The offset of the piece in the input; `None` to append it. A piece at another offset is ignored.
    pub at: Option<u64>,
    /// Its bytes.
    pub data: Bytes,
    /// True if the input ends after this piece.
    pub end: bool,
}

/// The reason why a connection cannot be read on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BrokenOffset {
    /// Output is missing.
    #[error("output came at offset {next} after offset {have}")]
    Missing {
        /// The end of the known output.
        have: u64,
        /// The offset of the piece.
        next: u64,
    },
    /// A piece of input came from the server.
    #[error("the server sent input")]
    Input,
}

/// The input that the server has not taken yet.
#[derive(Debug, Default)]
struct UntakenInput {
    /// The offset of the first byte that is held.
    base: u64,
    /// The offset after the last held byte.
    end: u64,
    held: VecDeque<Bytes>,
    is_ended: bool,
    /// True if `base` is the server's offset. Until then, held input without an offset comes after the input of other
    /// clients.
    is_placed: bool,
    /// The next offset to send on this connection; `None` until the server told where to begin.
    next: Option<u64>,
    is_end_sent: bool,
}

/// The size of the terminal, and how much of it the server knows.
#[derive(Debug, Default)]
struct Resize {
    size: Option<TerminalSize>,
    /// True to make the program draw again. It first gets another size, because programs react only to a change.
    is_redraw: bool,
    is_told: bool,
}

impl Offsets {
    /// A client that has the output up to these offsets.
    pub fn new(stdout: u64, stderr: u64) -> Self {
        Self {
            stdout,
            stderr,
            ..Self::default()
        }
    }

    /// The end of the output that the client has, which a new connection asks from.
    pub fn have(&self, stream: StreamName) -> u64 {
        match stream {
            StreamName::Stdout => self.stdout,
            StreamName::Stderr => self.stderr,
        }
    }

    /// A new connection begins: nothing is known to have been sent.
    pub fn connected(&mut self) {
        self.input.next = None;
        self.input.is_end_sent = false;
        self.resize.is_told = false;
        self.stored_told = 0;
        self.problem = None;
    }

    /// Takes a message, and returns its new part.
    ///
    /// # Errors
    /// Fails if the connection is no longer usable. The offsets stay valid for the next one.
    pub fn accept(&mut self, heard: SocketMessage) -> Result<Option<Attached>, BrokenOffset> {
        let message = match heard {
            SocketMessage::Frame(frame) => return self.output(frame),
            SocketMessage::Message(message) => message,
        };
        self.problem = None;
        Ok(match message {
            OperationServerMessage::Operation { operation } => Some(Attached::Operation(operation)),
            OperationServerMessage::Accepted => None,
            OperationServerMessage::Gap { stream, from, to } => self.gap(stream, from, to),
            OperationServerMessage::Unreachable { since } => Some(Attached::Unreachable { since }),
            OperationServerMessage::Reachable => Some(Attached::Reachable),
            OperationServerMessage::InputTaken { offset } => Some(self.input.taken(offset)),
            OperationServerMessage::Ended { operation } => Some(Attached::Ended(operation)),
            OperationServerMessage::Problem { problem } => {
                let problem = http::heard(problem);
                self.problem = Some(problem.clone());
                Some(Attached::Problem(problem))
            }
            // The owner of the connection handles it.
            OperationServerMessage::Reconnect { .. } => None,
        })
    }

    /// The problem that the server named last, where nothing came after it: the reason for which it
    /// closed the connection.
    pub fn problem(&mut self) -> Option<Problem> {
        self.problem.take()
    }

    /// True if the client may take more input: it holds at most one window.
    pub fn has_room(&self) -> bool {
        self.input.end - self.input.base < INPUT_WINDOW_BYTES && !self.input.is_ended
    }

    /// True if the server has taken all input so far.
    pub fn is_all_taken(&self) -> bool {
        self.input.held.is_empty()
    }

    /// Holds a piece of input until it is taken.
    pub fn input(&mut self, piece: Piece) {
        self.input.push(piece);
    }

    /// Sets the size of the terminal. With `redraw`, the program is made to draw everything again.
    pub fn resize(&mut self, size: TerminalSize, redraw: bool) {
        self.resize = Resize {
            size: Some(size),
            is_redraw: redraw || (self.resize.is_redraw && !self.resize.is_told),
            is_told: false,
        };
    }

    /// Output below this offset is stored for good: the server need not keep it.
    pub fn stored(&mut self, offset: u64) {
        self.stored = self.stored.max(offset);
    }

    /// The next message for the server, if there is one. It counts as sent.
    pub fn next_message(&mut self) -> Option<Outgoing> {
        if self.stored_told < self.stored {
            self.stored_told = self.stored;
            return Some(Outgoing::Message(OperationClientMessage::Taken {
                stream: StreamName::Stdout,
                offset: self.stored,
            }));
        }
        self.resize
            .next_message()
            .or_else(|| self.input.next_message())
    }

    fn output(&mut self, frame: BinaryFrame) -> Result<Option<Attached>, BrokenOffset> {
        let Channel::Output(stream) = frame.channel else {
            return Err(BrokenOffset::Input);
        };
        self.problem = None;
        let have = self.have_mut(stream);
        if frame.offset > *have {
            return Err(BrokenOffset::Missing {
                have: *have,
                next: frame.offset,
            });
        }
        let known = usize::try_from(*have - frame.offset).unwrap_or(usize::MAX);
        if known >= frame.data.len() {
            return Ok(None);
        }
        let data = frame.data.slice(known..);
        let offset = *have;
        *have += data.len() as u64;
        Ok(Some(Attached::Output {
            stream,
            offset,
            data,
        }))
    }

    fn gap(&mut self, stream: StreamName, from: u64, to: u64) -> Option<Attached> {
        let have = self.have_mut(stream);
        if to <= *have {
            return None;
        }
        let from = from.max(*have);
        *have = to;
        Some(Attached::Gap { stream, from, to })
    }

    fn have_mut(&mut self, stream: StreamName) -> &mut u64 {
        match stream {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        }
    }
}

impl UntakenInput {
    fn push(&mut self, piece: Piece) {
        if self.is_ended || piece.at.is_some_and(|at| at != self.end) {
            return;
        }
        self.is_placed |= piece.at.is_some();
        self.end += piece.data.len() as u64;
        if !piece.data.is_empty() {
            self.held.push_back(piece.data);
        }
        self.is_ended = piece.end;
    }

    fn taken(&mut self, offset: u64) -> Attached {
        if !std::mem::replace(&mut self.is_placed, true) {
            self.end += offset;
            self.base = offset;
        }
        if offset < self.base {
            // The runner lost input that it had taken. Only the source of the input still has it.
            *self = Self {
                base: offset,
                end: offset,
                next: Some(offset),
                is_placed: true,
                ..Self::default()
            };
            return Attached::InputWanted { from: offset };
        }
        self.release(offset);
        if self.next.is_none() {
            self.next = Some(offset);
        }
        Attached::InputTaken { offset }
    }

    /// Lets go of what lies below the offset. Input that another client sent may lie there: what
    /// comes next stands behind it.
    fn release(&mut self, offset: u64) {
        while let Some(first) = self.held.front_mut() {
            let drop = offset - self.base;
            if drop < first.len() as u64 {
                *first = first.slice(drop as usize..);
                break;
            }
            self.base += first.len() as u64;
            self.held.pop_front();
        }
        self.base = offset;
        self.end = self.end.max(offset);
        self.next = self.next.map(|next| next.max(offset));
    }

    fn next_message(&mut self) -> Option<Outgoing> {
        let next = self.next?;
        if let Some(data) = self.from(next) {
            self.next = Some(next + data.len() as u64);
            return Some(Outgoing::Frame(BinaryFrame {
                channel: Channel::Input,
                offset: next,
                data,
            }));
        }
        if self.is_ended && !self.is_end_sent {
            self.is_end_sent = true;
            let offset = self.end;
            return Some(Outgoing::Message(OperationClientMessage::InputEnd {
                offset,
            }));
        }
        None
    }

    /// The held bytes from this offset on, as many as lie together and fit a message.
    fn from(&self, offset: u64) -> Option<Bytes> {
        let mut skip = usize::try_from(offset.checked_sub(self.base)?).ok()?;
        for piece in &self.held {
            if skip < piece.len() {
                let end = piece.len().min(skip + INPUT_CHUNK_BYTES);
                return Some(piece.slice(skip..end));
            }
            skip -= piece.len();
        }
        None
    }
}

impl Resize {
    fn next_message(&mut self) -> Option<Outgoing> {
        let TerminalSize { rows, columns } = self.size.filter(|_| !self.is_told)?;
        let is_other = std::mem::take(&mut self.is_redraw) && rows > 1;
        self.is_told = !is_other;
        Some(Outgoing::Message(OperationClientMessage::Resize {
            rows: if is_other { rows - 1 } else { rows },
            columns,
        }))
    }
}
