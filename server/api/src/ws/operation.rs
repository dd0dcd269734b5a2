//! `GET /api/v1/operations/{id}/stream`: a client reads one operation as it happens, and passes input,
//! sizes and signals on to it.
//!
//! The next event of the operation is taken once there is room for it in the client's queue, so a client
//! that reads slowly makes only its own reading wait. Input is handed over one piece at a time; while
//! one waits for the operation, at most one more is read.

mod hands;

use std::{ops::ControlFlow, sync::Arc};

use axum::{
    Extension,
    extract::{Query, Request, State, rejection::QueryRejection, ws::close_code},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde::{Deserialize, de::IgnoredAny};
use server_app::{
    AppError, Attached, GuardedReader, OpContext, OperationView, OutputStream, rights::Action,
};
use shared_api::{
    BinaryFrame, Channel, MAX_BINARY_FRAME_BYTES, OperationClientMessage, OperationServerMessage,
    StreamName, TerminalSize,
};
use shared_sandbox::{Control, Controls, Input, OperationEvent, Outcome};
use shared_types::{
    OperationId, Refusal,
    limits::{MAX_NUMBER, OUTPUT_CHUNK_BYTES},
};
use tokio_tungstenite::tungstenite::Message;

use self::hands::Hands;
use super::{
    conversation::{Conversation, End, Opening},
    farewell::close_frame,
    outbox::{Asides, MessageRoom, Outbox, json},
};
use crate::{
    Doors,
    edge::seats::{self, Seat, Seats},
    named::read_by_name,
    rest::{Id, Refused, SignedStream, problem, refused, to_operation, to_signal, to_size},
    words,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    /// The offset from which stdout is sent.
    #[serde(default)]
    stdout: u64,
    /// The same of stderr.
    #[serde(default)]
    stderr: u64,
    /// See [`SignedStream`].
    #[serde(default, rename = "ticket")]
    _ticket: IgnoredAny,
}

pub(super) async fn upgrade(
    SignedStream(ctx): SignedStream,
    State(doors): State<Doors>,
    Extension(seats): Extension<Seats>,
    Id(id): Id<OperationId>,
    query: Result<Query<From>, QueryRejection>,
    request: Request,
) -> Result<Response, Response> {
    let answer = |error: AppError| Refused::from(error).into_response();
    let from = offsets(query).map_err(answer)?;
    let (mut parts, _) = request.into_parts();
    let opening = Opening::of(&mut parts, &seats).map_err(|error| error.into_response())?;
    let seat = seats
        .take(ctx.credential, seats::Kind::Operation)
        .map_err(|full| full.into_response())?;
    let attached = doors
        .app
        .operations
        .attach(&ctx, id, from)
        .await
        .map_err(answer)?;
    let begin = {
        let (ctx, doors) = (ctx.clone(), doors.clone());
        move |outbox| Following::of(attached, ctx, doors, outbox, seat)
    };
    Ok(opening.begin(ctx, doors, begin))
}

fn offsets(query: Result<Query<From>, QueryRejection>) -> Result<[u64; 2], AppError> {
    let Query(From { stdout, stderr, .. }) = query.map_err(words::of_query)?;
    match stdout.max(stderr) > MAX_NUMBER {
        true => Err(AppError::Invalid(format!(
            "no output is longer than {MAX_NUMBER} bytes; give the offsets that you have"
        ))),
        false => Ok([stdout, stderr]),
    }
}

/// One client that follows one operation.
struct Following {
    ctx: OpContext,
    doors: Doors,
    id: OperationId,
    /// The right that the client needs: to read, or also to pass input on.
    does: Action,
    /// True if the client reports the output that it has stored: no other reader stores it.
    is_download: bool,
    reading: GuardedReader,
    controls: Arc<dyn Controls>,
    hands: Hands,
    outbox: Outbox,
    asides: Asides,
    /// The room for the next message.
    room: Option<MessageRoom>,
    /// The message to send before the next event.
    rest: Option<OperationUpdate>,
    /// The operation, where it had ended when the client came.
    ended: Option<OperationView>,
    seat: Seat,
}

/// The messages about the operation to the client.
enum OperationUpdate {
    /// The operation when the client came.
    First(Box<OperationView>),
    /// Output, which may need more than one message.
    Output(OutputStream, u64, Bytes),
    /// Anything else.
    Event(OperationEvent),
    /// There is nothing more, and it has not ended.
    BrokenOff,
    /// Its user may not use its runner any more.
    TakenAway,
}

/// The events on the server's side.
enum ServerEvent {
    /// There is something to tell, and room for it.
    Tell(MessageRoom, OperationUpdate),
    /// Input was handed over, something was done to the process, or an aside was sent.
    Passed(Result<(), Refusal>),
}

impl Following {
    fn of(attached: Attached, ctx: OpContext, doors: Doors, outbox: Outbox, seat: Seat) -> Self {
        let Attached {
            view,
            does,
            reading,
            controls,
        } = attached;
        Self {
            ctx,
            doors,
            id: view.id,
            does,
            is_download: matches!(view.kind.as_str(), "download" | "pack"),
            reading,
            hands: Hands::of(controls.clone()),
            controls,
            asides: Asides::to(outbox.clone()),
            outbox,
            room: None,
            ended: view.ended_at.is_some().then(|| view.clone()),
            rest: Some(OperationUpdate::First(Box::new(view))),
            seat,
        }
    }
}

impl Conversation for Following {
    const MAX_MESSAGE_BYTES: usize = MAX_BINARY_FRAME_BYTES;

    // A quarter of the largest piece of input.
    const READ_AT_ONCE: usize = 16 * 1024;

    type Event = ServerEvent;

    fn listens(&self) -> bool {
        self.hands.have_room() && self.asides.have_room()
    }

    async fn may_go_on(&mut self, ctx: &OpContext) -> Result<(), AppError> {
        let operations = &self.doors.app.operations;
        operations.require(ctx, self.does, self.id).await?;
        self.ctx = ctx.clone();
        Ok(())
    }

    async fn hear(&mut self, message: Message) -> ControlFlow<End> {
        let heard = match message {
            Message::Binary(bytes) => self.hear_piece(bytes),
            Message::Text(text) => match read_by_name(&text) {
                Ok(said) => self.hear_words(said).await,
                Err(error) => Err(AppError::Invalid(format!(
                    "the message was not understood: {error}"
                ))),
            },
            _ => Ok(()),
        };
        if let Err(error) = heard {
            self.complain(&error);
        }
        ControlFlow::Continue(())
    }

    async fn event(&mut self) -> ServerEvent {
        tokio::select! {
            (room, told) = told(&self.outbox, &mut self.room, &mut self.rest, &mut self.reading) => {
                ServerEvent::Tell(room, told)
            }
            passed = self.hands.passed() => ServerEvent::Passed(passed),
            () = self.asides.said() => ServerEvent::Passed(Ok(())),
        }
    }

    async fn handle(&mut self, event: ServerEvent) -> ControlFlow<End> {
        match event {
            ServerEvent::Tell(room, told) => return self.tell(room, told).await,
            ServerEvent::Passed(Ok(())) => {}
            ServerEvent::Passed(Err(refusal)) => self.complain(&refused(refusal)),
        }
        ControlFlow::Continue(())
    }

    fn leave(self) -> Seat {
        self.seat
    }

    fn reconnect(within_ms: u32) -> Option<Message> {
        json(&OperationServerMessage::Reconnect { within_ms })
    }
}

/// Waits for room, then for the next message. Safe to cancel: messages that were taken stay in place.
async fn told(
    outbox: &Outbox,
    room: &mut Option<MessageRoom>,
    rest: &mut Option<OperationUpdate>,
    reading: &mut GuardedReader,
) -> (MessageRoom, OperationUpdate) {
    if room.is_none() {
        *room = outbox.room(MAX_BINARY_FRAME_BYTES).await;
    }
    if rest.is_none() {
        *rest = Some(match reading.next().await {
            Ok(Some(OperationEvent::Output {
                stream,
                offset,
                data,
            })) => OperationUpdate::Output(stream, offset, data),
            Ok(Some(event)) => OperationUpdate::Event(event),
            Ok(None) => OperationUpdate::BrokenOff,
            Err(_) => OperationUpdate::TakenAway,
        });
    }
    match (room.take(), rest.take()) {
        (Some(room), Some(told)) => (room, told),
        // The client takes nothing any more, which ends the conversation elsewhere.
        _ => std::future::pending().await,
    }
}

impl Following {
    fn complain(&mut self, error: &AppError) {
        let problem = problem(error);
        self.asides.say(OperationServerMessage::Problem { problem });
    }

    async fn tell(&mut self, room: MessageRoom, told: OperationUpdate) -> ControlFlow<End> {
        let message = match told {
            OperationUpdate::First(view) => OperationServerMessage::Operation {
                operation: Box::new(to_operation(*view)),
            },
            OperationUpdate::Output(stream, offset, data) => {
                self.tell_output(room, stream, offset, data);
                return ControlFlow::Continue(());
            }
            OperationUpdate::Event(OperationEvent::Ended(outcome)) => {
                let view = match self.ended.take() {
                    Some(view) => Ok(view),
                    None => self.doors.app.operations.view(&self.ctx, self.id).await,
                };
                let end = ended(view, outcome);
                put(room, &end);
                return ControlFlow::Break(End::With(close_frame(close_code::NORMAL, "")));
            }
            OperationUpdate::Event(event) => match to_message(event) {
                Some(message) => message,
                None => return ControlFlow::Continue(()),
            },
            OperationUpdate::TakenAway => return ControlFlow::Break(End::TakenAway),
            OperationUpdate::BrokenOff if self.doors.app.stopping().now_or_never().is_some() => {
                return ControlFlow::Break(End::Stops);
            }
            OperationUpdate::BrokenOff => {
                let why = "the operation is read elsewhere; connect again";
                return ControlFlow::Break(End::With(close_frame(close_code::AGAIN, why)));
            }
        };
        put(room, &message);
        ControlFlow::Continue(())
    }

    fn tell_output(
        &mut self,
        room: MessageRoom,
        stream: OutputStream,
        offset: u64,
        mut data: Bytes,
    ) {
        let piece = data.split_to(data.len().min(OUTPUT_CHUNK_BYTES));
        if !data.is_empty() {
            let next = offset.saturating_add(piece.len() as u64);
            self.rest = Some(OperationUpdate::Output(stream, next, data));
        }
        let piece = BinaryFrame {
            channel: Channel::Output(name(stream)),
            offset,
            data: piece,
        };
        room.put(Message::Binary(piece.encode()));
    }

    fn hear_piece(&mut self, bytes: Bytes) -> Result<(), AppError> {
        let invalid = |why: String| Err(AppError::Invalid(why));
        match BinaryFrame::decode(bytes) {
            Ok(BinaryFrame {
                channel: Channel::Input,
                offset,
                data,
            }) => {
                self.hands.take(Input {
                    offset,
                    data,
                    end: false,
                });
                Ok(())
            }
            Ok(_) => invalid("a client sends input, whose messages begin with 0".to_owned()),
            Err(error) => invalid(error.to_string()),
        }
    }

    async fn hear_words(&mut self, said: OperationClientMessage) -> Result<(), AppError> {
        match said {
            OperationClientMessage::InputEnd { offset }
            | OperationClientMessage::Taken { offset, .. }
                if offset > MAX_NUMBER =>
            {
                Err(AppError::Invalid(format!(
                    "no input and no output is longer than {MAX_NUMBER} bytes"
                )))
            }
            OperationClientMessage::InputEnd { offset } => {
                self.hands.take(Input {
                    offset,
                    data: Bytes::new(),
                    end: true,
                });
                Ok(())
            }
            OperationClientMessage::Resize { rows, columns } => {
                let size = to_size(TerminalSize { rows, columns })?;
                self.hands.do_next(Control::Resize(size))
            }
            OperationClientMessage::Signal { signal } => {
                self.hands.do_next(Control::Signal(to_signal(signal)))
            }
            OperationClientMessage::Taken { stream, offset } if self.is_download => {
                let stream = match stream {
                    StreamName::Stdout => OutputStream::Stdout,
                    StreamName::Stderr => OutputStream::Stderr,
                };
                self.controls.commit(stream, offset).await;
                Ok(())
            }
            OperationClientMessage::Taken { .. } => Err(AppError::Invalid(
                "the server stores the output of this operation; only that of a download is taken"
                    .to_owned(),
            )),
        }
    }
}

/// The operation with its end, which may not be stored yet.
fn ended(view: Result<OperationView, AppError>, outcome: Outcome) -> OperationServerMessage {
    match view {
        Ok(mut view) => {
            view.outcome.get_or_insert(outcome);
            OperationServerMessage::Ended {
                operation: Box::new(to_operation(view)),
            }
        }
        Err(error) => OperationServerMessage::Problem {
            problem: problem(&error),
        },
    }
}

fn put(room: MessageRoom, message: &OperationServerMessage) {
    if let Some(message) = json(message) {
        room.put(message);
    }
}

/// The client's message for an event other than output and the end.
fn to_message(event: OperationEvent) -> Option<OperationServerMessage> {
    Some(match event {
        OperationEvent::Accepted => OperationServerMessage::Accepted,
        OperationEvent::Gap { stream, from, to } => OperationServerMessage::Gap {
            stream: name(stream),
            from,
            to,
        },
        OperationEvent::Unreachable { since } => OperationServerMessage::Unreachable { since },
        OperationEvent::Reachable => OperationServerMessage::Reachable,
        OperationEvent::InputTaken(offset) => OperationServerMessage::InputTaken { offset },
        OperationEvent::Output { .. } | OperationEvent::Ended(_) => return None,
    })
}

fn name(stream: OutputStream) -> StreamName {
    match stream {
        OutputStream::Stdout => StreamName::Stdout,
        OutputStream::Stderr => StreamName::Stderr,
    }
}
