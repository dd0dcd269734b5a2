//! A party that ends TLS between a runner and its server: it sees each frame of their links as it
//! passes, and meddles once with one that is long enough to be more than a sign of life.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _, future::FutureExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use proto::{
    sealing::SealedFrame,
    v1::{RunnerFrame, Sealed, ServerFrame, runner_frame},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

use crate::{http1_proxy::Http1Proxy, proxy::Way};

/// Shorter frames are signs of life.
const LONG_BYTES: usize = 48;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy)]
pub enum Meddling {
    /// A bit of one of its bytes is another: this one, of so many.
    Flipped(fn(usize) -> usize),
    /// Its last byte is missing.
    Cut,
    /// It passes twice.
    Repeated,
    /// It passes behind the next one.
    Swapped,
    /// It does not pass.
    LeftOut,
    /// One of an earlier link, which went the same way, takes its place.
    OfAnotherLink,
    /// One of this link, which went the other way, takes its place.
    OfTheOtherWay,
}

/// It listens until it is dropped.
pub struct Meddler {
    proxy: Http1Proxy,
    hands: Arc<Mutex<Hands>>,
}

#[derive(Default)]
struct Hands {
    links: u64,
    plan: Option<(Way, Meddling)>,
    /// A frame that waits for the next one of its link and way.
    held: Option<(u64, Way, Bytes)>,
    /// The long frames that passed.
    passed: Vec<(u64, Way, Bytes)>,
}

impl Meddler {
    /// On loopback before a server at this address, which speaks plain text. Links pass as WebSockets.
    pub async fn before(url: &str) -> Self {
        let hands = Arc::new(Mutex::new(Hands::default()));
        let seen = hands.clone();
        let couple = move |near, far| couple(near, far, seen.clone()).boxed();
        let proxy = Http1Proxy::coupling(url, Arc::new(couple)).await;
        Self { proxy, hands }
    }

    /// Where a runner finds the server behind it.
    pub fn url(&self) -> &str {
        self.proxy.url()
    }

    /// Links that were opened so far.
    pub fn links(&self) -> u64 {
        self.hands.lock().expect("no panic").links
    }

    /// Meddles with the next long frame that goes this way.
    pub fn plan(&self, way: Way, meddling: Meddling) {
        self.hands.lock().expect("no panic").plan = Some((way, meddling));
    }

    /// Whether what was planned is done.
    pub fn is_done(&self) -> bool {
        self.hands.lock().expect("no panic").plan.is_none()
    }
}

impl Hands {
    /// What passes in place of a frame.
    fn pass(&mut self, link: u64, way: Way, frame: Bytes) -> Vec<Bytes> {
        if let Some((.., before)) = self.held.take_if(|held| (held.0, held.1) == (link, way)) {
            return vec![frame, before];
        }
        if frame.len() < LONG_BYTES {
            return vec![frame];
        }
        let Some((_, meddling)) = self.plan.take_if(|plan| plan.0 == way) else {
            self.passed.push((link, way, frame.clone()));
            return vec![frame];
        };
        match meddling {
            Meddling::Flipped(which) => {
                let mut flipped = frame.to_vec();
                let byte = which(flipped.len());
                flipped[byte] ^= 1;
                vec![flipped.into()]
            }
            Meddling::Cut => vec![frame.slice(..frame.len() - 1)],
            Meddling::Repeated => vec![frame.clone(), frame],
            Meddling::Swapped => {
                self.held = Some((link, way, frame));
                Vec::new()
            }
            Meddling::LeftOut => Vec::new(),
            Meddling::OfAnotherLink => vec![self.last(|of, went| of != link && went == way)],
            Meddling::OfTheOtherWay => {
                vec![turned(way, self.last(|of, went| of == link && went != way))]
            }
        }
    }

    fn last(&self, is_it: impl Fn(u64, Way) -> bool) -> Bytes {
        let mut passed = self.passed.iter().rev();
        let found = passed.find(|(link, way, _)| is_it(*link, *way));
        found.expect("one passed").2.clone()
    }
}

/// The same seal in a frame that goes this way.
fn turned(way: Way, frame: Bytes) -> Bytes {
    match way {
        Way::ToServer => {
            let sealed = ServerFrame::decode(frame).expect("a frame").sealed();
            RunnerFrame::of(sealed.expect("a seal"))
                .encode_to_vec()
                .into()
        }
        Way::ToRunner => {
            let sealed = seal_of(RunnerFrame::decode(frame).expect("a frame"));
            ServerFrame::of(sealed.expect("a seal"))
                .encode_to_vec()
                .into()
        }
    }
}

/// A runner's first frame carries one as well.
fn seal_of(frame: RunnerFrame) -> Option<Sealed> {
    match frame.kind {
        Some(runner_frame::Kind::Proof(proof)) => proof.hello,
        _ => frame.sealed(),
    }
}

async fn couple(near: Upgraded, far: Upgraded, hands: Arc<Mutex<Hands>>) {
    let link = {
        let mut hands = hands.lock().expect("no panic");
        hands.links += 1;
        hands.links
    };
    let near = WebSocketStream::from_raw_socket(TokioIo::new(near), Role::Server, None).await;
    let far = WebSocketStream::from_raw_socket(TokioIo::new(far), Role::Client, None).await;
    let (mut to_runner, mut from_runner) = near.split();
    let (mut to_server, mut from_server) = far.split();
    // It ends as either end wishes.
    loop {
        let (way, message) = tokio::select! {
            message = from_runner.next() => (Way::ToServer, message),
            message = from_server.next() => (Way::ToRunner, message),
        };
        let messages = match message {
            Some(Ok(Message::Binary(frame))) => {
                let passed = hands.lock().expect("no panic").pass(link, way, frame);
                passed.into_iter().map(Message::Binary).collect()
            }
            Some(Ok(Message::Close(last))) => vec![Message::Close(last)],
            // Either end answers pings for itself.
            Some(Ok(_)) => continue,
            Some(Err(_)) | None => return,
        };
        for message in messages {
            let sent = match way {
                Way::ToServer => to_server.send(message).await,
                Way::ToRunner => to_runner.send(message).await,
            };
            if sent.is_err() {
                return;
            }
        }
    }
}
