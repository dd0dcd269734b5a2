//! The bound on what an unknown runner may send: the size of a hello, in whatever messages.
//!
//! A WebSocket's own limits are those of later frames. Here all bytes of the connection are
//! counted, so that pings and pieces of messages count as well.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use shared_types::limits::MAX_HELLO_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes beside those of the hello: what makes it a message, and signs of life before it.
const BESIDE_BYTES: usize = 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Doorstep<S> {
    inner: S,
    greeted: Greeted,
    /// Bytes that may still be read.
    left: usize,
}

/// True once the runner's first message has arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct Greeted(Arc<AtomicBool>);

impl Greeted {
    /// It is: from here on nothing is counted.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The error of a read beyond the last permitted byte.
#[derive(Debug, thiserror::Error)]
#[error("too much was sent before the first message")]
pub(super) struct TooMuch;

impl<S> Doorstep<S> {
    /// Before this connection.
    pub(super) fn before(inner: S) -> (Self, Greeted) {
        let greeted = Greeted::default();
        let left = MAX_HELLO_BYTES + BESIDE_BYTES;
        let doorstep = Self {
            inner,
            greeted: greeted.clone(),
            left,
        };
        (doorstep, greeted)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Doorstep<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = room.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, room))?;
        if this.greeted.is_set() {
            return Poll::Ready(Ok(()));
        }
        let read = room.filled().len() - before;
        match this.left.checked_sub(read) {
            Some(left) => this.left = left,
            None => return Poll::Ready(Err(io::Error::other(TooMuch))),
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Doorstep<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}
