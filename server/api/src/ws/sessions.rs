//! `GET /api/v1/stream`: a client follows sessions, and watches lists. Each subscription is a task that reads the log
//! and then what happens.

use std::{collections::HashMap, ops::ControlFlow};

use axum::{
    Extension,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use server_app::{AppError, Followed, OpContext, rights::Action};
use shared_api::{ClientMessage, ServerMessage};
use shared_types::{SessionId, limits::MAX_API_BODY_BYTES};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::task::AbortOnDropHandle;

use super::{
    conversation::{Conversation, End, Opening},
    live::LiveText,
    outbox::{Asides, Outbox, json},
    watching::Watching,
};
use crate::{
    Doors,
    edge::seats::{self, Seat, Seats},
    named::read_by_name,
    rest::{Refused, SignedStream, problem},
};

/// Sessions that one connection may follow at once.
const SUBSCRIPTIONS: usize = 16;

pub(super) async fn upgrade(
    SignedStream(ctx): SignedStream,
    State(doors): State<Doors>,
    Extension(seats): Extension<Seats>,
    request: Request,
) -> Result<Response, Response> {
    let refused = |error| Refused::from(error).into_response();
    let access = &doors.app.access;
    access.require(&ctx, Action::ReadSession).map_err(refused)?;
    let (mut parts, _) = request.into_parts();
    let opening = Opening::of(&mut parts, &seats).map_err(|error| error.into_response())?;
    let seat = seats.take(ctx.credential, seats::Kind::Sessions);
    let seat = seat.map_err(|full| full.into_response())?;
    let begin = {
        let (ctx, doors) = (ctx.clone(), doors.clone());
        |outbox: Outbox| Sessions {
            seat,
            ctx,
            following: HashMap::new(),
            watching: Watching::new(&doors, outbox.clone()),
            asides: Asides::to(outbox.clone()),
            outbox,
            doors,
        }
    };
    Ok(opening.begin(ctx, doors, begin))
}

/// The subscriptions of one client.
struct Sessions {
    seat: Seat,
    ctx: OpContext,
    doors: Doors,
    following: HashMap<SessionId, AbortOnDropHandle<()>>,
    watching: Watching,
    outbox: Outbox,
    asides: Asides,
}

impl Conversation for Sessions {
    const MAX_MESSAGE_BYTES: usize = MAX_API_BODY_BYTES;

    const READ_AT_ONCE: usize = 4 * 1024;

    /// An aside was sent: subscriptions speak for themselves.
    type Event = ();

    fn listens(&self) -> bool {
        self.asides.have_room()
    }

    async fn may_go_on(&mut self, ctx: &OpContext) -> Result<(), AppError> {
        // One that was refused, or that has ended, is no claim to anything.
        self.following.retain(|_, task| !task.is_finished());
        let followed: Vec<_> = self.following.keys().copied().collect();
        for session in followed {
            match self.doors.app.sessions.get(ctx, session).await {
                Ok(_) => {}
                Err(error @ AppError::NotFound(_)) => self.end(session, &error).await,
                Err(error) => return Err(error),
            }
        }
        self.watching.may_go_on(ctx);
        self.ctx = ctx.clone();
        Ok(())
    }

    async fn hear(&mut self, message: Message) -> ControlFlow<End> {
        match message {
            Message::Text(text) => match read_by_name(&text) {
                Ok(ClientMessage::Subscribe { session, after }) => {
                    self.subscribe(session, after).await;
                }
                Ok(ClientMessage::Unsubscribe { session }) => self.unsubscribe(session).await,
                Ok(ClientMessage::Watch { topics }) => {
                    self.watching.begin(&self.ctx, topics.into_iter().collect());
                }
                Err(error) => {
                    self.refuse(None, &format!("the message was not understood: {error}"));
                }
            },
            Message::Binary(_) => self.refuse(None, "messages are JSON text"),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    async fn event(&mut self) {
        self.asides.said().await;
    }

    async fn handle(&mut self, (): ()) -> ControlFlow<End> {
        ControlFlow::Continue(())
    }

    fn leave(self) -> Seat {
        self.seat
    }

    fn reconnect(within_ms: u32) -> Option<Message> {
        json(&ServerMessage::Reconnect { within_ms })
    }
}

impl Sessions {
    async fn subscribe(&mut self, session: SessionId, after: u64) {
        // The earlier subscription has said its last before the new one begins.
        self.unsubscribe(session).await;
        self.following.retain(|_, task| !task.is_finished());
        if self.following.len() >= SUBSCRIPTIONS {
            let detail = "too many subscriptions on one connection; open another";
            return self.refuse(Some(session), detail);
        }
        let (ctx, doors, outbox) = (self.ctx.clone(), self.doors.clone(), self.outbox.clone());
        let task = tokio::spawn(follow(ctx, doors, session, after, outbox));
        self.following.insert(session, AbortOnDropHandle::new(task));
    }

    async fn unsubscribe(&mut self, session: SessionId) {
        self.stop_following(session).await;
    }

    /// Ends a subscription with this problem, unless its task has already sent its own last message.
    async fn end(&mut self, session: SessionId, why: &AppError) {
        if self.stop_following(session).await {
            self.asides.say(failed(session, why));
        }
    }

    /// Stops the task of a subscription. Returns true if it was stopped before its own end.
    async fn stop_following(&mut self, session: SessionId) -> bool {
        let Some(task) = self.following.remove(&session) else {
            return false;
        };
        task.abort();
        task.await.is_err()
    }

    fn refuse(&mut self, session: Option<SessionId>, detail: &str) {
        let refused = AppError::Invalid(detail.to_owned());
        let problem = problem(&refused);
        let refused = ServerMessage::Problem { session, problem };
        self.asides.say(refused);
    }
}

/// Sends one session's events, then what happens, until the client leaves.
async fn follow(ctx: OpContext, doors: Doors, session: SessionId, after: u64, outbox: Outbox) {
    let mut texts = LiveText::default();
    let mut subscription = match doors.app.sessions.follow(&ctx, session, after).await {
        Ok(subscription) => subscription,
        Err(error) => {
            outbox.send(&failed(session, &error)).await;
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
                outbox.send(&failed(session, &error)).await;
                return;
            }
        };
        if !outbox.send(&message).await {
            return;
        }
    }
}

fn failed(session: SessionId, error: &AppError) -> ServerMessage {
    ServerMessage::Problem {
        session: Some(session),
        problem: problem(error),
    }
}
