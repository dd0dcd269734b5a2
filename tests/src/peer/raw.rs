//! Frames that are none: bytes which no protobuf library would write.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes};
use futures_util::{SinkExt as _, StreamExt as _};
use proto::http1;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Channel,
};

use super::{Line, websocket};
use crate::{fleet::Route, gantry::PATIENCE};

/// The method by which a runner links.
const LINK: &str = "/gantry.runner.v1.RunnerLink/Link";

/// Opens a link with this access token, sends these bytes as frames, and reads to the end of the
/// link: the status that the server gave.
///
/// # Panics
/// If it gave none in time.
pub async fn link_raw(line: &Line, token: &str, frames: Vec<Bytes>) -> Status {
    let channel = match line {
        Line::Grpc(channel) => channel,
        Line::WebSocket(route) => {
            let frames = frames.into_iter().map(Message::Binary).collect();
            return messages_raw(route, token, frames).await;
        }
    };
    let mut client = Grpc::new(channel.clone());
    client.ready().await.expect("the connection stands");
    // The stream stays open: it is the server that is to end it.
    let frames = futures_util::stream::iter(frames).chain(futures_util::stream::pending());
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

/// Opens a link on a WebSocket, sends these messages and pieces of messages, and reads to the end
/// of the link: the status in the close frame.
///
/// # Panics
/// If there was none in time.
pub async fn messages_raw(route: &Route, token: &str, messages: Vec<Message>) -> Status {
    let mut socket = match websocket(route, token).await {
        Ok(socket) => socket,
        Err(status) => return status,
    };
    let end = async {
        for message in messages {
            // The server may have heard enough.
            if socket.send(message).await.is_err() {
                break;
            }
        }
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(Some(last)))) => {
                    let code = http1::closed(last.code.into()).expect("a status");
                    return Status::new(code, last.reason.as_str());
                }
                Some(Ok(_)) => {}
                other => panic!("the server ended the link without a word: {other:?}"),
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
