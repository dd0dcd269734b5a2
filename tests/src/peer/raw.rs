//! Frames that are none: bytes which no protobuf library would write.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Channel,
};

use crate::gantry::PATIENCE;

/// The method by which a runner links.
const LINK: &str = "/gantry.runner.v1.RunnerLink/Link";

/// Opens a link with this access token, sends these bytes as frames, and reads to the end of the
/// link: the status that the server gave.
///
/// # Panics
/// If it gave none in time.
pub async fn link_raw(channel: &Channel, token: &str, frames: Vec<Bytes>) -> Status {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.expect("the connection stands");
    // The stream stays open: it is the server that is to end it.
    let frames = tokio_stream::iter(frames).chain(tokio_stream::pending());
    let mut request = Request::new(frames);
    let bearer = format!("Bearer {token}").parse().expect("a header's value");
    request.metadata_mut().insert("authorization", bearer);
    request.set_timeout(Duration::from_secs(3600));
    let path = LINK.parse().expect("a path");
    let answer = client.streaming(request, path, Raw).await;
    let mut answer = match answer {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status,
    };
    let end = async {
        loop {
            match answer.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the server ended the link without a word"),
                Err(status) => return status,
            }
        }
    };
    timeout(PATIENCE, end).await.expect("an end in time")
}

/// Calls a method of the enrolment service with these bytes as its message; answers whether there
/// was a reply.
///
/// # Errors
/// The status that the server gave instead.
pub async fn call_raw(channel: &Channel, method: &str, message: Vec<u8>) -> Result<(), Status> {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.expect("the connection stands");
    let path = format!("/gantry.runner.v1.Enrolment/{method}");
    let path = path.parse().expect("a path");
    let call = client.unary(Request::new(Bytes::from(message)), path, Raw);
    let answer = timeout(PATIENCE, call).await.expect("an answer in time");
    answer.map(drop)
}

/// Bytes as they are.
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
