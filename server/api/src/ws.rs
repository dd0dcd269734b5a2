//! `GET /api/v1/stream`: a WebSocket on which a client follows sessions; and the one that carries a
//! runner's link (`link`).
//!
//! Each subscription is a task that reads the log and then what happens; all write to one
//! queue (`outbox`), so a client that reads slowly makes only its own subscriptions wait. A connection does
//! not outlive its credential, and says goodbye when the server stops.

use std::{collections::HashMap, ops::ControlFlow, time::Duration};

use axum::{
    Router,
    extract::{Request, State, ws::close_code},
    response::Response,
    routing::get,
};
use futures_util::{SinkExt as _, StreamExt as _, stream::SplitSink};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use server_app::{AppError, Followed, OpContext};
use shared_api::{ClientMessage, ServerMessage};
use shared_types::{SessionId, limits::MAX_API_BODY_BYTES};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Doors, Limits,
    rest::{Signed, problem},
    serve::Place,
    ws::{
        farewell::{close_frame, farewell, violation},
        handshake::{Handshake, NoHandshake},
        live::LiveText,
        outbox::{Outbox, Waiting},
    },
};

mod farewell;
mod handshake;
mod link;
mod live;
mod outbox;

/// Bytes that are read at once, and for which a connection has room from its beginning on.
const BUFFER_BYTES: usize = 4 * 1024;
/// Sessions that one connection may follow at once.
const SUBSCRIPTIONS: usize = 16;
/// How long the last word to a client or a runner may take.
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether the credential was revoked.
const CREDENTIAL_CHECKED_EVERY: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

pub(crate) fn router() -> Router<Doors> {
    Router::new()
        .route("/api/v1/stream", get(upgrade))
        .merge(link::router())
}

async fn upgrade(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    request: Request,
) -> Result<Response, NoHandshake> {
    let (mut parts, _) = request.into_parts();
    let (upgrade, answer) = Handshake::of(&mut parts)?.split();
    let place = parts.extensions.remove::<Place>();
    tokio::spawn(async move {
        match upgrade.await {
            Ok(connection) => converse(TokioIo::new(connection), ctx, doors).await,
            Err(error) => tracing::debug!(%error, "a stream did not come about"),
        }
        drop(place);
    });
    Ok(answer)
}

/// Why a conversation ends.
enum End {
    /// The client said goodbye, or is gone.
    ByClient,
    /// The client broke the protocol.
    Violation(CloseFrame),
    Revoked,
    Stops,
}

async fn converse(connection: TokioIo<Upgraded>, ctx: OpContext, doors: Doors) {
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_API_BODY_BYTES))
        .max_frame_size(Some(MAX_API_BODY_BYTES))
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES);
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(limits)).await;
    let (sink, mut stream) = socket.split();
    let (outbox, inbox) = Outbox::new();
    let mut writer = JoinSet::new();
    writer.spawn(write(sink, inbox, doors.limits));
    let mut conversation = Conversation {
        ctx,
        doors,
        following: HashMap::new(),
        outbox,
    };
    let mut check = tokio::time::interval(CREDENTIAL_CHECKED_EVERY);
    let end = loop {
        let goes_on = tokio::select! {
            message = stream.next() => conversation.hear(message).await,
            _ = check.tick() => conversation.is_allowed().await,
            () = conversation.doors.app.stopping() => ControlFlow::Break(End::Stops),
            // The client is gone or takes nothing any more.
            _ = writer.join_next() => return,
        };
        if let ControlFlow::Break(end) = goes_on {
            break end;
        }
    };
    // The writer ends once its queue has no sender.
    drop(conversation);
    let last = match end {
        End::ByClient => close_frame(close_code::NORMAL, ""),
        End::Violation(last) => last,
        End::Revoked => close_frame(close_code::POLICY, "the credential was revoked"),
        End::Stops => close_frame(close_code::AWAY, "the server stops"),
    };
    let goodbye = async {
        if let Some(Ok(sink)) = writer.join_next().await
            && let Ok(socket) = stream.reunite(sink)
        {
            farewell(socket, last).await;
        }
    };
    let _ = tokio::time::timeout(GOODBYE_WITHIN, goodbye).await;
}

/// What one client wants.
struct Conversation {
    ctx: OpContext,
    doors: Doors,
    following: HashMap<SessionId, AbortOnDropHandle<()>>,
    outbox: Outbox,
}

impl Conversation {
    async fn hear(&mut self, message: Option<Result<Message, Error>>) -> ControlFlow<End> {
        match message {
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(ClientMessage::Subscribe { session, after }) => {
                    self.subscribe(session, after).await;
                }
                Ok(ClientMessage::Unsubscribe { session }) => self.unsubscribe(session).await,
                Err(error) => {
                    self.refuse(None, &format!("the message was not understood: {error}"))
                        .await;
                }
            },
            Some(Ok(Message::Binary(_))) => self.refuse(None, "messages are JSON text").await,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(_))) | None => return ControlFlow::Break(End::ByClient),
            Some(Err(error)) => {
                let end = violation(&error).map_or(End::ByClient, End::Violation);
                return ControlFlow::Break(end);
            }
        }
        ControlFlow::Continue(())
    }

    async fn subscribe(&mut self, session: SessionId, after: u64) {
        // The earlier subscription has said its last before the new one begins.
        self.unsubscribe(session).await;
        self.following.retain(|_, task| !task.is_finished());
        if self.following.len() >= SUBSCRIPTIONS {
            let detail = "too many subscriptions on one connection; open another";
            return self.refuse(Some(session), detail).await;
        }
        let (ctx, doors, outbox) = (self.ctx.clone(), self.doors.clone(), self.outbox.clone());
        let task = tokio::spawn(follow(ctx, doors, session, after, outbox));
        self.following.insert(session, AbortOnDropHandle::new(task));
    }

    async fn unsubscribe(&mut self, session: SessionId) {
        if let Some(task) = self.following.remove(&session) {
            task.abort();
            let _ = task.await;
        }
    }

    /// Breaks off once the credential was revoked.
    async fn is_allowed(&self) -> ControlFlow<End> {
        match self.doors.app.access.holds(&self.ctx).await {
            Ok(false) => ControlFlow::Break(End::Revoked),
            Ok(true) => ControlFlow::Continue(()),
            Err(error) => {
                tracing::warn!(%error, "it cannot be read whether a credential still holds");
                ControlFlow::Continue(())
            }
        }
    }

    async fn refuse(&self, session: Option<SessionId>, detail: &str) {
        let refused = AppError::Invalid(detail.to_owned());
        let problem = problem(&refused);
        let refused = ServerMessage::Problem { session, problem };
        self.outbox.send(&refused).await;
    }
}

/// Sends one session's events, then what happens, until the client leaves.
async fn follow(ctx: OpContext, doors: Doors, session: SessionId, after: u64, outbox: Outbox) {
    let mut texts = LiveText::default();
    let failed = |error: &AppError| ServerMessage::Problem {
        session: Some(session),
        problem: problem(error),
    };
    let mut subscription = match doors.app.sessions.follow(&ctx, session, after).await {
        Ok(subscription) => subscription,
        Err(error) => {
            outbox.send(&failed(&error)).await;
            return;
        }
    };
    loop {
        let message = match subscription.next().await {
            Ok(Followed::Event(event)) => ServerMessage::Event {
                session,
                event: Box::new(event),
            },
            Ok(Followed::CaughtUp(seq)) => ServerMessage::CaughtUp { session, seq },
            Ok(Followed::Live(live)) => match texts.convert(live) {
                Some(live) => ServerMessage::Live { session, live },
                None => continue,
            },
            Err(error) => {
                outbox.send(&failed(&error)).await;
                return;
            }
        };
        if !outbox.send(&message).await {
            return;
        }
    }
}

/// Sends the messages of the queue until it has no sender, or the client takes no more.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut inbox: mpsc::Receiver<Waiting>,
    limits: Limits,
) -> SplitSink<Socket, Message> {
    let mut ping = tokio::time::interval(limits.keep_alive_every);
    loop {
        let (frame, room) = tokio::select! {
            message = inbox.recv() => match message {
                Some(Waiting { text, room }) => (Message::text(text), Some(room)),
                None => return sink,
            },
            _ = ping.tick() => (Message::Ping(Vec::new().into()), None),
        };
        let sent = tokio::time::timeout(limits.taken_within, sink.send(frame)).await;
        drop(room);
        if !matches!(sent, Ok(Ok(()))) {
            return sink;
        }
    }
}
