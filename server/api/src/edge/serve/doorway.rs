//! The bytes of a connection, beneath TLS and HTTP. The server reads from a stranger only as far as
//! the stranger may hold memory. It cuts off a peer that takes nothing of its answer.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::visit::Visit;

/// Bytes that are read of a stranger at once.
const PIECE_BYTES: usize = 4 * 1024;
/// The time for the peer to hang up after the last words. The server reads and drops what the peer
/// still sends: a connection that is closed with unread data is reset, and the last words are lost.
const HANGS_UP_WITHIN: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Doorway<S> {
    inner: S,
    visit: Arc<Visit>,
    taken_within: Duration,
    /// Runs while the peer takes nothing.
    untaken: Option<Pin<Box<Sleep>>>,
    /// Runs once everything was sent.
    hanging_up: Option<Pin<Box<Sleep>>>,
}

impl<S> Doorway<S> {
    pub(super) fn new(inner: S, visit: Arc<Visit>, taken_within: Duration) -> Self {
        Self {
            inner,
            visit,
            taken_within,
            untaken: None,
            hanging_up: None,
        }
    }

    /// Passes on how writing went, unless nothing was taken for too long.
    fn taken(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(wrote) = wrote {
            self.untaken = None;
            self.visit.took(Some(wrote.as_ref().copied().unwrap_or(0)));
            return Poll::Ready(wrote);
        }
        self.visit.took(None);
        if self.visit.is_cut_off() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let within = self.taken_within;
        let untaken = self.untaken.get_or_insert_with(|| Box::pin(sleep(within)));
        ready!(untaken.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the peer takes nothing of what it is sent",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Doorway<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let left = this.visit.room(context);
        if this.visit.is_cut_off() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if left == usize::MAX {
            return Pin::new(&mut this.inner).poll_read(context, room);
        }
        if left == 0 {
            return Poll::Pending;
        }
        let mut piece = [0; PIECE_BYTES];
        let most = left.min(PIECE_BYTES).min(room.remaining());
        let mut piece = ReadBuf::new(&mut piece[..most]);
        ready!(Pin::new(&mut this.inner).poll_read(context, &mut piece))?;
        this.visit.heard(piece.filled().len());
        room.put_slice(piece.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Doorway<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.inner).poll_write(context, data);
        this.taken(context, wrote)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.inner).poll_write_vectored(context, data);
        this.taken(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.hanging_up.is_none() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(context))?;
        }
        let until = this
            .hanging_up
            .get_or_insert_with(|| Box::pin(sleep(HANGS_UP_WITHIN)));
        let mut unread = [0; PIECE_BYTES];
        while until.as_mut().poll(context).is_pending() {
            let mut unread = ReadBuf::new(&mut unread);
            let read = ready!(Pin::new(&mut this.inner).poll_read(context, &mut unread));
            if read.is_err() || unread.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
