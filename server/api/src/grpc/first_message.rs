//! The first message of a link is short, and that is known from its head: before it is read, and
//! whatever the later ones may have.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{Error, body::Body, extract::Request};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use shared_types::limits::MAX_HELLO_BYTES;

use crate::link::too_large_a_hello;

/// The head of a message: whether it is compressed, and its length (big endian).
const HEAD_BYTES: usize = 5;

/// Watches the body of a link.
pub(super) async fn is_short(request: Request) -> Request {
    request.map(|inner| {
        Body::new(Watched {
            inner,
            head: Some(Head::default()),
        })
    })
}

struct Watched {
    inner: Body,
    /// Gone once the head was read.
    head: Option<Head>,
}

/// The bytes of the head that have arrived.
#[derive(Default)]
struct Head {
    bytes: [u8; HEAD_BYTES],
    read: usize,
}

impl Head {
    /// The message's length, once there is enough of it.
    fn length(&mut self, data: &[u8]) -> Option<usize> {
        let left = &mut self.bytes[self.read..];
        let more = left.len().min(data.len());
        left[..more].copy_from_slice(&data[..more]);
        self.read += more;
        let [_, length @ ..] = self.bytes;
        (self.read == HEAD_BYTES).then(|| u32::from_be_bytes(length) as usize)
    }
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(context));
        if let (Some(head), Some(Ok(frame))) = (&mut this.head, &frame)
            && let Some(data) = frame.data_ref()
            && let Some(length) = head.length(data)
        {
            if length > MAX_HELLO_BYTES {
                return Poll::Ready(Some(Err(Error::new(too_large_a_hello()))));
            }
            this.head = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};

    use super::*;

    /// True if a body in these pieces passes.
    async fn passes(pieces: Vec<Vec<u8>>) -> Result<usize, String> {
        let pieces = stream::iter(pieces).map(|piece| Ok::<_, Error>(Bytes::from(piece)));
        let request = is_short(Request::new(Body::from_stream(pieces))).await;
        let mut passed = 0;
        let mut data = request.into_body().into_data_stream();
        while let Some(piece) = data.next().await {
            passed += piece.map_err(|error| error.to_string())?.len();
        }
        Ok(passed)
    }

    fn message(length: usize) -> Vec<u8> {
        [&[0][..], &(length as u32).to_be_bytes(), &vec![7; length]].concat()
    }

    #[tokio::test]
    async fn a_first_message_passes_up_to_its_bound_and_no_further() {
        let whole = message(MAX_HELLO_BYTES);
        assert_eq!(passes(vec![whole.clone()]).await, Ok(whole.len()));
        let refused = passes(vec![message(MAX_HELLO_BYTES + 1)]).await;
        assert!(refused.expect_err("a refusal").contains("64 KiB"));
    }

    #[tokio::test]
    async fn a_head_is_understood_in_pieces_and_before_the_rest_of_its_message() {
        let head = &message(MAX_HELLO_BYTES + 1)[..HEAD_BYTES];
        let pieces = head.iter().map(|byte| vec![*byte]).collect();
        assert!(passes(pieces).await.is_err());
    }

    #[tokio::test]
    async fn later_messages_may_be_longer() {
        let pieces = vec![message(1), message(2 * MAX_HELLO_BYTES)];
        let length = pieces.iter().map(Vec::len).sum();
        assert_eq!(passes(pieces).await, Ok(length));
        let at_once = [message(1), message(2 * MAX_HELLO_BYTES)].concat();
        assert_eq!(passes(vec![at_once]).await, Ok(length));
    }
}
