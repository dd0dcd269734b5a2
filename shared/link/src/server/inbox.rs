//! The mail of one operation that its reader has not taken yet, bounded in bytes. Links put mail in
//! and never wait; the reader takes it out and grants credit for what it took.
//!
//! The bound is the credit: a runner that sends more than was granted breaks the protocol. Small
//! pieces are joined, so that a window of single bytes costs no more than a window of large ones.
//! An operation attaches again over each link; mail from an earlier seat is dropped.

use std::collections::VecDeque;

use bytes::Bytes;
use shared_sandbox::{Outcome, OutputStream};
use shared_types::{
    Refusal,
    limits::{CREDIT_WINDOW_BYTES, MAX_CONTROLS_WAITING, OUTPUT_CHUNK_BYTES},
};

use super::ControlAnswer;
use crate::received::{StreamReader, Violation};

/// Most pieces of one stream that may wait. Joined data needs far fewer, so only a runner that
/// sends gap after gap gets here.
const MAX_PIECES: usize = 256;

/// A piece of at least so many bytes is held as it came.
const HELD_BYTES: usize = OUTPUT_CHUNK_BYTES / 2;

/// Answers to what was passed on that may wait; more than can be asked for at once.
const MAX_ANSWERS: usize = 4 * MAX_CONTROLS_WAITING;

/// See the module.
#[derive(Debug)]
pub struct OutputInbox {
    /// The present one.
    seat: InboxSeat,
    streams: [InboxStream; 2],
    /// Pieces that arrived, ever: tells which stream's head is older.
    arrived: u64,
    /// The mail after the last piece.
    last: Option<Mail>,
    /// Answers to input, resizes and signals; they wait for no output.
    answers: VecDeque<ControlAnswer>,
}

/// One link's right to put something in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxSeat(u64);

/// A piece of mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mail {
    /// Bytes at their place; they come out in order and without repeats.
    Output {
        /// The stream.
        stream: OutputStream,
        /// The offset of the first byte.
        offset: u64,
        /// At least one.
        data: Bytes,
    },
    /// Bytes that the runner does not keep any more.
    Gap {
        /// The stream.
        stream: OutputStream,
        /// The first byte that is missing.
        from: u64,
        /// The first byte after the gap.
        to: u64,
    },
    /// The operation ended; all its output came before.
    Ended(Outcome),
    /// The runner did not accept the operation.
    Refused(Refusal),
    /// The link is gone. All that it had brought came before.
    Detached,
    /// Another reader attached to the same operation; this one reads no more.
    Superseded,
}

/// A frame that does not belong where it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// It breaks the rules of a stream.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The runner sends gap after gap.
    #[error("more than {MAX_PIECES} gaps lie in the output")]
    TooManyGaps,
    /// The runner sends answers without questions.
    #[error("more than {MAX_ANSWERS} answers came to what was passed on")]
    TooManyAnswers,
}

#[derive(Debug)]
struct InboxStream {
    received: StreamReader,
    pieces: VecDeque<InboxPiece>,
}

#[derive(Debug)]
struct InboxPiece {
    arrived: u64,
    offset: u64,
    content: InboxContent,
}

#[derive(Debug)]
enum InboxContent {
    /// Nearly all of the frame that it came in, which is held with it.
    Frame(Bytes),
    /// Copied out of small frames, and joined up to a whole chunk.
    Joined(Vec<u8>),
    GapUpTo(u64),
}

impl OutputInbox {
    /// An empty one whose streams begin at 0.
    pub fn new() -> Self {
        Self::starting_at([0, 0])
    }

    /// An empty one whose reader has stdout and stderr up to these offsets.
    pub fn starting_at(offsets: [u64; 2]) -> Self {
        let stream = |from| InboxStream {
            received: StreamReader::new(from, CREDIT_WINDOW_BYTES),
            pieces: VecDeque::new(),
        };
        Self {
            seat: InboxSeat(0),
            streams: offsets.map(stream),
            arrived: 0,
            last: None,
            answers: VecDeque::new(),
        }
    }

    /// A new link brings the operation from now on: returns its seat, and where stdout and stderr
    /// go on.
    pub fn attach(&mut self) -> (InboxSeat, [u64; 2]) {
        self.seat.0 += 1;
        self.last = None;
        self.answers.clear();
        let [stdout, stderr] = &mut self.streams;
        (
            self.seat,
            [stdout.received.resume(), stderr.received.resume()],
        )
    }

    /// Puts something in; nothing happens on an earlier seat, or after the last mail.
    ///
    /// # Errors
    /// The runner broke the protocol.
    pub fn put(&mut self, seat: InboxSeat, mail: Mail) -> Result<(), InboxError> {
        if seat != self.seat || self.last.is_some() {
            return Ok(());
        }
        match mail {
            Mail::Output {
                stream,
                offset,
                data,
            } => match self.stream(stream).received.data(offset, data)? {
                Some((offset, data)) => self.push_data(stream, offset, data),
                None => Ok(()),
            },
            Mail::Gap { stream, from, to } => match self.stream(stream).received.gap(from, to)? {
                Some((from, to)) => self.push_gap(stream, from, to),
                None => Ok(()),
            },
            last => {
                self.last = Some(last);
                Ok(())
            }
        }
    }

    /// Puts an answer in; nothing happens on an earlier seat.
    ///
    /// # Errors
    /// The runner broke the protocol.
    pub fn put_answer(&mut self, seat: InboxSeat, answer: ControlAnswer) -> Result<(), InboxError> {
        if seat != self.seat {
            return Ok(());
        }
        // A later word of how far input is taken says all that an earlier one did.
        if let (ControlAnswer::InputTaken(now), Some(ControlAnswer::InputTaken(before))) =
            (&answer, self.answers.back_mut())
        {
            *before = *now;
            return Ok(());
        }
        if self.answers.len() >= MAX_ANSWERS {
            return Err(InboxError::TooManyAnswers);
        }
        self.answers.push_back(answer);
        Ok(())
    }

    /// Takes the oldest answer out.
    pub fn take_answer(&mut self) -> Option<ControlAnswer> {
        self.answers.pop_front()
    }

    /// Takes the oldest piece out; the last mail comes after all pieces, again and again.
    pub fn take(&mut self) -> Option<Mail> {
        let head = |stream: &InboxStream| stream.pieces.front().map(|piece| piece.arrived);
        let [stdout, stderr] = &self.streams;
        let stream = match (head(stdout), head(stderr)) {
            (None, None) => return self.last.clone(),
            (Some(_), None) => OutputStream::Stdout,
            (None, Some(_)) => OutputStream::Stderr,
            (Some(out), Some(err)) if out < err => OutputStream::Stdout,
            (Some(_), Some(_)) => OutputStream::Stderr,
        };
        let piece = self.stream(stream).pieces.pop_front()?;
        let offset = piece.offset;
        Some(match piece.content {
            InboxContent::Frame(data) => Mail::Output {
                stream,
                offset,
                data,
            },
            InboxContent::Joined(data) => Mail::Output {
                stream,
                offset,
                data: data.into(),
            },
            InboxContent::GapUpTo(to) => Mail::Gap {
                stream,
                from: offset,
                to,
            },
        })
    }

    /// The reader has done with everything of `stream` below `up_to`: returns the credit that is
    /// to be granted, where it is time for that.
    pub fn taken(&mut self, stream: OutputStream, up_to: u64) -> Option<u64> {
        self.stream(stream).received.taken(up_to)
    }

    fn stream(&mut self, stream: OutputStream) -> &mut InboxStream {
        &mut self.streams[stream as usize]
    }

    fn push_data(
        &mut self,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), InboxError> {
        if data.len() >= HELD_BYTES {
            return self.push(stream, offset, InboxContent::Frame(data));
        }
        if let Some(InboxPiece {
            content: InboxContent::Joined(last),
            ..
        }) = self.stream(stream).pieces.back_mut()
            && last.len() + data.len() <= OUTPUT_CHUNK_BYTES
        {
            last.extend_from_slice(&data);
            return Ok(());
        }
        self.push(stream, offset, InboxContent::Joined(data.to_vec()))
    }

    fn push_gap(&mut self, stream: OutputStream, from: u64, to: u64) -> Result<(), InboxError> {
        if let Some(InboxPiece {
            content: InboxContent::GapUpTo(end),
            ..
        }) = self.stream(stream).pieces.back_mut()
        {
            *end = to;
            return Ok(());
        }
        self.push(stream, from, InboxContent::GapUpTo(to))
    }

    fn push(
        &mut self,
        stream: OutputStream,
        offset: u64,
        content: InboxContent,
    ) -> Result<(), InboxError> {
        self.arrived += 1;
        let arrived = self.arrived;
        let pieces = &mut self.stream(stream).pieces;
        if pieces.len() >= MAX_PIECES {
            return Err(InboxError::TooManyGaps);
        }
        pieces.push_back(InboxPiece {
            arrived,
            offset,
            content,
        });
        Ok(())
    }
}

impl Default for OutputInbox {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
