//! A channel for one operation's output, bounded in bytes: the link's task puts frames in and
//! never waits, the operation's task takes them out and grants credit for what was taken.
//!
//! The bound is the credit: a runner that sends more than was granted breaks the protocol. Small
//! pieces are joined, so that a window of single bytes costs no more than a window of large ones.
//! An operation attaches anew over each link; what an earlier attachment still has to say is dropped.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use shared_link::received::{Received, Violation};
use shared_sandbox::{Outcome, OutputStream};
use shared_types::{
    Refusal,
    limits::{CREDIT_WINDOW_BYTES, OUTPUT_CHUNK_BYTES},
};
use tokio::sync::Notify;

/// Most pieces of one stream that may wait. Joined data needs far fewer, so only a runner that
/// sends gap after gap gets here.
const MAX_PIECES: usize = 256;

/// The taking end. It belongs to the operation's task.
#[derive(Debug)]
pub(crate) struct Mailbox {
    shared: Arc<Shared>,
}

/// The putting end for one attachment. It belongs to a link's task; dropping it detaches.
#[derive(Debug)]
pub(crate) struct Post {
    shared: Arc<Shared>,
    attachment: u64,
}

/// What comes out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mail {
    /// New bytes, in order.
    Output {
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    },
    /// Bytes that the runner does not keep any more.
    Gap {
        stream: OutputStream,
        from: u64,
        to: u64,
    },
    /// The operation ended; all its output came before.
    Ended(Outcome),
    /// The runner did not accept the operation.
    Refused(Refusal),
    /// The link is gone. All that it had brought came before.
    Detached,
    /// Another task attached to the same operation; this one reads no more.
    Superseded,
}

/// Where an attachment goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) stdout: u64,
    pub(crate) stderr: u64,
}

/// A frame that does not belong where it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PostError {
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error("more than {MAX_PIECES} gaps lie in the output")]
    TooManyGaps,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// Which [`Post`] is the current one.
    attachment: u64,
    streams: [Stream; 2],
    /// Pieces that arrived, ever: tells which stream's head is older.
    arrived: u64,
    /// What comes after the last piece.
    then: Option<Then>,
}

#[derive(Debug)]
enum Then {
    Ended(Outcome),
    Refused(Refusal),
    Detached,
    Superseded,
}

#[derive(Debug)]
struct Stream {
    received: Received,
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
struct Piece {
    arrived: u64,
    offset: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Data(Vec<u8>),
    GapUpTo(u64),
}

impl Mailbox {
    /// An empty mailbox whose streams begin at 0.
    pub(crate) fn new() -> Self {
        let stream = || Stream {
            received: Received::new(0, CREDIT_WINDOW_BYTES),
            pieces: VecDeque::new(),
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    attachment: 0,
                    streams: [stream(), stream()],
                    arrived: 0,
                    then: None,
                }),
                changed: Notify::new(),
            }),
        }
    }

    /// Begins a new attachment; earlier ones put nothing in any more.
    pub(crate) fn attach(&mut self) -> (Post, Offsets) {
        let mut state = self.shared.lock();
        state.attachment += 1;
        state.then = None;
        let [stdout, stderr] = &mut state.streams;
        let offsets = Offsets {
            stdout: stdout.received.resume(),
            stderr: stderr.received.resume(),
        };
        let post = Post {
            shared: Arc::clone(&self.shared),
            attachment: state.attachment,
        };
        drop(state);
        (post, offsets)
    }

    /// The next piece; what ends an attachment comes after all its output, again and again.
    /// Cancel-safe: nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Mail {
        loop {
            if let Some(mail) = self.shared.lock().take() {
                return mail;
            }
            self.shared.changed.notified().await;
        }
    }

    /// The reader has done with everything of `stream` below `up_to`: returns the credit that is
    /// to be granted, where it is time for that.
    pub(crate) fn taken(&mut self, stream: OutputStream, up_to: u64) -> Option<u64> {
        self.shared.lock().stream(stream).received.taken(up_to)
    }

    /// Where `stream` goes on: everything below has come out or will.
    pub(crate) fn received(&self, stream: OutputStream) -> u64 {
        self.shared.lock().stream(stream).received.next()
    }
}

impl Post {
    /// Bytes of a stream arrived.
    pub(crate) fn output(
        &self,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PostError> {
        self.put(
            |state| match state.stream(stream).received.data(offset, data)? {
                Some((offset, data)) => state.push_data(stream, offset, data),
                None => Ok(()),
            },
        )
    }

    /// The runner does not keep these bytes of a stream.
    pub(crate) fn gap(&self, stream: OutputStream, from: u64, to: u64) -> Result<(), PostError> {
        self.put(|state| match state.stream(stream).received.gap(from, to)? {
            Some((from, to)) => state.push_gap(stream, from, to),
            None => Ok(()),
        })
    }

    /// The operation ended.
    pub(crate) fn ended(self, outcome: Outcome) {
        self.finish(Then::Ended(outcome));
    }

    /// The runner did not accept the operation.
    pub(crate) fn refused(self, refusal: Refusal) {
        self.finish(Then::Refused(refusal));
    }

    /// Another task reads the operation from now on.
    pub(crate) fn superseded(self) {
        self.finish(Then::Superseded);
    }

    fn finish(&self, then: Then) {
        let mut state = self.shared.lock();
        if state.attachment == self.attachment && state.then.is_none() {
            state.then = Some(then);
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    fn put(
        &self,
        change: impl FnOnce(&mut State) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let mut state = self.shared.lock();
        if state.attachment != self.attachment {
            return Ok(());
        }
        let result = change(&mut state);
        drop(state);
        self.shared.changed.notify_one();
        result
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.finish(Then::Detached);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn stream(&mut self, stream: OutputStream) -> &mut Stream {
        let [stdout, stderr] = &mut self.streams;
        match stream {
            OutputStream::Stdout => stdout,
            OutputStream::Stderr => stderr,
        }
    }

    fn push_data(
        &mut self,
        stream: OutputStream,
        offset: u64,
        data: Bytes,
    ) -> Result<(), PostError> {
        if let Some(Piece {
            content: Content::Data(last),
            ..
        }) = self.stream(stream).pieces.back_mut()
            && last.len() + data.len() <= OUTPUT_CHUNK_BYTES
        {
            last.extend_from_slice(&data);
            return Ok(());
        }
        self.push(stream, offset, Content::Data(data.into()))
    }

    fn push_gap(&mut self, stream: OutputStream, from: u64, to: u64) -> Result<(), PostError> {
        if let Some(Piece {
            content: Content::GapUpTo(end),
            ..
        }) = self.stream(stream).pieces.back_mut()
        {
            *end = to;
            return Ok(());
        }
        self.push(stream, from, Content::GapUpTo(to))
    }

    fn push(
        &mut self,
        stream: OutputStream,
        offset: u64,
        content: Content,
    ) -> Result<(), PostError> {
        self.arrived += 1;
        let arrived = self.arrived;
        let pieces = &mut self.stream(stream).pieces;
        if pieces.len() >= MAX_PIECES {
            return Err(PostError::TooManyGaps);
        }
        pieces.push_back(Piece {
            arrived,
            offset,
            content,
        });
        Ok(())
    }

    /// The oldest piece, or what comes after the last one.
    fn take(&mut self) -> Option<Mail> {
        let head = |stream: &Stream| stream.pieces.front().map(|piece| piece.arrived);
        let [stdout, stderr] = &self.streams;
        let stream = match (head(stdout), head(stderr)) {
            (None, None) => return self.then.as_ref().map(Then::mail),
            (Some(_), None) => OutputStream::Stdout,
            (None, Some(_)) => OutputStream::Stderr,
            (Some(out), Some(err)) if out < err => OutputStream::Stdout,
            (Some(_), Some(_)) => OutputStream::Stderr,
        };
        let piece = self.stream(stream).pieces.pop_front()?;
        let offset = piece.offset;
        Some(match piece.content {
            Content::Data(data) => Mail::Output {
                stream,
                offset,
                data: data.into(),
            },
            Content::GapUpTo(to) => Mail::Gap {
                stream,
                from: offset,
                to,
            },
        })
    }
}

impl Then {
    fn mail(&self) -> Mail {
        match self {
            Self::Ended(outcome) => Mail::Ended(outcome.clone()),
            Self::Refused(refusal) => Mail::Refused(refusal.clone()),
            Self::Detached => Mail::Detached,
            Self::Superseded => Mail::Superseded,
        }
    }
}

#[cfg(test)]
mod tests;
