//! One WebSocket of a client: both sides may send at any time, until one of them ends it.
//!
//! All messages to the client go through one queue (`outbox`), so a client that reads slowly delays only itself. A
//! connection does not outlive its credential. If the server stops, or the connection has reached its greatest age, the
//! server asks the client to connect again.

use std::{future::Future, ops::ControlFlow, pin::pin, time::Duration};

use axum::{
    extract::ws::close_code,
    http::request::Parts,
    response::{IntoResponse as _, Response},
};
use futures_util::{SinkExt as _, StreamExt as _, stream::SplitSink};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use server_app::{AppError, OpContext};
use shared_types::backoff::aged_at;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, Interval, interval_at, sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};

use super::{
    GOODBYE_WITHIN,
    farewell::{close_frame, farewell, violation},
    handshake::{Handshake, NoHandshake},
    outbox::{Outbox, QueuedMessage},
};
use crate::{
    Doors, Limits,
    edge::seats::{Seat, Seats},
    edge::serve::ConnectionPermit,
};

/// Bytes that are written at once.
const WRITTEN_AT_ONCE: usize = 4 * 1024;
/// The interval between checks of the client's rights: short enough that a withdrawn right ends within five seconds.
const RIGHTS_CHECKED_EVERY: Duration = Duration::from_secs(4);
/// The time over which a stopping server spreads the clients' next connections, in milliseconds for each open one:
/// about 1000 come back in a second.
const RECONNECT_MS_PER_STREAM: u32 = 1;
/// The least that they are spread: all that is needed where only one ends, because the ages of connections
/// are spread already.
const RECONNECT_MS_AT_LEAST: u32 = 500;
/// The most: a person waits.
const RECONNECT_MS_AT_MOST: u32 = 60_000;

type ConversationSocket = WebSocketStream<TokioIo<Upgraded>>;

/// The server's side of a conversation.
pub(super) trait Conversation: Send + 'static {
    /// Largest message of the client, in bytes; a larger one ends the connection.
    const MAX_MESSAGE_BYTES: usize;

    /// Bytes that are read at once, for which the connection has room from its beginning on.
    const READ_AT_ONCE: usize;

    /// Something that happened on the server's side.
    type Event: Send;

    /// True if there is room for another message of the client.
    fn listens(&self) -> bool;

    /// The client said this.
    fn hear(&mut self, message: Message) -> impl Future<Output = ControlFlow<End>> + Send;

    /// The next event. Safe to cancel: an event that was not returned is not lost.
    fn event(&mut self) -> impl Future<Output = Self::Event> + Send;

    /// Checks if the client may continue with its present rights.
    fn may_go_on(&mut self, ctx: &OpContext) -> impl Future<Output = Result<(), AppError>> + Send;

    /// Does what follows from an event.
    fn handle(&mut self, event: Self::Event) -> impl Future<Output = ControlFlow<End>> + Send;

    /// Ends the conversation. The returned seat is given back once the client has read the rest.
    fn leave(self) -> Seat;

    /// The message that asks the client to connect again within so many milliseconds.
    fn reconnect(within_ms: u32) -> Option<Message>;
}

/// The reason why a conversation ends.
pub(super) enum End {
    /// The client said goodbye, or is gone.
    ByClient,
    /// The server has nothing more to say, or the client broke the protocol.
    With(CloseFrame),
    /// The credential was revoked or has expired, or its user was removed.
    Revoked,
    /// The right to do this was taken away.
    TakenAway,
    /// The server stops.
    Stops,
    /// The connection has reached its greatest age.
    Aged,
}

/// A connection that may become a WebSocket.
pub(super) struct Opening {
    upgrade: OnUpgrade,
    answer: Response,
    place: Option<ConnectionPermit>,
    seats: Seats,
}

impl Opening {
    /// # Errors
    /// Fails if the request asks for no WebSocket that the server speaks.
    pub(super) fn of(parts: &mut Parts, seats: &Seats) -> Result<Self, NoHandshake> {
        let (upgrade, answer) = Handshake::of(parts)?.split();
        Ok(Self {
            upgrade,
            answer,
            place: parts.extensions.remove::<ConnectionPermit>(),
            seats: seats.clone(),
        })
    }

    /// Begins the conversation once the client has the answer, which is returned.
    pub(super) fn begin<C: Conversation>(
        self,
        ctx: OpContext,
        doors: Doors,
        begin: impl FnOnce(Outbox) -> C + Send + 'static,
    ) -> Response {
        let (upgrade, place, seats) = (self.upgrade, self.place, self.seats);
        tokio::spawn(async move {
            match upgrade.await {
                Ok(connection) => {
                    converse(TokioIo::new(connection), ctx, doors, seats, begin).await;
                }
                Err(error) => tracing::debug!(%error, "a stream did not come about"),
            }
            drop(place);
        });
        self.answer.into_response()
    }
}

async fn converse<C: Conversation>(
    connection: TokioIo<Upgraded>,
    ctx: OpContext,
    doors: Doors,
    seats: Seats,
    begin: impl FnOnce(Outbox) -> C,
) {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(C::MAX_MESSAGE_BYTES))
        .max_frame_size(Some(C::MAX_MESSAGE_BYTES))
        .read_buffer_size(C::READ_AT_ONCE)
        .write_buffer_size(WRITTEN_AT_ONCE);
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(limits)).await;
    let (sink, mut stream) = socket.split();
    let (outbox, inbox) = Outbox::new();
    let mut writer = JoinSet::new();
    writer.spawn(write(sink, inbox, doors.limits));
    let mut conversation = begin(outbox);
    // The request has just checked the rights.
    let mut check = later(RIGHTS_CHECKED_EVERY);
    let mut rights = doors.app.access.watch_rights(&ctx);
    let mut aged = pin!(aged(&doors));
    let end = loop {
        let goes_on = tokio::select! {
            message = stream.next(), if conversation.listens() => match heard(message) {
                Ok(message) => conversation.hear(message).await,
                Err(end) => ControlFlow::Break(end),
            },
            event = conversation.event() => conversation.handle(event).await,
            () = rights.changed() => is_allowed(&ctx, &doors, &mut conversation).await,
            _ = check.tick() => is_allowed(&ctx, &doors, &mut conversation).await,
            () = doors.app.stopping() => ControlFlow::Break(End::Stops),
            () = aged.as_mut() => ControlFlow::Break(End::Aged),
            // The client is gone or takes nothing any more.
            _ = writer.join_next() => return,
        };
        if let ControlFlow::Break(end) = goes_on {
            break end;
        }
    };
    // This comes before the seats are given back: all connections end now, and each client learns of all of them.
    let reconnect = end.reconnect_within_ms(&seats).and_then(C::reconnect);
    // The writer ends once its queue has no sender.
    let _seat = conversation.leave();
    let patience = match &end {
        // The last unread messages include the end of the operation.
        End::With(_) => doors.limits.taken_within,
        _ => Duration::ZERO,
    };
    let last = match end {
        End::ByClient => close_frame(close_code::NORMAL, ""),
        End::With(last) => last,
        End::Revoked => close_frame(close_code::POLICY, "the credential was revoked"),
        End::TakenAway => close_frame(close_code::POLICY, "you may not follow this any more"),
        End::Stops => close_frame(close_code::RESTART, "the server stops"),
        End::Aged => close_frame(
            close_code::RESTART,
            "the connection has reached its greatest age",
        ),
    };
    // A client that reads slowly still hears the rest.
    let stopping = doors.app.stopping();
    let written = tokio::select! {
        written = writer.join_next() => written,
        _ = timeout(patience, stopping) => timeout(GOODBYE_WITHIN, writer.join_next()).await.ok().flatten(),
    };
    let goodbye = async {
        if let Some(Ok(mut sink)) = written {
            if let Some(reconnect) = reconnect {
                // A client that does not take it sees the connection end.
                let _ = sink.send(reconnect).await;
            }
            let Ok(socket) = stream.reunite(sink) else {
                return;
            };
            farewell(socket, last).await;
        }
    };
    let _ = timeout(GOODBYE_WITHIN, goodbye).await;
}

impl End {
    /// The time over which the client's next connection is spread; `None` if it is not asked to connect again.
    fn reconnect_within_ms(&self, seats: &Seats) -> Option<u32> {
        match self {
            Self::ByClient | Self::With(_) | Self::Revoked | Self::TakenAway => None,
            Self::Stops => {
                let taken = u32::try_from(seats.taken()).unwrap_or(u32::MAX);
                let spread = taken.saturating_mul(RECONNECT_MS_PER_STREAM);
                Some(spread.clamp(RECONNECT_MS_AT_LEAST, RECONNECT_MS_AT_MOST))
            }
            Self::Aged => Some(RECONNECT_MS_AT_LEAST),
        }
    }
}

/// Ticks so often, and not at once.
fn later(every: Duration) -> Interval {
    interval_at(Instant::now() + every, every)
}

/// Waits until a connection that begins now has reached its greatest age.
async fn aged(doors: &Doors) {
    let Some(age) = doors.limits.age_at_most else {
        return std::future::pending().await;
    };
    let mut random = [0; 8];
    doors.entropy.fill(&mut random);
    sleep(aged_at(age, u64::from_be_bytes(random))).await;
}

/// A message, unless there are no more.
fn heard(message: Option<Result<Message, Error>>) -> Result<Message, End> {
    match message {
        Some(Ok(Message::Close(_))) | None => Err(End::ByClient),
        Some(Ok(message)) => Ok(message),
        Some(Err(error)) => Err(violation(&error).map_or(End::ByClient, End::With)),
    }
}

/// Breaks off once the credential was revoked, or the right was taken away.
async fn is_allowed<C: Conversation>(
    ctx: &OpContext,
    doors: &Doors,
    conversation: &mut C,
) -> ControlFlow<End> {
    let goes_on = match doors.app.access.renewed(ctx).await {
        Ok(Some(ctx)) => conversation.may_go_on(&ctx).await,
        Ok(None) => return ControlFlow::Break(End::Revoked),
        Err(error) => Err(error),
    };
    match goes_on {
        Ok(()) => ControlFlow::Continue(()),
        Err(error @ AppError::Unavailable(_)) => {
            tracing::warn!(%error, "it cannot be read whether a client may go on");
            ControlFlow::Continue(())
        }
        Err(_) => ControlFlow::Break(End::TakenAway),
    }
}

/// Sends the messages of the queue until it has no sender, or the client takes no more.
async fn write(
    mut sink: SplitSink<ConversationSocket, Message>,
    mut inbox: mpsc::Receiver<QueuedMessage>,
    limits: Limits,
) -> SplitSink<ConversationSocket, Message> {
    let mut ping = later(limits.keep_alive_every);
    loop {
        let (frame, room) = tokio::select! {
            message = inbox.recv() => match message {
                Some(QueuedMessage { message, room }) => (message, Some(room)),
                None => return sink,
            },
            _ = ping.tick() => (Message::Ping(Vec::new().into()), None),
        };
        let sent = timeout(limits.taken_within, sink.send(frame)).await;
        drop(room);
        if !matches!(sent, Ok(Ok(()))) {
            return sink;
        }
    }
}
