//! `GET /api/v1/stream`: a WebSocket on which a client follows sessions.
//!
//! Each subscription is a task that reads the log and then what happens; all write to one bounded
//! queue, so a client that reads slowly makes only its own subscriptions wait.

use std::{collections::HashMap, time::Duration};

use axum::{
    Router,
    extract::{
        State, WebSocketUpgrade,
        ws::{Message, WebSocket},
    },
    response::Response,
    routing::get,
};
use futures_util::{SinkExt as _, StreamExt as _, stream::SplitSink};
use server_app::{AppError, Followed, OpContext};
use shared_api::{ClientMessage, Problem, ServerMessage};
use shared_types::{SessionId, limits::MAX_API_BODY_BYTES};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Doors,
    rest::{Signed, problem},
    ws::live::LiveText,
};

mod live;

/// Messages that may wait for a slow client.
const QUEUE: usize = 64;
/// Sessions that one connection may follow at once.
const SUBSCRIPTIONS: usize = 16;
/// A quiet connection is pinged this often, so that what lies between keeps it open.
const PING_EVERY: Duration = Duration::from_secs(20);
/// A client that takes nothing for this long is gone.
const SEND_WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn router() -> Router<Doors> {
    Router::new().route("/api/v1/stream", get(upgrade))
}

async fn upgrade(
    Signed(ctx): Signed,
    State(doors): State<Doors>,
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade
        .max_message_size(MAX_API_BODY_BYTES)
        .max_frame_size(MAX_API_BODY_BYTES)
        .read_buffer_size(4 * 1024)
        .write_buffer_size(4 * 1024)
        .on_upgrade(move |socket| converse(socket, ctx, doors))
}

async fn converse(socket: WebSocket, ctx: OpContext, doors: Doors) {
    let (sink, mut stream) = socket.split();
    let (outbox, inbox) = mpsc::channel(QUEUE);
    let mut writer = JoinSet::new();
    writer.spawn(write(sink, inbox));
    let mut following: HashMap<SessionId, AbortOnDropHandle<()>> = HashMap::new();
    loop {
        let message = tokio::select! {
            message = stream.next() => message,
            // The client is gone or takes nothing any more.
            _ = writer.join_next() => return,
        };
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Binary(_))) => {
                let _ = outbox.send(refuse(None, "messages are JSON text")).await;
                continue;
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
        };
        match serde_json::from_str::<ClientMessage>(&text) {
            Ok(ClientMessage::Subscribe { session, after }) => {
                following.retain(|_, task| !task.is_finished());
                if following.len() >= SUBSCRIPTIONS && !following.contains_key(&session) {
                    let _ = outbox
                        .send(refuse(
                            Some(session),
                            "too many subscriptions on one connection; open another",
                        ))
                        .await;
                    continue;
                }
                let task = tokio::spawn(follow(
                    ctx.clone(),
                    doors.clone(),
                    session,
                    after,
                    outbox.clone(),
                ));
                following.insert(session, AbortOnDropHandle::new(task));
            }
            Ok(ClientMessage::Unsubscribe { session }) => drop(following.remove(&session)),
            Err(error) => {
                let _ = outbox
                    .send(refuse(
                        None,
                        &format!("the message was not understood: {error}"),
                    ))
                    .await;
            }
        }
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

async fn write(mut sink: SplitSink<WebSocket, Message>, mut inbox: mpsc::Receiver<ServerMessage>) {
    let mut ping = tokio::time::interval(PING_EVERY);
    loop {
        let frame = tokio::select! {
            message = inbox.recv() => match message {
                Some(message) => match serde_json::to_string(&message) {
                    Ok(text) => Message::Text(text.into()),
                    Err(error) => return tracing::error!(%error, "a message could not be written as JSON"),
                },
                None => return,
            },
            _ = ping.tick() => Message::Ping(Vec::new().into()),
        };
        if !matches!(
            tokio::time::timeout(SEND_WITHIN, sink.send(frame)).await,
            Ok(Ok(()))
        ) {
            return;
        }
    }
}

fn refuse(session: Option<SessionId>, detail: &str) -> ServerMessage {
    ServerMessage::Problem {
        session,
        problem: Problem {
            code: "invalid".to_owned(),
            status: 422,
            detail: detail.to_owned(),
        },
    }
}
