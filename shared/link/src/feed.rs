//! The writing end of an operation's input. It keeps input until the other end has taken it, and
//! knows what to send next (docs/internals/contracts.md#a13).
//!
//! The other end reports its offset when a connection begins, and as it takes more. Everything that
//! it has not taken is kept, at most a window of it, and sent again over the next connection. An
//! end that has lost what it had taken reports a lower offset than before: then the writer has to
//! begin again there.

mod kept;

use shared_sandbox::Input;
use shared_types::{Refusal, RefusalCode};

use self::kept::ReplayBuffer;

/// The writing end of one input. Offsets count from 0.
#[derive(Debug, Clone)]
pub struct Feed {
    window: usize,
    /// Everything below is taken.
    taken: u64,
    /// The bytes at `taken` and after it.
    kept: ReplayBuffer,
    /// Nothing comes after what is kept.
    ended: bool,
    /// Sent over the present connection; absent until the other end has reported its offset.
    sent: Option<u64>,
    end_sent: bool,
}

impl Feed {
    /// An input that keeps at most `window` bytes (not zero). Nothing is sent before the other end
    /// has said where it stands.
    pub fn new(window: usize) -> Self {
        Self {
            window,
            taken: 0,
            kept: ReplayBuffer::default(),
            ended: false,
            sent: None,
            end_sent: false,
        }
    }

    /// Everything below is taken.
    pub fn taken_up_to(&self) -> u64 {
        self.taken
    }

    /// True if the other end has reported its offset since the connection began.
    pub fn is_connected(&self) -> bool {
        self.sent.is_some()
    }

    /// True if there is room for more input.
    pub fn has_room(&self) -> bool {
        self.kept.len() < self.window
    }

    /// True if something was sent that is not taken.
    pub fn waits(&self) -> bool {
        self.sent.is_some_and(|sent| sent > self.taken)
    }

    /// Keeps what is new of a piece and fits; returns the offset to go on at. Nothing is kept of a
    /// piece that leaves bytes out.
    ///
    /// # Errors
    /// The input has ended before.
    pub fn offer(&mut self, piece: &Input) -> Result<u64, Refusal> {
        let at = self.end();
        let Some(known) = at.checked_sub(piece.offset) else {
            return Ok(at);
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new = piece.data.slice(known.min(piece.data.len())..);
        if self.ended {
            return match new.is_empty() {
                true => Ok(at),
                false => Err(ended(at)),
            };
        }
        let fits = new.len().min(self.window - self.kept.len());
        self.kept.push(new.slice(..fits));
        self.ended =
            piece.end && piece.offset.saturating_add(piece.data.len() as u64) == self.end();
        Ok(self.end())
    }

    /// The connection is gone: what is not taken is sent again over the next one.
    pub fn disconnect(&mut self) {
        self.sent = None;
        self.end_sent = false;
    }

    /// The other end has taken everything below `up_to`. Its first report on a connection always
    /// counts; after that the offset only grows.
    pub fn taken(&mut self, up_to: u64) {
        let first = self.sent.is_none();
        if up_to < self.taken && !first {
            return;
        }
        if up_to < self.taken || up_to > self.end() {
            // The bytes at that offset are not known here.
            self.kept.clear();
            self.ended = false;
        } else {
            // At most as much as is kept, which fits.
            self.kept.advance((up_to - self.taken) as usize);
        }
        self.taken = up_to;
        self.sent = Some(self.sent.map_or(up_to, |sent| sent.max(up_to)));
    }

    /// The next piece to be sent, at most `max` bytes of it.
    pub fn next(&mut self, max: usize) -> Option<Input> {
        let offset = self.sent?;
        let place = usize::try_from(offset - self.taken).ok()?;
        let data = self.kept.piece(place, max);
        let up_to = offset.saturating_add(data.len() as u64);
        let end = self.ended && up_to == self.end();
        if data.is_empty() && (!end || self.end_sent) {
            return None;
        }
        self.sent = Some(up_to);
        self.end_sent |= end;
        Some(Input { offset, data, end })
    }

    fn end(&self) -> u64 {
        self.taken.saturating_add(self.kept.len() as u64)
    }
}

/// The answer to input after its end.
pub(crate) fn ended(at: u64) -> Refusal {
    let message = format!("the input has ended at {at}; nothing can be added to it");
    Refusal::new(RefusalCode::Invalid, message)
}

#[cfg(test)]
mod tests;
