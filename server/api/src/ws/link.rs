//! The link as a WebSocket, for runners whose way here passes no gRPC: one frame in each binary
//! message, see [`proto::http1`].
//!
//! An idle link is to cost little, so buffers begin small. A runner that breaks the protocol hears
//! why in the close frame.

mod doorstep;
mod inbound;

use std::time::Duration;

use axum::{
    Router,
    extract::{Request, State, ws::close_code},
    response::{IntoResponse as _, Response},
    routing::get,
};
use futures_util::{
    FutureExt as _, SinkExt as _, StreamExt as _,
    future::{BoxFuture, join},
    stream::SplitSink,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use proto::{http1, v1};
use server_app::LinkSealer;
use shared_types::limits::MAX_FRAME_BYTES;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{Role, WebSocketConfig},
    },
};
use tonic::Status;

use self::{
    doorstep::{Doorstep, Greeted},
    inbound::{Inbound, ReadHalf},
};
use super::{
    GOODBYE_WITHIN,
    farewell::{close_frame, farewell},
    handshake::Handshake,
};
use crate::{
    Doors,
    edge::serve::ConnectionPermit,
    grpc::PostRefusal,
    link::{Caller, FRAMES, ServedLink},
};

/// Bytes that are read at once, and for which a connection has room from its beginning on.
const BUFFER_BYTES: usize = 2 * 1024;
/// Bytes that may wait for a runner that takes none: a frame, and what answers its pings.
const UNSENT_BYTES: usize = MAX_FRAME_BYTES + 64 * 1024;

type LinkSocket = WebSocketStream<Doorstep<TokioIo<Upgraded>>>;

pub(crate) fn router() -> Router<Doors> {
    Router::new().route(http1::LINK, get(upgrade))
}

async fn upgrade(State(doors): State<Doors>, request: Request) -> Result<Response, PostRefusal> {
    let (mut parts, _) = request.into_parts();
    let caller = Caller::of(&parts.headers, &doors.app)?;
    let (upgrade, answer) = match Handshake::of(&mut parts) {
        Ok(handshake) => handshake.split(),
        Err(refused) => return Ok(refused.into_response()),
    };
    let place = parts.extensions.remove::<ConnectionPermit>();
    if let Some(place) = &place {
        place.may_greet();
    }
    // The opening is on the heap and freed at its end, because it needs more memory than an open
    // link.
    let opening = Box::pin(open(upgrade, doors, caller, place.clone()));
    tokio::spawn(async move {
        match opening.await {
            Ok(link) => link.serve().await,
            Err(error) => tracing::debug!(%error, "a link did not come about"),
        }
        drop(place);
    });
    Ok(answer)
}

/// A link that is open.
struct OpenLink {
    greeted: Greeted,
    /// Serves the link to its end.
    served: BoxFuture<'static, Result<(), Status>>,
    sink: SplitSink<LinkSocket, Message>,
    frames: mpsc::Receiver<Box<v1::ServerFrame>>,
    sealer: LinkSealer,
    kept: oneshot::Receiver<ReadHalf>,
    /// A runner that takes nothing of a frame for this long is gone.
    taken_within: Duration,
}

async fn open(
    upgrade: OnUpgrade,
    doors: Doors,
    caller: Caller,
    place: Option<ConnectionPermit>,
) -> Result<OpenLink, hyper::Error> {
    let (doorstep, greeted) = Doorstep::before(TokioIo::new(upgrade.await?));
    let limits = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_write_buffer_size(UNSENT_BYTES)
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES));
    let socket = WebSocketStream::from_raw_socket(doorstep, Role::Server, Some(limits)).await;
    let (sink, stream) = socket.split();
    let (inbound, kept) = Inbound::of(stream, greeted.clone());
    let (challenge, sealer) = caller.challenge(&doors.app).await;
    let (outbound, frames) = mpsc::channel(FRAMES);
    let link = ServedLink {
        app: doors.app,
        caller,
        inbound,
        place,
    };
    Ok(OpenLink {
        greeted,
        served: link.run(challenge, outbound).boxed(),
        sink,
        frames,
        sealer,
        kept,
        taken_within: doors.limits.taken_within,
    })
}

impl OpenLink {
    async fn serve(self) {
        let said = write(self.sink, self.frames, self.sealer, self.taken_within);
        let (ended, sink) = join(self.served, said).await;
        // Dropped bytes need not be counted.
        self.greeted.set();
        let goodbye = Box::pin(say_goodbye(sink, self.kept, ended));
        let _ = timeout(GOODBYE_WITHIN, goodbye).await;
    }
}

/// Sends what the server has to say until it says no more, or the runner takes no more.
async fn write(
    mut sink: SplitSink<LinkSocket, Message>,
    mut frames: mpsc::Receiver<Box<v1::ServerFrame>>,
    mut sealer: LinkSealer,
    taken_within: Duration,
) -> SplitSink<LinkSocket, Message> {
    while let Some(frame) = frames.recv().await
        && let Some(frame) = sealer.seal(frame)
    {
        let message = Message::Binary(frame.encode_to_vec().into());
        let sent = timeout(taken_within, sink.send(message)).await;
        if !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    sink
}

/// Says why it ended, and waits until the runner has heard it.
async fn say_goodbye(
    sink: SplitSink<LinkSocket, Message>,
    kept: oneshot::Receiver<ReadHalf>,
    ended: Result<(), Status>,
) {
    let Ok(ReadHalf { stream, violation }) = kept.await else {
        return;
    };
    let last = violation.unwrap_or_else(|| match &ended {
        Ok(()) => close_frame(close_code::NORMAL, ""),
        Err(status) => {
            let (code, reason) = http1::close(status.code(), status.message());
            close_frame(code, &reason)
        }
    });
    if let Ok(socket) = stream.reunite(sink) {
        farewell(socket, last).await;
    }
}
