//! A socket below TLS that is read in large pieces while much arrives.
//!
//! rustls reads 4 KiB at a time. That suits an idle link, but costs four system calls for each full
//! record of a busy one. So this socket reads ahead once a read fills its buffer, and frees the
//! extra memory as soon as no more data waits.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

/// Bytes that are read ahead at most: four full records.
const AHEAD_BYTES: usize = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub struct TlsSocket<S> {
    inner: S,
    ahead: BytesMut,
    /// True if the last read filled its buffer.
    busy: bool,
}

impl<S> TlsSocket<S> {
    /// Reads and writes this.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            ahead: BytesMut::new(),
            busy: false,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TlsSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ahead.is_empty() && !this.busy {
            ready!(Pin::new(&mut this.inner).poll_read(context, room))?;
            this.busy = room.remaining() == 0;
            return Poll::Ready(Ok(()));
        }
        if this.ahead.is_empty() {
            this.ahead.reserve(AHEAD_BYTES);
            let read = poll_read_buf(Pin::new(&mut this.inner), context, &mut this.ahead);
            if this.ahead.is_empty() {
                this.ahead = BytesMut::new();
                this.busy = false;
                return read.map_ok(drop);
            }
        }
        let length = this.ahead.len().min(room.remaining());
        room.put_slice(&this.ahead[..length]);
        this.ahead.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TlsSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
