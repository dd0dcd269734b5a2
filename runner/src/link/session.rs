//! One link, from its first frame to its last.

use std::{pin::pin, sync::Arc, time::Duration};

use proto::{
    OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, signing,
    v1::{self, runner_frame, runner_link_client::RunnerLinkClient, server_frame},
};
use shared_types::{
    Entropy, Incarnation, RunnerId,
    limits::{HEARTBEAT_EVERY, HELLO_WITHIN, LINK_SILENCE, MAX_FRAME_BYTES},
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status, Streaming, metadata::MetadataValue, transport::Channel};

use super::LinkError;
use crate::{
    convert::{self, Received, frame},
    key::RunnerKey,
    operations::{LinkId, Opened, Operations},
};

/// Frames that wait for the connection; with 64 KiB of output each this is half a mebibyte.
const FRAMES_WAITING: usize = 8;

/// Time for the goodbye to leave.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

/// What the runner says of itself on every link.
#[derive(Debug, Clone)]
pub(crate) struct Introduction {
    pub(crate) runner: RunnerId,
    pub(crate) incarnation: Incarnation,
    pub(crate) capabilities: v1::Capabilities,
}

/// What a link needs of its daemon.
pub(crate) struct Session<'a> {
    pub(crate) introduction: &'a Introduction,
    pub(crate) key: &'a RunnerKey,
    pub(crate) operations: &'a Operations,
    pub(crate) entropy: &'a Arc<dyn Entropy>,
    /// Ends the link politely.
    pub(crate) goodbye: &'a CancellationToken,
}

impl Session<'_> {
    /// Links and serves until the link ends; only a polite end of ours is no error. The table of
    /// operations knows the link for exactly that long.
    pub(crate) async fn run(&self, channel: Channel, token: &str) -> Result<(), LinkError> {
        let (outgoing, waiting) = mpsc::channel(FRAMES_WAITING);
        let mut incoming = call(channel, token, waiting).await?;
        let opened = self.operations.open_link(outgoing.clone()).await?;
        let link = opened.link;
        let served = self.serve(&mut incoming, &outgoing, opened, token).await;
        self.operations.close_link(link).await;
        if served.is_ok() {
            leave(incoming, outgoing).await;
        }
        served
    }

    async fn serve(
        &self,
        incoming: &mut Streaming<v1::ServerFrame>,
        outgoing: &mpsc::Sender<v1::RunnerFrame>,
        opened: Opened,
        token: &str,
    ) -> Result<(), LinkError> {
        let link = opened.link;
        let welcome = self.shake_hands(incoming, outgoing, opened, token).await?;
        let spoken = OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION;
        if !spoken.contains(&welcome.protocol_version) {
            return Err(LinkError::Version(welcome.protocol_version));
        }
        tracing::info!(
            runner.id = %self.introduction.runner,
            link.generation = welcome.generation,
            "runner connected"
        );
        let silence = millis_or(welcome.silence_ms, LINK_SILENCE);
        let every = millis_or(welcome.heartbeat_every_ms, HEARTBEAT_EVERY);
        let ended = tokio::select! {
            error = self.listen(incoming, outgoing, link, silence) => Err(error),
            error = self.beat(outgoing, every) => Err(error),
            () = self.goodbye.cancelled() => Ok(()),
        };
        let reason = ended.as_ref().err().map(LinkError::to_string);
        tracing::info!(
            runner.id = %self.introduction.runner,
            link.generation = welcome.generation,
            reason = reason.as_deref().unwrap_or("the runner stops"),
            "runner disconnected"
        );
        ended
    }

    /// Challenge, hello, welcome.
    async fn shake_hands(
        &self,
        incoming: &mut Streaming<v1::ServerFrame>,
        outgoing: &mpsc::Sender<v1::RunnerFrame>,
        opened: Opened,
        token: &str,
    ) -> Result<v1::Welcome, LinkError> {
        let Some(server_frame::Kind::Challenge(challenge)) = next(incoming, HELLO_WITHIN).await?
        else {
            return Err(LinkError::OutOfTurn("a challenge"));
        };
        let signed = signing::link(&challenge.nonce, token);
        let hello = v1::Hello {
            signature: self.key.sign(&signed),
            protocol_version: PROTOCOL_VERSION,
            software_version: env!("CARGO_PKG_VERSION").to_owned(),
            incarnation: Some((&self.introduction.incarnation).into()),
            journal_sequence: opened.journal_sequence,
            capabilities: Some(self.introduction.capabilities.clone()),
            inventory: opened.inventory,
        };
        let hello = frame(runner_frame::Kind::Hello(hello));
        outgoing.send(hello).await.map_err(|_| LinkError::Closed)?;
        match next(incoming, HELLO_WITHIN).await? {
            Some(server_frame::Kind::Welcome(welcome)) => Ok(welcome),
            Some(server_frame::Kind::Goodbye(goodbye)) => Err(LinkError::Goodbye(goodbye.reason)),
            _ => Err(LinkError::OutOfTurn("a welcome")),
        }
    }

    /// Hands on what the server sends, until it is silent or ends the link.
    async fn listen(
        &self,
        incoming: &mut Streaming<v1::ServerFrame>,
        outgoing: &mpsc::Sender<v1::RunnerFrame>,
        link: LinkId,
        silence: Duration,
    ) -> LinkError {
        let mut handle = async || {
            let frame = v1::ServerFrame {
                kind: next(incoming, silence).await?,
            };
            // A server that sends orders but takes no answers is as good as silent.
            let done = async {
                match convert::received(frame) {
                    Received::Order(order) => Ok(self.operations.order(link, order).await?),
                    Received::Answer(answer) => {
                        let sent = outgoing.send(answer).await;
                        sent.map_err(|_| LinkError::Closed)
                    }
                    Received::Goodbye(reason) => Err(LinkError::Goodbye(reason)),
                    Received::Nothing => Ok(()),
                }
            };
            let done = timeout(silence, done).await;
            done.unwrap_or(Err(LinkError::Silent(silence)))
        };
        loop {
            if let Err(error) = handle().await {
                return error;
            }
        }
    }

    /// Says that this end lives, every `every` ± 20 %.
    async fn beat(&self, outgoing: &mpsc::Sender<v1::RunnerFrame>, every: Duration) -> LinkError {
        loop {
            let mut random = [0];
            self.entropy.fill(&mut random);
            sleep(every.mul_f64(0.8 + 0.4 * f64::from(random[0]) / 255.0)).await;
            let heartbeat = frame(runner_frame::Kind::Heartbeat(v1::Heartbeat {}));
            // Where frames wait already, they are the sign of life.
            if let Err(mpsc::error::TrySendError::Closed(_)) = outgoing.try_send(heartbeat) {
                return LinkError::Closed;
            }
        }
    }
}

async fn call(
    channel: Channel,
    token: &str,
    waiting: mpsc::Receiver<v1::RunnerFrame>,
) -> Result<Streaming<v1::ServerFrame>, LinkError> {
    let mut request = Request::new(ReceiverStream::new(waiting));
    let mut bearer: MetadataValue<_> = format!("Bearer {token}")
        .parse()
        .map_err(|_| LinkError::OutOfTurn("an access token"))?;
    bearer.set_sensitive(true);
    request.metadata_mut().insert("authorization", bearer);
    let mut client = RunnerLinkClient::new(channel).max_decoding_message_size(MAX_FRAME_BYTES);
    let answer = timeout(HELLO_WITHIN, client.link(request)).await;
    let answer = answer.map_err(|_| LinkError::Silent(HELLO_WITHIN))?;
    Ok(answer.map_err(LinkError::of)?.into_inner())
}

/// The next frame within this time.
async fn next(
    incoming: &mut Streaming<v1::ServerFrame>,
    within: Duration,
) -> Result<Option<server_frame::Kind>, LinkError> {
    let message = timeout(within, incoming.message()).await;
    let message = message.map_err(|_| LinkError::Silent(within))?;
    let frame = message.map_err(|status: Status| LinkError::of(status))?;
    Ok(frame.ok_or(LinkError::Closed)?.kind)
}

/// Says goodbye, and gives it and what was sent before it the time to leave.
async fn leave(mut incoming: Streaming<v1::ServerFrame>, outgoing: mpsc::Sender<v1::RunnerFrame>) {
    let goodbye = frame(runner_frame::Kind::Goodbye(v1::Goodbye {
        reason: "the runner stops".to_owned(),
    }));
    let mut left = pin!(async move {
        let _ = outgoing.send(goodbye).await;
        drop(outgoing);
        while let Ok(Some(_)) = incoming.message().await {}
    });
    let _ = timeout(GOODBYE_WITHIN, &mut left).await;
}

/// A time that the server chose, held to what makes sense.
fn millis_or(millis: u32, default: Duration) -> Duration {
    const BOUNDS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(300));
    match millis {
        0 => default,
        millis => Duration::from_millis(millis.into()).clamp(BOUNDS.0, BOUNDS.1),
    }
}
