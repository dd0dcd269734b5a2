//! The phase that asks the model.
//!
//! A model that fails gives way to the next one of the chain. Each model is sent the conversation in its own form: a
//! vendor's own state goes back to its origin alone. What was asked is recorded in the ledger of usage together with
//! the event that it led to.

use std::{sync::Arc, time::Duration};

use server_llm::{Answer, CallTrace, Images, Model, ModelError, ModelInfo, ModelRequest};
use server_records::{ModelCall, ModelCost};
use shared_types::{
    Digest, Event, SpanId,
    event::{CompactedBecause, Finish, HookEvent, Part, TurnLimit, TurnOutcome, Usage},
};
use tokio::sync::mpsc;

use super::{
    Next, Turn, TurnError,
    hooked::Begins,
    limit,
    speech::{STOPPED, Speech},
};
use crate::{
    context::{
        compact::COMPACT_PERCENT,
        estimate::{Size, size},
        mask::{self, MASK_PERCENT},
    },
    prompt::{self, Need},
    session::{LogError, spoken},
    transcript::Transcript,
};

/// Events of the model that may wait to be passed on.
const MODEL_EVENTS: usize = 64;

/// Most images of a request; vendors take at least as many.
const IMAGES_SENT: usize = 50;

/// Most bytes of the images of a request. In base64 it stays below the 32 MB of the strictest vendor.
const IMAGES_SENT_BYTES: u64 = 20 * 1024 * 1024;

/// The reason to give up where there is no model.
pub(super) const NO_MODEL: &str =
    "no model is chosen; choose one with: gantry config set model NAME";

/// Part of the window up to which a request may grow, in percent; the answer needs the rest.
const FULL_PERCENT: usize = 90;

/// The result of asking a model.
pub(super) enum Heard {
    Answer(Answer),
    Failed(ModelError),
    TookTooLong,
    Cancelled,
}

/// The state of one step while models are asked for it.
pub(super) struct Asking<'a> {
    pub(super) step: u32,
    pub(super) speech: Speech<'a>,
    /// Requests so far, for the spans.
    pub(super) requests: u32,
    /// What was asked, for the ledger.
    pub(super) calls: Vec<ModelCall>,
    /// The tokens of the last request, as they were estimated by its text.
    estimated: usize,
    /// The reading of the monotonic clock at which it began.
    began: Duration,
}

impl<'a> Asking<'a> {
    pub(super) fn of(turn: &Turn<'a>, step: u32) -> Self {
        Self {
            step,
            speech: Speech::new(&*turn.ports.live, turn.id, step),
            requests: 0,
            calls: Vec::new(),
            estimated: 0,
            began: turn.engine.clock.monotonic(),
        }
    }
}

impl<'a> Turn<'a> {
    /// Asks for the answer of this step and records it. Without one the turn ends.
    pub(super) async fn ask_model(&mut self, step: u32) -> Result<(), TurnError> {
        if let Some(reason) = self.make_worktree(step).await? {
            return self.fail(reason, Vec::new()).await;
        }
        self.prepare().await?;
        let stopped = match step {
            1 => match self.before_first_step().await? {
                Begins::Asks => None,
                Begins::Refused(reason) => Some(reason),
                Begins::Shown => return self.end(TurnOutcome::Completed, None).await,
            },
            _ => self.after_batch(step).await?,
        };
        if let Some(reason) = stopped {
            return self.fail(reason, Vec::new()).await;
        }
        self.take_steers(step).await?;
        let chain = match self.chain().await {
            Ok(chain) => chain,
            Err(reason) => return self.fail(reason, Vec::new()).await,
        };
        let mut asking = Asking::of(self, step);
        let infos: Vec<_> = chain.iter().map(|model| model.info()).collect();
        let (mut place, mut was_told) = (0, false);
        while let Some(model) = chain.get(place) {
            let info = &infos[place];
            let asked_before = asking.calls.len();
            let heard = self.ask_one(model, info, &mut asking).await?;
            match (&heard, next_asked(&chain, place)) {
                (Heard::Failed(error), Some(next)) if error.falls_back() => {
                    asking.speech.take_back();
                    asking.speech.asked_again();
                    // A model that cools down was not asked, and that another one answers was said at the step before.
                    let was_asked = asking.calls.len() > asked_before;
                    if was_asked || was_told || !self.answered_last(&infos[next]) {
                        asking.speech.notice(gives_way(info, error, &infos[next]));
                        was_told = true;
                    }
                    place = next;
                }
                _ => return self.conclude(info, heard, asking).await,
            }
        }
        self.fail(NO_MODEL.to_owned(), asking.calls).await
    }

    /// Asks one model, with less of the conversation where it refuses it as too long.
    async fn ask_one(
        &mut self,
        model: &Arc<dyn Model>,
        info: &ModelInfo,
        asking: &mut Asking<'a>,
    ) -> Result<Heard, TurnError> {
        let window = info.profile.window.or(self.engine.limits.model_window);
        self.window = window;
        if let Some(window) = window {
            // Where that is not enough the model is asked all the same: it counts better.
            if let Some(stopped) = self.fit(model, info, asking, window).await? {
                return Ok(stopped);
            }
        }
        let mut was_compacted = false;
        loop {
            asking.requests += 1;
            let trace = self.trace(asking.step, asking.requests);
            let heard = self.hear(&**model, trace, asking).await?;
            self.note_calls(info, &heard, asking);
            let Heard::Failed(ModelError::Overflow(said)) = heard else {
                return Ok(heard);
            };
            asking.speech.take_back();
            asking.speech.asked_again();
            // The model would refuse the wish for a summary as well.
            if !std::mem::replace(&mut was_compacted, true)
                && self.compact_without_model(info, asking).await?
            {
                continue;
            }
            if !self
                .make_room(asking.step, info, Need::Refused(window))
                .await?
            {
                let all = "all that may be left out of it is left out already";
                return Ok(Heard::Failed(ModelError::Refused(format!("{said}; {all}"))));
            }
        }
    }

    /// Makes the next request fit into the window. Returns an end of the asking, where the turn was stopped meanwhile.
    async fn fit(
        &mut self,
        model: &Arc<dyn Model>,
        info: &ModelInfo,
        asking: &mut Asking<'a>,
        window: usize,
    ) -> Result<Option<Heard>, TurnError> {
        let percent = |part: usize| window.saturating_mul(part) / 100;
        let mut now = self.size(info);
        if now.tokens > percent(MASK_PERCENT) && self.mask(info, asking.step, (window, now)).await?
        {
            now = self.size(info);
        }
        if now.tokens > percent(COMPACT_PERCENT) {
            let because = CompactedBecause::NearWindow;
            let stopped = self.compact(model, info, asking, because, "").await?;
            if stopped.is_some() {
                return Ok(stopped);
            }
            now = self.size(info);
        }
        if now.tokens > percent(FULL_PERCENT) {
            // Bytes of text that fill the window.
            let request = prompt::request(&self.transcript, self.id, info, &self.tools);
            let bytes = prompt::bytes(&request).saturating_mul(window) / now.tokens.max(1);
            let need = Need::Window(bytes / prompt::BYTES_PER_TOKEN);
            self.make_room(asking.step, info, need).await?;
        }
        Ok(None)
    }

    /// The size of the next request to this model.
    pub(super) fn size(&self, info: &ModelInfo) -> Size {
        self.size_with(&self.transcript, info)
    }

    /// The size of the next request to this model, if this were the log.
    pub(super) fn size_with(&self, transcript: &Transcript, info: &ModelInfo) -> Size {
        let request = prompt::request(transcript, self.id, info, &self.tools);
        size(transcript, info, &request)
    }

    /// Has old results sent in short, where that pays; returns whether it does.
    async fn mask(
        &mut self,
        info: &ModelInfo,
        step: u32,
        (window, now): (usize, Size),
    ) -> Result<bool, TurnError> {
        let Some(calls) = mask::plan(&self.transcript, self.id, info, window) else {
            return Ok(false);
        };
        let masked = |after| Event::ResultsMasked {
            turn: self.id,
            step,
            calls: calls.clone(),
            before: now.tokens as u64,
            after,
        };
        let mut then = self.transcript.clone();
        then.apply(&masked(0), self.engine.clock.now());
        let event = masked(self.size_with(&then, info).tokens as u64);
        self.record(event).await?;
        Ok(true)
    }

    /// Notes the attempts that were made, for the ledger.
    pub(super) fn note_calls(&self, info: &ModelInfo, heard: &Heard, asking: &mut Asking<'a>) {
        let is_stopped = matches!(heard, Heard::Cancelled | Heard::TookTooLong);
        let attempts = asking.speech.take_attempts(is_stopped);
        let price = info.profile.price.as_ref();
        let calls = attempts.into_iter().map(|attempted| ModelCall {
            turn: self.id,
            step: asking.step,
            epoch: self.epoch,
            attempt: attempted.number,
            model: info.name.clone(),
            provider: info.profile.provider.clone(),
            paid_by: info.paid_by,
            usage: attempted.usage,
            // The vendor did not say what a call cost that was stopped in the middle. That is not free.
            cost: price
                .filter(|_| attempted.outcome != STOPPED)
                .map(|price| ModelCost {
                    micros: price.cost(&attempted.usage),
                    price_date: price.date.clone(),
                }),
            duration: attempted.duration,
            first_byte: attempted.first_byte,
            outcome: attempted.outcome,
        });
        // The practice model is no vendor's, and costs nothing.
        asking.calls.extend(calls.filter(|_| !info.practice));
    }

    /// Records the end of the step.
    pub(super) async fn conclude(
        &mut self,
        info: &ModelInfo,
        heard: Heard,
        mut asking: Asking<'_>,
    ) -> Result<(), TurnError> {
        if matches!(heard, Heard::Failed(_) | Heard::TookTooLong) {
            asking.speech.take_back();
        }
        let Asking {
            step,
            speech,
            calls,
            estimated,
            began,
            ..
        } = asking;
        let took = self.engine.clock.monotonic().saturating_sub(began);
        let asked = Asked {
            step,
            estimated: estimated as u64,
            model_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            calls: Vec::new(),
        };
        match heard {
            Heard::Answer(answer) => {
                self.record_answer(info, answer, Asked { calls, ..asked })
                    .await
            }
            Heard::Failed(error) => self.fail(error.to_string(), calls).await,
            Heard::TookTooLong => {
                let limit = spoken(self.engine.limits.model_time);
                let reason = format!(
                    "the model did not finish its answer within {limit}; send the message again"
                );
                self.fail(reason, calls).await
            }
            Heard::Cancelled if !speech.has_text() => {
                Ok(self.ports.log.record_paid(Vec::new(), calls).await?)
            }
            Heard::Cancelled => {
                let said = Answer {
                    parts: speech.into_parts(),
                    finish: Finish::Cancelled,
                    usage: Usage::default(),
                    model: String::new(),
                    first_byte: None,
                };
                self.record_answer(info, said, Asked { calls, ..asked })
                    .await
            }
        }
    }

    /// True if this model gave the last answer of the session.
    fn answered_last(&self, model: &ModelInfo) -> bool {
        let turns = self.transcript.up_to(self.id).iter().rev();
        let last = turns.filter_map(|turn| turn.steps.last()).next();
        last.is_some_and(|step| {
            step.model == model.name && step.origin.as_ref() == Some(&model.origin)
        })
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

    /// Asks the model. One that refuses a request with images is asked once more without them: it may not read one of
    /// them, and would refuse each later turn as well.
    async fn hear(
        &self,
        model: &dyn Model,
        trace: Option<CallTrace>,
        asking: &mut Asking<'a>,
    ) -> Result<Heard, TurnError> {
        let (info, tools) = (model.info(), &self.tools);
        let request = prompt::request(&self.transcript, self.id, &info, tools);
        asking.estimated = size(&self.transcript, &info, &request).raw;
        let speech = &mut asking.speech;
        let request = ModelRequest {
            trace,
            images: self.images(&request).await?,
            ..request
        };
        let in_words = (!request.images.is_empty()).then(|| ModelRequest {
            images: Images::new(),
            trace: None,
            ..request.clone()
        });
        match (self.hear_once(model, request, speech).await?, in_words) {
            (Heard::Failed(ModelError::Refused(_)), Some(in_words)) => {
                self.hear_once(model, in_words, speech).await
            }
            (heard, _) => Ok(heard),
        }
    }

    pub(super) async fn hear_once(
        &self,
        model: &dyn Model,
        request: ModelRequest,
        speech: &mut Speech<'_>,
    ) -> Result<Heard, TurnError> {
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
        Ok(heard)
    }

    /// The bytes of the images in a request: of the newest, as many as vendors take at once.
    async fn images(&self, request: &ModelRequest) -> Result<Images, TurnError> {
        let digests = newest_images(request);
        match digests.is_empty() {
            true => Ok(Images::new()),
            false => Ok(self.ports.log.images(&digests).await?),
        }
    }

    /// Makes the answer durable; the last word of a turn in one commit with the turn's end.
    async fn record_answer(
        &mut self,
        model: &ModelInfo,
        answer: Answer,
        asked: Asked,
    ) -> Result<(), TurnError> {
        let Asked {
            step,
            estimated,
            model_ms,
            calls,
        } = asked;
        let answered = Event::AnswerRecorded {
            turn: self.id,
            step,
            model: model.name.clone(),
            origin: Some(model.origin.clone()),
            parts: answer.parts,
            finish: answer.finish,
            usage: answer.usage,
            estimated,
            model_ms,
            limit: self.limit(),
        };
        // Known before it is durable: where it does not become so, this claim of the turn ends.
        self.transcript.apply(&answered, self.engine.clock.now());
        let mut events = vec![answered];
        match self.next().await? {
            // Hooks are asked first.
            Next::End {
                outcome: TurnOutcome::Completed,
                ..
            } if self.has_hooks(HookEvent::AgentStop) => {}
            // Its worktree is settled first.
            Next::End { .. } if self.has_worktree() => {}
            Next::End { outcome, reason } => events.push(self.ended(outcome, reason)),
            _ => {}
        }
        let recorded = self.ports.log.record_paid(events.clone(), calls.clone());
        match recorded.await {
            // A message joined the turn before its last word: the turn goes on behind that.
            Err(LogError::UntakenSteers) => {
                events.truncate(1);
                self.ports.log.record_paid(events.clone(), calls).await?;
                self.hear_steers().await?;
            }
            recorded => recorded?,
        }
        if let [_, ended] = events.as_slice() {
            self.transcript.apply(ended, self.engine.clock.now());
        }
        Ok(())
    }

    /// The limit that the turn has reached.
    fn limit(&self) -> Option<TurnLimit> {
        self.transcript.turn(self.id)?.limit
    }

    /// Ends the turn as failed. A turn that has reached its limit ends for that reason, also without a summary.
    pub(super) async fn fail(
        &mut self,
        reason: String,
        calls: Vec<ModelCall>,
    ) -> Result<(), TurnError> {
        let reason = match self.limit() {
            Some(limit) => limit::reason(limit, false),
            None => reason,
        };
        self.before_failure(&reason).await?;
        self.settle_worktree().await?;
        let ended = self.ended(TurnOutcome::Failed, Some(reason));
        self.ports
            .log
            .record_paid(vec![ended.clone()], calls)
            .await?;
        self.transcript.apply(&ended, self.engine.clock.now());
        Ok(())
    }
}

/// A step whose answer is to be recorded.
struct Asked {
    step: u32,
    /// The tokens of its request, as they were estimated by its text.
    estimated: u64,
    /// The time that it took to ask, in milliseconds.
    model_ms: u64,
    calls: Vec<ModelCall>,
}

/// The newest images of a request, each once, within what vendors take.
fn newest_images(request: &ModelRequest) -> Vec<Digest> {
    let (mut digests, mut left) = (Vec::new(), IMAGES_SENT_BYTES);
    let messages = request.messages.iter().rev();
    for part in messages.flat_map(|message| message.parts().0.iter().rev()) {
        let Part::Image { digest, bytes, .. } = part else {
            continue;
        };
        if digests.contains(digest) {
            continue;
        }
        let Some(rest) = left.checked_sub(*bytes) else {
            break;
        };
        if digests.len() == IMAGES_SENT {
            break;
        }
        left = rest;
        digests.push(*digest);
    }
    digests
}

/// The place of the model that is asked after the one at `place`: the next one that is not left alone, or the last one.
fn next_asked(chain: &[Arc<dyn Model>], place: usize) -> Option<usize> {
    let mut left = place + 1..chain.len();
    let last = left.clone().next_back();
    left.find(|next| !chain[*next].is_left_alone()).or(last)
}

/// The words for people where a model gives way to another one. That one is asked, and may fail as well.
fn gives_way(model: &ModelInfo, error: &ModelError, next: &ModelInfo) -> String {
    let (place, brief) = (model.place(), error.brief());
    match (model.name == next.name, model.place() == next.place()) {
        (true, true) => format!("{place} {brief}; another key is used for {}", next.name),
        (_, true) => format!("{place} {brief}; asking {} instead", next.name),
        (_, false) => format!(
            "{place} {brief}; asking {} instead ({})",
            next.name,
            next.place()
        ),
    }
}
