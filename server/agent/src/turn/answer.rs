//! The phase that asks the model.

use server_llm::{
    Answer, CallTrace, Model, ModelError, ModelEvent, ModelInfo, ModelRequest, Piece, Voice,
};
use shared_types::{
    Event, SpanId, TurnId,
    event::{Finish, Part, Parts, TurnOutcome, Usage},
};
use tokio::sync::mpsc;

use super::{Next, Turn, TurnError};
use crate::{
    prompt::{self, Need},
    session::{Live, LiveSink, spoken},
};

/// Events of the model that may wait to be passed on.
const MODEL_EVENTS: usize = 64;

/// Text of a cancelled answer that is kept, and as much of its thoughts, in bytes.
const CANCELLED_TEXT_BYTES: usize = 256 * 1024;

/// The result of asking the model.
enum Heard {
    Answer(Answer),
    Failed(ModelError),
    TookTooLong,
    Cancelled,
}

impl Turn<'_> {
    /// Asks for the answer of this step and records it. Without one the turn ends.
    pub(super) async fn ask_model(&mut self, step: u32) -> Result<(), TurnError> {
        let model = match self.model() {
            Ok(model) => model,
            Err(reason) => return self.fail(reason).await,
        };
        let info = model.info();
        let window = self.engine.limits.model_window;
        if let Some(window) = window {
            // Where that is not enough the model is asked all the same: it counts better.
            self.make_room(step, &info, Need::Window(window)).await?;
        }
        let mut speech = Speech::new(&*self.ports.live, self.id, step);
        let mut attempt = 0;
        let heard = loop {
            attempt += 1;
            let trace = self.trace(step, attempt);
            match self.hear(&*model, trace, &mut speech).await {
                Heard::Failed(ModelError::Overflow(said)) => {
                    speech.take_back();
                    speech.asked_again();
                    let need = Need::Refused(window);
                    if !self.make_room(step, &info, need).await? {
                        let all = "all that may be left out of it is left out already";
                        return self.fail(format!("{said}; {all}")).await;
                    }
                }
                heard => break heard,
            }
        };
        if matches!(heard, Heard::Failed(_) | Heard::TookTooLong) {
            speech.take_back();
        }
        match heard {
            Heard::Answer(answer) => self.record_answer(step, info, answer).await,
            Heard::Failed(error) => self.fail(error.to_string()).await,
            Heard::TookTooLong => {
                let limit = spoken(self.engine.limits.model_time);
                self.fail(format!(
                    "the model did not finish its answer within {limit}; send the message again"
                ))
                .await
            }
            Heard::Cancelled if !speech.has_text() => Ok(()),
            Heard::Cancelled => {
                let said = Answer {
                    parts: speech.into_parts(),
                    finish: Finish::Cancelled,
                    usage: Usage::default(),
                    model: String::new(),
                };
                self.record_answer(step, info, said).await
            }
        }
    }

    /// Records what is left out; returns whether any more is.
    async fn make_room(
        &mut self,
        step: u32,
        model: &ModelInfo,
        need: Need,
    ) -> Result<bool, TurnError> {
        let place = (self.id, step);
        let tools = &self.tools;
        let made = prompt::make_room(&self.transcript, place, model, tools, need);
        let Some(event) = made else {
            return Ok(false);
        };
        self.record(event).await?;
        Ok(true)
    }

    /// The place of this worker's `attempt`-th call for the step in the turn's trace.
    fn trace(&self, step: u32, attempt: u32) -> Option<CallTrace> {
        let turn = self.ports.trace?;
        let of = |epoch, attempt| SpanId::of_model_call(self.id, step, epoch, attempt);
        let after = match attempt {
            // A worker that was lost here had asked as well.
            1 => self.interrupted.map(|epoch| of(epoch, 1)),
            later => Some(of(self.epoch, later - 1)),
        };
        Some(CallTrace {
            own: turn.with(of(self.epoch, attempt)),
            parent: turn.span,
            after,
        })
    }

    async fn hear(
        &self,
        model: &dyn Model,
        trace: Option<CallTrace>,
        speech: &mut Speech<'_>,
    ) -> Heard {
        let (info, tools) = (model.info(), &self.tools);
        let request = ModelRequest {
            trace,
            ..prompt::request(&self.transcript, self.id, &info, tools)
        };
        let (sender, mut events) = mpsc::channel(MODEL_EVENTS);
        let answer = model.answer(request, sender);
        let answer = tokio::time::timeout(self.engine.limits.model_time, answer);
        tokio::pin!(answer);
        let heard = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break Heard::Cancelled,
                Some(event) = events.recv() => speech.hear(event),
                answer = &mut answer => break match answer {
                    Ok(Ok(answer)) => Heard::Answer(answer),
                    Ok(Err(error)) => Heard::Failed(error),
                    Err(_) => Heard::TookTooLong,
                },
            }
        };
        while let Ok(event) = events.try_recv() {
            speech.hear(event);
        }
        heard
    }

    /// Makes the answer durable; the last word of a turn in one commit with the turn's end.
    async fn record_answer(
        &mut self,
        step: u32,
        model: ModelInfo,
        answer: Answer,
    ) -> Result<(), TurnError> {
        let answered = Event::AnswerRecorded {
            turn: self.id,
            step,
            model: model.name,
            origin: Some(model.origin),
            parts: answer.parts,
            finish: answer.finish,
            usage: answer.usage,
        };
        // Known before it is durable: where it does not become so, this claim of the turn ends.
        self.transcript.apply(&answered, self.engine.clock.now());
        let mut events = vec![answered];
        if let Next::End { outcome, reason } = self.next()? {
            events.push(self.ended(outcome, reason));
        }
        self.ports.log.record(events.clone()).await?;
        if let [_, ended] = events.as_slice() {
            self.transcript.apply(ended, self.engine.clock.now());
        }
        Ok(())
    }

    async fn fail(&mut self, reason: String) -> Result<(), TurnError> {
        self.end(TurnOutcome::Failed, Some(reason)).await
    }
}

/// The answer of the current attempt as far as it was said, passed on to those who watch.
struct Speech<'a> {
    live: &'a dyn LiveSink,
    turn: TurnId,
    step: u32,
    attempt: u32,
    /// The attempts of requests that the model refused before this one.
    attempts_before: u32,
    /// The parts in the order in which they began.
    spoken: Vec<Spoken>,
}

/// One part of the answer.
struct Spoken {
    part: u32,
    voice: Voice,
    /// The bytes that were passed on.
    offset: u64,
    /// The beginning of it, kept for the case that the turn is cancelled.
    kept: String,
}

impl<'a> Speech<'a> {
    fn new(live: &'a dyn LiveSink, turn: TurnId, step: u32) -> Self {
        Self {
            live,
            turn,
            step,
            attempt: 1,
            attempts_before: 0,
            spoken: Vec::new(),
        }
    }

    fn hear(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Attempt { number } => {
                self.attempt = self.attempts_before + number;
                self.spoken.clear();
            }
            ModelEvent::Said(piece) => {
                let offset = self.say(&piece);
                self.live.publish(Live::Said {
                    turn: self.turn,
                    step: self.step,
                    attempt: self.attempt,
                    offset,
                    piece,
                });
            }
            ModelEvent::Retrying { after, reason } => {
                self.take_back();
                self.live.publish(Live::Notice {
                    turn: self.turn,
                    text: format!("the model is asked again in {}: {reason}", spoken(after)),
                });
            }
        }
    }

    /// Takes a piece; returns its place in its part.
    fn say(&mut self, piece: &Piece) -> u64 {
        let of_voice = self
            .spoken
            .iter()
            .filter(|known| known.voice == piece.voice);
        let kept: usize = of_voice.map(|known| known.kept.len()).sum();
        let room = CANCELLED_TEXT_BYTES.saturating_sub(kept);
        let known = (self.spoken.iter()).position(|known| known.part == piece.part);
        let place = known.unwrap_or_else(|| {
            self.spoken.push(Spoken {
                part: piece.part,
                voice: piece.voice,
                offset: 0,
                kept: String::new(),
            });
            self.spoken.len() - 1
        });
        let spoken = &mut self.spoken[place];
        let text = &piece.text;
        spoken
            .kept
            .push_str(&text[..text.floor_char_boundary(room)]);
        let offset = spoken.offset;
        spoken.offset += text.len() as u64;
        offset
    }

    /// True if words for the reader were said.
    fn has_text(&self) -> bool {
        let is_text = |known: &Spoken| known.voice == Voice::Text && !known.kept.is_empty();
        self.spoken.iter().any(is_text)
    }

    /// The parts of the answer so far, for an answer that was cancelled. The vendor's own state is left out,
    /// because half of it is worth nothing to the vendor.
    fn into_parts(self) -> Parts {
        let parts = self.spoken.into_iter().map(|spoken| match spoken.voice {
            Voice::Text => Part::Text { text: spoken.kept },
            Voice::Reasoning => Part::Reasoning {
                text: spoken.kept,
                signature: None,
            },
        });
        Parts(parts.collect())
    }

    /// Tells those who watch that what was said, if anything was, is void.
    fn take_back(&mut self) {
        if self.spoken.is_empty() {
            return;
        }
        self.spoken.clear();
        self.live.publish(Live::TakenBack {
            turn: self.turn,
            step: self.step,
            attempt: self.attempt,
        });
    }

    /// Another request follows, whose attempts are counted on.
    fn asked_again(&mut self) {
        self.attempts_before = self.attempt;
    }
}
