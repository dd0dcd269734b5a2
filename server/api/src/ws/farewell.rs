//! The end of a WebSocket (RFC 6455, 5.5.1 and 7.4): a close frame with its code, and the answer to
//! the client's.

use axum::extract::ws::close_code;
use futures_util::SinkExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        error::{CapacityError, ProtocolError},
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

/// Bytes that a close frame has for its reason (RFC 6455, 5.5).
const MAX_REASON_BYTES: usize = 123;

/// A close frame with the beginning of this reason.
pub(super) fn close_frame(code: u16, reason: &str) -> CloseFrame {
    let end = reason.floor_char_boundary(MAX_REASON_BYTES);
    CloseFrame {
        code: CloseCode::from(code),
        reason: reason[..end].into(),
    }
}

/// The close frame for a peer whose messages broke the protocol; `None` if the peer is gone.
pub(super) fn violation(error: &Error) -> Option<CloseFrame> {
    let code = match error {
        Error::Io(_)
        | Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return None,
        Error::Utf8(_) => close_code::INVALID,
        Error::Capacity(_) => close_code::SIZE,
        _ => close_code::PROTOCOL,
    };
    Some(close_frame(code, &words(error)))
}

/// The mistake in a message. For one that is too large, the words are gRPC's.
pub(super) fn words(error: &Error) -> String {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
            format!("message length too large: found {size} bytes, the limit is {max_size} bytes")
        }
        error => error.to_string(),
    }
}

/// Sends the last close frame, or answers the one that came first. It then waits until the peer has
/// received it. What the peer still sends is dropped: a connection that is closed with unread data
/// is reset, and the reason is lost.
pub(super) async fn farewell<S>(mut socket: WebSocketStream<S>, last: CloseFrame)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let said = match socket.send(Message::Close(Some(last))).await {
        // The other end's came first, and the library has an answer ready.
        Err(Error::Protocol(ProtocolError::SendAfterClosing)) => socket.flush().await,
        said => said,
    };
    if !matches!(said, Ok(()) | Err(Error::ConnectionClosed)) {
        return;
    }
    let connection = socket.get_mut();
    if connection.shutdown().await.is_err() {
        return;
    }
    let mut unread = [0; 1024];
    while matches!(connection.read(&mut unread).await, Ok(1..)) {}
}
