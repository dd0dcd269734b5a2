//! `GET /api/v1/stream`: a WebSocket on which a client follows sessions; and the one that carries a
//! runner's link (`link`).
//!
//! Each subscription is a task that reads the log and then what happens; all write to one bounded
//! queue, so a client that reads slowly makes only its own subscriptions wait. A connection does
//! not outlive its credential, and says goodbye when the server stops.

use std::{collections::HashMap, ops::ControlFlow, time::Duration};

use axum::{
    Extension, Router,
    extract::{
        State, WebSocketUpgrade,
        ws::{CloseFrame, Message, WebSocket, close_code},
    },
    response::Response,
    routing::get,
};
use futures_util::{SinkExt as _, StreamExt as _, stream::SplitSink};
use server_app::{AppError, Followed, OpContext};
use shared_api::{ClientMessage, ServerMessage};
use shared_types::{SessionId, limits::MAX_API_BODY_BYTES};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Doors, Limits,
    rest::{Signed, problem},
    serve::Place,
    ws::live::LiveText,
};

mod link;
mod live;

/// Messages that may wait for a slow client; each may have the size of a message or of an answer.
const QUEUE: usize = 16;
/// Sessions that one connection may follow at once.
const SUBSCRIPTIONS: usize = 16;
/// How long the last word to a client or a runner may take.
const GOODBYE_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether the credential was revoked.
const CREDENTIAL_CHECKED_EVERY: Duration = Duration::from_secs(5);

pub(crate) fn router() -> Router<Doors> {
    Router::new()
        .route("/api/v1/stream", get(upgrade))
        .merge(link::router())
}

async fn upgrade(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    place: Option<Extension<Place>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade
        .max_message_size(MAX_API_BODY_BYTES)
        .max_frame_size(MAX_API_BODY_BYTES)
        .read_buffer_size(4 * 1024)
        .write_buffer_size(4 * 1024)
        .on_upgrade(async move |socket| {
            converse(socket, ctx, doors).await;
            drop(place);
        })
}

async fn converse(socket: WebSocket, ctx: OpContext, doors: Doors) {
    let (sink, mut stream) = socket.split();
    let (outbox, inbox) = mpsc::channel(QUEUE);
    let mut writer = JoinSet::new();
    writer.spawn(write(sink, inbox, doors.limits));
    let mut conversation = Conversation {
        ctx,
        doors,
        following: HashMap::new(),
        outbox,
    };
    let mut check = tokio::time::interval(CREDENTIAL_CHECKED_EVERY);
    loop {
        let goes_on = tokio::select! {
            message = stream.next() => conversation.hear(message).await,
            _ = check.tick() => conversation.is_allowed().await,
            () = conversation.doors.app.stopping() => ControlFlow::Break(()),
            // The client is gone or takes nothing any more.
            _ = writer.join_next() => return,
        };
        if goes_on.is_break() {
            break;
        }
    }
    // The writer says goodbye once nobody can give it anything more.
    drop(conversation);
    let _ = tokio::time::timeout(GOODBYE_WITHIN, writer.join_next()).await;
}

/// What one client wants.
struct Conversation {
    ctx: OpContext,
    doors: Doors,
    following: HashMap<SessionId, AbortOnDropHandle<()>>,
    outbox: mpsc::Sender<ServerMessage>,
}

impl Conversation {
    async fn hear(&mut self, message: Option<Result<Message, axum::Error>>) -> ControlFlow<()> {
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
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => return ControlFlow::Break(()),
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
    async fn is_allowed(&self) -> ControlFlow<()> {
        match self.doors.app.access.holds(&self.ctx).await {
            Ok(false) => ControlFlow::Break(()),
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
        let _ = self
            .outbox
            .send(ServerMessage::Problem { session, problem })
            .await;
    }
}

/// Sends one session's events, then what happens, until the client leaves.
async fn follow(
    ctx: OpContext,
    doors: Doors,
    session: SessionId,
    after: u64,
    outbox: mpsc::Sender<ServerMessage>,
) {
    let mut texts = LiveText::default();
    let failed = |error: &AppError| ServerMessage::Problem {
        session: Some(session),
        problem: problem(error),
    };
    let mut subscription = match doors.app.sessions.follow(&ctx, session, after).await {
        Ok(subscription) => subscription,
        Err(error) => return drop(outbox.send(failed(&error)).await),
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
            Err(error) => return drop(outbox.send(failed(&error)).await),
        };
        if outbox.send(message).await.is_err() {
            return;
        }
    }
}

async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut inbox: mpsc::Receiver<ServerMessage>,
    limits: Limits,
) {
    let mut ping = tokio::time::interval(limits.keep_alive_every);
    loop {
        let frame = tokio::select! {
            message = inbox.recv() => match message {
                Some(message) => match serde_json::to_string(&message) {
                    Ok(text) => Message::Text(text.into()),
                    Err(error) => return tracing::error!(%error, "a message could not be written as JSON"),
                },
                None => Message::Close(Some(CloseFrame {
                    code: close_code::AWAY,
                    reason: "the server stops, or the credential was revoked".into(),
                })),
            },
            _ = ping.tick() => Message::Ping(Vec::new().into()),
        };
        let last = matches!(frame, Message::Close(_));
        let sent = tokio::time::timeout(limits.taken_within, sink.send(frame)).await;
        if last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}
