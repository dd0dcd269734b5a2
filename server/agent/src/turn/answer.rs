//! The phase that asks the model.

use server_llm::{Answer, ModelError, ModelEvent};
use shared_types::{
    Event, TurnId,
    event::{Finish, TurnOutcome, Usage},
};
use tokio::sync::mpsc;

use super::{Turn, TurnError};
use crate::{
    prompt,
    session::{Live, LiveSink, spoken},
};

/// Events of the model that may wait to be passed on.
const MODEL_EVENTS: usize = 64;

/// Text of a cancelled answer that is kept, in bytes.
const CANCELLED_TEXT_BYTES: usize = 256 * 1024;

/// What came of asking.
enum Heard {
    Answer(Answer),
    Failed(ModelError),
    TookTooLong,
    Cancelled,
}

impl Turn<'_> {
    /// Asks for the answer of this step and records it. Without one the turn ends.
    pub(super) async fn ask_model(&mut self, step: u32) -> Result<(), TurnError> {
        let mut speech = Speech::new(&*self.ports.live, self.id, step);
        match self.hear(&mut speech).await {
            Heard::Answer(answer) => self.record_answer(step, answer).await,
            Heard::Failed(error) => self.fail(error.to_string()).await,
            Heard::TookTooLong => {
                let limit = spoken(self.engine.limits.model_time);
                self.fail(format!(
                    "the model did not finish its answer within {limit}; send the message again"
                ))
                .await
            }
            Heard::Cancelled if speech.text.is_empty() => Ok(()),
            Heard::Cancelled => {
                let said = Answer {
                    text: speech.text,
                    calls: Vec::new(),
                    finish: Finish::Cancelled,
                    usage: Usage::default(),
                };
                self.record_answer(step, said).await
            }
        }
    }

    async fn hear(&self, speech: &mut Speech<'_>) -> Heard {
        let request = prompt::request(&self.transcript, self.id, &self.engine.tools);
        let (sender, mut events) = mpsc::channel(MODEL_EVENTS);
        let answer = self.engine.model.answer(request, sender);
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

    async fn record_answer(&mut self, step: u32, answer: Answer) -> Result<(), TurnError> {
        self.record(Event::AnswerRecorded {
            turn: self.id,
            step,
            model: self.engine.model.info().name,
            text: answer.text,
            calls: answer.calls,
            finish: answer.finish,
            usage: answer.usage,
        })
        .await
    }

    async fn fail(&mut self, reason: String) -> Result<(), TurnError> {
        self.end(TurnOutcome::Failed, Some(reason)).await
    }
}

/// What the model says in its current attempt, passed on as it says it.
struct Speech<'a> {
    live: &'a dyn LiveSink,
    turn: TurnId,
    step: u32,
    attempt: u32,
    offset: u64,
    text: String,
}

impl<'a> Speech<'a> {
    fn new(live: &'a dyn LiveSink, turn: TurnId, step: u32) -> Self {
        Self {
            live,
            turn,
            step,
            attempt: 1,
            offset: 0,
            text: String::new(),
        }
    }

    fn hear(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Attempt { number } => {
                self.attempt = number;
                self.offset = 0;
                self.text.clear();
            }
            ModelEvent::Text(text) => self.say(text),
            ModelEvent::Retrying { after, reason } => self.live.publish(Live::Notice {
                turn: self.turn,
                text: format!("the model is asked again in {}: {reason}", spoken(after)),
            }),
        }
    }

    fn say(&mut self, text: String) {
        let room = CANCELLED_TEXT_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
        let offset = self.offset;
        self.offset += text.len() as u64;
        self.live.publish(Live::Text {
            turn: self.turn,
            step: self.step,
            attempt: self.attempt,
            offset,
            text,
        });
    }
}
